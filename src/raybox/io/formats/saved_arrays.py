"""Geometries as named arrays of an `.npz` file, from which they load again, equal.

===========  =========================================================================================
`raybox`     arrays
===========  =========================================================================================
boxes        ``lower upper``
mesh         ``vertices faces [objects]``
grid         ``x_edges y_edges [z_edges] occupied``
planes       ``normals offsets``
instances    ``transforms``, and the geometry's as ``geometry/lower`` ...
list         those of geometry 0 as ``0/lower`` ..., of geometry 1 as ``1/...``
===========  =========================================================================================

The array `raybox` names the kind. Ids are the array ``id``, labels ``labels/NAME``. Of a label of objects,
``missing/NAME`` marks the rows without a value.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes
from raybox.geometry.labels import Attributes, Labels, checked_labels
from raybox.geometry.mesh import object_count, stored_objects
from raybox.geometry.row_ids import Ids, checked_ids
from raybox.io.formats.common import FileArrays, Loaded, ReadOptions, SceneGeometry, checked_texts, file_error
from raybox.io.formats.numpy_arrays import as_floats, load_members, read_npz
from raybox.io.formats.object_boxes import boxes_of
from raybox.validation import Array

Arrays: TypeAlias = Mapping[str, Array]
KIND = "raybox"
_KINDS: dict[type, str] = {
    Boxes: "boxes",
    Mesh: "mesh",
    Grid: "grid",
    Planes: "planes",
    Instances: "instances",
}
_EDGES = ("x_edges", "y_edges", "z_edges")


def arrays_of(geometry: SceneGeometry | Sequence[SceneGeometry]) -> dict[str, Array]:
    """Return a geometry, or a list of several, as named arrays."""
    if isinstance(geometry, list | tuple):
        if not geometry:
            raise InvalidInput("a list of geometries must not be empty. Add one, or save nothing.")
        parts = [_prefixed(f"{k}/", arrays_of(one)) for k, one in enumerate(geometry)]
        return {KIND: np.array("list")} | {name: array for part in parts for name, array in part.items()}
    if type(geometry) not in _KINDS:
        raise InvalidInput(
            "raybox saves Boxes, Mesh, Grid, Planes, Instances and lists of them; "
            f"got {type(geometry).__name__}. Make one of these of it."
        )
    return {KIND: np.array(_KINDS[type(geometry)]), **_own(geometry), **attribute_arrays(geometry)}  # type: ignore[arg-type]


def _own(geometry: SceneGeometry) -> dict[str, Array]:
    """Return the arrays of a geometry, without ids and labels."""
    match geometry:
        case Boxes():
            return {"lower": geometry.lower, "upper": geometry.upper}
        case Mesh():
            objects = stored_objects(geometry)
            own: dict[str, Array] = {"vertices": geometry.vertices, "faces": geometry.faces}
            return own | ({} if objects is None else {"objects": objects})
        case Grid():
            edges: dict[str, Array] = dict(zip(_EDGES, geometry.edges, strict=False))
            return edges | {"occupied": geometry.occupied}
        case Planes():
            return {"normals": geometry.normals, "offsets": geometry.offsets}
        case Instances():
            inner = arrays_of(geometry.geometry)
            return {"transforms": geometry.transforms} | _prefixed("geometry/", inner)


def _prefixed(prefix: str, arrays: Arrays) -> dict[str, Array]:
    return {prefix + name: array for name, array in arrays.items()}


def attribute_arrays(geometry: SceneGeometry) -> dict[str, Array]:
    """Return the ids and labels of a geometry as named arrays, without objects of Python."""
    found = {} if geometry.ids is None else {"id": id_array(geometry.ids)}
    for name, values in geometry.labels.items():
        if "\\" in name or checked_texts([name], "names of labels") == [""]:
            problem = f"names of labels in .npz must not be empty or contain a backslash; got {name!r}"
            raise InvalidInput(f"{problem}. Rename that label.")
        found |= _label_arrays(name, values)
    return found


def id_array(ids: Ids) -> Array:
    """Return ids as an array of text or of int64."""
    values = ids.tolist()
    if not values or isinstance(values[0], str):
        return np.array(checked_texts(values), dtype=str)
    try:
        return np.array(values, dtype=np.int64)
    except OverflowError as error:
        raise InvalidInput("ids must be integers of 64 bits to be saved. Convert them to text.") from error


def _label_arrays(name: str, values: NDArray[Any]) -> dict[str, Array]:
    """Return a label as an array, and a mask of the rows that have no value."""
    if values.dtype != object:
        return {f"labels/{name}": values}
    listed = values.tolist()
    given = [value for value in listed if value is not None]
    kind = type(given[0]) if given else str
    if kind is str:
        checked_texts(given, f"values of the label {name!r}")
    plain = np.array([kind() if value is None else value for value in listed], dtype=kind)
    is_missing = len(given) < len(listed)
    masks = {f"missing/{name}": np.array([value is None for value in listed], dtype=np.bool_)}
    return {f"labels/{name}": plain} | (masks if is_missing or kind is not str else {})


def read(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return what was saved as `.npz`, or a table of boxes, rays or points."""
    names, _ = load_members(path, ())
    if KIND not in names and not {"vertices", "faces"} <= {*names}:
        return read_npz(path, options)
    geometry = geometry_of(load_members(path, names)[1], path)
    return Loaded(boxes_of(geometry, path) if options.boxes else geometry)


