"""Boxes and meshes as Parquet tables, from which they load again, equal.

Boxes are a row each: bounds, ``id`` and labels. A mesh is a row for each triangle: its corners (``x0 y0 z0``
to ``x2 y2 z2``), their numbers (``vertex0`` to ``vertex2``), ``object``, and the id and labels of the object.
After them follow vertices of no triangle (``x0 y0 z0 vertex0`` alone), and objects without triangles.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh
from raybox.geometry.labels import Attributes, HasAttributes, Labels, checked_labels
from raybox.geometry.mesh import object_count, stored_objects
from raybox.geometry.object_rows import taken
from raybox.geometry.row_ids import checked_ids
from raybox.io.formats.assembly import build
from raybox.io.formats.columns import column_names
from raybox.io.formats.common import (
    FileArrays,
    Floats,
    Loaded,
    ReadOptions,
    checked_texts,
    file_error,
    require,
)
from raybox.io.formats.object_boxes import boxes_of
from raybox.io.formats.parquet import SCENE_KEY, ParquetTable
from raybox.io.formats.tables import Wanted, numbers_of, places, stacked, whole
from raybox.io.formats.typed_labels import is_arrow_label
from raybox.validation import Array, Bools, Ints

if TYPE_CHECKING:
    import pyarrow

_CORNERS = [f"{axis}{corner}" for corner in range(3) for axis in "xyz"]
_VERTICES = [f"vertex{corner}" for corner in range(3)]
_OBJECT = "object"
_AGAIN = "copy or save it again"
_PYTHON = {b"raybox.values": b"objects"}
"""Metadata of an integer or bool column whose values were objects of Python, with or without None."""


def label_columns(geometry: HasAttributes, own: Mapping[str, object]) -> dict[str, Array]:
    """Return the ids, as column ``id``, and labels; raise `InvalidInput` for one named like an own column."""
    ids = {} if geometry.ids is None else {"id": geometry.ids}
    checked_texts(geometry.labels, "names of labels")
    for name, values in {**ids, **geometry.labels}.items():
        if values.dtype == object and any(isinstance(value, str) for value in values):
            checked_texts([value for value in values if value is not None], f"values of {name!r}")
    for name in geometry.labels:
        if name.lower() in {*own, "id"}:
            raise InvalidInput(
                f"the label {name!r} has the name of a column of the table. Rename it, or save as .npz."
            )
    return ids | dict(geometry.labels)


def arrow_table(geometry: Boxes | Mesh, columns: Mapping[str, Array]) -> "pyarrow.Table":
    """Return columns, of which those of ids and labels keep their types, as a table of Arrow."""
    arrow = require("pyarrow", "io", ".parquet")
    named = {"id": geometry.ids, **geometry.labels}
    fields, arrays = [], []
    for name, values in columns.items():
        typed = named.get(name)
        array = arrow.array(values) if typed is None else _arrow_label(values)
        own = typed is not None and name != "id" and typed.dtype == object
        is_python = own and not arrow.types.is_string(array.type)
        fields.append(arrow.field(name, array.type, metadata=_PYTHON if is_python else None))
        arrays.append(array)
    kind = "mesh" if isinstance(geometry, Mesh) else "boxes"
    return arrow.table(arrays, arrow.schema(fields, metadata={SCENE_KEY: kind}))


def _arrow_label(values: Array) -> "pyarrow.Array":
    """Return ids or a label as an array of Arrow; None is null."""
    arrow = require("pyarrow", "io", ".parquet")
    if values.dtype != object:
        return arrow.array(values)
    given = [value for value in values.tolist() if value is not None]
    if not given or isinstance(given[0], str):
        return arrow.array(values.tolist(), arrow.string())
    kind = arrow.bool_() if isinstance(given[0], bool) else arrow.int64()
    try:
        return arrow.array(values.tolist(), kind)
    except (OverflowError, arrow.ArrowException) as error:
        raise InvalidInput("ids must be integers of 64 bits to be saved. Convert them to text.") from error


def mesh_columns(mesh: Mesh) -> dict[str, Array]:
    """Return the table of a mesh: triangles, vertices of no triangle, objects without triangles."""
    rows, objects = len(mesh), stored_objects(mesh)
    unused = np.setdiff1d(np.arange(len(mesh.vertices)), mesh.faces)
    empty = np.setdiff1d(np.arange(object_count(mesh) if objects is not None else 0), mesh.objects)
    blank = np.full((len(unused) + len(empty), 3), -1)
    blank[: len(unused), 0] = unused
    vertices = np.concatenate([mesh.faces, blank])
    padded = np.concatenate([mesh.vertices, np.full((1, 3), np.nan)])
    corners = np.ma.masked_invalid(padded[vertices].reshape(-1, 9))
    columns: dict[str, Array] = dict(zip(_CORNERS, corners.T, strict=True))
    columns |= dict(zip(_VERTICES, np.ma.masked_equal(vertices, -1).T, strict=True))
    numbers = np.concatenate([mesh.objects, np.full(len(unused), -1), empty])
    if objects is not None:
        columns[_OBJECT] = np.ma.masked_equal(numbers, -1)
    for name, values in label_columns(mesh, columns | {_OBJECT: 0}).items():
        columns[name] = taken(values, numbers) if rows < len(numbers) or objects is not None else values
    return columns


def read(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return the content of a Parquet file: boxes or a mesh that were saved, or any other table."""
    table = ParquetTable(path)
    if table.scene == "mesh":
        return _read_mesh(table, options)
    return _read_boxes(table, options) if table.scene == "boxes" else whole(table, options)


