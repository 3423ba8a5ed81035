"""Tables of text: a header line or a layout, then rows, read in blocks that end where a row ends."""

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raybox.errors import FileFormatError
from raybox.io.formats.columns import TableColumns, layout_names, unnamed_error
from raybox.io.formats.common import Floats, ReadOptions, file_error, quoted
from raybox.io.formats.csv_header import (
    DECIMAL_COMMA,
    LONGEST_ROW,
    SPACES,
    CsvHeader,
    is_number,
    not_utf8,
    quote_error,
    read_header,
)
from raybox.io.formats.tables import MAX_EXACT, Announced, RowBlock, Table, Wanted, count_in, inexact
from raybox.io.formats.typed_labels import objects
from raybox.validation import Array

BLOCK_BYTES = 1 << 21
_INTEGER = re.compile(r"[+-]?[0-9]+")


class CsvTable(Table):
    """Text in UTF-8, separated by commas, semicolons, tabs or white space."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path, self._header = path, read_header(path, layout_names(options.layout))
        self.names, self.has_names = self._header.names, self._header.has_names
        self.is_bare = not self.has_names

    def layout(self, options: ReadOptions) -> TableColumns:
        """Return which columns to read; raise for other than three numbers a row that nothing names."""
        if self.is_bare and options.layout is None and self.names != [*"xyz"]:
            problem = f"does not name the {len(self.names)} columns of its rows"
            raise unnamed_error(self.path, problem, options)
        return super().layout(options)

    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield blocks; other columns than numbers are arrays of text."""
        size, header = self.path.stat().st_size, self._header
        with self.path.open("rb") as file:
            file.seek(offset or header.start)
            for begin, data in _complete_rows(file, self.path, header):
                try:
                    columns = _parsed(data.decode("utf-8"), header, wanted)
                except UnicodeDecodeError as error:
                    raise not_utf8(self.path, begin + error.start) from error
                except (ValueError, IndexError, csv.Error) as error:
                    raise _row_error(self.path, header, wanted) from error
                count = len(next(iter(columns.values()), ()))
                if count:
                    yield RowBlock(row, begin, count, columns, (begin + len(data)) / size)
                    row += count

    def place(self, row: int, column: str) -> str:
        """Return the line and the column of a number."""
        line, _ = next(islice(_rows(self.path, self._header), row, None))
        return f"{line}, column {column}"

    def announced(self) -> Announced:
        """Return the number of lines below the header."""
        return Announced(count_in(self.path, self._header.line_end, self._header.start))


def _complete_rows(file: BinaryIO, path: Path, header: CsvHeader) -> Iterator[tuple[int, bytes]]:
    """Yield complete rows from here on, with the position of each block; rows end outside quotes."""
    begin, pending = file.tell(), b""
    while data := file.read(BLOCK_BYTES):
        pending += data
        end = _last_row_end(pending, header.line_end, b'"' if header.delimiter != SPACES else b"\0")
        if end:
            yield begin, pending[:end]
            begin, pending = begin + end, pending[end:]
        elif len(pending) > LONGEST_ROW:
            problem = f"has a row of more than {LONGEST_ROW >> 20} MB"
            raise file_error(path, problem, "check that it is a CSV file", f"byte {begin}")
    if pending:
        yield begin, pending


def _last_row_end(data: bytes, line_end: bytes, quote: bytes) -> int:
    """Return where the last complete row ends, of bytes that begin with a row; 0: none does."""
    end = data.rfind(line_end) + 1
    quotes = data.count(quote, 0, end)
    while end and quotes % 2:
        before = data.rfind(line_end, 0, end - 1) + 1
        quotes -= data.count(quote, before, end)
        end = before
    return end


def _parsed(text: str, header: CsvHeader, wanted: Wanted) -> dict[str, Array]:
    """Return the columns of complete rows; empty fields are NaN unless they are to raise."""
    try:
        columns: dict[str, Array] = {**_numbers(text, wanted.numbers, header)}
    except ValueError:
        if wanted.invalid == "raise" or header.delimiter == SPACES:
            raise
        columns = {**_numbers(_filled(text, header.delimiter), wanted.numbers, header)}
    if wanted.others:
        rows, places = _rows_of(text, header.delimiter), header.places
        columns |= {name: objects([row[places[name]] for row in rows]) for name in wanted.others}
    return columns


def _rows_of(text: str, delimiter: str) -> list[list[str]]:
    """Return the fields of all rows but empty ones; raise `csv.Error` for broken quotes."""
    lines = io.StringIO(text, newline="")
    is_spaced = delimiter == SPACES
    rows = map(str.split, lines) if is_spaced else csv.reader(lines, delimiter=delimiter, strict=True)
    return [row for row in rows if row]


