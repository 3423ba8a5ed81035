"""CSV: a header line, then one row for each box, ray or point. Needs nothing but NumPy."""

import codecs
import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError
from raybox.io.formats.assembly import assemble, column_of, plan
from raybox.io.formats.common import Floats, Labels, Parts, Want, broken, shown

ROWS_AT_ONCE = 65_536


def read(path: Path, want: Want) -> Parts:
    """Read a CSV file: UTF-8, commas, double quotes, the columns' names in the first line."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = _header(file)
            kind, numbers, labels = plan(header, path, want)
            columns = _numbers(file, [header.index(name) for name in numbers])
        texts = _labels(path, labels) if labels else {}
    except (ValueError, csv.Error) as error:
        raise explained(path, want, error) from error
    arrays = assemble(dict(zip(numbers, columns, strict=True)), kind)
    return Parts(
        arrays, lambda array, index: f"{line_of(path, index[0])}, column {column_of(array, index)}", texts
    )


def _header(file: TextIO) -> list[str]:
    # readline instead of the file's own iterator, which would forbid to ask for the position
    return [name.strip() for name in next(csv.reader(iter(file.readline, ""), strict=True), [])]


def _numbers(file: TextIO, wanted: list[int]) -> Floats:
    """Parse the wanted columns of all rows to come, as an array of shape (columns, rows)."""
    start = file.tell()
    if not any(line.strip() for line in iter(file.readline, "")):
        return np.zeros((len(wanted), 0))
    file.seek(start)
    return numbers(file, wanted)


def numbers(file: TextIO, wanted: list[int]) -> Floats:
    """Parse the wanted columns of rows, of which there is one at least."""
    rows = np.loadtxt(file, delimiter=",", usecols=wanted, quotechar='"', comments=None, ndmin=2)
    return np.ascontiguousarray(rows.T)


def _rows(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Walk through the rows below the header, each with the line it ends on."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.reader(file, strict=True)
        try:
            next(rows, None)
            yield from ((f"line {rows.line_num}", row) for row in rows if any(map(str.strip, row)))
        except csv.Error as error:
            raise broken(
                path, f"is not a whole table: {error}", "repair the quotes", f"line {rows.line_num}"
            ) from error


def _labels(path: Path, labels: list[str]) -> Labels:
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = _header(file)
    rows = [row for _, row in _rows(path)]
    if any(len(row) != len(header) for row in rows):
        raise ValueError("rows of different lengths")
    return {name: [row[header.index(name)] for row in rows] for name in labels}


def line_of(path: Path, row: int) -> str:
    """Name the line that a row of the table ends on."""
    return next(line for k, (line, _) in enumerate(_rows(path)) if k == row)


def explained(path: Path, want: Want, error: Exception) -> FileFormatError:
    """Find the first row that is not as the header promises; slow, but only a broken file comes here."""
    if isinstance(error, UnicodeDecodeError):
        return broken(
            path, "is not UTF-8 text", "save it as UTF-8, or check that it is a CSV file", _byte(path)
        )
    with path.open(encoding="utf-8-sig", newline="") as file:
        header = _header(file)
    _, numbers, _ = plan(header, path, want)
    for line, row in _rows(path):
        if len(row) != len(header):
            problem = f"{len(row)} fields, while the first line has {len(header)}"
            return broken(path, problem, "complete the row; the file may be cut off", line)
        for name in numbers:
            if not _is_number(row[header.index(name)]):
                problem = f"{shown(row[header.index(name)])} is not a number"
                return broken(path, problem, "correct the row", f"{line}, column {name}")
    return broken(path, str(error), "correct the file")


def _byte(path: Path) -> str:
    at, decoder = 0, codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            held = len(decoder.getstate()[0])
            try:
                decoder.decode(block)
            except UnicodeDecodeError as error:
                return f"byte {at - held + error.start}"
            at += len(block)
    return f"byte {at - len(decoder.getstate()[0])}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.isascii() and "_" not in text  # Python takes 1_000 for a number, the fast reader does not


def write(file: BinaryIO, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of one length; floats with as many digits as give the same float again."""
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    table = csv.writer(text, lineterminator="\n")
    table.writerow(columns)
    rows = len(next(iter(columns.values())))
    for start in range(0, rows, ROWS_AT_ONCE):
        table.writerows(
            plain_numbers({name: column[start : start + ROWS_AT_ONCE] for name, column in columns.items()})
        )
    text.detach()


def plain_numbers(columns: Mapping[str, NDArray[Any]]) -> Iterator[tuple[Any, ...]]:
    """Give columns row by row; 1 and 0 for bool."""
    arrays = [c.astype(np.int8) if c.dtype == bool else c for c in columns.values()]
    return zip(*(array.tolist() for array in arrays), strict=True)
