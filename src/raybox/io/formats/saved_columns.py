"""The columns of geometries, rays and results: what `save` writes, in each format in its own types.

A column is an array of numbers, bools or text, or of objects: text, int or bool, with None for missing.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.lib.recfunctions import structured_to_unstructured
from numpy.typing import NDArray

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh, Rays
from raybox.geometry.colors import COLORS
from raybox.geometry.labels import HasAttributes, checked_labels
from raybox.geometry.mesh import object_count, stored_objects
from raybox.geometry.object_rows import taken
from raybox.geometry.row_ids import Ids
from raybox.hits import AllHits, Hits
from raybox.hits.object_hits import ObjectHits
from raybox.hits.tables import HitTables, LabelNames
from raybox.io.formats.columns import column_names, is_flat
from raybox.io.formats.common import SceneGeometry, checked_texts
from raybox.scene.scene import Scene
from raybox.validation import Array, ArrayInput

Columns = Mapping[str, Array]
ColumnsInput: TypeAlias = Mapping[str, ArrayInput]
"""Columns of rays, as users pass them: arrays that broadcast to the shape of hits."""
Results: TypeAlias = Hits | AllHits | ObjectHits
Saveable: TypeAlias = SceneGeometry | Sequence[SceneGeometry] | Scene | Rays | Results | Columns
CORNERS = [f"{axis}{corner}" for corner in range(3) for axis in "xyz"]
VERTICES = [f"vertex{corner}" for corner in range(3)]
OBJECT = "object"
LARGE_IDS = "ids must be integers of 64 bits to be saved. Convert them to text."
_FIRST = ("ray", "index", "object", "geometry", "primitive", "id")


class Options(NamedTuple):
    """The keywords of `save`."""

    ids: Sequence[str] | None = None
    labels: LabelNames | None = None
    columns: "ColumnsInput | None" = None


_DEFAULTS = Options()


def columns_of(content: Saveable, options: Options = _DEFAULTS) -> Columns:
    """Return content as named columns of one length."""
    match content:
        case Boxes():
            own = [*column_names("lower"), *column_names("upper")]  # also of the axis z in 2D
            return _flat({"lower": content.lower, "upper": content.upper}) | attributes(content, own)
        case Rays():
            return _flat(ray_arrays(content))
        case HitTables():
            columns = content.to_dict(labels=options.labels or False)
            if "id" in columns:
                texts = ["" if one is None else str(one) for one in columns["id"]]
                columns["id"] = np.array(texts, dtype=str)
            columns |= given_ids(columns, options)
            columns |= given_columns(content, options, columns)
            first = [name for name in _FIRST if name in columns]
            return {name: columns[name] for name in (*first, *columns)}
        case Mapping():
            columns = {name: np.asanyarray(column) for name, column in content.items()}
            shapes = {column.shape for column in columns.values()}
            if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
                found = ", ".join(f"{name!r} of shape {column.shape}" for name, column in columns.items())
                raise InvalidInput(f"columns must be flat and of one length; got {found}. Save them as .npz.")
            return columns
    raise not_saved(content, "tables of boxes, rays and results")


def not_saved(content: object, wanted: str) -> InvalidInput:
    """Return the error for content that a format does not hold."""
    return InvalidInput(
        f"files of this extension hold {wanted}; got {type(content).__name__}. Save it as .npz."
    )


def _flat(arrays: Columns) -> dict[str, Array]:
    """Return arrays of rows, (..., D), as a column for each axis."""
    found: dict[str, Array] = {}
    for name, array in arrays.items():
        rows = array.reshape(-1, 1 if is_flat(name) else array.shape[-1])
        found |= zip(column_names(name, rows.shape[1]), rows.T, strict=True)
    return found


def ray_arrays(rays: Rays) -> dict[str, Array]:
    """Return the arrays of rays; without ranges that are the usual ones."""
    ranges = {"t_min": rays.t_min, "t_max": rays.t_max}
    usual = (rays.t_min == 0.0).all() and (rays.t_max == np.inf).all()
    found: dict[str, Array] = {"origins": rays.origins, "directions": rays.directions}
    return found if usual else found | ranges


def given_ids(columns: Columns, options: Options) -> dict[str, Array]:
    """Return the column of the ids that `save` was given: "" for a miss; none without."""
    if options.ids is None or "index" not in columns:
        return {}
    ids, last = checked_texts(options.ids), int(columns["index"].max(initial=-1))
    if last >= len(ids):
        raise InvalidInput(f"ids must name every box: got {len(ids)}, a hit has index {last}")
    return {"id": np.array([*ids, ""], dtype=str)[columns["index"]]}


def given_columns(content: HitTables, options: Options, used: Container[str]) -> dict[str, Array]:
    """Return the columns of rays that `save` was given, a row for each hit; used: other names."""
    if not options.columns:
        return {}
    if not isinstance(content, Hits | AllHits):
        raise InvalidInput(f"columns are for Hits and AllHits; got {type(content).__name__}. Leave them out.")
    found = dict[str, Array]()
    for name, values in options.columns.items():
        if name in used:
            problem = f"{name!r} is a column of the hits. Rename it."
            raise InvalidInput(f"columns must have names of their own; {problem}")
        array = validation.array(values, f"the column {name!r}")
        try:
            flat = np.broadcast_to(array, content.shape).reshape(-1)
        except ValueError as error:
            raise InvalidInput(
                f"the column {name!r} must broadcast to the shape of the hits, {content.shape}; got shape "
                f"{array.shape}. One number for each row: x[:, None]."
            ) from error
        found[name] = flat if isinstance(content, Hits) else np.repeat(flat, np.diff(content.offsets))
    checked_labels(found, None, "hit")
    return found


def mesh_columns(mesh: Mesh) -> dict[str, Array]:
    """Return the table of a mesh: triangles, vertices of no triangle, objects without triangles."""
    rows, own = len(mesh), stored_objects(mesh)
    unused = np.setdiff1d(np.arange(len(mesh.vertices)), mesh.faces)
    empty = np.setdiff1d(np.arange(object_count(mesh) if own is not None else 0), mesh.objects)
    blank = np.full((len(unused) + len(empty), 3), -1)
    blank[: len(unused), 0] = unused
    vertices = np.concatenate([mesh.faces, blank])
    padded = np.concatenate([mesh.vertices, np.full((1, 3), np.nan)])
    corners = np.ma.masked_invalid(padded[vertices].reshape(-1, 9))
    columns: dict[str, Array] = dict(zip(CORNERS, corners.T, strict=True))
    columns |= zip(VERTICES, np.ma.masked_equal(vertices, -1).T, strict=True)
    numbers = np.concatenate([mesh.objects, np.full(len(unused), -1), empty])
    if own is not None:
        columns[OBJECT] = np.ma.masked_equal(numbers, -1)
    for name, values in attributes(mesh, [*columns, OBJECT]).items():
        columns[name] = taken(values, numbers) if rows < len(numbers) or own is not None else values
    return columns


def typed_columns(geometry: Boxes | Mesh) -> Columns:
    """Return the table of boxes or of a mesh, with columns of colours, as bytes."""
    columns = mesh_columns(geometry) if isinstance(geometry, Mesh) else columns_of(geometry)
    if geometry.colors is None:
        return columns
    attributes(geometry, COLORS)  # raises for labels of these names
    rows = len(next(iter(columns.values())))
    blank = np.arange(rows) >= len(geometry)  # rows of no triangle
    colors = (np.ma.array(np.resize(values, rows), mask=blank) for values in geometry.colors.T)
    return {**columns, **dict(zip(COLORS, colors, strict=True))}


def attributes(geometry: HasAttributes, own: Iterable[str]) -> dict[str, Array]:
    """Return the ids, as column ``id``, and labels; raise `InvalidInput` for one named like an own column."""
    check_texts(geometry)
    for name in geometry.labels:
        if name.lower() in {*own, "id"}:
            problem = f"the label {name!r} has the name of a column of the table"
            raise InvalidInput(f"{problem}. Rename it, or save as .npz.")
    return ({} if geometry.ids is None else {"id": id_array(geometry.ids)}) | dict(geometry.labels)


def check_texts(geometry: HasAttributes) -> None:
    """Raise `InvalidInput` for names and texts of labels that files do not hold."""
    checked_texts(geometry.labels, "names of labels")
    for name, values in geometry.labels.items():
        if values.dtype == object:
            texts = [value for value in values.tolist() if isinstance(value, str)]
            checked_texts(texts, f"values of the label {name!r}")


def id_array(ids: Ids) -> Array:
    """Return ids as an array of text or of int64; integers beyond it stay objects."""
    values = ids.tolist()
    if not values or isinstance(values[0], str):
        return np.array(checked_texts(values), dtype=str)
    fits = min(values) >= -(2**63) and max(values) < 2**63
    return np.array(values, dtype=np.int64) if fits else ids


def plain(name: str, column: Array) -> Array:
    """Return a column without objects of Python: missing texts are empty, missing numbers NaN."""
    if column.dtype != object:
        return column
    values = column.tolist()
    if all(value is None or isinstance(value, str) for value in values):
        return np.array(checked_texts(value or "" for value in values), dtype=str)
    floats = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
    pairs = zip(values, floats.tolist(), strict=True)
    if any(value is not None and value != number for value, number in pairs):
        raise InvalidInput(f"{name!r} holds integers that are not exact in float64. Save it as .parquet.")
    return floats


def rows_of(columns: Columns, *, is_named: bool) -> Array:
    """Return columns as one array: with named fields, or (rows, columns) of one type."""
    types = [(name, column.dtype) for name, column in columns.items()]
    table: NDArray[np.void] = np.empty(len(next(iter(columns.values()), ())), types)
    for name, column in columns.items():
        table[name] = column
    return table if is_named else structured_to_unstructured(table)
