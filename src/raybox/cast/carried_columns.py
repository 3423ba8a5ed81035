"""Columns of a file of rays that are no rays, such as ids and times, carried to the rows of an output.

They are read with the rays, in their order, so only those of a few blocks are in memory.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raybox.cast.blocks import Position, RayFile
from raybox.cast.joined_files import join
from raybox.cast.readers import guarded
from raybox.cast.result_columns import Dtypes, as_array, rows_of
from raybox.errors import InvalidInput
from raybox.io.formats.common import ReadOptions, file_error, reader_errors, require
from raybox.io.formats.parquet import ParquetTable
from raybox.io.formats.table import format_of
from raybox.io.formats.tables import Column, RowBlock, Table, Wanted
from raybox.queries import table as queries
from raybox.queries.columns import Columns
from raybox.validation import Ints

if TYPE_CHECKING:
    import pyarrow

ALL = "all"
SUFFIXES = (".csv", ".parquet")


class CarriedColumns(NamedTuple):
    """Columns of a file of rays, and their types in the output."""

    source: RayFile
    """Its rows hold the columns, by their names in the output."""
    arrow_types: "dict[str, pyarrow.DataType]"
    """For Parquet; empty for text."""
    names: list[str]

    @property
    def dtypes(self) -> Dtypes:
        """The columns in the output: objects of Python, or Arrow arrays."""
        return dict.fromkeys(self.names, np.dtype(object))

    def open(self, start: Position) -> "CarriedReader":
        """Return a reader of the rows from a position on."""
        return CarriedReader(self.source.path, self.source.blocks(start.row, start.offset))


class CarriedReader:
    """Reads rows in order; those before the last that were read are gone."""

    def __init__(self, path: Path, blocks: Iterator[RowBlock]) -> None:
        self._path, self._blocks = path, blocks
        self._window: deque[RowBlock] = deque()

    def rows(self, first: int, end: int) -> dict[str, Column]:
        """Return the columns of rows, which follow those of the last call."""
        while not self._window or _end(self._window[-1]) < end:
            self._window.append(self._next())
        while _end(self._window[0]) <= first:
            self._window.popleft()
        start = self._window[0].row
        some = slice(first - start, end - start)
        return {
            name: _joined([block.columns[name] for block in self._window], some)
            for name in self._window[0].columns
        }

    def _next(self) -> RowBlock:
        block = next(self._blocks, None)
        if block is None:
            raise file_error(self._path, "has changed: rows are missing at its end", "start again")
        return block


def _end(block: RowBlock) -> int:
    return block.row + block.rows


def _joined(parts: Sequence[Column], rows: "slice[int, int, None]") -> Column:
    """Return some rows of arrays that follow each other: of NumPy, or of Arrow."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)[rows]
    arrow = require("pyarrow", "io", ".parquet")
    whole = arrow.chunked_array(parts, parts[0].type)
    return whole.slice(rows.start, rows.stop - rows.start).combine_chunks()


def rows_of_hits(carried: Mapping[str, Column], columns: Columns, first: int) -> dict[str, Any]:
    """Return the carried columns of results: a row for each ray, or for each hit.

    carried: those of all rays of a block; first: its first ray.
    """
    ray = columns["ray"]
    if isinstance(ray, range):
        some = slice(ray.start - first, ray.stop - first)
        return {
            name: column[some] if isinstance(column, np.ndarray) else column.slice(some.start, len(ray))
            for name, column in carried.items()
        }
    numbers = as_array(ray) - first
    return {
        name: column[numbers] if isinstance(column, np.ndarray) else column.take(_arrow_array(numbers))
        for name, column in carried.items()
    }


def _arrow_array(numbers: Ints) -> "pyarrow.Array":
    return require("pyarrow", "io", ".parquet").array(numbers)


