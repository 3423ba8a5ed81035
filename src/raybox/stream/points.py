"""LAS and LAZ piece by piece, from a process of its own, which a damaged file may crash."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from raybox.files.apart import piped
from raybox.files.common import Want, require
from raybox.files.points import LAS_READER, check_las, point_of
from raybox.stream.chunks import PIECE, Piece, Source

_POINT = 24  # bytes


def las(path: Path, want: Want) -> Source:
    """Look at a LAS or LAZ file."""
    require("laspy", "las", path.suffix.lower())
    check_las(path)
    total = _announced(path)

    def pieces(row: int, at: int) -> Iterator[Piece]:
        with piped(LAS_READER, path, str(at)) as stdout:
            start = at
            while data := stdout.read(_POINT * PIECE):
                some = np.frombuffer(data[: len(data) // _POINT * _POINT], "<f8").reshape(-1, 3)
                yield Piece(start, start, len(some), {"points": some})
                start += len(some)

    return Source(path, want, {"points": 3}, total, pieces, point_of)


def _announced(path: Path) -> int | None:
    """Tell how many points the header announces; since version 1.4 of the format, in another place."""
    with path.open("rb") as file:
        head = file.read(255)
    place = slice(247, 255) if head[25] >= 4 else slice(107, 111)
    return int.from_bytes(head[place], "little") or None
