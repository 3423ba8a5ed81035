"""CSV as blocks of complete rows: bytes cut where a row ends."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.io.formats.common import Floats, file_error
from raybox.io.formats.csv_header import LONGEST_ROW, SPACES, CsvHeader
from raybox.io.formats.tables import MAX_EXACT

BLOCK_BYTES = 1 << 21
_INTEGER = re.compile(r"[+-]?[0-9]+")


class CompleteRows(NamedTuple):
    """The bytes of complete rows, and where they begin and end in the file."""

    data: bytes
    begin: int
    end: int


def complete_rows(file: BinaryIO, path: Path, size: int, header: CsvHeader) -> Iterator[CompleteRows]:
    """Yield the complete rows of a file from here on, `size` bytes at a time.

    A row ends with a line, outside quotes.
    """
    at, pending = file.tell(), b""
    while data := file.read(size):
        pending += data
        end = _last_row_end(pending, header.line_end, b'"' if header.delimiter != SPACES else b"\0")
        if end:
            yield CompleteRows(pending[:end], at, at + end)
            at, pending = at + end, pending[end:]
        elif len(pending) > LONGEST_ROW:
            problem = f"has a row of more than {LONGEST_ROW >> 20} MB"
            raise file_error(path, problem, "check that it is a CSV file", f"byte {at}")
    if pending:
        yield CompleteRows(pending, at, at + len(pending))


def _last_row_end(data: bytes, line_end: bytes, quote: bytes) -> int:
    """Return where the last complete row ends, of bytes that begin with a row; 0: none does."""
    end = data.rfind(line_end) + 1
    quotes = data.count(quote, 0, end)
    while end and quotes % 2:
        before = data.rfind(line_end, 0, end - 1) + 1
        quotes -= data.count(quote, before, end)
        end = before
    return end


def rows_of(text: str, delimiter: str) -> list[list[str]]:
    """Return the fields of all rows but empty ones.

    Raise `csv.Error` for broken quotes.
    """
    if delimiter == SPACES:
        return [row for line in io.StringIO(text, newline="") if (row := line.split())]
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return [row for row in rows if row]


def numbers(data: bytes, wanted: Sequence[str], header: CsvHeader) -> dict[str, Floats]:
    """Return some columns of complete rows; none for empty lines only.

    Raise `ValueError` unless each row has as many fields as the header, all rows are read, and float64 holds
    all whole numbers.
    """
    if not data.strip(b"\r\n") or not wanted:
        return {}
    text, places = data.decode("utf-8"), header.places
    needed, is_spaced = {places[name] for name in wanted}, header.delimiter == SPACES
    table = np.loadtxt(
        io.StringIO(text, newline=""),
        # of a type for each column: then NumPy compares the number of fields of each row
        dtype=[(str(k), "f8" if k in needed else "U1") for k in range(len(places))],
        delimiter=None if is_spaced else header.delimiter,
        quotechar=None if is_spaced else '"',
        comments=None,
        ndmin=1,
    )
    if b'"' in data and not is_spaced and len(rows_of(text, header.delimiter)) != len(table):
        raise ValueError("quotes that NumPy reads in another way")
    found = {name: np.ascontiguousarray(table[str(places[name])]) for name in wanted}
    large = {name: np.flatnonzero(np.abs(column) >= MAX_EXACT) for name, column in found.items()}
    fields = rows_of(text, header.delimiter) if any(map(len, large.values())) else []
    if not all(is_exact(fields[row][places[name]]) for name, rows in large.items() for row in rows):
        raise ValueError("a whole number that float64 does not hold")
    return found


def is_exact(text: str) -> bool:
    """Return whether float64 holds a number; true for one with a point."""
    digits = text.strip()
    return not _INTEGER.fullmatch(digits) or int(digits[:400]) == float(digits)


def filled(data: bytes, delimiter: str) -> bytes:
    """Return complete rows with nan in each empty field."""
    if b'"' in data:
        rows = [
            [field if field.strip() else "nan" for field in row] for row in rows_of(data.decode(), delimiter)
        ]
        text = io.StringIO(newline="")
        csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(rows)
        return text.getvalue().encode()
    mark = delimiter.encode()
    after = re.compile(rb"%b *(?=%b|[\r\n]|\Z)" % (re.escape(mark), re.escape(mark)))
    first = re.compile(rb"([\r\n]) *(?=%b)" % re.escape(mark))
    return first.sub(rb"\1nan", b"\n" + after.sub(mark + b"nan", data))[1:]