def _read_boxes(table: ParquetTable, options: ReadOptions) -> Loaded:
    layout = table.layout(options._replace(kind=options.kind or "scene"))
    if layout.kind != "boxes":
        raise file_error(table.path, "holds boxes, not rays", "give a file of rays here")
    names = list(layout.labels.values())
    blocks = list(table.blocks(numbers_of(layout, options)._replace(others=names, at_once=True)))
    arrays = {array: stacked(array, columns, blocks) for array, columns in layout.arrays.items()}
    columns = {name: _chunked(table, name, [block.columns[name] for block in blocks]) for name in names}
    count = len(arrays["lower"])
    found = build(FileArrays(arrays, places(table, layout)), table.path, options._replace(kind="scene"))
    attributes = _attributes(table, columns, np.arange(count))
    assert isinstance(found.geometry, Boxes)
    return Loaded(found.geometry._with(attributes))


def _read_mesh(table: ParquetTable, options: ReadOptions) -> Loaded:
    lacking = [name for name in (*_CORNERS, *_VERTICES) if name not in table.names]
    if lacking:
        raise file_error(table.path, f"lacks the columns {' '.join(lacking)}", _AGAIN, "header")
    names = [name for name in table.names if is_arrow_label(table.type(name))]
    blocks = list(table.blocks(Wanted(others=names, at_once=True)))
    columns = {name: _chunked(table, name, [block.columns[name] for block in blocks]) for name in names}
    vertices = np.stack([_integers(table, columns.pop(name), name) for name in _VERTICES], axis=-1)
    corners = np.stack([_floats(table, columns.pop(name), name) for name in _CORNERS], axis=-1)
    is_face: Bools = np.all(vertices >= 0, axis=1)
    faces = vertices[is_face]
    if is_face[len(faces) :].any():
        raise file_error(table.path, "has rows without a triangle among those with one", _AGAIN)
    points = _points(table.path, vertices, corners.reshape(-1, 3, 3))
    if _OBJECT not in columns:
        mesh = Mesh(points, faces)
        return _loaded(mesh._with(_attributes(table, columns, np.arange(len(faces)))), table, options)
    numbers = _integers(table, columns.pop(_OBJECT), _OBJECT)
    mesh = Mesh(points, faces, objects=numbers[: len(faces)])
    first = _first_rows(table, columns, numbers)
    return _loaded(mesh._with(_attributes(table, columns, first)), table, options)


def _loaded(mesh: Mesh, table: ParquetTable, options: ReadOptions) -> Loaded:
    return Loaded(boxes_of(mesh, table.path) if options.boxes else mesh)


