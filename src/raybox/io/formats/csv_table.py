"""CSV: a header line, then one row for each box, ray or point; NumPy only."""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError
from raybox.io.formats.assembly import assemble, choose_columns, column_name
from raybox.io.formats.common import FileArrays, Floats, Labels, ReadOptions, file_error, quoted
from raybox.io.formats.csv_header import CsvHeader, read_header

BLOCK_ROWS = 65_536


def read(path: Path, options: ReadOptions) -> FileArrays:
    """Return the arrays of a CSV file.

    UTF-8, commas or semicolons, double quotes, a header line, which comments may precede.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header, delimiter, _ = _header(file)
            kind, numbers, labels = choose_columns(header, path, options)
            columns = _numbers(file, [header.index(name) for name in numbers], delimiter)
        texts = _labels(path, labels) if labels else {}
    except (ValueError, csv.Error) as error:
        raise row_error(path, options, error) from error
    arrays = assemble(dict(zip(numbers, columns, strict=True)), kind)
    return FileArrays(
        arrays, lambda array, index: f"{line_of(path, index[0])}, column {column_name(array, index)}", texts
    )


def _header(file: TextIO) -> CsvHeader:
    # readline: the file's own iterator disables tell()
    return read_header(file.readline)


def _numbers(file: TextIO, wanted: list[int], delimiter: str) -> Floats:
    """Return some columns of all remaining rows, shape (columns, rows)."""
    start = file.tell()
    if not any(line.strip() for line in iter(file.readline, "")):
        return np.zeros((len(wanted), 0))
    file.seek(start)
    return numbers(file, wanted, delimiter)


def numbers(file: TextIO, wanted: list[int], delimiter: str) -> Floats:
    """Return some columns of the remaining rows, at least one, shape (columns, rows)."""
    rows = np.loadtxt(file, delimiter=delimiter, usecols=wanted, quotechar='"', comments=None, ndmin=2)
    return np.ascontiguousarray(rows.T)


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the rows below the header, each with the line on which it ends."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = _header(file)
        rows = csv.reader(file, delimiter=header.delimiter, strict=True)
        try:
            yield from (
                (f"line {header.lines + rows.line_num}", row) for row in rows if any(map(str.strip, row))
            )
        except csv.Error as error:
            raise _quote_error(path, f"line {header.lines + rows.line_num}", error) from error


def _quote_error(path: Path, place: str, error: csv.Error) -> FileFormatError:
    """Return the error for a row that is cut off in a quoted field, or has text after one."""
    if "field limit" in str(error):
        problem = f"has a field of more than {csv.field_size_limit()} characters"
        return file_error(path, problem, "check that it is a CSV file", place)
    problem = "is not a whole table: a quoted field does not end, or text follows it"
    return file_error(path, problem, "repair the quotes", place)


def _labels(path: Path, labels: list[str]) -> Labels:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = _header(file).names
    rows = [row for _, row in _rows(path)]
    if any(len(row) != len(header) for row in rows):
        raise ValueError("rows of different lengths")
    return {name: [row[header.index(name)] for row in rows] for name in labels}


def line_of(path: Path, row: int) -> str:
    """Return the line on which a row of the table ends."""
    return next(line for k, (line, _) in enumerate(_rows(path)) if k == row)


def row_error(path: Path, options: ReadOptions, error: Exception) -> FileFormatError:
    """Return the error for the first row that does not fit the header; slow."""
    if isinstance(error, UnicodeDecodeError):
        return file_error(
            path, "is not UTF-8 text", "save it as UTF-8, or check that it is a CSV file", _byte(path)
        )
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            header = _header(file).names
        except csv.Error as broken:
            return _quote_error(path, "header", broken)
    _, numbers, _ = choose_columns(header, path, options)
    for line, row in _rows(path):
        if len(row) != len(header):
            problem = f"{len(row)} fields, while the first line has {len(header)}"
            return file_error(path, problem, "complete the row; the file may be cut off", line)
        for name in numbers:
            if not _is_number(row[header.index(name)]):
                problem = f"{quoted(row[header.index(name)])} is not a number"
                return file_error(path, problem, "correct the row", f"{line}, column {name}")
    return file_error(path, str(error), "correct the file")


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


def write(file: BinaryIO, columns: Mapping[str, NDArray[Any]]) -> None:
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


def plain_rows(columns: Mapping[str, NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of columns; 1 and 0 for bool."""
    arrays = [c.astype(np.int8) if c.dtype == bool else c for c in columns.values()]
    return zip(*(array.tolist() for array in arrays), strict=True)
