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
``missing/NAME`` marks the rows without a value. What a geometry's file states are ``skipped/reason
skipped/count`` (what its reader left out), ``file/units file/up``, ``file/colors`` of its primitives,
and ``file/properties`` of its objects: a line of JSON for each.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes
from raybox.geometry.array_container import ReadOnly
from raybox.geometry.colors import checked_colors
from raybox.geometry.file_facts import FromFile, SourceFacts, checked_up
from raybox.geometry.labels import Attributes, Labels, checked_attributes
from raybox.geometry.mesh import stored_objects
from raybox.geometry.property_sets import of_lines
from raybox.io.formats.common import FileArrays, Floats, Loaded, ReadOptions, SceneGeometry, file_error
from raybox.io.formats.numpy_arrays import as_floats, open_archive, read_npz
from raybox.io.formats.object_boxes import boxes_of
from raybox.io.formats.saved_columns import LARGE_IDS, check_texts, id_array
from raybox.validation import Array, Ints

Arrays: TypeAlias = Mapping[str, Array]
KIND = "raybox"
EDGES = ("x_edges", "y_edges", "z_edges")
_SKIPPED = ("skipped/reason", "skipped/count")
_STATED = ("file/units", "file/up")
_COLORS = "file/colors"
_PROPERTIES = "file/properties"
_AGAIN = "copy or save it again"


def arrays_of(geometry: SceneGeometry | Sequence[SceneGeometry]) -> dict[str, Array]:
    """Return a geometry, or a list of several, as named arrays."""
    own: dict[str, Array]
    match geometry:
        case Boxes():
            kind, own = "boxes", {"lower": geometry.lower, "upper": geometry.upper}
        case Mesh():
            objects = stored_objects(geometry)
            kind, own = "mesh", {"vertices": geometry.vertices, "faces": geometry.faces}
            own |= {} if objects is None else {"objects": objects}
        case Grid():
            kind, own = "grid", dict(zip(EDGES, geometry.edges, strict=False))
            own["occupied"] = geometry.occupied
        case Planes():
            kind, own = "planes", {"normals": geometry.normals, "offsets": geometry.offsets}
        case Instances():
            kind, own = "instances", {"transforms": geometry.transforms}
            own |= _prefixed("geometry/", arrays_of(geometry.geometry))
        case [_, *_]:
            parts = [_prefixed(f"{k}/", arrays_of(one)) for k, one in enumerate(geometry)]
            return {KIND: np.array("list")} | {name: array for part in parts for name, array in part.items()}
        case []:
            raise InvalidInput("a list of geometries must not be empty. Add one, or save nothing.")
        case _:
            wanted = "Boxes, Mesh, Grid, Planes, Instances and lists of them"
            found = type(geometry).__name__
            raise InvalidInput(f"raybox saves {wanted}; got {found}. Make one of these of it.")
    return {KIND: np.array(kind)} | own | attribute_arrays(geometry)


def _prefixed(prefix: str, arrays: Arrays) -> dict[str, Array]:
    return {prefix + name: array for name, array in arrays.items()}


def attribute_arrays(geometry: SceneGeometry) -> dict[str, Array]:
    """Return ids, labels, colours and facts of a geometry as named arrays."""
    check_texts(geometry)
    found = {} if geometry.ids is None else {"id": id_array(geometry.ids)}
    if any(ids.dtype == object for ids in found.values()):
        raise InvalidInput(LARGE_IDS)
    for name, values in geometry.labels.items():
        if "\\" in name or not name:
            problem = f"names of labels in .npz must not be empty or contain a backslash; got {name!r}"
            raise InvalidInput(f"{problem}. Rename that label.")
        found[f"labels/{name}"] = values
        if values.dtype == object:
            missing = np.array([value is None for value in values], dtype=np.bool_)
            kind = type(next(iter(values[~missing]), ""))
            found[f"labels/{name}"] = np.where(missing, kind(), values).astype(kind)
            if missing.any() or kind is not str:
                found[f"missing/{name}"] = missing
    found |= {} if geometry.colors is None else {_COLORS: geometry.colors}
    if geometry.properties is not None:
        found[_PROPERTIES] = np.frombuffer(geometry.properties.lines(), np.uint8)
    return found | fact_arrays(geometry)


def fact_arrays(geometry: FromFile) -> dict[str, Array]:
    """Return what a reader left out, units and the axis that is up as arrays; none without."""
    skipped, stated = geometry.skipped, (geometry.units, geometry.up)
    columns = np.array([*skipped]), np.array([*skipped.values()], dtype=np.int64)
    found = dict(zip(_SKIPPED, columns, strict=True)) if skipped else {}
    return found | {n: np.array(value) for n, value in zip(_STATED, stated, strict=True) if value is not None}


