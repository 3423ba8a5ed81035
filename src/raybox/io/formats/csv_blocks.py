"""CSV as blocks of complete rows: bytes that are cut where a row ends, each row of the header's length."""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.io.formats.common import Floats, file_error

BLOCK_BYTES = 1 << 21
_LONGEST_ROW = 1 << 26
_COMMA, _NEWLINE = b",\n"


class Block(NamedTuple):
    """The bytes of complete rows, and where they begin and end in the file."""

    data: bytes
    begin: int
    end: int


class TableHeader(NamedTuple):
    """The names in the first row, and where the rows below it begin."""

    names: list[str]
    rows: BinaryIO
    start: int
    rewritten: bool
    """Whether `rows` is a copy of the file whose lines end in LF: they end in a single CR."""

    def places(self, names: list[str]) -> list[int]:
        """Return where columns stand in a row."""
        place = {name: k for k, name in enumerate(self.names)}
        return [place[name] for name in names]


def read_header(file: BinaryIO) -> TableHeader:
    """Return the header of a file that is open at its beginning."""
    first = _first_row(file)
    rewritten = b"\r" in first.rstrip(b"\r\n")
    if rewritten:
        file.seek(0)
        file = io.BytesIO(file.read().replace(b"\r\n", b"\n").replace(b"\r", b"\n"))
        first = _first_row(file)
    lines = io.StringIO(first.decode("utf-8-sig"), newline="")
    names = [name.strip() for name in next(csv.reader(lines, strict=True), [])]
    return TableHeader(names, file, file.tell(), rewritten)


def _first_row(file: BinaryIO) -> bytes:
    """Return the first row; a quoted name may span several lines."""
    first = file.readline(_LONGEST_ROW)
    while first.count(b'"') % 2 and (more := file.readline(_LONGEST_ROW)):
        first += more
    return first


def complete_rows(file: BinaryIO, path: Path, size: int = BLOCK_BYTES) -> Iterator[Block]:
    """Yield the complete rows of a file from here on, `size` bytes at a time.

    A row ends with a line, outside quotes.
    """
    at, pending = file.tell(), b""
    while data := file.read(size):
        pending += data
        end = _last_row_end(pending)
        if end:
            yield Block(pending[:end], at, at + end)
            at, pending = at + end, pending[end:]
        elif len(pending) > _LONGEST_ROW:
            problem = f"has a row of more than {_LONGEST_ROW >> 20} MB"
            raise file_error(path, problem, "check that it is a CSV file", f"byte {at}")
    if pending:
        yield Block(pending, at, at + len(pending))


def _last_row_end(data: bytes) -> int:
    """Return where the last complete row ends, of bytes that begin with a row; 0: none does."""
    end = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end


def numbers(data: bytes, wanted: list[int], width: int) -> Floats | None:
    """Return some columns of complete rows, shape (columns, rows).

    None for empty lines only. Raise `ValueError` unless each row has `width` fields and all are read.
    """
    text = data.decode("utf-8")
    if not data.strip(b"\r\n"):
        return None
    lines = io.StringIO(text, newline="")
    rows = np.loadtxt(lines, delimiter=",", usecols=wanted, quotechar='"', comments=None, ndmin=2)
    if len(rows) != (_quoted_row_count(text, width) if b'"' in data else _row_count(data, width)):
        raise ValueError("rows of different lengths")
    return np.ascontiguousarray(rows.T)


def _row_count(data: bytes, width: int) -> int:
    """Return the number of rows without quotes; -1 unless each has `width` fields."""
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\n\n" in data or data.startswith(b"\n"):
        data = re.sub(b"\n+", b"\n", data).lstrip(b"\n")
    if not data.endswith(b"\n"):
        data += b"\n"
    letters = np.frombuffer(data, np.uint8)
    separators = letters[(letters == _COMMA) | (letters == _NEWLINE)]
    if separators.size % width:
        return -1
    table = separators.reshape(-1, width)
    is_whole = (table[:, -1] == _NEWLINE).all() and (table[:, :-1] == _COMMA).all()
    return len(table) if is_whole else -1


def _quoted_row_count(text: str, width: int) -> int:
    """Return the number of rows; -1 unless each has `width` fields."""
    rows = [len(row) for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    return len(rows) if rows.count(width) == len(rows) else -1
