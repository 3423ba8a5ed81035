"""CSV as blocks of complete rows: bytes that are cut where a row ends, each row of the header's length."""

import codecs
import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.io.formats import csv_header
from raybox.io.formats.common import Floats, file_error

BLOCK_BYTES = 1 << 21
_LONGEST_ROW = 1 << 26
_NEWLINE = ord("\n")


class CompleteRows(NamedTuple):
    """The bytes of complete rows, and where they begin and end in the file."""

    data: bytes
    begin: int
    end: int


class Wanted(NamedTuple):
    """Places of columns in a row, the number of its fields, and what separates them."""

    places: list[int]
    width: int
    delimiter: str


class TableHeader(NamedTuple):
    """The names of the columns, and the rows below them."""

    names: list[str]
    delimiter: str
    rows: BinaryIO
    start: int
    """where the rows begin"""
    rewritten: bool
    """whether `rows` is a copy of the file whose lines end in LF: they end in a single CR"""

    def wanted(self, names: list[str]) -> Wanted:
        """Return where columns stand in a row."""
        place = {name: k for k, name in enumerate(self.names)}
        return Wanted([place[name] for name in names], len(self.names), self.delimiter)


def read_header(file: BinaryIO) -> TableHeader:
    """Return the header of a file that is open at its beginning."""
    rewritten = b"\r" in file.readline(_LONGEST_ROW).rstrip(b"\r\n")
    file.seek(0)
    if rewritten:
        file = io.BytesIO(file.read().replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    header = csv_header.read_header(lambda: decoder.decode(file.readline(_LONGEST_ROW)))
    return TableHeader(header.names, header.delimiter, file, file.tell(), rewritten)


def complete_rows(file: BinaryIO, path: Path, size: int = BLOCK_BYTES) -> Iterator[CompleteRows]:
    """Yield the complete rows of a file from here on, `size` bytes at a time.

    A row ends with a line, outside quotes.
    """
    at, pending = file.tell(), b""
    while data := file.read(size):
        pending += data
        end = _last_row_end(pending)
        if end:
            yield CompleteRows(pending[:end], at, at + end)
            at, pending = at + end, pending[end:]
        elif len(pending) > _LONGEST_ROW:
            problem = f"has a row of more than {_LONGEST_ROW >> 20} MB"
            raise file_error(path, problem, "check that it is a CSV file", f"byte {at}")
    if pending:
        yield CompleteRows(pending, at, at + len(pending))


def _last_row_end(data: bytes) -> int:
    """Return where the last complete row ends, of bytes that begin with a row; 0: none does."""
    end = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end


def numbers(data: bytes, wanted: Wanted) -> Floats | None:
    """Return some columns of complete rows, shape (columns, rows).

    None for empty lines only. Raise `ValueError` unless each row has as many fields as the header, and all
    rows are read.
    """
    text = data.decode("utf-8")
    if not data.strip(b"\r\n"):
        return None
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
    return np.ascontiguousarray(rows.T)


def _row_count(data: bytes, wanted: Wanted) -> int:
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


def _quoted_row_count(text: str, wanted: Wanted) -> int:
    """Return the number of rows; -1 unless each has as many fields as the header."""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=wanted.delimiter, strict=True)
    widths = [len(row) for row in rows if row]
    return len(widths) if widths.count(wanted.width) == len(widths) else -1
