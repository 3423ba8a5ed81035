"""``save``: geometries, rays or results into a file, whole or not at all."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes, Rays
from raybox.hits import AllHits, Hits
from raybox.hits.object_hits import ObjectHits
from raybox.hits.tables import LabelNames
from raybox.io.formats import csv_table, parquet, ply_meshes, point_files, saved_arrays, saved_tables
from raybox.io.formats import numpy_arrays as arrays
from raybox.io.formats.columns import RANGES, column_names
from raybox.io.formats.common import (
    SceneGeometry,
    checked_texts,
    extension_problem,
    file_error,
    path_of,
    require,
)
from raybox.scene.scene import Scene
from raybox.validation import Array

Columns = Mapping[str, Array]
Results: TypeAlias = Hits | AllHits | ObjectHits
Saveable: TypeAlias = SceneGeometry | Sequence[SceneGeometry] | Scene | Rays | Results | Columns


class Options(NamedTuple):
    """The keywords of `save`."""

    ids: Sequence[str] | None = None
    labels: LabelNames | None = None


class Prepared(NamedTuple):
    """The function that writes a file, and the table that is written beside it."""

    write: Callable[[BinaryIO], None]
    table: Columns = {}  # noqa: RUF012 - a default that is never written to


@in_default_environment
def save(
    path: str | os.PathLike[str],
    content: Saveable,
    *,
    ids: Sequence[str] | None = None,
    labels: LabelNames | None = None,
) -> None:
    """Write geometries, rays or results into a file of the format of its extension.

    The file is written under another name beside its place and then renamed: there is never half a file, and
    an older one stays until the new one is complete.

    Parameters
    ----------
    path : str or path
        The file to write; ``docs/files.md`` lists the columns of each kind of content. ``.npz`` holds all
        content, and loads again as what was saved. ``.npy .csv .parquet`` are tables of boxes, rays and
        results, ``.parquet`` of a mesh, too; ``.ply`` are meshes; ``.las .laz .ply .pcd`` points of `Hits`.
    content : geometry, list of geometries, Scene, Rays, Hits, AllHits, ObjectHits or dict
        The content. Geometries (Boxes, Mesh, Grid, Planes, Instances) are saved with ids, labels and objects,
        a scene as its geometry. A dict of columns of one length is written as it is.
    ids : sequence of str, optional
        One for each box of the scene: a column ``id`` beside the boxes, or beside the ``index`` of results.
        Without, those of the boxes and `Hits.ids`, if there are any.
    labels : bool, str or sequence of str, optional
        Of results: True for all labels of what was hit, or names of some, as for `Hits.to_dict`. None: all in
        files of points, none in tables.

    Notes
    -----
    Texts among points are codes, whose table is ``PATH.labels.csv``; it also holds the ids and labels of a
    mesh in PLY. The file of an earlier `save` is removed if there are none. Misses have no points, and are
    left out. LAS rounds coordinates to multiples of a power of ten, at most 1e-8 of the extent.

    Raises
    ------
    FileFormatError
        The file cannot be written there, or its extension is of no format that raybox writes.
    InvalidInput
        The content is of a type that this format does not hold, or there is not one id for each box.
    RayboxError
        The format needs a package that is not installed; the text gives the command.

    Examples
    --------
    >>> import raybox as rb, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     boxes = rb.Boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 1]])
    ...     rb.save(f"{folder}/two.csv", boxes, ids=["a", "b"])
    ...     print(open(f"{folder}/two.csv").read())
    min_x,min_y,min_z,max_x,max_y,max_z,id
    0.0,0.0,0.0,1.0,1.0,1.0,a
    2.0,0.0,0.0,3.0,1.0,1.0,b
    <BLANKLINE>
    """
    target = path_of(path)
    check_target(target)
    prepared = WRITERS[target.suffix.lower()](_plain_content(content, ids), Options(ids, labels))
    with atomic_file(target) as file:
        prepared.write(file)
        _write_table(target, prepared.table)


def _plain_content(content: Saveable, ids: Sequence[str] | None) -> Saveable:
    """Return the geometry of a scene, and boxes with ids as such; other content as it is."""
    if isinstance(content, Scene):
        content = content.geometry
    if isinstance(content, Boxes) and ids is not None:
        if len(ids) != len(content):
            raise InvalidInput(f"ids must name every box: got {len(ids)} for {len(content)} boxes")
        return Boxes(content.lower, content.upper, ids=checked_texts(ids), labels=content.labels or None)
    return content


def _write_table(target: Path, table: Columns) -> None:
    """Write the table beside a file; remove that of an earlier one if there is none."""
    beside = target.with_name(f"{target.name}.labels.csv")
    if table:
        with atomic_file(beside) as file:
            csv_table.write(file, table)
    elif target.suffix.lower() in point_files.SUFFIXES and beside.is_file():
        beside.unlink()


def check_target(path: Path, extensions: Sequence[str] = ()) -> None:
    """Raise `FileFormatError` if a file cannot be written there.

    For use before long work.
    """
    extensions = extensions or tuple(WRITERS)
    if path.suffix.lower() not in extensions:
        problem = extension_problem(path)
        raise file_error(path, f"cannot be written: {problem}", f"supported: {' '.join(extensions)}")
    if path.exists() and not path.is_file():
        raise file_error(path, "cannot be written: it is not a regular file", "give the path of a file")
    if not path.resolve().parent.is_dir():
        raise file_error(
            path, f"cannot be written: there is no folder {path.parent}", "make the folder first"
        )
    needed = {".parquet": ("pyarrow", "io"), ".las": ("laspy", "las"), ".laz": ("laspy", "las")}
    if path.suffix.lower() in needed:
        require(*needed[path.suffix.lower()], path.suffix.lower())


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write.

    It replaces `path` once complete, and is removed on failure.
    """
    target = path.resolve()
    part = target.with_name(f".{secrets.token_hex(6)}.raybox-part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, target)
    except OSError as error:
        raise file_error(
            path, f"cannot be written: {error.strerror or error}", "check the disk and its permissions"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def columns_of(content: Saveable, options: Options) -> Columns:
    """Return content as named columns of one length."""
    match content:
        case Boxes():
            return saved_tables.box_columns(content)
        case Rays():
            flat: dict[str, Array] = {}
            for name, array in _ray_arrays(content).items():
                flat |= _flat_columns(name, array)
            return flat
        case Hits() | AllHits() | ObjectHits():
            columns = content.to_dict(labels=options.labels or False)
            own = columns.pop("id", None)
            head = {name: columns.pop(name) for name in ("ray", "index", "object") if name in columns}
            return head | _id_column(head.get("index"), options.ids, own) | columns
        case Mapping():
            return content
    raise _not_saved(content, "tables of boxes, rays and results", "Save it as .npz")


def _not_saved(content: object, what: str, way_out: str) -> InvalidInput:
    return InvalidInput(f"files of this extension hold {what}; got {type(content).__name__}. {way_out}.")


def _csv(content: Saveable, options: Options) -> Prepared:
    labels = content.labels.keys() if isinstance(content, Boxes) else ()
    columns = {
        name: _with_blanks(column, name in labels) for name, column in columns_of(content, options).items()
    }
    return Prepared(partial(csv_table.write, columns=columns))


def _with_blanks(column: Array, is_label: bool) -> Array:
    """Return a column, with 1 and 0 for objects that are bools; NaN is None among labels, as it is read."""
    column = np.asarray(column)  # of a dict, it may be a list
    if column.dtype != object and not (is_label and np.isnan(column).any()):
        return column
    values = [
        int(value) if isinstance(value, bool) else value if value == value else None
        for value in column.tolist()
    ]
    return np.fromiter(values, dtype=object, count=len(values))


def _parquet(content: Saveable, options: Options) -> Prepared:
    if isinstance(content, Boxes | Mesh):
        of_boxes, of_mesh = saved_tables.box_columns, saved_tables.mesh_columns
        columns = of_boxes(content) if isinstance(content, Boxes) else of_mesh(content)
        return Prepared(partial(parquet.write, table=saved_tables.arrow_table(content, columns)))
    found = dict(columns_of(content, options))
    if isinstance(content, Hits):  # points of misses, and labels that are missing, are null
        missed = ~content.hit.ravel()
        found |= {name: np.ma.array(found[name], mask=missed) for name in ("x", "y", "z") if name in found}
        labels = found.keys() - content.to_dict().keys()
        found |= {n: np.ma.masked_invalid(found[n]) for n in labels if found[n].dtype.kind == "f"}
    return Prepared(partial(parquet.write, table=parquet.table_of(found)))


def _npz(content: Saveable, options: Options) -> Prepared:
    """Return the writer of arrays; of boxes without labels, in the form that all programs write."""
    match content:
        case Boxes() if not content.labels and _are_texts(content):
            ids = {} if content.ids is None else {"id": saved_arrays.id_array(content.ids)}
            found: Columns = {"lower": content.lower, "upper": content.upper} | ids
        case Boxes() | Mesh() | Grid() | Planes() | Instances() | list() | tuple():
            found = saved_arrays.arrays_of(content)
        case Rays():
            found = _ray_arrays(content)
        case _:
            found = {name: _plain(name, c) for name, c in columns_of(content, options).items()}
    return Prepared(partial(arrays.write_npz, arrays=found))


def _are_texts(boxes: Boxes) -> bool:
    return boxes.ids is None or all(isinstance(name, str) for name in boxes.ids.tolist())


def _npy(content: Saveable, options: Options) -> Prepared:
    return Prepared(partial(arrays.write_npy, table=_numpy_table(content, options)))


def _numpy_table(content: Saveable, options: Options) -> Array:
    """Return content as one table.

    Of numbers for rays, and boxes without ids and labels; else with named columns.
    """
    if isinstance(content, Boxes) and content.ids is None and not content.labels:
        return np.hstack([content.lower, content.upper])
    if isinstance(content, Rays):
        parts, width = _ray_arrays(content), content.ndim_space
        if "t_min" in parts and width == 2:
            raise InvalidInput("an .npy table has no room for the ranges of rays in 2D; save them as .npz")
        return np.column_stack(
            [a.reshape(-1) if n in RANGES else a.reshape(-1, width) for n, a in parts.items()]
        )
    columns = {name: _plain(name, column) for name, column in columns_of(content, options).items()}
    table = np.empty(
        len(next(iter(columns.values()), ())), dtype=[(name, c.dtype) for name, c in columns.items()]
    )
    for name, column in columns.items():
        table[name] = column
    return table


def _plain(name: str, column: Array) -> Array:
    """Return a column without objects of Python: missing texts are empty, missing numbers NaN."""
    column = np.asarray(column)  # of a dict, it may be a list
    if column.dtype != object:
        return column
    values = column.tolist()
    if all(value is None or isinstance(value, str) for value in values):
        return np.array(checked_texts(value or "" for value in values), dtype=str)
    floats = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    if any(
        value is not None and value != number for value, number in zip(values, floats.tolist(), strict=True)
    ):
        raise InvalidInput(f"{name!r} holds integers that are not exact in float64. Save it as .parquet.")
    return floats


def _ply(content: Saveable, options: Options) -> Prepared:
    if isinstance(content, Mesh):
        return Prepared(partial(ply_meshes.write, mesh=content), ply_meshes.attribute_table(content))
    return _points(content, options, ".ply", "meshes, and points of hits")


def _points(
    content: Saveable, options: Options, suffix: str, what: str = "points of hits, as of nearest"
) -> Prepared:
    if not isinstance(content, Hits):
        raise _not_saved(content, what, "Save it as .npz")
    columns = content.to_dict(labels=True if options.labels is None else options.labels)
    if options.ids is not None:
        columns |= _id_column(columns["index"], options.ids, None)
    points = point_files.points_of(columns, suffix)
    return Prepared(partial(point_files.write, points=points, suffix=suffix), points.table)


def _ray_arrays(rays: Rays) -> dict[str, Array]:
    """Return the arrays of rays; without ranges that are the usual ones."""
    ranges = {"t_min": rays.t_min, "t_max": rays.t_max}
    usual = (rays.t_min == 0.0).all() and (rays.t_max == np.inf).all()
    found: dict[str, Array] = {"origins": rays.origins, "directions": rays.directions}
    return found if usual else found | ranges


def _flat_columns(name: str, array: Array) -> dict[str, Array]:
    if name in RANGES:
        return {name: array.reshape(-1)}
    flat = array.reshape(-1, array.shape[-1])
    return dict(zip(column_names(name, flat.shape[1]), flat.T, strict=True))


def _id_column(
    index: NDArray[np.int64] | None, ids: Sequence[str] | None, own: Array | None
) -> dict[str, Array]:
    """Return the column of the ids of the boxes hit, of ids or else of the hits' own.

    "" for a miss; no column without ids.
    """
    if ids is None or index is None:
        return {} if own is None else {"id": np.where(own == None, "", own).astype(str)}  # noqa: E711
    return {"id": np.array([*checked_texts(ids), ""], dtype=str)[index]}


WRITERS: dict[str, Callable[[Saveable, Options], Prepared]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".parquet": _parquet,
    ".ply": _ply,
    **{name: partial(_points, suffix=name) for name in (".las", ".laz", ".pcd")},
}
