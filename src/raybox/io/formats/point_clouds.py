"""Points, which become rays from one origin: LAS and LAZ, through laspy."""

import struct
from pathlib import Path

import numpy as np

from raybox.io.formats import subprocess_reader
from raybox.io.formats.common import FileArrays, Floats, ReadOptions, file_error, require
from raybox.io.formats.mesh_parts import cut_off

LAS_HEAD = struct.Struct("<94xHII")  # size of the header, offset of the points, number of variable records

# Not the parallel reader: it allocates the chunk size that the file announces.
LAS_READER = """
import sys
import laspy, numpy

start = int(sys.argv[2]) if len(sys.argv) > 2 else 0
with laspy.open(sys.argv[1], laz_backend=laspy.LazBackend.Lazrs, read_evlrs=False) as file:
    if start:
        file.seek(start)
    missing = file.header.point_count - start
    for points in file.chunk_iterator(max(1, 32_000_000 // file.header.point_format.size)):
        coordinates = numpy.stack([points.x, points.y, points.z], axis=-1)
        sys.stdout.buffer.write(coordinates.astype("<f8").tobytes())
        missing -= len(points)
if missing:
    sys.exit(f"{missing} of {file.header.point_count} points are missing")
"""


def read_las(path: Path, options: ReadOptions) -> FileArrays:
    """Return the coordinates of a LAS or LAZ file."""
    require("laspy", "las", path.suffix.lower())
    check_las(path)
    return points_of(
        np.frombuffer(subprocess_reader.run(LAS_READER, path), "<f8")
        .astype(np.float64, copy=False)
        .reshape(-1, 3)
    )


def check_las(path: Path) -> None:
    """Raise unless the header fits the size of the file.

    Laspy does not check it.
    """
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(LAS_HEAD.size)
    if len(head) < LAS_HEAD.size:
        raise cut_off(path, f"byte {size}")
    header, start, records = LAS_HEAD.unpack(head)
    if header + 54 * records > start:
        problem = f"its header and {records} records do not fit in front of its points"
        raise file_error(path, problem, "copy or download it again", "byte 100")
    if start > size:
        raise cut_off(path, f"byte {size} of {start}")


def points_of(points: Floats) -> FileArrays:
    """Return points, with the place of each coordinate in the file."""
    return FileArrays({"points": points}, point_of)


def point_of(_: str, index: tuple[int, ...]) -> str:
    """Return the place of a coordinate in the file."""
    return f"point {index[0]} (the first is 0), column {'xyz'[index[1]]}"
