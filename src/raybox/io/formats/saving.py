"""``save``: geometries, rays or results into a file, whole or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes, Rays, object_rows
from raybox.geometry.labels import Labels
from raybox.geometry.mesh import object_count
from raybox.geometry.row_ids import checked_ids
from raybox.hits import AllHits, Hits
from raybox.hits.tables import HitTables, LabelNames, label_column
from raybox.io.formats import csv_table, parquet, ply, point_files, saved_arrays, saved_tables
from raybox.io.formats import numpy_arrays as arrays
from raybox.io.formats.common import checked_texts, extension_problem, file_error, path_of, require, resolved
from raybox.io.formats.saved_columns import (
    OBJECT,
    Columns,
    ColumnsInput,
    Options,
    Saveable,
    columns_of,
    given_columns,
    given_ids,
    not_saved,
    plain,
    ray_arrays,
    rows_of,
)
from raybox.io.formats.tables import BLOCK_ROWS
from raybox.io.formats.typed_labels import objects
from raybox.scene.groups import GroupRows
from raybox.scene.scene import Scene, state_of
from raybox.validation import Array

_PACKAGES = {".parquet": ("pyarrow", "io"), ".las": ("laspy", "las"), ".laz": ("laspy", "las")}


@in_default_environment
def save(
    path: str | os.PathLike[str],
    content: Saveable,
    *,
    ids: Sequence[str] | None = None,
    labels: LabelNames | None = None,
    columns: ColumnsInput | None = None,
) -> None:
    """Write geometries, rays or results into a file of the format of its extension.

    The file is written under another name beside its place and then renamed: there is never half a file, and
    an older one stays until the new one is complete.

    Parameters
    ----------
    path : str or path
        The file to write; ``docs/files/results.md`` lists the columns of each kind. ``.npz`` holds all
        content, and loads again as what was saved. ``.npy .csv .parquet`` are tables of boxes, rays and
        results, ``.parquet`` of a mesh, too; ``.ply`` are meshes; ``.las .laz .ply .pcd`` points of `Hits`
        and `AllHits`.
    content : geometry, list of geometries, Scene, Rays, Hits, AllHits, ObjectHits or dict
        The content. Geometries (Boxes, Mesh, Grid, Planes, Instances) are saved with ids, labels and objects,
        a scene as its geometry, with its groups, but of a mesh with objects, as the label ``group``:
        ``Scene(boxes, groups=boxes.labels["group"])``. A dict of columns of one length is written as it is.
    ids : sequence of str, optional
        One for each box of the scene: a column ``id`` beside the boxes, or beside the ``index`` of results.
        Without, those of the boxes and `Hits.ids`, if there are any.
    labels : bool, str or sequence of str, optional
        Of results: True for all labels of what was hit, or names of some, as for `Hits.to_dict`. None: all in
        files of points, none in tables.
    columns : mapping of str to array_like, optional
        Of `Hits` and `AllHits`: further columns, such as the time or the beam of each ray. They broadcast to
        ``content.shape``. In LAS, one named like a dimension of it (``gps_time``, ``intensity``) is that one.

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
        The content is of a type that this format does not hold, there is not one id for each box, or a column
        does not fit the hits or the type of its dimension in LAS.
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
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hits = rb.Scene(boxes).nearest(rb.Rays.lidar([[-1, 0.5, 0.5], [-2, 0.5, 0.5]], [0], [0, 80]))
    ...     rb.save(f"{folder}/hits.csv", hits, columns={"time": [[[10.5]], [[11.5]]], "beam": [[0], [1]]})
    ...     print(open(f"{folder}/hits.csv").readline())
    ray,index,t,x,y,z,time,beam
    <BLANKLINE>
    """
    target = path_of(path)
    check_target(target)
    kind, is_results = type(content).__name__, isinstance(content, HitTables)
    if labels is not None and not is_results:
        raise InvalidInput(f"labels are for results; got {kind}, which has its own. Leave them out.")
    if columns and not is_results:
        raise InvalidInput(f"columns are for Hits and AllHits; got {kind}. Leave them out.")
    if isinstance(content, Scene):
        labelled = [_with_groups(part.geometry, part.groups) for part in state_of(content).parts]
        content = labelled if state_of(content).is_list else labelled[0]
    if isinstance(content, Boxes) and ids is not None:
        if len(ids) != len(content):
            raise InvalidInput(f"ids must name every box: got {len(ids)} for {len(content)} boxes")
        named = checked_ids(checked_texts(ids), len(content), "box")
        content = content._with(content._attributes._replace(ids=named))
    elif ids is not None and not isinstance(content, HitTables | Mapping):
        problem = f"ids are for boxes and results; got {type(content).__name__}"
        raise InvalidInput(f"{problem}. Leave them out.")
    with atomic_file(target) as file:
        table = WRITERS[target.suffix.lower()](file, content, Options(ids, labels, columns))
        table_path = target.with_name(f"{target.name}.labels.csv")
        if table:
            with atomic_file(table_path) as labels_file:
                _write_csv(labels_file, table, table.keys())
        elif target.suffix.lower() in point_files.SUFFIXES and table_path.is_file():
            table_path.unlink()  # that of an earlier file


def _with_groups(geometry: Any, groups: GroupRows | None) -> Any:
    """Return a geometry with its groups as the label ``group``, if each of its rows is an object."""
    if groups is None or object_rows(geometry).numbers is not None:
        return geometry
    labels = Labels({**geometry.labels, "group": groups.of_rows})
    return geometry._with(geometry._attributes._replace(labels=labels))


def check_target(path: Path, extensions: Sequence[str] = ()) -> None:
    """Raise if a file cannot be written there, before long work."""
    extensions = extensions or tuple(WRITERS)
    problem, way_out = "", ""
    if path.suffix.lower() not in extensions:
        problem, way_out = extension_problem(path), f"supported: {' '.join(extensions)}"
    elif path.exists() and not path.is_file():
        problem, way_out = "it is not a regular file", "give the path of a file"
    elif not resolved(path).parent.is_dir():
        problem, way_out = f"there is no folder {path.parent}", "make the folder first"
    if problem:
        raise file_error(path, f"cannot be written: {problem}", way_out)
    if path.suffix.lower() in _PACKAGES:
        require(*_PACKAGES[path.suffix.lower()], path.suffix.lower())


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write, which replaces `path` once complete, and is removed on failure."""
    target = resolved(path)
    part = target.with_name(f".{secrets.token_hex(6)}.raybox-part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, target)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise file_error(path, problem, "check the disk and its permissions") from error
    finally:
        part.unlink(missing_ok=True)


def _csv(file: BinaryIO, content: Saveable, options: Options) -> None:
    labels = content.labels.keys() if isinstance(content, Boxes) else ()
    _write_csv(file, columns_of(content, options), labels)


def _write_csv(file: BinaryIO, columns: Columns, labels: Collection[str]) -> None:
    """Write columns: 1 and 0 for bools among objects, nothing for NaN among labels."""
    texts = {**columns}
    for name in [name for name, column in columns.items() if column.dtype == object or name in labels]:
        values = columns[name].tolist()
        texts[name] = objects([int(v) if isinstance(v, bool) else v if v == v else None for v in values])
    file.write(csv_table.line(list(texts)))
    for start in range(0, len(next(iter(texts.values()), ())), BLOCK_ROWS):
        file.write(csv_table.lines({n: column[start : start + BLOCK_ROWS] for n, column in texts.items()}))


def _parquet(file: BinaryIO, content: Saveable, options: Options) -> None:
    if isinstance(content, Boxes | Mesh):
        parquet.write(file, saved_tables.arrow_table(content))
        return
    columns = {**columns_of(content, options)}
    if isinstance(content, HitTables):  # they have no NaN: no point of a miss, and no label, is null
        own = content.to_dict().keys() - {*"xyz"}
        for name in [name for name in columns if name not in own and columns[name].dtype.kind == "f"]:
            columns[name] = np.ma.array(columns[name], mask=np.isnan(columns[name]))
    parquet.write(file, parquet.table_of(columns))


def _npz(file: BinaryIO, content: Saveable, options: Options) -> None:
    match content:
        case Boxes() | Mesh() | Grid() | Planes() | Instances() | list() | tuple():
            found = saved_arrays.arrays_of(content)
            ids = found.get("id", found["raybox"])
            if found.keys() <= {"raybox", "lower", "upper", "id"} and ids.dtype.kind == "U":
                del found["raybox"]  # boxes as all programs write them
        case Rays():
            found = ray_arrays(content) | saved_arrays.fact_arrays(content)
        case Mapping():
            found = {name: plain(name, np.asanyarray(column)) for name, column in content.items()}
        case _:
            found = {name: plain(name, column) for name, column in columns_of(content, options).items()}
    arrays.write_npz(file, found)


def _npy(file: BinaryIO, content: Saveable, options: Options) -> None:
    """Write one table: of numbers for rays, and boxes without ids and labels; else with named columns."""
    columns = {name: plain(name, column) for name, column in columns_of(content, options).items()}
    if isinstance(content, Rays) and content.ndim_space == 2 and "t_min" in columns:
        raise InvalidInput("an .npy table has no room for the ranges of rays in 2D; save them as .npz")
    is_bare = isinstance(content, Boxes) and content.ids is None and not content.labels
    rows = rows_of(columns, is_named=not is_bare and not isinstance(content, Rays))
    np.save(file, rows, allow_pickle=False)


def _ply(file: BinaryIO, content: Saveable, options: Options) -> Columns:
    """Write a mesh, or points; return a row for each object of a mesh, with its id and labels."""
    if not isinstance(content, Mesh):
        return _points(file, content, options, ".ply")
    ply.write(file, content)
    found: dict[str, Array] = {} if content.ids is None else {"id": content.ids}
    for name, values in content.labels.items():
        found[label_column(name, {OBJECT, "id", *content.labels.keys() - {name}})] = values
    return {OBJECT: np.arange(object_count(content))} | found if found else {}


def _points(file: BinaryIO, content: Saveable, options: Options, suffix: str) -> Columns:
    """Write the points of hits, and of all hits of each ray."""
    if not isinstance(content, Hits | AllHits):
        wanted = "meshes, and points of hits" if suffix == ".ply" else "points of hits, as of nearest"
        raise not_saved(content, wanted)
    own, points = content.to_dict(), content.points.reshape(-1, content.points.shape[-1])
    labelled = content.to_dict(labels=True if options.labels is None else options.labels)
    columns = own | dict(zip("xyz", points.T, strict=False)) | given_ids(own, options)
    given = given_columns(content, options, {*columns, *"xyz"})
    used = {*"xyz", *given}
    for name in [name for name in labelled if name not in own]:
        columns[label_column(name, {*labelled, *used}) if name in used else name] = labelled[name]
    return point_files.write(file, columns, given, suffix)


Write = Callable[[BinaryIO, Saveable, Options], Columns | None]
"""Writes content into a file; returns the table to write beside it, if any."""
WRITERS: dict[str, Write] = {
    ".npz": _npz,
    ".npy": _npy,
    ".csv": _csv,
    ".parquet": _parquet,
    ".ply": _ply,
    **{name: partial(_points, suffix=name) for name in (".las", ".laz", ".pcd")},
}
