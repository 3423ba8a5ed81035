"""Boxes and meshes as Parquet tables, from which they load again, equal.

Boxes are a row each: bounds, ``id`` and labels. A mesh is a row for each triangle: its corners (``x0 y0 z0``
to ``x2 y2 z2``), their numbers (``vertex0`` to ``vertex2``), ``object``, and the id and labels of the object.
After them follow vertices of no triangle (``x0 y0 z0 vertex0`` alone), and objects without triangles. Colours
are the columns ``red green blue alpha`` of boxes and triangles, of bytes, as no label is.
"""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh
from raybox.geometry.array_container import ReadOnly
from raybox.geometry.colors import COLORS, Colors, checked_colors
from raybox.geometry.file_facts import SourceFacts, checked_up
from raybox.geometry.labels import Attributes, Labels, checked_attributes
from raybox.io.formats.assembly import build
from raybox.io.formats.common import FileArrays, Floats, Loaded, ReadOptions, file_error, require
from raybox.io.formats.object_boxes import boxes_of
from raybox.io.formats.parquet import SCENE_KEY, ParquetTable, table_of
from raybox.io.formats.saved_columns import CORNERS, LARGE_IDS, OBJECT, VERTICES, typed_columns
from raybox.io.formats.tables import RowBlock, Wanted, numbers_of, places, stacked, whole
from raybox.io.formats.typed_labels import is_arrow_label
from raybox.validation import Bools, Ints

if TYPE_CHECKING:
    import pyarrow

_AGAIN = "copy or save it again"
_PYTHON = {b"raybox.values": b"objects"}
"""Metadata of an integer or bool column whose values were objects of Python, with or without None."""
_ROW = "row"  # the label of boxes that are read, before they have their own
_SKIPPED_KEY, _UNITS_KEY, _UP_KEY = "raybox.skipped", "raybox.units", "raybox.up"
ArrowColumns: TypeAlias = "dict[str, pyarrow.ChunkedArray]"


def arrow_table(geometry: Boxes | Mesh) -> "pyarrow.Table":
    """Return boxes or a mesh as a table of Arrow, in which ids and labels keep their types."""
    try:
        table = table_of(typed_columns(geometry))
    except OverflowError as error:
        raise InvalidInput(LARGE_IDS) from error
    python = {name for name, values in geometry.labels.items() if values.dtype == object}
    fields = [
        field.with_metadata(_PYTHON) if field.name in python and str(field.type) != "string" else field
        for field in table.schema
    ]
    facts = {SCENE_KEY: "mesh" if isinstance(geometry, Mesh) else "boxes"}
    if geometry.skipped:
        facts[_SKIPPED_KEY] = json.dumps({reason: int(count) for reason, count in geometry.skipped.items()})
    stated = {_UNITS_KEY: geometry.units, _UP_KEY: geometry.up}
    facts |= {key: value for key, value in stated.items() if value is not None}
    return table.cast(require("pyarrow", "io", ".parquet").schema(fields, metadata=facts))