def carried(
    source: RayFile,
    carry: Sequence[str],
    options: ReadOptions,
    query: str,
    suffix: str,
    used_names: Sequence[str] = (),
) -> CarriedColumns | None:
    """Return the columns to carry; None for none.

    Raise `InvalidInput` where that is not possible.
    """
    if not carry:
        return None
    if rows_of(query) == "primitives":
        raise InvalidInput(f"carry is for rows of rays; {query!r} has a row for each box. Leave it out.")
    if suffix not in SUFFIXES:
        raise file_error(
            Path(f"out{suffix}"),
            f"{suffix} has no columns of any type, which carry needs",
            f"write {' or '.join(SUFFIXES)}",
        )
    tables = [_table(path, options) for path in source.paths]
    names = _names(tables, carry, options, used_names)
    if not names:
        return None
    as_text = suffix == ".csv"
    opened = [_carried_file(table, names, options, as_text) for table in tables]
    types = [_arrow_types(table, names) for table in tables] if not as_text else [{}]
    _check_types(source.paths, types)
    joined = join(opened, source.path.name) if len(opened) > 1 else opened[0]
    return CarriedColumns(joined, types[0], list(names.values()))


def _table(path: Path, options: ReadOptions) -> Table:
    """Return the table of a file whose columns have names and types."""
    form = format_of(path, "rays")
    with reader_errors(path, form.name):
        table = form.open(path, options) if form.open else None
    if table is None or not table.has_names:
        raise file_error(path, "has no named columns to carry", f"give rays in {' or '.join(SUFFIXES)}")
    return table


def _names(
    tables: Sequence[Table], carry: Sequence[str], options: ReadOptions, used_names: Sequence[str]
) -> dict[str, str]:
    """Return the columns to carry, and their names in the output.

    Raise if a file lacks one, or two get the same name.
    """
    used = [table.layout(options).numbers for table in tables]
    extra = [
        [n for n in table.names if n not in numbers] for table, numbers in zip(tables, used, strict=True)
    ]
    names = extra[0] if list(carry) == [ALL] and ALL not in extra[0] else list(dict.fromkeys(carry))
    for table, there in zip(tables, extra, strict=True):
        for name in names:
            if name not in there:
                known = f"it has {', '.join(there)}" if there else "it has none but those of rays"
                raise file_error(table.path, f"has no column {name!r} to carry", known)
    renamed = {name: _output_name(name, used_names) for name in names}
    for name, new in renamed.items():
        if [*renamed.values(), *used_names].count(new) > 1:
            problem = f"the column {name!r} would be the second {new!r}"
            raise file_error(tables[0].path, problem, "rename it")
    return renamed


def _output_name(name: str, used: Sequence[str]) -> str:
    """Return a column's name in the output: ``ray_id`` for ``id``."""
    return f"ray_{name}" if queries.is_result_column(name) or name in used else name


def _carried_file(table: Table, names: Mapping[str, str], options: ReadOptions, as_text: bool) -> RayFile:
    """Return the blocks of some columns, by their names in the output."""
    form = format_of(table.path)

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        for block in guarded(table, Wanted(others=list(names)), form.name, row, offset):
            columns = {new: block.columns[name] for name, new in names.items()}
            if as_text:
                columns = {new: _as_text(column, new, table.path) for new, column in columns.items()}
            yield block._replace(columns=columns)

    return RayFile(table.path, options, {}, table.rows, blocks, lambda _name, _index: "")


def _as_text(column: Column, name: str, path: Path) -> Column:
    """Return a column as text; "" for null."""
    if isinstance(column, np.ndarray):
        return column
    arrow = require("pyarrow", "io", ".parquet")
    try:
        texts = column.cast(arrow.string())
    except arrow.ArrowException as error:
        problem = f"holds {column.type}, which CSV cannot hold"
        raise file_error(path, problem, "write .parquet", f"column {name}") from error
    return texts.fill_null("").to_numpy(zero_copy_only=False).astype(object)


def _arrow_types(table: Table, names: Mapping[str, str]) -> "dict[str, pyarrow.DataType]":
    """Return the types of columns in a Parquet output: of CSV, text."""
    if not isinstance(table, ParquetTable):
        return dict.fromkeys(names.values(), require("pyarrow", "io", ".parquet").string())
    types = {new: table.type(name) for name, new in names.items()}
    return {
        new: getattr(kind, "value_type", kind) if str(kind).startswith("dictionary") else kind
        for new, kind in types.items()
    }


def _check_types(paths: Sequence[Path], types: "Sequence[dict[str, pyarrow.DataType]]") -> None:
    """Raise if a column has another type in another file."""
    for path, found in zip(paths, types, strict=False):
        for name, kind in found.items():
            if kind != types[0][name]:
                problem = f"the column {name} is {kind}, in {paths[0]} it is {types[0][name]}"
                raise file_error(path, problem, "store it as one type, or write .csv")
