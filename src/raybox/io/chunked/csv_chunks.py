"""CSV block by block: bytes cut where a row ends, parsed as `io.formats.csv_table` does."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from raybox.io.chunked.chunks import RayFile, RowBlock
from raybox.io.formats import csv_table
from raybox.io.formats.assembly import assemble, choose_columns, column_name
from raybox.io.formats.common import Floats, ReadOptions, file_error

BLOCK_BYTES = 1 << 21
_LONGEST_ROW = 1 << 26


class _Rows(NamedTuple):
    """The bytes of complete rows, and where they begin and end in the file."""

    data: bytes
    begin: int
    end: int


def csv_rows(path: Path, options: ReadOptions) -> RayFile | None:
    """Return the rows of a CSV file.

    None for lines that end in a single CR: it is loaded whole.
    """
    try:
        with path.open("rb") as file:
            first, start = _first_line(file)
        if not first.endswith(b"\n") and b"\r" in first:
            return None
        header = _header(first)
        kind, numbers, _ = choose_columns(header, path, options)
    except (ValueError, csv.Error) as error:
        raise csv_table.row_error(path, options, error) from error
    wanted = [header.index(name) for name in numbers]
    size = path.stat().st_size

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        with path.open("rb") as file:
            file.seek(offset or start)
            for rows in _complete_rows(file, path):
                columns = _parsed(rows.data, wanted, path, options)
                if columns is None:
                    continue
                arrays = assemble(dict(zip(numbers, columns, strict=True)), kind)
                yield RowBlock(row, rows.begin, columns.shape[1], dict(arrays), rows.end / size)
                row += columns.shape[1]

    shapes = assemble({name: np.empty(0) for name in numbers}, kind)
    widths = {name: array.shape[1] if array.ndim == 2 else 0 for name, array in shapes.items()}
    where = lambda array, index: f"{csv_table.line_of(path, index[0])}, column {column_name(array, index)}"  # noqa: E731
    return RayFile(path, options, widths, None, blocks, where)


def _first_line(file: BinaryIO) -> tuple[bytes, int]:
    """Return the header, and where it ends.

    A quoted name may span several lines.
    """
    first = file.readline(_LONGEST_ROW)
    while first.count(b'"') % 2 and (more := file.readline(_LONGEST_ROW)):
        first += more
    return first, file.tell()


def _header(first: bytes) -> list[str]:
    lines = io.StringIO(first.decode("utf-8-sig"), newline="")
    return [name.strip() for name in next(csv.reader(lines, strict=True), [])]


def _complete_rows(file: BinaryIO, path: Path) -> Iterator[_Rows]:
    """Yield complete rows.

    A row ends with a line, outside quotes.
    """
    at, pending = file.tell(), b""
    while data := file.read(BLOCK_BYTES):
        pending += data
        end = _last_row_end(pending)
        if end:
            yield _Rows(pending[:end], at, at + end)
            at, pending = at + end, pending[end:]
        elif len(pending) > _LONGEST_ROW:
            problem = f"has a row of more than {_LONGEST_ROW >> 20} MB"
            raise file_error(path, problem, "check that it is a CSV file", f"byte {at}")
    if pending:
        yield _Rows(pending, at, at + len(pending))


def _last_row_end(data: bytes) -> int:
    """Return where the last complete row ends, of bytes that begin with a row; 0: none does."""
    end = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end


def _parsed(block: bytes, wanted: list[int], path: Path, options: ReadOptions) -> Floats | None:
    """Return the wanted columns of rows, shape (columns, rows).

    None for empty lines only.
    """
    try:
        lines = block.decode("utf-8")
        if not lines.strip():
            return None
        return csv_table.numbers(io.StringIO(lines, newline=""), wanted)
    except (ValueError, csv.Error) as error:
        raise csv_table.row_error(path, options, error) from error
