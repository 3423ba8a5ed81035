"""CSV: a header line, then a row for each box or ray."""

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
from raybox.io.formats.csv_header import CsvHeader, quote_error, read_header
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
    """A CSV file in UTF-8, separated by commas or semicolons."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._header = read_header(path)
        except UnicodeDecodeError as error:
            raise _encoding_error(path) from error
        self.names = self._header.names

    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield blocks; other columns than numbers are arrays of text."""
        size, header = self.path.stat().st_size, self._header
        with self.path.open("rb") as file:
            file.seek(offset or header.start)
            for rows in csv_blocks.complete_rows(file, self.path, csv_blocks.BLOCK_BYTES, header.line_end):
                try:
                    columns = self._parsed(rows.data, wanted)
                except UnicodeDecodeError as error:
                    raise _encoding_error(self.path) from error
                except (ValueError, IndexError, csv.Error) as error:
                    raise _row_error(self.path, header, wanted.numbers) from error
                count = len(next(iter(columns.values()), ()))
                if count:
                    yield RowBlock(row, rows.begin, count, columns, rows.end / size)
                    row += count

    def _parsed(self, data: bytes, wanted: Wanted) -> dict[str, Column]:
        """Return the columns of some rows."""
        header = self._header
        columns: dict[str, Column] = {**csv_blocks.numbers(data, wanted.numbers, header)}
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
        rows = csv.reader(text, delimiter=header.delimiter, strict=True)
        try:
            yield from ((f"line {header.lines + rows.line_num}", row) for row in rows if row)
        except csv.Error as error:
            raise quote_error(path, f"line {header.lines + rows.line_num}", error) from error


def _row_error(path: Path, header: CsvHeader, numbers: Sequence[str]) -> FileFormatError:
    """Return the error for the first row that does not fit the header; slow."""
    places = header.places
    for line, row in _rows(path, header):
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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # Python parses 1_000, NumPy does not


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
