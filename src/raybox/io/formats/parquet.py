"""Parquet, through pyarrow: the columns of the CSV format, typed and compact."""

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from raybox.errors import FileFormatError
from raybox.io.formats import geo_columns
from raybox.io.formats.columns import RANGES, TableColumns, has_kind
from raybox.io.formats.common import Floats, ReadOptions, file_error, quoted, require
from raybox.io.formats.tables import QUERY_KEY, Announced, RowBlock, Table, Wanted, exact_floats
from raybox.io.formats.typed_labels import is_arrow_label
from raybox.validation import Array

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

_OPTIONAL = {"rays": RANGES, "boxes": ("id",)}
SCENE_KEY = "raybox.scene"  # of the metadata of saved boxes and meshes
BATCH_ROWS = 1 << 17  # a megabyte of each column
_NUMBERS = r"u?int|float|double|halffloat"
_BUFFER = 1 << 18  # bytes that are buffered for each column: without a buffer, a column chunk is read whole


class ParquetTable(Table):
    """A Parquet file; fields of structs are columns: ``bbox.xmin``."""

    def __init__(self, path: Path) -> None:
        self.path, self._library = path, require("pyarrow.parquet", "io", ".parquet")
        try:
            with self._library.ParquetFile(path) as file:
                self._metadata, self.schema = file.metadata, file.schema_arrow
            leaves = list(_leaves(self.schema))
            self.metadata = self.schema.metadata or {}
            query = self.metadata.get(QUERY_KEY.encode())
            self.query = query.decode() if query else None
        except (OSError, ValueError, NotImplementedError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the system: no permission, no file
            problem = "its footer is damaged, cut off or encrypted"
            raise file_error(path, problem, "copy or write it again") from error
        # not `row_group(k).column(i)`: on some damaged footers it aborts the process (pyarrow 26)
        counts = [self._metadata.row_group(k).num_rows for k in range(self._metadata.num_row_groups)]
        if min(counts, default=0) < 0 or sum(counts) != self._metadata.num_rows:
            problem = f"promises {self._metadata.num_rows:,} rows, its row groups {sum(counts):,}"
            raise file_error(path, problem, "copy or write it again", "footer")
        self._starts = [0, *accumulate(counts)]  # the first row of each row group, and the number of all rows
        self.rows = self._starts[-1]
        self.types, self.names = dict(leaves), [name for name, _ in leaves]
        self._bounds = self._unless_named(geo_columns.bounds(self.schema, self.names))
        self._points: list[str] = []
        self.scene = self.metadata.get(SCENE_KEY.encode(), b"").decode("utf-8", "replace")

    def announced(self) -> Announced:
        """Return the number of rows, and the bytes once unpacked."""
        groups = (self._metadata.row_group(k) for k in range(self._metadata.num_row_groups))
        return Announced(self.rows or 0, sum(group.total_byte_size for group in groups))

    def layout(self, options: ReadOptions) -> TableColumns:
        """Return which columns to read; of geometries, points if no other columns are what is wanted."""
        self.own = self._bounds
        wants_points = options.origin is not None or options.kind in ("rays", "points")
        if wants_points or not has_kind({*self.names, *self.own}):
            self.own = {**self._bounds, **self._unless_named(self._point_columns())}
        layout = super().layout(options)
        missing, footer = [name for name in _OPTIONAL.get(layout.kind, ()) if name not in self.names], b""
        if missing:
            with self.path.open("rb") as file:
                file.seek(-8 - self._metadata.serialized_size, os.SEEK_END)
                footer = file.read()
        for name in missing:
            # Thrift's compact form of the path of a column in a row group: field 3, a list of one text.
            # Its name in the schema is damaged then; without it, the rays or boxes would be others.
            if b"\x19\x18" + bytes([len(name)]) + name.encode() in footer:
                problem = f"its row groups hold a column {name}, its schema does not"
                raise file_error(self.path, problem, "copy or write it again", "footer")
        return layout

    def _unless_named(self, own: dict[str, str]) -> dict[str, str]:
        """Return columns by raybox's names; none if the file has such names, which come first."""
        return {} if own.keys() & {name.lower() for name in self.names} else own

    def _point_columns(self) -> dict[str, str]:
        """Return the columns of points that metadata name; remember those that are parts of one column."""
        field = geo_columns.point_field(self.schema)
        if field is None:
            return {}
        columns = {axis: f"{field.name}.{axis}" for axis in "xyz"}
        if columns["x"] not in self.names:
            blocks = self.blocks(Wanted(others=[field.name]))
            values = (value for block in blocks for value in block.columns[field.name].tolist() if value)
            columns = dict(islice(columns.items(), geo_columns.axes_of(self.types[field.name], values)))
            self._points = [*columns.values()]
        return {axis: name for axis, name in columns.items() if name in self.names or name in self._points}

    def has_label(self, column: str) -> bool:
        """Return whether a column is of a type that labels have."""
        return is_arrow_label(self.types[column])

    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield batches of row groups; other columns than numbers are Arrow arrays."""
        buffering = {"pre_buffer": wanted.at_once, "buffer_size": _BUFFER * (not wanted.at_once)}
        with self._library.ParquetFile(self.path, metadata=self._metadata, **buffering) as file:
            for group in range(offset, self._metadata.num_row_groups):
                start = self._starts[group]
                for batch in self._batches(file, group, wanted):
                    columns = self._columns(batch, wanted, start)
                    for name in wanted.numbers:
                        columns[name] = self._floats(columns[name], name, wanted, start)
                    for name in wanted.others:
                        try:
                            columns[name].validate(full="string" in str(columns[name].type))
                        except ValueError as error:
                            problem, way_out = "holds text that is not UTF-8", "write it again as UTF-8"
                            raise file_error(self.path, problem, way_out, f"column {name}") from error
                    yield RowBlock(start, group, batch.num_rows, columns)
                    start += batch.num_rows

    def _columns(
        self, batch: "pyarrow.RecordBatch", wanted: Wanted, first: int
    ) -> "dict[str, pyarrow.Array]":
        """Return columns of a batch, whose first row is `first`; those of points are decoded together."""
        names = [*wanted.numbers, *wanted.others]
        found = {name: _column(batch, name) for name in names if name not in self._points}
        if len(found) < len(names):
            name = self._points[0].rpartition(".")[0]
            place = lambda row: self.place(first + row, name)  # noqa: E731
            points = geo_columns.coordinates(_column(batch, name), len(self._points), self.path, place)
            found |= dict(zip(self._points, points, strict=True))
        return found

    def block_at(self, row: int) -> tuple[int, int]:
        """Return the first row and the number of the row group of a row."""
        group = max(0, bisect_right(self._starts, row, hi=len(self._starts) - 1) - 1)
        return self._starts[group], group

    def _batches(
        self, file: "pyarrow.parquet.ParquetFile", group: int, wanted: Wanted
    ) -> "Iterator[pyarrow.RecordBatch]":
        """Yield columns of a row group in batches; raise unless every row is read."""
        parts = {name: name.rpartition(".")[0] for name in self._points}
        names = list(dict.fromkeys(parts.get(name, name) for name in (*wanted.numbers, *wanted.others)))
        promised, found = self._starts[group + 1] - self._starts[group], 0
        how = {"row_groups": [group], "columns": names, "use_threads": wanted.at_once}
        try:
            for batch in file.iter_batches(BATCH_ROWS, **how):
                there = dict(_leaves(batch.schema))
                if there.keys() != {*names}:
                    raise self._damaged(group, f"holds the columns {quoted(' '.join(there))}")
                found += batch.num_rows
                yield batch
        except NotImplementedError as error:
            problem = "is compressed or encoded in a way that pyarrow does not have"
            raise file_error(self.path, problem, "write it in another way", f"row group {group}") from error
        except (OSError, ValueError) as error:
            raise self._damaged(group, "cannot be read: its pages are damaged") from error
        # Arrow ends a column silently at a page whose header is damaged.
        if found != promised:
            raise self._damaged(group, f"holds {found:,} of {promised:,} rows")

    def _damaged(self, group: int, problem: str) -> FileFormatError:
        return file_error(self.path, problem, "copy or write it again", f"row group {group}")

    def _floats(self, column: "pyarrow.Array", name: str, wanted: Wanted, first: int) -> Floats:
        """Return a column from row `first` on as float64; nulls are NaN or raise."""

        def place(index: tuple[int, ...]) -> str:
            return self.place(first + index[0], name) if index else f"column {name}"

        kind = str(column.type)
        if kind.startswith("decimal"):
            values = column.to_pylist()
            floats = [None if value is None else float(value) for value in values]
            for row in [row for row, value in enumerate(values) if value != floats[row]]:
                problem = f"{values[row]} is a decimal number that float64 does not hold"
                way_out = "store the column as float64: CAST(x AS DOUBLE)"
                raise file_error(self.path, problem, way_out, place((row,)))
            column = require("pyarrow", "io", ".parquet").array(floats, "float64")
        elif not re.match(_NUMBERS, kind):
            problem = f"holds {kind}, not numbers"
            raise file_error(self.path, problem, "store the column as float64", place(()))
        count = column.null_count
        if not count:
            return exact_floats(np.asarray(column), self.path, place)
        missing = np.asarray(column.is_null())
        if wanted.invalid == "raise":
            problem = "a value is missing" if count == 1 else f"{count} values are missing"
            way_out = f"fill in each or remove its row{wanted.way_out}"
            raise file_error(self.path, problem, way_out, place((int(missing.argmax()),)))
        return np.where(missing, np.nan, exact_floats(np.asarray(column.fill_null(0)), self.path, place))


def _leaves(schema: "pyarrow.Schema") -> "Iterator[tuple[str, pyarrow.DataType]]":
    """Yield names and types of columns, and of fields of structs of numbers."""
    for field in schema:
        kind = getattr(field.type, "storage_type", field.type)  # of a type that a package has registered
        parts = [kind.field(k) for k in range(kind.num_fields)] if str(kind).startswith("struct<") else []
        if parts and all(re.match(_NUMBERS, str(part.type)) for part in parts):
            yield from ((f"{field.name}.{part.name}", part.type) for part in parts)
        else:
            yield field.name, kind


def _column(batch: "pyarrow.RecordBatch", name: str) -> "pyarrow.Array":
    """Return a column of a batch, or a field, without dictionary."""
    if name in batch.schema.names:
        column = batch.column(name)
        column = getattr(column, "storage", column)
        return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column
    struct, _, part = name.rpartition(".")
    found = getattr(batch.column(struct), "storage", batch.column(struct))
    return found.flatten()[found.type.get_field_index(part)]


def write(file: BinaryIO, table: "pyarrow.Table") -> None:
    """Write a table."""
    texts = [field.name for field in table.schema if str(field.type) == "string"]
    write_table = require("pyarrow.parquet", "io", ".parquet").write_table
    write_table(table, file, row_group_size=1_000_000, use_dictionary=texts or False)


def table_of(columns: Mapping[str, Array]) -> "pyarrow.Table":
    """Return columns of one length as a table of Arrow; masked values and None are null."""
    arrow = require("pyarrow", "io", ".parquet")

    def array_of(column: Array) -> "pyarrow.Array":
        kind = column.dtype.kind
        values: Any = column.tolist() if kind == "O" else column
        is_text = kind == "U" or (kind == "O" and all(v is None or isinstance(v, str) for v in values))
        # of text the type is given, because it may be empty, or hold None alone
        return arrow.array(values, arrow.string() if is_text else None)

    return arrow.table({name: array_of(column) for name, column in columns.items()})
