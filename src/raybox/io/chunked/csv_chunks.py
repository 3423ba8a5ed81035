"""CSV block by block: bytes cut where a row ends, parsed as `io.formats.csv_table` does."""

import codecs
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
from raybox.io.formats.csv_header import CsvHeader, read_header

BLOCK_BYTES = 1 << 21
_LONGEST_ROW = 1 << 26
_LINE_ENDS = 1 << 16  # bytes that show how lines end


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
            if b"\r" in file.read(_LINE_ENDS).replace(b"\r\n", b"").removesuffix(b"\r"):
                return None
            file.seek(0)
            header, delimiter, _ = _header(file)
            start = file.tell()
        kind, numbers, _ = choose_columns(header, path, options)
    except (ValueError, csv.Error) as error:
        raise csv_table.row_error(path, options, error) from error
    wanted = [header.index(name) for name in numbers]
    size = path.stat().st_size

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        with path.open("rb") as file:
            file.seek(offset or start)
            for rows in _complete_rows(file, path):
                columns = _parsed(rows.data, (wanted, delimiter), path, options)
                if columns is None:
                    continue
                arrays = assemble(dict(zip(numbers, columns, strict=True)), kind)
                yield RowBlock(row, rows.begin, columns.shape[1], dict(arrays), rows.end / size)
                row += columns.shape[1]

    shapes = assemble({name: np.empty(0) for name in numbers}, kind)
    widths = {name: array.shape[1] if array.ndim == 2 else 0 for name, array in shapes.items()}
    where = lambda array, index: f"{csv_table.line_of(path, index[0])}, column {column_name(array, index)}"  # noqa: E731
    return RayFile(path, options, widths, None, blocks, where)


def _header(file: BinaryIO) -> CsvHeader:
    """Return the header; the file is then where it ends."""
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    return read_header(lambda: decoder.decode(file.readline(_LONGEST_ROW)))


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


def _parsed(block: bytes, wanted: tuple[list[int], str], path: Path, options: ReadOptions) -> Floats | None:
    """Return the wanted columns of rows, shape (columns, rows).

    Wanted are the numbers of columns, and the delimiter. None for empty lines only.
    """
    try:
        lines = block.decode("utf-8")
        if not lines.strip():
            return None
        return csv_table.numbers(io.StringIO(lines, newline=""), *wanted)
    except (ValueError, csv.Error) as error:
        raise csv_table.row_error(path, options, error) from error
