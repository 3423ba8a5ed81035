"""Readers of the columns of a file that are no columns of rays: of CSV and Parquet."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from raybox.io.chunked.chunks import RayFile, RowBlock
from raybox.io.formats import csv_blocks
from raybox.io.formats.assembly import choose_columns
from raybox.io.formats.common import ReadOptions, file_error, require
from raybox.io.formats.csv_table import row_error
from raybox.io.formats.parquet import BATCH_ROWS, batches, group_starts

if TYPE_CHECKING:
    import pyarrow

TEXT = np.dtype(object)
_RESULTS = ("ray", "index", "id", "t", "x", "y", "z", "t_enter", "t_exit", "length", "occluded", "count")


def output_name(name: str) -> str:
    """Return a column's name in the output: ``ray_id`` for ``id``, which there names the box."""
    return f"ray_{name}" if name in _RESULTS or name.startswith("integral") else name


def extra_columns(path: Path, options: ReadOptions) -> list[str]:
    """Return the columns of a CSV or Parquet file that are no columns of rays or points."""
    header = _header(path)
    used = choose_columns(header, path, options).numbers
    return [name for name in header if name not in used]


def _header(path: Path) -> list[str]:
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        library = require("pyarrow.parquet", "io", ".parquet")
        with library.ParquetFile(path) as file:
            return list(file.schema_arrow.names)
    if suffix != ".csv":
        raise file_error(path, "has no named columns to carry", "give rays in .csv or .parquet")
    with path.open("rb") as file:
        header = csv_blocks.read_header(file)
    if header.rewritten:
        raise file_error(path, "its lines end in CR alone, so no column can be carried", "end them in LF")
    return header.names


def open_columns(path: Path, names: list[str], options: ReadOptions, as_text: bool) -> RayFile:
    """Return the blocks of some columns, by their names in the output."""
    if path.suffix.lower() == ".csv":
        return _csv(path, names, options, as_text)
    return _parquet(path, names, options, as_text)


def _csv(path: Path, names: list[str], options: ReadOptions, as_text: bool) -> RayFile:
    """Return columns as text, in the blocks of `csv_chunks`."""
    with path.open("rb") as file:
        header = csv_blocks.read_header(file)
    places, delimiter = [header.names.index(name) for name in names], header.delimiter

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        with path.open("rb") as file:
            file.seek(offset or header.start)
            for block in csv_blocks.complete_rows(file, path):
                try:
                    rows = list(_rows(block.data, delimiter))
                    found = {output_name(n): _texts(rows, k) for n, k in zip(names, places, strict=True)}
                except (ValueError, IndexError, csv.Error) as error:
                    raise row_error(path, options, error) from error
                if rows:
                    yield RowBlock(row, block.begin, len(rows), found)
                    row += len(rows)

    return RayFile(path, options, {}, None, blocks, lambda _name, _index: "")


def _rows(data: bytes, delimiter: str) -> Iterator[list[str]]:
    text = io.StringIO(data.decode("utf-8"), newline="")
    return (row for row in csv.reader(text, delimiter=delimiter, strict=True) if row)


def _texts(rows: list[list[str]], place: int) -> Any:
    out = np.empty(len(rows), TEXT)
    out[:] = [row[place] for row in rows]
    return out


def _parquet(path: Path, names: list[str], options: ReadOptions, as_text: bool) -> RayFile:
    """Return columns as Arrow arrays, or as text."""
    library = require("pyarrow.parquet", "io", ".parquet")
    with library.ParquetFile(path) as file:
        starts = group_starts(file.metadata, path)

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        with library.ParquetFile(path, pre_buffer=False, buffer_size=1 << 18) as file:
            for group in range(offset, len(starts) - 1):
                start = starts[group]
                for batch in batches(file, group, names, (path, starts), BATCH_ROWS):
                    columns = {name: _plain(batch.column(name)) for name in names}
                    if as_text:
                        columns = {name: _as_text(columns[name], name, path) for name in names}
                    found = {output_name(name): column for name, column in columns.items()}
                    yield RowBlock(start, group, batch.num_rows, found)
                    start += batch.num_rows

    return RayFile(path, options, {}, starts[-1], blocks, lambda _name, _index: "")


def _plain(column: "pyarrow.Array") -> "pyarrow.Array":
    """Return an Arrow array without dictionary."""
    return column.dictionary_decode() if hasattr(column, "dictionary_decode") else column


def _as_text(column: "pyarrow.Array", name: str, path: Path) -> Any:
    """Return an Arrow array as text; "" for null."""
    arrow = require("pyarrow", "io", ".parquet")
    try:
        texts = column.cast(arrow.string())
    except arrow.ArrowException as error:
        problem = f"holds {column.type}, which CSV cannot hold"
        raise file_error(path, problem, "write .parquet", f"column {name}") from error
    return texts.fill_null("").to_numpy(zero_copy_only=False).astype(TEXT)


def arrow_types(path: Path, names: list[str]) -> "dict[str, pyarrow.DataType]":
    """Return the types of columns in a Parquet output: of CSV, text."""
    arrow = require("pyarrow", "io", ".parquet")
    if path.suffix.lower() == ".csv":
        return {output_name(name): arrow.string() for name in names}
    library = require("pyarrow.parquet", "io", ".parquet")
    with library.ParquetFile(path) as file:
        found = {name: file.schema_arrow.field(name).type for name in names}
    return {
        output_name(name): t.value_type if arrow.types.is_dictionary(t) else t for name, t in found.items()
    }


def check_types(paths: Sequence[Path], types: "Sequence[dict[str, pyarrow.DataType]]") -> None:
    """Raise if a column has another type in another file."""
    for path, found in zip(paths, types, strict=False):
        for name, kind in found.items():
            if kind != types[0][name]:
                problem = f"the column {name} is {kind}, in {paths[0]} it is {types[0][name]}"
                raise file_error(path, problem, "store it as one type, or write .csv")
