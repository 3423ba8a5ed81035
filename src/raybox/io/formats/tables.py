"""Tables: one reader a format announces what is in a file, then yields its rows block by block."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from raybox.errors import FileFormatError
from raybox.geometry.file_facts import Up
from raybox.io.formats.columns import NONE, TableColumns, check_turn, choose
from raybox.io.formats.common import FileArrays, Floats, InvalidRows, ReadOptions, file_error
from raybox.io.formats.typed_labels import label
from raybox.validation import Array, Dtype, rounded

if TYPE_CHECKING:
    import pyarrow

Column: TypeAlias = "Array | pyarrow.Array"  # values of a column: numbers or texts of NumPy, or of Arrow
MAX_EXACT = 2.0**53  # below it, every integer is a float64
QUERY_KEY = "raybox.query"  # of the metadata of results
LEFT_OUT = "columns that are no labels"
BLOCK_ROWS = 1 << 16  # rows of a block, where a reader can choose


class Announced(NamedTuple):
    """Rows of a file, its bytes once unpacked; 0: unknown."""

    rows: int = 0
    bytes: int = 0


class Wanted(NamedTuple):
    """The columns to read: numbers as float64, others as they are."""

    numbers: Sequence[str] = ()
    others: Sequence[str] = ()
    invalid: InvalidRows = "raise"  # how to handle missing numbers: unless "raise", they are NaN
    way_out: str = ""  # from a missing number, for errors
    at_once: bool = False  # all rows are to be in memory: a reader may use threads, and large blocks


class RowBlock(NamedTuple):
    """Consecutive rows of a table: columns of `rows` values, of any stride."""

    row: int  # the number of its first row
    offset: int  # where its reader finds it (a row, byte or row group), or the block that it is a part of
    rows: int
    columns: Mapping[str, Column]
    fraction: float | None = None  # of the file that ends with it, where the number of rows is unknown


class Table(ABC):
    """The table in a file: its columns, what it announces, its rows."""

    path: Path
    names: list[str]  # of its columns
    rows: int | None = None  # None: unknown before the end
    has_names: bool = True  # whether the file names its columns, which may be of any type
    is_bare: bool = False  # whether the file has numbers alone: a layout may name their columns
    query: str | None = None  # of which the table holds results, where the file says so
    own: Mapping[str, str] = NONE  # columns by raybox's names, where the file itself says what they are
    units: str | None = None
    up: Up | None = None  # as of `Loaded`

    @abstractmethod
    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield the block at a row and an offset, and all after it."""

    def block_at(self, row: int) -> tuple[int, int] | None:
        """Return the row and the offset of a block that holds a row; None: unknown before it is read."""
        return None

    def place(self, row: int, column: str) -> str:
        """Return the place of a number in the file, for errors."""
        return f"row {row} (the first is 0), column {column}"

    def announced(self) -> Announced:
        """Return the number of rows, and the bytes once unpacked."""
        return Announced(self.rows or 0)

    def layout(self, options: ReadOptions) -> TableColumns:
        """Return which columns to read."""
        if options.layout is not None and not self.is_bare:
            raise file_error(self.path, "names its columns", "leave out layout, or --layout", "header")
        found = choose(self.names, self.path, options, self.own)
        labels = {name: own for name, own in found.labels.items() if self.has_label(own)}
        for name in found.labels:
            if name not in labels:
                check_turn(name, found.arrays, self.path)
        return found._replace(labels=labels, left_out=len(found.labels) - len(labels))

    def has_label(self, column: str) -> bool:
        """Return whether a column is of a type that labels have."""
        return True


def numbers_of(layout: TableColumns, options: ReadOptions) -> Wanted:
    """Return the columns of arrays as what to read."""
    invalid = options.invalid_rays if layout.kind in ("rays", "points") else options.invalid
    return Wanted(layout.numbers, invalid=invalid, way_out=or_invalid(layout.kind, options))


def or_invalid(kind: str, options: ReadOptions) -> str:
    """Return the second way out of a bad row, for errors."""
    is_query = kind in ("rays", "points") or options.kind == "boxes"
    return ", or read with invalid='miss'" if is_query else ", or read with invalid='skip'"


def whole(table: Table, options: ReadOptions) -> FileArrays:
    """Return the arrays of a table, and its labels."""
    layout = table.layout(options)
    wanted = numbers_of(layout, options)._replace(others=[*layout.labels.values()], at_once=True)
    blocks = list(table.blocks(wanted))
    arrays = {array: stacked(names, blocks) for array, names in layout.arrays.items()}
    labels = {
        name: label(name, [block.columns[own] for block in blocks]) for name, own in layout.labels.items()
    }
    left_out = {LEFT_OUT: layout.left_out} if layout.left_out else {}
    facts = {"units": table.units, "up": table.up}
    return FileArrays(arrays, places(table, layout), labels, left_out=left_out, **facts)  # type: ignore[arg-type]


def stacked(names: list[str], blocks: Sequence[RowBlock]) -> Floats:
    """Return columns of all blocks as an array: (n, D), or (n,) of one column."""
    rows = np.empty((sum(block.rows for block in blocks), len(names)))
    start = 0
    for block in blocks:
        for k, name in enumerate(names):
            rows[start : start + block.rows, k] = block.columns[name]
        start += block.rows
    return rows[:, 0] if len(names) == 1 else rows


def places(table: Table, layout: TableColumns) -> Callable[[str, tuple[int, ...]], str]:
    """Return the function that gives the place of a number."""
    return lambda array, index: table.place(index[0], layout.arrays[array][(*index, 0)[1]])


def exact_floats(array: Array, path: Path, place: Callable[[tuple[int, ...]], str]) -> Floats:
    """Return real numbers as float64; raise for another type, and for a number that is not exact in it."""
    check_numbers(array.dtype, path, place(()))
    with np.errstate(over="ignore", invalid="ignore"):  # of a signalling NaN
        floats = array.astype(np.float64, copy=False)
    if array.dtype.itemsize < 8 or array.dtype == np.float64:
        return floats
    for index in np.argwhere(rounded(array, floats))[:1].tolist():
        raise inexact(path, array[tuple(index)], place(tuple(index)))
    return floats


def check_numbers(dtype: Dtype, path: Path, place: str) -> None:
    """Raise `FileFormatError` unless a dtype is one of real numbers."""
    if dtype.kind not in "fiub":
        found = "text" if dtype.kind in "SU" else dtype
        raise file_error(path, f"holds {found}, not real numbers", "save it as float64", place)


def inexact(path: Path, number: object, place: str) -> FileFormatError:
    """Return the error for a number that float64 does not hold."""
    problem = f"{number} is not exact in float64 (whole numbers up to 2**53 are)"
    return file_error(path, problem, "subtract a common origin, or store it rounded, with a point", place)


def count_in(path: Path, mark: bytes, start: int = 0) -> int:
    """Return how often a text occurs from a byte on."""
    with path.open("rb") as file:
        file.seek(start)
        return sum(block.count(mark) for block in iter(lambda: file.read(1 << 24), b""))
