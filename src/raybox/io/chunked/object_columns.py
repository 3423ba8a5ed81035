"""Columns that follow from the index of each hit: the object of a triangle, and labels of the object."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh, object_count, stored_objects
from raybox.hits.tables import label_column
from raybox.io import checksums
from raybox.io.checksums import Facts
from raybox.io.chunked.partitioned import AnyScene
from raybox.io.chunked.result_columns import Dtypes, as_array, rows_of
from raybox.io.formats.common import checked_texts, file_error, require
from raybox.queries.columns import Columns
from raybox.scene.scene import Scene
from raybox.validation import Ints

if TYPE_CHECKING:
    import pyarrow

OBJECT = "object"
SUFFIXES = (".csv", ".parquet")
_FORMATS = {"f": "float64", "i": "int64", "b": "bool_"}


class ObjectColumns(NamedTuple):
    """The object of each primitive, and labels of the objects; the last of each is that of a miss."""

    objects: Ints | None
    """of each primitive; None where each is an object: there is no column of them"""
    labels: dict[str, Any]
    """by their names in the output: text for CSV, else Arrow arrays"""
    arrow_types: "dict[str, pyarrow.DataType]"
    """of labels, for Parquet; empty for text"""
    object_count: int

    @property
    def names(self) -> list[str]:
        """The names of the labels in the output."""
        return list(self.labels)

    def rows(self, columns: Columns) -> dict[str, Any]:
        """Return the object and the labels of each row of results."""
        index = as_array(columns["index"])
        numbers = index if self.objects is None else self.objects[index]
        own = {} if self.objects is None else {OBJECT: numbers}
        places = np.where(numbers < 0, self.object_count, numbers)
        return own | {
            name: values[places] if isinstance(values, np.ndarray) else values.take(places)
            for name, values in self.labels.items()
        }

    def facts(self) -> Facts:
        """Return what identifies the columns: casts of equal ones resume each other."""
        found: Facts = {}
        if self.objects is not None:
            found["objects"] = f"checksum {checksums.of_arrays(self.objects)[:16]}"
        if self.labels:
            texts = (str(value) for values in self.labels.values() for value in values.tolist())
            found["labels"] = f"checksum {checksums.of_text(*self.labels, *texts)[:16]}"
        return found


def ids_of(scene: AnyScene, ids: Sequence[str] | None) -> list[str] | None:
    """Return the ids of a scene's objects, as text; those that were given, else the geometry's own."""
    if ids is None and isinstance(scene, Scene) and isinstance(scene.geometry, Boxes | Mesh):
        own = scene.geometry.ids
        ids = None if own is None else own.tolist()
    return None if ids is None else checked_texts(ids)


def row_ids(scene: AnyScene, ids: Sequence[str] | None) -> list[str] | None:
    """Return the id of the object of each primitive, as text; None without ids."""
    names = ids_of(scene, ids)
    objects = None
    if isinstance(scene, Scene) and isinstance(scene.geometry, Mesh):
        objects = stored_objects(scene.geometry)
    return names if names is None or objects is None else [names[k] for k in objects.tolist()]


def count_of(scene: AnyScene) -> int:
    """Return the number of objects of a scene."""
    is_mesh = isinstance(scene, Scene) and isinstance(scene.geometry, Mesh)
    return object_count(scene.geometry) if is_mesh else len(scene)  # type: ignore[union-attr]


def object_columns(
    scene: AnyScene, labels: Sequence[str], query: str, target: Path | None, dtypes: Dtypes
) -> ObjectColumns | None:
    """Return the columns of objects; None for none. Raise `InvalidInput` where labels are not possible.

    dtypes: the columns of the results. target: None for CSV to an open file.
    """
    geometry = scene.geometry if isinstance(scene, Scene) else None
    objects = stored_objects(geometry) if isinstance(geometry, Mesh) and "index" in dtypes else None
    if labels:
        _check_query(query)
    if objects is None and not labels:
        return None
    suffix = ".csv" if target is None else target.suffix.lower()
    if labels and suffix not in SUFFIXES:
        problem, way_out = f"{suffix} has no columns of any type", f"write {' or '.join(SUFFIXES)}"
        raise file_error(Path(suffix) if target is None else target, f"{problem}, which labels need", way_out)
    columns, used = {}, {*dtypes, OBJECT}
    for name in dict.fromkeys(labels):
        columns[label_column(name, used)] = _column(geometry, name)
        used |= {*columns}
    types: dict[str, pyarrow.DataType] = {}
    if suffix == ".parquet" and columns:
        arrow = require("pyarrow", "io", ".parquet")
        types = {name: _arrow_type(arrow, values) for name, values in columns.items()}
        made: dict[str, Any] = {name: _arrow_column(arrow, columns[name], types[name]) for name in columns}
    else:
        made = {name: _texts(values) for name, values in columns.items()}
    numbers = None if objects is None else np.append(objects, -1)
    return ObjectColumns(numbers, made, types, count_of(scene))


def with_object(dtypes: Dtypes, columns: ObjectColumns | None) -> Dtypes:
    """Return the columns of results with `object` after `index`, if there are objects."""
    if columns is None or columns.objects is None:
        return dtypes
    names = [name for own in dtypes for name in ((own, OBJECT) if own == "index" else (own,))]
    return {name: dtypes.get(name, np.dtype(np.int64)) for name in names}


def _check_query(query: str) -> None:
    if rows_of(query) == "primitives" or query in ("occluded", "count", "integrate"):
        raise InvalidInput(
            f"labels are of hits; {query!r} has no row for a hit. Leave them out, or take nearest or all."
        )


def _column(geometry: object, name: str) -> NDArray[Any]:
    """Return a column of the labels of a geometry."""
    known = geometry.labels if isinstance(geometry, Boxes | Mesh) else {}
    if name not in known:
        found = ", ".join(map(repr, known)) or "none"
        raise InvalidInput(f"there is no label {name!r}; labels of this scene: {found}. Name one of them.")
    return known[name]


def _arrow_type(arrow: Any, values: NDArray[Any]) -> "pyarrow.DataType":
    kind = values.dtype.kind
    if kind in _FORMATS:
        return getattr(arrow, _FORMATS[kind])()
    present = {type(value) for value in values.tolist() if value is not None}
    whole = {bool: arrow.bool_(), int: arrow.int64()}
    return whole.get(next(iter(present), str), arrow.string()) if len(present) == 1 else arrow.string()


def _arrow_column(arrow: Any, values: NDArray[Any], kind: "pyarrow.DataType") -> "pyarrow.Array":
    """Return a column with null for a missing value, and last null for a miss."""
    return arrow.array([None if value != value else value for value in values.tolist()] + [None], kind)


def _texts(values: NDArray[Any]) -> NDArray[Any]:
    """Return a column as text, "" for a missing value and last for a miss."""
    texts = ["" if value is None or value != value else str(value) for value in values.tolist()]
    return np.array([*texts, ""], dtype=object)
