"""Points, which become rays from one origin: LAS and LAZ (through laspy), and PCD."""

import struct
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raybox.io.formats import subprocess_reader
from raybox.io.formats.common import FileArrays, Floats, ReadOptions, file_error, quoted, require
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
    return _parts(
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


def _parts(points: Floats) -> FileArrays:
    return FileArrays({"points": points}, point_of)


def point_of(_: str, index: tuple[int, ...]) -> str:
    """Return the place of a coordinate in the file."""
    return f"point {index[0]} (the first is 0), column {'xyz'[index[1]]}"


def read_pcd(path: Path, options: ReadOptions) -> FileArrays:
    """Return the fields x, y, z of a PCD file, text or binary (not compressed)."""
    with path.open("rb") as file:
        header = _header(file, path)
        start, data = file.tell(), file.read()
    try:
        names, counts = header["FIELDS"], [int(c) for c in header.get("COUNT", ["1"] * len(header["FIELDS"]))]
        kinds = [kind.lower() + size for kind, size in zip(header["TYPE"], header["SIZE"], strict=True)]
        rows, encoding = int(header["POINTS"][0]), header["DATA"][0]
        # Names may repeat (padding is called _), so fields are named by number.
        dtype = np.dtype(
            [(f"{k}", f"<{kind}", (n,)) for k, (kind, n) in enumerate(zip(kinds, counts, strict=True))]
        )
        columns = [names.index(axis) for axis in "xyz"]
    except (KeyError, ValueError, IndexError, TypeError) as error:
        raise file_error(
            path, f"has an incomplete header ({error})", "check that it is a whole PCD file", "header"
        ) from error
    if encoding not in ("ascii", "binary"):
        way_out = "convert it: pcl_convert_pcd_ascii_binary IN OUT 1"
        raise file_error(
            path, f"its DATA is {quoted(encoding)}, raybox reads ascii and binary", way_out, "header"
        )
    if rows < 0 or rows * (dtype.itemsize if encoding == "binary" else 2 * len(names) - 1) > len(data) + 1:
        raise cut_off(path, f"byte {start + len(data)}")
    if encoding == "binary":
        table = np.frombuffer(data, dtype, rows)
        return _parts(np.stack([table[str(k)][:, 0].astype(np.float64) for k in columns], axis=-1))
    return _parts(_text(data, rows, [sum(counts[:k]) for k in columns], path))


def _header(file: BinaryIO, path: Path) -> dict[str, list[str]]:
    header: dict[str, list[str]] = {}
    for raw in iter(file.readline, b""):
        fields = raw.decode("ascii", errors="replace").split()
        if fields and not fields[0].startswith("#"):
            header[fields[0]] = fields[1:]
        if "DATA" in header:
            return header
        if len(header) > 32:
            break
    raise file_error(path, "has no DATA line in its header", "check that it is a whole PCD file", "header")


def _text(data: bytes, rows: int, columns: list[int], path: Path) -> Floats:
    lines = [line for line in data.decode("ascii", errors="replace").splitlines() if line.strip()]
    if len(lines) < rows:
        raise cut_off(path, f"point {len(lines)} of {rows}")
    points = np.zeros((rows, 3))
    for k, line in enumerate(lines[:rows]):
        fields: list[Any] = line.split()
        try:
            points[k] = [float(fields[column]) for column in columns]
        except (ValueError, IndexError) as error:
            raise file_error(
                path, f"{quoted(line)} is not a point", "the file may be cut off", f"point {k}"
            ) from error
    return points