def read(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return the content of a Parquet file: boxes or a mesh that were saved, or any other table."""
    table = ParquetTable(path)
    if table.scene == "mesh":
        mesh = _read_mesh(table)
        return Loaded(boxes_of(mesh, path) if options.boxes else mesh)
    return _read_boxes(table, options) if table.scene == "boxes" else whole(table, options)


def _read_boxes(table: ParquetTable, options: ReadOptions) -> Loaded:
    layout = table.layout(options._replace(kind=options.kind or "scene"))
    names = list(layout.labels.values())
    blocks = list(table.blocks(numbers_of(layout, options)._replace(others=names, at_once=True)))
    arrays = {array: stacked(columns, blocks) for array, columns in layout.arrays.items()}
    columns = _chunked(table, blocks, names)
    parts = FileArrays(arrays, places(table, layout), {_ROW: np.arange(sum(block.rows for block in blocks))})
    found = build(parts, table.path, options._replace(kind="scene"))
    assert isinstance(found.geometry, Boxes)
    rows = found.geometry.labels[_ROW]
    own = _attributes(table, columns, rows, _colors(table, columns, rows))
    left_out = own.facts.skipped if found.skipped else {}
    return found._replace(geometry=found.geometry._with(own), left_out=left_out)


def _read_mesh(table: ParquetTable) -> Mesh:
    lacking = [name for name in (*CORNERS, *VERTICES) if name not in table.names]
    if lacking:
        raise file_error(table.path, f"lacks the columns {' '.join(lacking)}", _AGAIN, "header")
    numbers = [*CORNERS, *VERTICES, *[OBJECT] * (OBJECT in table.names)]
    for k, name in enumerate(numbers):
        kind, wanted = str(table.types[name]), "float64" if k < len(CORNERS) else "integers"
        if not re.fullmatch("double" if k < len(CORNERS) else "u?int[0-9]+", kind):
            raise file_error(table.path, f"holds {kind}, not {wanted}", _AGAIN, f"column {name}")
    names = [name for name in table.names if name not in numbers and is_arrow_label(table.types[name])]
    blocks = list(table.blocks(Wanted(numbers, names, invalid="skip", at_once=True)))
    corners, found = np.split(stacked(numbers, blocks), [len(CORNERS)], axis=1)
    indices: Ints = np.where(np.isnan(found), -1, found).astype(np.int64)
    columns, vertices = _chunked(table, blocks, names), indices[:, :3]
    is_face: Bools = np.all(vertices >= 0, axis=1)
    faces = vertices[is_face]
    if is_face[len(faces) :].any():
        raise file_error(table.path, "has rows without a triangle among those with one", _AGAIN)
    rows = indices[:, 3] if OBJECT in table.names else None
    objects = None if rows is None else rows[: len(faces)]
    colors = _colors(table, columns, np.arange(len(faces)))
    mesh = Mesh(_points(table.path, vertices, corners.reshape(-1, 3, 3)), faces, objects=objects)
    first = np.arange(len(faces)) if rows is None else _first_rows(table, columns, rows)
    return mesh._with(_attributes(table, columns, first, colors))


def _colors(table: ParquetTable, columns: ArrowColumns, rows: Ints) -> Colors | None:
    """Remove the columns of colours, and return them in some rows; None without."""
    if any(str(table.types.get(name)) != "uint8" for name in COLORS):
        return None
    found = [columns.pop(name).take(rows).fill_null(0).to_numpy() for name in COLORS]
    return checked_colors(np.stack(found, axis=1), len(rows))


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


def _first_rows(table: ParquetTable, columns: ArrowColumns, numbers: Ints) -> Ints:
    """Return the first row of each object; raise if an object has none, or rows of other values."""
    rows = np.flatnonzero(numbers != -1)
    objects, first = np.unique(numbers[rows], return_index=True)
    gaps = np.flatnonzero(objects != np.arange(len(objects)))
    if gaps.size:
        raise file_error(table.path, f"lacks the object {int(gaps[0])}", _AGAIN, f"column {OBJECT}")
    for name, column in columns.items():
        encoded = column.combine_chunks().dictionary_encode()
        indices = encoded.indices if hasattr(encoded, "indices") else encoded.combine_chunks().indices
        codes = indices.cast("int64").fill_null(-1).to_numpy(zero_copy_only=False)[rows]
        if (codes[first][numbers[rows]] != codes).any():
            raise file_error(table.path, "differs within an object", _AGAIN, f"column {name}")
    return rows[first]


def _attributes(table: ParquetTable, columns: ArrowColumns, rows: Ints, colors: Colors | None) -> Attributes:
    """Return the ids and labels in some rows, counts of what was left out, and colours."""
    arrow = require("pyarrow", "io", ".parquet")
    chosen = {name: column.take(arrow.array(rows)) for name, column in columns.items()}
    try:
        ids = chosen.pop("id").to_pylist() if "id" in chosen else None
        found = checked_attributes(ids, chosen or None, len(rows), "object")
    except UnicodeDecodeError as error:
        problem = "holds ids or labels that are not UTF-8"
        raise file_error(table.path, problem, "write it again as UTF-8") from error
    labels: dict[str, NDArray[Any]] = dict(found.labels)
    for name, values in labels.items():
        if (table.schema.field(name).metadata or {}).items() >= _PYTHON.items():
            labels[name] = values.astype(object)
    units, up = (table.metadata.get(key.encode()) for key in (_UNITS_KEY, _UP_KEY))
    try:
        counts = json.loads(table.metadata.get(_SKIPPED_KEY.encode(), b"{}"))
        skipped = ReadOnly({str(reason): int(count) for reason, count in counts.items()})
        facts = SourceFacts(skipped, units and units.decode(), checked_up(up and up.decode()))
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise file_error(table.path, f"has damaged metadata {_SKIPPED_KEY}", _AGAIN, "footer") from error
    return Attributes(found.ids, Labels(labels), facts, colors)


def _chunked(table: ParquetTable, blocks: Sequence[RowBlock], names: Sequence[str]) -> ArrowColumns:
    """Return columns of all blocks."""
    chunked = require("pyarrow", "io", ".parquet").chunked_array
    return {name: chunked([block.columns[name] for block in blocks], table.types[name]) for name in names}
