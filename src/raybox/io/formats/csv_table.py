"""Tables of text: a header line, unless a layout names the columns, then a row for each box or ray."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raybox.errors import FileFormatError
from raybox.io.formats import csv_blocks
from raybox.io.formats.columns import TableColumns, layout_names, unnamed_error
from raybox.io.formats.common import ReadOptions, file_error, quoted
from raybox.io.formats.csv_header import (
    SPACES,
    CsvHeader,
    is_decimal_comma,
    is_number,
    quote_error,
    read_header,
)
from raybox.io.formats.tables import (
    BLOCK_ROWS,
    Announced,
    Column,
    RowBlock,
    Table,
    Wanted,
    count_in,
    inexact,
)
from raybox.io.formats.typed_labels import objects
from raybox.validation import Array


class CsvTable(Table):
    """Text in UTF-8, separated by commas, semicolons, tabs or white space."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path = path
        try:
            self._header = read_header(path, layout_names(options.layout))
        except UnicodeDecodeError as error:
            raise _encoding_error(path) from error
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
            for rows in csv_blocks.complete_rows(file, self.path, csv_blocks.BLOCK_BYTES, header):
                try:
                    columns = self._parsed(rows.data, wanted)
                except UnicodeDecodeError as error:
                    raise _encoding_error(self.path) from error
                except (ValueError, IndexError, csv.Error) as error:
                    raise _row_error(self.path, header, wanted) from error
                count = len(next(iter(columns.values()), ()))
                if count:
                    yield RowBlock(row, rows.begin, count, columns, rows.end / size)
                    row += count

    def _parsed(self, data: bytes, wanted: Wanted) -> dict[str, Column]:
        """Return the columns of some rows."""
        header = self._header
        try:
            numbers = csv_blocks.numbers(data, wanted.numbers, header)
        except ValueError:
            if wanted.invalid == "raise" or header.delimiter == SPACES:
                raise
            numbers = csv_blocks.numbers(csv_blocks.filled(data, header.delimiter), wanted.numbers, header)
        columns: dict[str, Column] = {**numbers}
        if wanted.others:
            rows = csv_blocks.rows_of(data.decode("utf-8"), header.delimiter)
            places = header.places
            columns |= {name: objects([row[places[name]] for row in rows]) for name in wanted.others}
        return columns

    def place(self, row: int, column: str) -> str:
        """Return the line and the column of a number."""
        line, _ = next(islice(_rows(self.path, self._header), row, None))
        return f"{line}, column {column}"

    def announced(self) -> Announced:
        """Return the number of lines below the header."""
        return Announced(count_in(self.path, self._header.line_end, self._header.start))


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
        if len(row) != len(places):
            return _length_error(path, line, row, header)
        for name in wanted.numbers:
            text, place = row[places[name]], f"{line}, column {name}"
            if not text.strip() and wanted.invalid == "raise":
                return file_error(path, "a number is missing", f"correct the row{wanted.way_out}", place)
            if is_decimal_comma(text):
                way_out = "write decimal points, as in 1.5"
                return file_error(path, f"{quoted(text)} has a decimal comma", way_out, place)
            if text.strip() and not is_number(text):
                return file_error(path, f"{quoted(text)} is not a number", "correct the row", place)
            if text.strip() and not csv_blocks.is_exact(text):
                return inexact(path, quoted(text), place)
    return file_error(path, "is not a table that raybox reads", "check that it is a table of text")


def _length_error(path: Path, line: str, row: list[str], header: CsvHeader) -> FileFormatError:
    """Return the error for a row with another number of fields than the header."""
    if not any(map(str.strip, row)):
        return file_error(path, "holds blanks only", "remove the line", line)
    width = len(header.names)
    way_out = "complete the row; the file may be cut off"
    if len(row) > width and header.delimiter == ",":
        way_out = "write decimal points, not commas, and quote texts with commas"
    whose = f"the first line has {width}" if header.has_names else f"there are names for {width}"
    return file_error(path, f"{len(row)} fields, while {whose}", way_out, line)


def _encoding_error(path: Path) -> FileFormatError:
    """Return the error for text that is not UTF-8, with the byte."""
    at, way_out = 0, "save it as UTF-8, or check that it is a CSV file"
    with path.open("rb") as file:
        for line in file:
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                at += error.start
                break
            at += len(line)
    return file_error(path, "is not UTF-8 text", way_out, f"byte {at}")


def write(file: BinaryIO, columns: Mapping[str, Array]) -> None:
    """Write columns of one length; floats with as many digits as round-trip."""
    file.write(line(list(columns)))
    rows = len(next(iter(columns.values()), ()))
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
