"""Parquet, through pyarrow: the columns of the CSV format, typed and compact."""

from collections.abc import Container, Iterator, Mapping
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO

import numpy as np

from raybox.errors import FileFormatError
from raybox.io.formats import parquet_footer
from raybox.io.formats.assembly import RANGES, assemble, choose_columns, column_name
from raybox.io.formats.common import FileArrays, Floats, ReadOptions, file_error, quoted, require
from raybox.validation import Array

if TYPE_CHECKING:
    import pyarrow
    import pyarrow.parquet

_OPTIONAL = {"rays": RANGES, "boxes": ("id",)}
BATCH_ROWS = 1 << 17  # a megabyte of each column


def read(path: Path, options: ReadOptions) -> FileArrays:
    """Return the arrays of a Parquet file, from columns of any numeric type."""
    library, arrow = require("pyarrow.parquet", "io", ".parquet"), require("pyarrow", "io", ".parquet")
    with library.ParquetFile(path) as file:
        kind, numbers, labels = choose_columns(file.schema_arrow.names, path, options)
        check_optional_columns(file.schema_arrow.names, kind, path)
        names, starts = numbers + labels, group_starts(file.metadata, path)
        parts = [
            batch
            for group in range(file.num_row_groups)
            for batch in batches(file, group, names, (path, starts), BATCH_ROWS, threads=True)
        ]
        schema = arrow.schema([file.schema_arrow.field(name) for name in names])
    table = arrow.Table.from_batches([part.select(names) for part in parts], schema)
    columns = {name: floats(table.column(name), name, path, options) for name in numbers}
    texts = {name: [str(value) for value in table.column(name).to_pylist()] for name in labels}
    where = lambda array, index: f"row {index[0]} (the first is 0), column {column_name(array, index)}"  # noqa: E731
    return FileArrays(assemble(columns, kind), where, texts)


def check_optional_columns(names: Container[str], kind: str, path: Path) -> None:
    """Raise `FileFormatError` if the schema lacks an optional column that row groups hold.

    Its name in the schema is damaged then; without it, the rays or boxes would be others. Row groups name
    each of their columns once more.
    """
    missing = [name for name in _OPTIONAL.get(kind, ()) if name not in names]
    if not missing:
        return
    with path.open("rb") as file:
        footer = parquet_footer.read_footer(file, path.stat().st_size)[1]
    for name in missing:
        if parquet_footer.has_column(footer, name):
            problem = f"its row groups hold a column {name}, its schema does not"
            raise file_error(path, problem, "copy or write it again", "footer")


def group_starts(metadata: "pyarrow.parquet.FileMetaData", path: Path) -> list[int]:
    """Return the first row of each row group, and the number of rows of all.

    Raise `FileFormatError` unless the file's count is the sum of those of its row groups. Not used is
    ``row_group(k).column(i)``: on some damaged footers it aborts the process (pyarrow 26).
    """
    counts = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
    if min(counts, default=0) < 0 or sum(counts) != metadata.num_rows:
        problem = f"promises {metadata.num_rows:,} rows, its row groups {sum(counts):,}"
        raise file_error(path, problem, "copy or write it again", "footer")
    return [0, *accumulate(counts)]


def batches(
    file: "pyarrow.parquet.ParquetFile",
    group: int,
    names: list[str],
    source: tuple[Path, list[int]],
    size: int,
    *,
    threads: bool = False,
) -> "Iterator[pyarrow.RecordBatch]":
    """Yield columns of a row group, `size` rows at a time.

    source: the path, and what `group_starts` returns. Raise `FileFormatError` unless every row is read.
    """
    path, starts = source
    missing = promised = starts[group + 1] - starts[group]
    found = file.iter_batches(size, row_groups=[group], columns=names, use_threads=threads)
    while True:
        try:
            batch = next(found, None)
        except (OSError, ValueError) as error:
            problem = str(error).splitlines()[0][:120]
            raise _damaged(path, group, f"cannot be read ({problem})") from error
        if batch is None:
            break
        if sorted(batch.schema.names) != sorted(names):
            raise _damaged(path, group, f"holds the columns {quoted(' '.join(batch.schema.names))}")
        missing -= batch.num_rows
        yield batch
    # Arrow ends a column silently at a page whose header is damaged.
    if missing:
        raise _damaged(path, group, f"holds {promised - missing:,} of {promised:,} rows")


def _damaged(path: Path, group: int, problem: str) -> FileFormatError:
    return file_error(path, problem, "copy or write it again", f"row group {group}")


def floats(column: "pyarrow.Array", name: str, path: Path, options: ReadOptions, first: int = 0) -> Floats:
    """Return a column as float64; nulls become NaN with invalid="miss", else raise.

    first: the row in the file of the column's first number, for errors.
    """
    kind = str(column.type)
    if not kind.startswith(("int", "uint", "float", "double", "halffloat")):
        raise file_error(path, f"holds {kind}, not numbers", "store the column as float64", f"column {name}")
    if column.null_count and options.invalid != "miss":
        row = first + int(np.argmax(np.asarray(column.is_null())))
        problem, place = (
            "a value is missing" if column.null_count == 1 else f"{column.null_count} values are missing",
            f"row {row} (the first is 0), column {name}",
        )
        of_boxes = name.startswith(("min_", "max_"))
        way_out = "fill in each or remove its row" + ("" if of_boxes else ", or read with invalid='miss'")
        raise file_error(path, problem, way_out, place)
    return np.asarray(column, dtype=np.float64)


def write(file: BinaryIO, columns: Mapping[str, Array]) -> None:
    """Write columns of one length; masked values as null."""
    parquet = require("pyarrow.parquet", "io", ".parquet")
    arrow = require("pyarrow", "io", ".parquet")
    table = arrow.table({name: _array(arrow, column) for name, column in columns.items()})
    named = ["id"] if "id" in columns else False
    parquet.write_table(table, file, row_group_size=1_000_000, use_dictionary=named)


def _array(arrow: ModuleType, column: Array) -> "pyarrow.Array":
    """Return a column as an Arrow array.

    The type of text is given, because it may be empty.
    """
    text = isinstance(column, np.ndarray) and column.dtype.kind == "U"
    return arrow.array(column, arrow.string()) if text else arrow.array(column)