def geometry_of(arrays: Arrays, path: Path) -> SceneGeometry | list[SceneGeometry]:
    """Return the geometry that arrays of a file make, or a list."""
    if _text(arrays, KIND, "mesh") != "list":
        return _single(arrays, path, "")
    numbers = sorted({name.partition("/")[0] for name in arrays if name != KIND}, key=lambda n: (len(n), n))
    if numbers != [str(k) for k in range(len(numbers))] or not numbers:
        raise file_error(path, f"lacks a geometry of its list: it has {' '.join(numbers) or 'none'}", _AGAIN)
    return [_single(_within(arrays, f"{k}/"), path, f"{k}/") for k in numbers]


_AGAIN = "copy or save it again"


def _within(arrays: Arrays, prefix: str) -> dict[str, Array]:
    """Return the arrays whose names begin so, without that prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _text(arrays: Arrays, name: str, default: str) -> str:
    found = arrays.get(name)
    return default if found is None else str(found.item()) if found.size == 1 else ""


class _Reader(NamedTuple):
    """Arrays of one geometry in a file."""

    arrays: Arrays
    path: Path
    at: str

    def get(self, name: str) -> Array:
        """Return an array; raise `FileFormatError` if there is none."""
        if name not in self.arrays:
            raise file_error(self.path, f"lacks the array {self.at}{name}", _AGAIN)
        return self.arrays[name]

    def floats(self, name: str) -> NDArray[np.float64]:
        """Return an array of numbers as float64."""
        return as_floats(self.get(name), self.path, self.at + name)


def _single(arrays: Arrays, path: Path, at: str) -> SceneGeometry:
    """Return the geometry of some arrays, whose names in the file begin with `at`."""
    kind = _text(arrays, KIND, "mesh")
    if kind not in _KINDS.values():
        raise file_error(path, f"holds a geometry of unknown kind {kind!r:.40}", _AGAIN, f"{at}{KIND}")
    reader = _Reader(arrays, path, at)
    try:
        made = _bare(kind, reader)
        count = object_count(made) if isinstance(made, Mesh) and "objects" in arrays else len(made)
        attributes = attributes_of(arrays, None if "objects" in arrays else count)
        rows = rows_of(attributes)
        if rows is not None and rows < count:
            raise InvalidInput(f"objects must be numbers below {rows}, that of ids or labels")
        return made._with(attributes)
    except InvalidInput as error:
        raise file_error(path, str(error).rstrip("."), "correct the file", at.rstrip("/")) from error


def _bare(kind: str, reader: _Reader) -> SceneGeometry:
    """Return a geometry without ids and labels."""
    match kind:
        case "boxes":
            return Boxes(reader.floats("lower"), reader.floats("upper"))
        case "mesh":
            objects = reader.get("objects") if "objects" in reader.arrays else None
            return Mesh(reader.floats("vertices"), reader.get("faces"), objects=objects)
        case "planes":
            return Planes(reader.floats("normals"), reader.floats("offsets"))
        case "grid":
            edges = [reader.floats(name) for name in _EDGES if name != "z_edges" or name in reader.arrays]
            return Grid(*edges, occupied=reader.get("occupied"))
    inner = _single(_within(reader.arrays, "geometry/"), reader.path, f"{reader.at}geometry/")
    return Instances(inner, reader.floats("transforms"))  # type: ignore[arg-type]  # it checks the type


def attributes_of(arrays: Arrays, count: int | None) -> Attributes:
    """Return ids and labels; raise `InvalidInput` unless they have this number of rows, or one number."""
    columns = _within(arrays, "labels/")
    if count is None:
        lengths = [len(array) for array in (*columns.values(), *_ids_in(arrays)) if array.ndim]
        count = lengths[0] if lengths else 0
    ids = [checked_ids(array, count, "object") for array in _ids_in(arrays)]
    return Attributes(ids[0] if ids else None, _labels(columns, _within(arrays, "missing/"), count))


def _ids_in(arrays: Arrays) -> list[Array]:
    return [arrays["id"]] if "id" in arrays else []


def _labels(columns: Arrays, missing: Arrays, count: int) -> Labels:
    """Return labels as they were saved, with None in rows without a value."""
    found: dict[str, NDArray[Any]] = {}
    for name, values in checked_labels(dict(columns), count, "object").items():
        mask = missing.get(name, np.zeros(count, dtype=np.bool_))
        if mask.shape != (count,) or mask.dtype != bool:
            raise InvalidInput(f"missing values of the label {name!r} must be a mask of {count} rows")
        found[name] = values
        if name in missing:
            found[name] = values.astype(object)
            found[name][mask] = None
    return Labels(found)


def rows_of(attributes: Attributes) -> int | None:
    """Return the number of ids or labels; None without both."""
    columns = [] if attributes.ids is None else [attributes.ids]
    return next((len(column) for column in (*columns, *attributes.labels.values())), None)
