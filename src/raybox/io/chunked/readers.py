"""Which reader gives pieces of a file; what cannot be read piece by piece is loaded whole.

LAS and LAZ come from a process of their own, which a damaged file may crash.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from raybox.geometry import Rays
from raybox.io.chunked import csv_chunks, tables
from raybox.io.chunked.chunks import PIECE, Piece, Source
from raybox.io.formats.common import Want, broken, reading, require
from raybox.io.formats.loading import load
from raybox.io.formats.point_clouds import LAS_READER, check_las, point_of
from raybox.io.formats.subprocess_reader import piped
from raybox.io.formats.table import looked_at

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


ZARR = ".zarr"

READERS: dict[str, Callable[[Path, Want], Source | None]] = {
    ".npy": tables.npy,
    ".npz": tables.npz,
    ".parquet": tables.parquet,
    ".csv": csv_chunks.csv_rows,
    ".las": las,
    ".laz": las,
    ZARR: tables.zarr,
}


def open_source(path: Path, want: Want) -> Source:
    """Look at a file of rays, or of points; every failure, now and later, is one line that names the file."""
    name = _format(path)
    read = READERS.get(path.suffix.lower())
    with reading(path, name):
        found = read(path, want) if read else None
    if found is None:
        return whole(path, want)
    if "points" in found.widths:
        _check_origin(found)
    return found._replace(pieces=lambda row, at: _guarded(found, name, row, at))


def _format(path: Path) -> str:
    if path.suffix.lower() != ZARR:
        return looked_at(path).name
    if not path.is_dir():
        problem = "is not a folder" if path.exists() else "cannot be read: No such file or directory"
        raise broken(path, problem, "give the folder of a Zarr group")
    return "Zarr"


def _guarded(source: Source, name: str, row: int, at: int) -> Iterator[Piece]:
    with reading(source.path, name):
        yield from source.pieces(row, at)


def _check_origin(source: Source) -> None:
    if source.want.origin is None:
        raise broken(
            source.path,
            "holds points, not rays",
            "say where the rays start: origin=(x, y, z), or --origin X,Y,Z",
        )


def whole(path: Path, want: Want) -> Source:
    """Load a file, and cut pieces of what it holds."""
    rays = load(path, kind="rays", origin=want.origin, invalid=want.invalid)
    assert isinstance(rays, Rays)
    flat = rays.reshape(-1)
    ranges = {"t_min": flat.t_min, "t_max": flat.t_max}
    arrays = {"origins": flat.origins, "directions": flat.directions, **ranges}

    def pieces(row: int, at: int) -> Iterator[Piece]:
        for start in range(at, len(flat), PIECE):
            some = slice(start, start + PIECE)
            cut = {name: array[some] for name, array in arrays.items()}
            yield Piece(start, start, len(cut["t_min"]), cut)

    widths = dict.fromkeys(arrays, 0) | dict.fromkeys(("origins", "directions"), rays.ndim_space)
    where = lambda name, index: f"{name}{list(index)}"  # noqa: E731 - nobody asks: all of it is sound
    return Source(path, Want("rays", None, False, want.invalid), widths, len(flat), pieces, where)
