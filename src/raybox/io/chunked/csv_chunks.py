"""CSV piece by piece: blocks of bytes, cut where a row ends, and parsed as `io.formats.csv_table` does."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raybox.io.chunked.chunks import Piece, Source
from raybox.io.formats import csv_table
from raybox.io.formats.assembly import assemble, column_of, plan
from raybox.io.formats.common import Floats, Want, broken

BLOCK = 1 << 21  # bytes
_LONGEST = 1 << 26


def csv_rows(path: Path, want: Want) -> Source | None:
    """Look at a file's first line; one that ends its lines as computers of the 1980s did is read whole."""
    try:
        with path.open("rb") as file:
            first, start = _first_line(file)
        if not first.endswith(b"\n") and b"\r" in first:
            return None
        header = _header(first)
        kind, numbers, _ = plan(header, path, want)
    except (ValueError, csv.Error) as error:
        raise csv_table.explained(path, want, error) from error
    wanted = [header.index(name) for name in numbers]
    size = path.stat().st_size

    def pieces(row: int, at: int) -> Iterator[Piece]:
        with path.open("rb") as file:
            file.seek(at or start)
            for block, begin, end in _blocks(file, path):
                rows = _parsed(block, wanted, path, want)
                if rows is None:
                    continue
                arrays = assemble(dict(zip(numbers, rows, strict=True)), kind)
                yield Piece(row, begin, rows.shape[1], dict(arrays), end / size)
                row += rows.shape[1]

    shapes = assemble({name: np.empty(0) for name in numbers}, kind)
    widths = {name: array.shape[1] if array.ndim == 2 else 0 for name, array in shapes.items()}
    where = lambda array, index: f"{csv_table.line_of(path, index[0])}, column {column_of(array, index)}"  # noqa: E731
    return Source(path, want, widths, None, pieces, where)


def _first_line(file: BinaryIO) -> tuple[bytes, int]:
    """Read as much as the header takes: a quoted name may go over several lines."""
    first = file.readline(_LONGEST)
    while first.count(b'"') % 2 and (more := file.readline(_LONGEST)):
        first += more
    return first, file.tell()


def _header(first: bytes) -> list[str]:
    lines = io.StringIO(first.decode("utf-8-sig"), newline="")
    return [name.strip() for name in next(csv.reader(lines, strict=True), [])]


def _blocks(file: BinaryIO, path: Path) -> Iterator[tuple[bytes, int, int]]:
    """Give bytes of whole rows: where a line ends, and the quotes before it are closed."""
    at, held = file.tell(), b""
    while data := file.read(BLOCK):
        held += data
        end = _last_end(held)
        if end:
            yield held[:end], at, at + end
            at, held = at + end, held[end:]
        elif len(held) > _LONGEST:
            raise broken(
                path,
                f"has a row of more than {_LONGEST >> 20} MB",
                "check that it is a CSV file",
                f"byte {at}",
            )
    if held:
        yield held, at, at + len(held)


def _last_end(data: bytes) -> int:
    """Find where the last whole row of a block ends that begins with one; 0 if none does."""
    end = data.rfind(b"\n") + 1
    quotes = data.count(b'"', 0, end)
    while end and quotes % 2:
        before = data.rfind(b"\n", 0, end - 1) + 1
        quotes -= data.count(b'"', before, end)
        end = before
    return end


def _parsed(block: bytes, wanted: list[int], path: Path, want: Want) -> Floats | None:
    """Parse rows into columns; None where there are but empty lines."""
    try:
        lines = block.decode("utf-8")
        if not lines.strip():
            return None
        return csv_table.numbers(io.StringIO(lines, newline=""), wanted)
    except (ValueError, csv.Error) as error:
        raise csv_table.explained(path, want, error) from error
