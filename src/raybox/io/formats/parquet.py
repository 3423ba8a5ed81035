"""Parquet, through pyarrow: the columns of the CSV format, typed and compact."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raybox.io.formats.assembly import assemble, choose_columns, column_name
from raybox.io.formats.common import FileArrays, Floats, ReadOptions, file_error, require


def read(path: Path, options: ReadOptions) -> FileArrays:
    """Return the arrays of a Parquet file, from columns of any numeric type."""
    parquet = require("pyarrow.parquet", "io", ".parquet")
    with parquet.ParquetFile(path) as file:
        kind, numbers, labels = choose_columns(file.schema_arrow.names, path, options)
        table = file.read(columns=numbers + labels)
    columns = {name: floats(table.column(name), name, path, options) for name in numbers}
    texts = {name: [str(value) for value in table.column(name).to_pylist()] for name in labels}
    where = lambda array, index: f"row {index[0]} (the first is 0), column {column_name(array, index)}"  # noqa: E731
    return FileArrays(assemble(columns, kind), where, texts)


def floats(column: Any, name: str, path: Path, options: ReadOptions, first: int = 0) -> Floats:
    """Return a column as float64; nulls become NaN with invalid="miss", else raise.

    first: the row in the file of the column's first number, for errors.
    """
    kind = str(column.type)
    if not kind.startswith(("int", "uint", "float", "double", "halffloat")):
        raise file_error(path, f"holds {kind}, not numbers", "store the column as float64", f"column {name}")
    if column.null_count and options.invalid != "miss":
        row = first + int(np.argmax(np.asarray(column.is_null())))
        problem, place = (
            f"{column.null_count} values are missing",
            f"row {row} (the first is 0), column {name}",
        )
        of_boxes = name.startswith(("min_", "max_"))
        way_out = "fill them in or remove their rows" + ("" if of_boxes else ", or read with invalid='miss'")
        raise file_error(path, problem, way_out, place)
    return np.asarray(column, dtype=np.float64)


def write(file: BinaryIO, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of one length; masked values as null."""
    parquet = require("pyarrow.parquet", "io", ".parquet")
    arrow = require("pyarrow", "io", ".parquet")
    table = arrow.table({name: _array(arrow, column) for name, column in columns.items()})
    named = ["id"] if "id" in columns else False
    parquet.write_table(table, file, row_group_size=1_000_000, use_dictionary=named)


def _array(arrow: Any, column: Any) -> Any:
    """Return a column as an Arrow array.

    The type of text is given, because it may be empty.
    """
    text = isinstance(column, np.ndarray) and column.dtype.kind == "U"
    return arrow.array(column, arrow.string()) if text else arrow.array(column)
