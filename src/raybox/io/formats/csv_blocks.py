"""CSV as blocks of complete rows: bytes cut where a row ends."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.io.formats import csv_header
from raybox.io.formats.common import Floats, file_error
from raybox.io.formats.tables import MAX_EXACT

BLOCK_BYTES = 1 << 21
_LONGEST_ROW = 1 << 26
_NEWLINE = ord("\n")
_BOM = "\ufeff".encode()
_INTEGER = re.compile(r"[+-]?[0-9]+")
_OTHER = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


class CompleteRows(NamedTuple):
    """The bytes of complete rows, and where they begin and end in the file."""

    data: bytes
    begin: int
    end: int


class RowFields(NamedTuple):
    """Places of columns in a row, its number of fields, their separator."""

    places: list[int]
    width: int
    delimiter: str


class TableHeader(NamedTuple):
    """The columns, what separates them, and where rows begin."""

    names: list[str]
    delimiter: str
    start: int
    """the byte at which the rows begin"""
    line_end: bytes
    """CR if that alone ends lines, else LF"""

    def fields(self, names: list[str]) -> RowFields:
        """Return where columns stand in a row."""
        place = {name: k for k, name in enumerate(self.names)}
        return RowFields([place[name] for name in names], len(self.names), self.delimiter)


def read_header(path: Path) -> TableHeader:
    """Return the header of a file."""
    with path.open("rb") as file:
        head = file.read(4)
        other = next((name for mark, name in _OTHER.items() if head.startswith(mark)), None)
        if other or b"\0" in head:
            problem = f"is {other or 'UTF-16'} text, or no text"
            raise file_error(path, problem, "save it as UTF-8, or check that it is a CSV file")
        file.seek(len(_BOM) if head.startswith(_BOM) else 0)
        text, lines = io.TextIOWrapper(file, encoding="utf-8", newline=""), list[str]()

        def readline() -> str:
            lines.append(text.readline(_LONGEST_ROW))
            return lines[-1]

        start = file.tell()
        header = csv_header.read_header(readline)
        start += sum(len(line.encode()) for line in lines)
        line_end = b"\r" if lines[-1].endswith("\r") else b"\n"
    return TableHeader(header.names, header.delimiter, start, line_end)


def complete_rows(file: BinaryIO, path: Path, size: int, line_end: bytes = b"\n") -> Iterator[CompleteRows]:
    """Yield the complete rows of a file from here on, `size` bytes at a time.

    A row ends with a line, outside quotes.
    """
    at, pending = file.tell(), b""
    while data := file.read(size):
        pending += data
        end = _last_row_end(pending, line_end)
        if end:
            yield CompleteRows(pending[:end], at, at + end)
            at, pending = at + end, pending[end:]
        elif len(pending) > _LONGEST_ROW:
            problem = f"has a row of more than {_LONGEST_ROW >> 20} MB"
            raise file_error(path, problem, "check that it is a CSV file", f"byte {at}")
    if pending:
        yield CompleteRows(pending, at, at + len(pending))


def _last_row_end(data: bytes, line_end: bytes) -> int:
    """Return where the last complete row ends, of bytes that begin with a row; 0: none does."""
    end = data.rfind(line_end) + 1
    quotes = data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(line_end, 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end


def rows_of(text: str, delimiter: str) -> list[list[str]]:
    """Return the fields of all rows but empty ones.

    Raise `csv.Error` for broken quotes.
    """
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return [row for row in rows if row]


def numbers(data: bytes, wanted: RowFields) -> Floats | None:
    """Return some columns of complete rows, shape (columns, rows).

    None for empty lines only. Raise `ValueError` unless each row has as many fields as the header, all
    rows are read, and float64 holds all whole numbers.
    """
    if not data.strip(b"\r\n"):
        return None
    text = data.decode("utf-8")
    rows = np.loadtxt(
        io.StringIO(text, newline=""),
        delimiter=wanted.delimiter,
        usecols=wanted.places,
        quotechar='"',
        comments=None,
        ndmin=2,
    )
    count = _quoted_row_count(text, wanted) if b'"' in data else _row_count(data, wanted)
    if len(rows) != count:
        raise ValueError("rows of different lengths")
    large = np.argwhere(np.abs(rows) >= MAX_EXACT)
    if len(large):
        fields = rows_of(text, wanted.delimiter)
        if not all(is_exact(fields[row][wanted.places[column]]) for row, column in large):
            raise ValueError("a whole number that float64 does not hold")
    return np.ascontiguousarray(rows.T)


def is_exact(text: str) -> bool:
    """Return whether float64 holds a number; true for one with a point."""
    digits = text.strip()
    return not _INTEGER.fullmatch(digits) or int(digits[:400]) == float(digits)


def _row_count(data: bytes, wanted: RowFields) -> int:
    """Return the number of rows without quotes; -1 unless each has as many fields as the header."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\n\n" in data or data.startswith(b"\n"):
        data = re.sub(b"\n+", b"\n", data).lstrip(b"\n")
    if not data.endswith(b"\n"):
        data += b"\n"
    letters, delimiter = np.frombuffer(data, np.uint8), ord(wanted.delimiter)
    separators = letters[(letters == delimiter) | (letters == _NEWLINE)]
    if separators.size % wanted.width:
        return -1
    table = separators.reshape(-1, wanted.width)
    is_whole = (table[:, -1] == _NEWLINE).all() and (table[:, :-1] == delimiter).all()
    return len(table) if is_whole else -1


def _quoted_row_count(text: str, wanted: RowFields) -> int:
    """Return the number of rows; -1 unless each has as many fields as the header."""
    widths = [len(row) for row in rows_of(text, wanted.delimiter)]
    return len(widths) if widths.count(wanted.width) == len(widths) else -1
