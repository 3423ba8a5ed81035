"""The reader for each format of rays; a file that cannot be read block by block is loaded whole.

LAS and LAZ are read by a process of their own, which a damaged file may crash.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from raybox.geometry import Rays
from raybox.io.chunked import csv_chunks, tables
from raybox.io.chunked.chunks import BLOCK_ROWS, RayFile, RowBlock
from raybox.io.formats.common import ReadOptions, file_error, missing_file, reader_errors, require
from raybox.io.formats.loading import load
from raybox.io.formats.point_clouds import LAS_READER, check_las, point_of
from raybox.io.formats.subprocess_reader import stream_stdout
from raybox.io.formats.table import RAYS, format_of

_POINT_BYTES = 24
_LAS_HEADER_BYTES = 255
_MINOR_VERSION, _COUNT, _COUNT_14 = 25, slice(107, 111), slice(247, 255)  # bytes of the LAS header


def las(path: Path, options: ReadOptions) -> RayFile:
    """Return the points of a LAS or LAZ file."""
    require("laspy", "las", path.suffix.lower())
    check_las(path)
    total = _las_point_count(path)

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        with stream_stdout(LAS_READER, path, str(offset)) as stdout:
            start = offset
            while data := stdout.read(_POINT_BYTES * BLOCK_ROWS):
                points = np.frombuffer(data[: len(data) // _POINT_BYTES * _POINT_BYTES], "<f8").reshape(-1, 3)
                yield RowBlock(start, start, len(points), {"points": points})
                start += len(points)

    return RayFile(path, options, {"points": 3}, total, blocks, point_of)


def _las_point_count(path: Path) -> int | None:
    """Return the number of points in the header.

    None: 0, which some writers leave there.
    """
    with path.open("rb") as file:
        header = file.read(_LAS_HEADER_BYTES)
    place = _COUNT_14 if header[_MINOR_VERSION] >= 4 else _COUNT
    return int.from_bytes(header[place], "little") or None


ZARR = ".zarr"

READERS: dict[str, Callable[[Path, ReadOptions], RayFile | None]] = {
    ".npy": tables.npy,
    ".npz": tables.npz,
    ".parquet": tables.parquet,
    ".csv": csv_chunks.csv_rows,
    ".las": las,
    ".laz": las,
    ZARR: tables.zarr,
}


def open_ray_file(path: Path, options: ReadOptions) -> RayFile:
    """Return a file of rays or points.

    Every error, now and later, is one line that names the file.
    """
    format_name = _format_name(path)
    read = READERS.get(path.suffix.lower())
    with reader_errors(path, format_name):
        source = read(path, options) if read else None
    if source is None:
        return load_whole(path, options)
    if "points" in source.widths:
        _check_origin(source)
    return source._replace(blocks=lambda row, offset: _guarded(source, format_name, row, offset))


def _format_name(path: Path) -> str:
    if path.suffix.lower() != ZARR:
        return format_of(path, f"{RAYS} {ZARR}").name
    if not path.is_dir():
        if not path.exists():
            raise missing_file(path)
        raise file_error(path, "is not a folder", "give the folder of a Zarr group")
    return "Zarr"


def _guarded(source: RayFile, format_name: str, row: int, offset: int) -> Iterator[RowBlock]:
    """Yield blocks; raise `FileFormatError` for rows that are missing between them, or at the end."""
    path, expected = source.path, None
    with reader_errors(path, format_name, "give a smaller chunk"):
        for block in source.blocks(row, offset):
            _check_count(path, block.row, expected)
            expected = block.row + block.rows
            yield block
        _check_count(path, row if expected is None else expected, source.total)


def _check_count(path: Path, count: int, expected: int | None) -> None:
    """Raise unless as many rows were read as expected; None: any number."""
    if expected is not None and count != expected:
        problem = f"{count:,} rows were read where {expected:,} are promised"
        raise file_error(path, problem, "copy or write it again")


def _check_origin(source: RayFile) -> None:
    if source.options.origin is None:
        raise file_error(
            source.path,
            "holds points, not rays",
            "say where the rays start: origin=(x, y, z), or --origin X,Y,Z",
        )


def load_whole(path: Path, options: ReadOptions) -> RayFile:
    """Load a file; return its rays in blocks."""
    rays = load(path, kind="rays", origin=options.origin, invalid=options.invalid)
    assert isinstance(rays, Rays)
    flat = rays.reshape(-1)
    ranges = {"t_min": flat.t_min, "t_max": flat.t_max}
    arrays = {"origins": flat.origins, "directions": flat.directions, **ranges}

    def blocks(row: int, offset: int) -> Iterator[RowBlock]:
        for start in range(offset, len(flat), BLOCK_ROWS):
            rows = slice(start, start + BLOCK_ROWS)
            some = {name: array[rows] for name, array in arrays.items()}
            yield RowBlock(start, start, len(some["t_min"]), some)

    widths = dict.fromkeys(arrays, 0) | dict.fromkeys(("origins", "directions"), rays.ndim_space)
    where = lambda name, index: f"{name}{list(index)}"  # noqa: E731 - never called: `load` has checked all
    checked = ReadOptions("rays", None, False, options.invalid)
    return RayFile(path, checked, widths, len(flat), blocks, where)