def read(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return what was saved as `.npz`, or a table of boxes, rays or points."""
    with open_archive(path) as archive:
        if KIND not in archive.members and not {"vertices", "faces"} <= archive.members.keys():
            found, facts = read_npz(archive, options), facts_of(archive.arrays((*_SKIPPED, *_STATED)))
            left_out = {**found.left_out, **facts.skipped}
            return found._replace(left_out=left_out, units=facts.units, up=facts.up)
        arrays = archive.arrays()
    geometry = geometry_of(arrays, path)
    return Loaded(boxes_of(geometry, path) if options.boxes else geometry)


def geometry_of(arrays: Arrays, path: Path) -> SceneGeometry | list[SceneGeometry]:
    """Return the geometry that arrays of a file make, or a list."""
    if _kind(arrays, KIND) != "list":
        return _single(arrays, path, "")
    numbers = sorted({name.partition("/")[0] for name in arrays if name != KIND}, key=lambda n: (len(n), n))
    if numbers != [str(k) for k in range(len(numbers))] or not numbers:
        raise file_error(path, f"lacks a geometry of its list: it has {' '.join(numbers) or 'none'}", _AGAIN)
    return [_single(arrays, path, f"{k}/") for k in numbers]


def _within(arrays: Arrays, prefix: str) -> dict[str, Array]:
    """Return the arrays whose names begin so, without that prefix."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _kind(arrays: Arrays, name: str) -> str:
    found = arrays.get(name)
    return "mesh" if found is None else str(found.item()) if found.size == 1 else ""


def _single(arrays: Arrays, path: Path, at: str) -> SceneGeometry:
    """Return the geometry of the arrays whose names begin with `at`."""
    try:
        made = _bare(arrays, path, at)
        objects = stored_objects(made) if isinstance(made, Mesh) else None
        return made._with(attributes_of(_within(arrays, at), objects, len(made)))
    except InvalidInput as error:
        raise file_error(path, str(error).rstrip("."), "correct the file", at.rstrip("/")) from error


def _bare(arrays: Arrays, path: Path, at: str) -> SceneGeometry:
    """Return a geometry without ids and labels."""

    def get(name: str) -> Array:
        if at + name not in arrays:
            raise file_error(path, f"lacks the array {at}{name}", _AGAIN)
        return arrays[at + name]

    def floats(name: str) -> Floats:
        return as_floats(get(name), path, at + name)

    match _kind(arrays, at + KIND):
        case "boxes":
            return Boxes(floats("lower"), floats("upper"))
        case "mesh":
            return Mesh(floats("vertices"), get("faces"), objects=arrays.get(f"{at}objects"))
        case "planes":
            return Planes(floats("normals"), floats("offsets"))
        case "grid":
            axes = EDGES if f"{at}z_edges" in arrays else EDGES[:2]
            return Grid(*map(floats, axes), occupied=get("occupied"))
        case "instances":
            inner = _single(arrays, path, f"{at}geometry/")
            return Instances(inner, floats("transforms"))  # type: ignore[arg-type]  # it checks the type
        case kind:
            problem = f"holds a geometry of unknown kind {kind!r:.40}"
            raise file_error(path, problem, _AGAIN, at + KIND)


def attributes_of(arrays: Arrays, objects: Ints | None, rows: int) -> Attributes:
    """Return ids, labels and counts; raise `InvalidInput` unless they fit the objects of so many rows."""
    columns, missing = _within(arrays, "labels/"), _within(arrays, "missing/")
    named = [*columns.values(), *(arrays[name] for name in ("id",) if name in arrays)]
    count = rows if objects is None else named[0].size if named else int(objects.max(initial=-1)) + 1
    if objects is not None and objects.max(initial=-1) >= count:
        raise InvalidInput(f"objects must be numbers below {count}: others are without ids or labels")
    found = checked_attributes(arrays.get("id"), columns or None, count, "object")
    labels: dict[str, NDArray[Any]] = dict(found.labels)
    for name in labels.keys() & missing.keys():
        if missing[name].shape != (count,) or missing[name].dtype != bool:
            raise InvalidInput(f"missing values of the label {name!r} must be a mask of {count} rows")
        labels[name] = labels[name].astype(object)
        labels[name][missing[name]] = None
    colors = checked_colors(arrays.get(_COLORS), rows)
    properties = of_lines(arrays[_PROPERTIES], count) if _PROPERTIES in arrays else None
    return Attributes(found.ids, Labels(labels), facts_of(arrays), colors, properties)


def facts_of(arrays: Arrays) -> SourceFacts:
    """Return the facts of the file of which a geometry was, as they were saved."""
    reasons, counts = (arrays.get(name, np.zeros(0)) for name in _SKIPPED)
    if reasons.shape != counts.shape or reasons.ndim != 1 or (reasons.size and counts.dtype != np.int64):
        raise InvalidInput("skipped must have a whole number for each reason")
    skipped = ReadOnly(dict(zip(map(str, reasons.tolist()), counts.tolist(), strict=True)))
    units, up = (str(arrays[name]) if name in arrays else None for name in _STATED)
    return SourceFacts(skipped, units, checked_up(up))