def _numbers(text: str, wanted: Sequence[str], header: CsvHeader) -> dict[str, Floats]:
    """Return columns of rows; raise `ValueError` for other numbers of fields, and inexact numbers."""
    if not text.strip("\r\n") or not wanted:
        return {}
    places, is_spaced = header.places, header.delimiter == SPACES
    needed = {places[name] for name in wanted}
    table = np.loadtxt(
        io.StringIO(text, newline=""),
        # of a type for each column: then NumPy compares the number of fields of each row
        dtype=[(str(k), "f8" if k in needed else "U1") for k in range(len(places))],
        delimiter=None if is_spaced else header.delimiter,
        quotechar=None if is_spaced else '"',
        comments=None,
        ndmin=1,
    )
    if '"' in text and not is_spaced and len(_rows_of(text, header.delimiter)) != len(table):
        raise ValueError("quotes that NumPy reads in another way")
    found = {name: np.ascontiguousarray(table[str(places[name])]) for name in wanted}
    large = {name: np.flatnonzero(np.abs(column) >= MAX_EXACT) for name, column in found.items()}
    fields = _rows_of(text, header.delimiter) if any(map(len, large.values())) else []
    if not all(_is_exact(fields[row][places[name]]) for name, rows in large.items() for row in rows):
        raise ValueError("a whole number that float64 does not hold")
    return found


def _is_exact(text: str) -> bool:
    """Return whether float64 holds a number; true for one with a point."""
    digits = text.strip()
    return not _INTEGER.fullmatch(digits) or int(digits[:400]) == float(digits)


def _filled(text: str, delimiter: str) -> str:
    """Return complete rows with nan in each empty field."""
    if '"' in text:
        filled = io.StringIO(newline="")
        rows = ([field if field.strip() else "nan" for field in row] for row in _rows_of(text, delimiter))
        csv.writer(filled, delimiter=delimiter, lineterminator="\n").writerows(rows)
        return filled.getvalue()
    mark = re.escape(delimiter)
    after = re.sub(rf"{mark} *(?={mark}|[\r\n]|\Z)", f"{delimiter}nan", text)
    return re.sub(rf"([\r\n]) *(?={mark})", r"\1nan", "\n" + after)[1:]


def _rows(path: Path, header: CsvHeader) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows, each with the line on which it ends, but no empty lines."""
    with path.open("rb") as file:
        file.seek(header.start)
        text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="")
        if header.delimiter == SPACES:
            numbered = enumerate(map(str.split, text), header.lines + 1)
            yield from ((f"line {number}", row) for number, row in numbered if row)
            return
        rows = csv.reader(text, delimiter=header.delimiter, strict=True)
        try:
            yield from ((f"line {header.lines + rows.line_num}", row) for row in rows if row)
        except csv.Error as error:
            raise quote_error(path, f"line {header.lines + rows.line_num}", error) from error


def _row_error(path: Path, header: CsvHeader, wanted: Wanted) -> FileFormatError:
    """Return the error for the first row that does not fit the header; slow."""
    places = header.places
    for line, row in _rows(path, header):
        if not any(map(str.strip, row)) and len(row) != len(places):
            return file_error(path, "holds blanks only", "remove the line", line)
        if len(row) != len(places):
            expected = f"{'the first line has' if header.has_names else 'there are names for'} {len(places)}"
            way_out = "complete the row; the file may be cut off"
            if len(row) > len(places) and header.delimiter == ",":
                way_out = "write decimal points, not commas, and quote texts with commas"
            return file_error(path, f"{len(row)} fields, while {expected}", way_out, line)
        for name in wanted.numbers:
            text, place = row[places[name]], f"{line}, column {name}"
            if not text.strip() and wanted.invalid == "raise":
                return file_error(path, "a number is missing", f"correct the row{wanted.way_out}", place)
            if DECIMAL_COMMA.fullmatch(text):
                way_out = "write decimal points, as in 1.5"
                return file_error(path, f"{quoted(text)} has a decimal comma", way_out, place)
            if text.strip() and not is_number(text):
                return file_error(path, f"{quoted(text)} is not a number", "correct the row", place)
            if text.strip() and not _is_exact(text):
                return inexact(path, quoted(text), place)
    return file_error(path, "is not a table that raybox reads", "check that it is a table of text")


def lines(columns: Mapping[str, Array]) -> bytes:
    """Return the rows of columns as lines that end in LF; 1 and 0 for bool."""
    arrays = [c.astype(np.int8) if c.dtype == bool else c for c in columns.values()]

    def rows() -> Iterator[tuple[object, ...]]:
        return zip(*(array.tolist() for array in arrays), strict=True)

    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows())
    found = text.getvalue()
    return b"".join(map(line, rows())) if "\r" in found else found.encode()


def line(fields: Sequence[object]) -> bytes:
    """Return a row as a line; texts with CR are quoted."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(fields)  # only where CR ends lines, it is quoted
    return (text.getvalue()[:-2] + "\n").encode()
