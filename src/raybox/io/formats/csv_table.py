"""CSV: a header line, then a row for each box or ray."""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raybox.errors import FileFormatError
from raybox.io.formats import csv_blocks
from raybox.io.formats.common import file_error, quoted
from raybox.io.formats.csv_header import read_header
from raybox.io.formats.tables import Announced, Column, RowBlock, Table, Wanted, count_in, inexact
from raybox.validation import Array

BLOCK_ROWS = 65_536


class CsvTable(Table):
    """A CSV file in UTF-8, separated by commas or semicolons."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._header = csv_blocks.read_header(path)
        except (ValueError, csv.Error) as error:
            raise row_error(path, [], error) from error
        self.names = self._header.names

    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield blocks; other columns than numbers are arrays of text."""
        size, header = self.path.stat().st_size, self._header
        with self.path.open("rb") as file:
            file.seek(offset or header.start)
            for rows in csv_blocks.complete_rows(file, self.path, csv_blocks.BLOCK_BYTES, header.line_end):
                try:
                    count, columns = self._parsed(rows.data, wanted)
                except (ValueError, IndexError, csv.Error) as error:
                    raise row_error(self.path, wanted.numbers, error) from error
                if count:
                    yield RowBlock(row, rows.begin, count, columns, rows.end / size)
                    row += count

    def _parsed(self, data: bytes, wanted: Wanted) -> tuple[int, dict[str, Column]]:
        """Return the number of rows and their columns; 0 for empty lines."""
        columns, count = dict[str, Column](), 0
        if wanted.numbers:
            found = csv_blocks.numbers(data, self._header.fields([*wanted.numbers]))
            if found is None:
                return 0, {}
            count, columns = found.shape[1], dict(zip(wanted.numbers, found, strict=True))
        if wanted.others:
            rows = csv_blocks.rows_of(data.decode("utf-8"), self._header.delimiter)
            count, places = len(rows), self._header.fields([*wanted.others]).places
            for name, place in zip(wanted.others, places, strict=True):
                columns[name] = np.empty(count, object)
                columns[name][:] = [row[place] for row in rows]
        return count, columns

    def place(self, row: int, column: str) -> str:
        """Return the line and the column of a number."""
        return f"{_line_of(self.path, row)}, column {column}"

    def announced(self) -> Announced:
        """Return the number of lines below the header."""
        return Announced(count_in(self.path, self._header.line_end, self._header.start))


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the header and the rows below it, each with the line on which it ends, but no empty lines."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            header = read_header(file.readline)
        except csv.Error as error:
            raise _quote_error(path, "header", error) from error
        yield f"line {header.lines}", header.names
        rows = csv.reader(file, delimiter=header.delimiter, strict=True)
        try:
            yield from ((f"line {header.lines + rows.line_num}", row) for row in rows if row)
        except csv.Error as error:
            raise _quote_error(path, f"line {header.lines + rows.line_num}", error) from error


def _quote_error(path: Path, place: str, error: csv.Error) -> FileFormatError:
    """Return the error for a row that is cut off in a quoted field, or has text after one."""
    if "field limit" in str(error):
        problem = f"has a field of more than {csv.field_size_limit()} characters"
        return file_error(path, problem, "check that it is a CSV file", place)
    problem = "is not a whole table: a quoted field does not end, or text follows it"
    return file_error(path, problem, "repair the quotes", place)


def _line_of(path: Path, row: int) -> str:
    """Return the line on which a row of the table ends."""
    return next(islice(_rows(path), row + 1, None))[0]


def row_error(path: Path, numbers: Sequence[str], error: Exception) -> FileFormatError:
    """Return the error for the first row that does not fit the header; slow."""
    if isinstance(error, UnicodeDecodeError):
        return file_error(
            path, "is not UTF-8 text", "save it as UTF-8, or check that it is a CSV file", _byte(path)
        )
    rows = _rows(path)
    places = {name: place for place, name in enumerate(next(rows)[1])}
    for line, row in rows:
        if len(row) != len(places):
            return _length_error(path, line, row, len(places))
        for name in numbers:
            text = row[places[name]]
            if not _is_number(text):
                problem = f"{quoted(text)} is not a number"
                return file_error(path, problem, "correct the row", f"{line}, column {name}")
            if not csv_blocks.is_exact(text):
                return inexact(path, quoted(text), f"{line}, column {name}")
    return file_error(path, "is not a table that raybox reads", "check that it is a CSV file")


def _length_error(path: Path, line: str, row: list[str], width: int) -> FileFormatError:
    """Return the error for a row with another number of fields than the header."""
    if not any(map(str.strip, row)):
        return file_error(path, "holds blanks only", "remove the line", line)
    way_out = "complete the row; the file may be cut off"
    if len(row) > width:
        way_out = "write decimal points, not commas, and quote texts with commas"
    return file_error(path, f"{len(row)} fields, while the first line has {width}", way_out, line)


def _byte(path: Path) -> str:
    at, decoder = 0, codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            pending = len(decoder.getstate()[0])
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                return f"byte {at - pending + error.start}"
            at += len(block)
    return f"byte {at - len(decoder.getstate()[0])}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # Python parses 1_000, NumPy does not


def write(file: BinaryIO, columns: Mapping[str, Array]) -> None:
    """Write columns of one length; floats with as many digits as round-trip."""
    file.write(line(list(columns)))
    rows = len(next(iter(columns.values())))
    for start in range(0, rows, BLOCK_ROWS):
        file.write(lines({name: column[start : start + BLOCK_ROWS] for name, column in columns.items()}))


def lines(columns: Mapping[str, Array]) -> bytes:
    """Return the rows of columns as lines that end in LF."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(_plain_rows(columns))
    found = text.getvalue()
    return b"".join(map(line, _plain_rows(columns))) if "\r" in found else found.encode()


def line(fields: Sequence[object]) -> bytes:
    """Return a row as a line; texts with CR are quoted.

    Python quotes them only where CR ends lines.
    """
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\r\n").writerow(fields)
    return (text.getvalue()[:-2] + "\n").encode()


def _plain_rows(columns: Mapping[str, Array]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of columns; 1 and 0 for bool."""
    arrays = [c.astype(np.int8) if c.dtype == bool else c for c in columns.values()]
    return zip(*(array.tolist() for array in arrays), strict=True)
