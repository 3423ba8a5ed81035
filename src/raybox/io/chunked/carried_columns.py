"""Columns of a file of rays that are no rays, such as ids and times, carried to the rows of an output.

They are read by the thread that writes, in the order of the rays, so only those of one chunk are in memory.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raybox.errors import InvalidInput
from raybox.io.chunked.chunks import Position, RayFile
from raybox.io.chunked.joined_files import join
from raybox.io.chunked.readers import guarded
from raybox.io.chunked.result_columns import Dtypes, as_array, rows_of
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
    """Its blocks hold the columns, by their names in the output."""
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
    """Reads rows in the order of the rays; those before the last ray that was read are gone."""

    def __init__(self, path: Path, blocks: Iterator[RowBlock]) -> None:
        self._path, self._blocks = path, blocks
        self._window: deque[RowBlock] = deque()

    def rows(self, columns: Columns) -> dict[str, Any]:
        """Return the carried columns of results, whose rays are in order."""
        ray = columns["ray"]
        if not len(ray):
            return {}
        numbers = as_array(ray)
        first, last = int(numbers[0]), int(numbers[-1])
        while not self._window or _end(self._window[-1]) <= last:
            self._window.append(self._next())
        while _end(self._window[0]) <= first:
            self._window.popleft()
        start = self._window[0].row
        return {
            name: _joined([block.columns[name] for block in self._window], numbers - start)
            for name in self._window[0].columns
        }

    def _next(self) -> RowBlock:
        block = next(self._blocks, None)
        if block is None:
            raise file_error(self._path, "has changed: rows are missing at its end", "start again")
        return block


def _end(block: RowBlock) -> int:
    return block.row + block.rows


def _joined(parts: Sequence[Any], rows: Ints) -> Any:
    """Return some rows of arrays that follow each other: of NumPy, or of Arrow."""
    if isinstance(parts[0], np.ndarray):
        return np.concatenate(parts)[rows]
    arrow = require("pyarrow", "io", ".parquet")
    return arrow.chunked_array(parts, parts[0].type).take(arrow.array(rows)).combine_chunks()


def carried(
    source: RayFile,
    carry: Sequence[str],
    options: ReadOptions,
    query: str,
    target: Path | None,
    used_names: Sequence[str] = (),
) -> CarriedColumns | None:
    """Return the columns to carry; None for none.

    Raise `InvalidInput` where that is not possible.
    """
    if not carry:
        return None
    if rows_of(query) == "primitives":
        raise InvalidInput(f"carry is for rows of rays; {query!r} has a row for each box. Leave it out.")
    suffix = ".csv" if target is None else target.suffix.lower()
    if suffix not in SUFFIXES:
        raise file_error(
            Path(suffix if target is None else target),
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
