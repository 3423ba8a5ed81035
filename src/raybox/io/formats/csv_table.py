"""CSV: a header line, then one row for each box, ray or point; NumPy only."""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raybox.errors import FileFormatError
from raybox.io.formats import csv_blocks
from raybox.io.formats.assembly import assemble, choose_columns, column_name
from raybox.io.formats.common import FileArrays, Labels, ReadOptions, file_error, quoted
from raybox.io.formats.csv_header import read_header
from raybox.validation import Array

BLOCK_ROWS = 65_536


def read(path: Path, options: ReadOptions) -> FileArrays:
    """Return the arrays of a CSV file.

    UTF-8, commas or semicolons, double quotes, a header line, which comments may precede.
    """
    try:
        with path.open("rb") as file:
            header = csv_blocks.read_header(file)
            kind, names, labels = choose_columns(header.names, path, options)
            wanted = header.wanted(names)
            blocks = (
                csv_blocks.numbers(block.data, wanted)
                for block in csv_blocks.complete_rows(header.rows, path)
            )
            columns = np.concatenate(
                [np.empty((len(names), 0)), *(block for block in blocks if block is not None)], axis=1
            )
        texts = _labels(path, labels) if labels else {}
    except (ValueError, csv.Error) as error:
        raise row_error(path, options, error) from error
    arrays = assemble(dict(zip(names, columns, strict=True)), kind)
    return FileArrays(
        arrays, lambda array, index: f"{line_of(path, index[0])}, column {column_name(array, index)}", texts
    )


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


def _header(rows: Iterator[tuple[str, list[str]]]) -> dict[str, int]:
    """Return the place of each column, from the first of the rows."""
    return {name: place for place, name in enumerate(next(rows)[1])}


def _labels(path: Path, labels: list[str]) -> Labels:
    rows = _rows(path)
    places = _header(rows)
    wanted = [places[name] for name in labels]
    texts = [[row[place] for place in wanted] for _, row in rows]
    columns = zip(*texts, strict=True) if texts else [()] * len(labels)
    return {name: list(column) for name, column in zip(labels, columns, strict=True)}


def line_of(path: Path, row: int) -> str:
    """Return the line on which a row of the table ends."""
    return next(islice(_rows(path), row + 1, None))[0]


def row_error(path: Path, options: ReadOptions, error: Exception) -> FileFormatError:
    """Return the error for the first row that does not fit the header; slow."""
    if isinstance(error, UnicodeDecodeError):
        return file_error(
            path, "is not UTF-8 text", "save it as UTF-8, or check that it is a CSV file", _byte(path)
        )
    rows = _rows(path)
    places = _header(rows)
    _, names, _ = choose_columns(list(places), path, options)
    for line, row in rows:
        if len(row) != len(places):
            return _length_error(path, line, row, len(places))
        for name in names:
            if not _is_number(row[places[name]]):
                problem = f"{quoted(row[places[name]])} is not a number"
                return file_error(path, problem, "correct the row", f"{line}, column {name}")
    return file_error(path, str(error), "correct the file")


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
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    rows = len(next(iter(columns.values())))
    for start in range(0, rows, BLOCK_ROWS):
        table.writerows(
            plain_rows({name: column[start : start + BLOCK_ROWS] for name, column in columns.items()})
        )
    text.detach()


def plain_rows(columns: Mapping[str, Array]) -> Iterator[tuple[object, ...]]:
    """Yield the rows of columns; 1 and 0 for bool."""
    arrays = [c.astype(np.int8) if c.dtype == bool else c for c in columns.values()]
    return zip(*(array.tolist() for array in arrays), strict=True)