def _points(path: Path, vertices: Ints, corners: Floats) -> Floats:
    """Return the vertices, each of which some row has; raise if two rows differ."""
    used = vertices >= 0
    count = int(vertices.max(initial=-1)) + 1
    if count > vertices.size:
        raise file_error(path, f"lacks vertices of the {count:,} that it numbers", _AGAIN)
    points = np.full((count, 3), np.nan)
    points[vertices[used]] = corners[used]
    lacking = np.isnan(points).any(axis=1)
    if lacking.any():
        raise file_error(path, f"lacks the vertex {int(lacking.argmax())}", _AGAIN)
    differ = (points[vertices[used]] != corners[used]).any(axis=1)
    if differ.any():
        vertex = int(vertices[used][differ.argmax()])
        raise file_error(path, f"has the vertex {vertex} at two positions", _AGAIN)
    return points


def _first_rows(table: ParquetTable, columns: "dict[str, pyarrow.ChunkedArray]", numbers: Ints) -> Ints:
    """Return the first row of each object; raise if an object has none, or rows of other values."""
    objects, first = np.unique(numbers, return_index=True)
    if len(objects) and objects[0] < 0:
        objects, first = objects[1:], first[1:]
    gaps = np.flatnonzero(objects != np.arange(len(objects)))
    if gaps.size:
        lacking = int(gaps[0])
        raise file_error(table.path, f"lacks the object {lacking}", _AGAIN, f"column {_OBJECT}")
    rows = np.flatnonzero(numbers >= 0)
    for name, column in columns.items():
        codes = _codes(column)
        if (codes[first][numbers[rows]] != codes[rows]).any():
            raise file_error(table.path, "differs within an object", _AGAIN, f"column {name}")
    return first


def _codes(column: "pyarrow.ChunkedArray") -> Ints:
    """Return a number for each value, equal for equal values; -1 for null."""
    encoded = column.combine_chunks().dictionary_encode()
    indices = encoded.indices if hasattr(encoded, "indices") else encoded.combine_chunks().indices
    codes: Ints = indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)
    return codes


def _attributes(table: ParquetTable, columns: "dict[str, pyarrow.ChunkedArray]", rows: Ints) -> Attributes:
    """Return the ids and labels in some rows."""
    arrow = require("pyarrow", "io", ".parquet")
    chosen = {name: column.take(arrow.array(rows)) for name, column in columns.items()}
    ids = chosen.pop("id").to_pylist() if "id" in chosen else None
    found: dict[str, NDArray[Any]] = dict(checked_labels(chosen, len(rows), "object"))
    for name, values in found.items():
        if (table.field(name).metadata or {}).items() >= _PYTHON.items():
            found[name] = values.astype(object)
    return Attributes(checked_ids(ids, len(rows), "object"), Labels(found))


def _chunked(table: ParquetTable, name: str, parts: list[Any]) -> "pyarrow.ChunkedArray":
    return require("pyarrow", "io", ".parquet").chunked_array(parts, table.type(name))


def _integers(table: ParquetTable, column: "pyarrow.ChunkedArray", name: str) -> Ints:
    """Return a column of integers, -1 for null."""
    if not require("pyarrow", "io", ".parquet").types.is_integer(column.type):
        raise file_error(table.path, f"holds {column.type}, not integers", _AGAIN, f"column {name}")
    found: Ints = column.cast("int64").fill_null(-1).to_numpy()
    return found


def _floats(table: ParquetTable, column: "pyarrow.ChunkedArray", name: str) -> Floats:
    """Return a column of float64, NaN for null."""
    if str(column.type) != "double":
        raise file_error(table.path, f"holds {column.type}, not float64", _AGAIN, f"column {name}")
    found: Floats = column.to_numpy()
    return found


def box_columns(boxes: Boxes) -> dict[str, Array]:
    """Return the table of boxes: bounds, ids and labels."""
    own = {
        name: values
        for array in ("lower", "upper")
        for name, values in zip(column_names(array), getattr(boxes, array).T, strict=False)
    }
    every = [name for array in ("lower", "upper") for name in column_names(array)]
    return own | label_columns(boxes, dict.fromkeys(every))
