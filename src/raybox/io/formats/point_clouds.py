"""Points, which become rays from one origin: LAS and LAZ, through laspy.

Units are those of the reference system in the header, as GeoTIFF keys or WKT; z is up.
"""

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raybox.io.formats import subprocess_reader
from raybox.io.formats.common import Floats, file_error, require
from raybox.io.formats.mesh_parts import cut_off
from raybox.io.formats.tables import BLOCK_ROWS, RowBlock, Table, Wanted

_POINT_BYTES = 24
_LAS_HEADER_BYTES = 255
_MINOR_VERSION, _COUNT, _COUNT_14 = 25, slice(107, 111), slice(247, 255)  # bytes of the LAS header
LAS_HEAD = struct.Struct("<94xHII")  # size of the header, offset of the points, number of variable records
_RECORD = struct.Struct("<2x16sHH32x")
LASZIP_CHUNKED = (2, 3)
"""Methods of LASzip 2 and 3; its method 1 (LASzip 1.2) has no chunks, at which lazrs panics."""
_FORMAT, _TIMED = 104, {1, *range(3, 11)}  # the byte of the point format, and the formats with times
_EXTRA, _EXTRA_BYTES, _EXTRA_NAME = ("LASF_Spec", 4), 192, slice(4, 36)  # records of further dimensions
_LASZIP, _GEO_KEYS, _WKT = ("laszip encoded", 22204), ("LASF_Projection", 34735), ("LASF_Projection", 2112)
_MODEL, _GEOGRAPHIC, _LINEAR_UNITS = 1024, 2, 3076  # keys of GeoTIFF, and the model of degrees
_EPSG_UNITS = {9001: "metre", 9002: "foot", 9003: "US survey foot"}
_UNIT_METRES = {"1": "metre", "0.3048": "foot", "0.3048006": "US survey foot"}
_UNIT = re.compile(r'(?:LENGTH)?UNIT *\[ *"[^"]*" *, *(\d+\.?\d*(?:[eE][+-]?\d+)?)')
Records = Mapping[tuple[str, int], bytes]

# Not the parallel reader: it allocates the chunk size that the file announces.
LAS_READER = """
import sys
import laspy, numpy

start = int(sys.argv[2]) if len(sys.argv) > 2 else 0
names = sys.argv[3:] or ["x", "y", "z"]
try:
    with laspy.open(sys.argv[1], laz_backend=laspy.LazBackend.Lazrs, read_evlrs=False) as file:
        if start:
            file.seek(start)
        missing = file.header.point_count - start
        for points in file.chunk_iterator(max(1, 32_000_000 // file.header.point_format.size)):
            numbers = numpy.stack([numpy.asarray(points[name]) for name in names], axis=-1)
            sys.stdout.buffer.write(numbers.astype("<f8").tobytes())
            missing -= len(points)
except laspy.errors.LaspyException as error:
    sys.exit(f"laspy: {error}")
except BaseException:  # the panics of lazrs are none of Exception
    sys.exit("its header or its points are damaged")
if missing:
    sys.exit(f"{missing} of {file.header.point_count} points are missing")
"""


class LasTable(Table):
    """The coordinates of a LAS or LAZ file, read in a subprocess."""

    def __init__(self, path: Path) -> None:
        require("laspy", "las", path.suffix.lower())
        self.path, self.names = path, ["x", "y", "z"]
        with path.open("rb") as file:
            head = file.read(_LAS_HEADER_BYTES)
            records = _records(head, file, path)
        method = int.from_bytes(records[_LASZIP][:2], "little") if _LASZIP in records else None
        if method not in (None, *LASZIP_CHUNKED):
            version = " (version 1.2 or older)" if method == 1 else ""
            problem = f"is compressed by method {method} of LASzip{version}, lazrs reads methods 2 and 3"
            raise file_error(path, problem, "compress it again by a newer LASzip: laszip -i IN -o OUT")
        self.units, self.up = units_of(records), "z"
        self.dimensions = _dimensions(head[_FORMAT] & 63, records.get(_EXTRA, b""))
        count = int.from_bytes(head[_COUNT_14 if head[_MINOR_VERSION] >= 4 else _COUNT], "little")
        self.rows = count or None  # some writers leave 0 there

    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield points."""
        with subprocess_reader.stream_stdout(LAS_READER, self.path, str(offset)) as stdout:
            start = offset
            while data := stdout.read(_POINT_BYTES * BLOCK_ROWS):
                points = np.frombuffer(data[: len(data) // _POINT_BYTES * _POINT_BYTES], "<f8").reshape(-1, 3)
                columns = {name: points[:, "xyz".index(name)] for name in wanted.numbers}
                yield RowBlock(start, start, len(points), columns)
                start += len(points)

    def numbers(self, names: Sequence[str]) -> dict[str, Floats]:
        """Return dimensions of all points."""
        with subprocess_reader.stream_stdout(LAS_READER, self.path, "0", *names) as stdout:
            rows = np.frombuffer(stdout.read(), "<f8").reshape(-1, len(names))
        return dict(zip(names, rows.T, strict=True))

    def block_at(self, row: int) -> tuple[int, int]:
        """Return the row itself."""
        return row, row

    def place(self, row: int, column: str) -> str:
        """Return the place of a coordinate."""
        return f"point {row} (the first is 0), column {column}"


def _records(head: bytes, file: BinaryIO, path: Path) -> Records:
    """Return the variable records; raise unless the header fits the file, which laspy does not check."""
    size = path.stat().st_size
    if len(head) < LAS_HEAD.size:
        raise cut_off(path, f"byte {size}")
    header, start, records = LAS_HEAD.unpack_from(head)
    if header + 54 * records > start:
        problem = f"its header and {records} records do not fit in front of its points"
        raise file_error(path, problem, "copy or download it again", "byte 100")
    if start > size:
        raise cut_off(path, f"byte {size} of {start}")
    file.seek(header)
    found = dict[tuple[str, int], bytes]()
    for _ in range(records):
        record = file.read(_RECORD.size)
        if len(record) == _RECORD.size:
            user, number, length = _RECORD.unpack(record)
            found.setdefault((user.partition(b"\0")[0].decode("latin-1"), number), file.read(length))
    return found


def _dimensions(point_format: int, extra: bytes) -> list[str]:
    """Return the dimensions of a point that `POINT_FIELDS` may name."""
    rows = [extra[start : start + _EXTRA_BYTES] for start in range(0, len(extra), _EXTRA_BYTES)]
    names = [row[_EXTRA_NAME].partition(b"\0")[0].decode(errors="replace") for row in rows]
    return ["intensity", *["gps_time"] * (point_format in _TIMED), *names]


def units_of(records: Records) -> str | None:
    """Return the unit of x and y that a reference system states; None if it states none that is known."""
    if _WKT in records:
        return _wkt_units(records[_WKT].decode(errors="replace"))
    data = records.get(_GEO_KEYS, b"")
    rows = np.frombuffer(data[: len(data) // 8 * 8], "<u2").reshape(-1, 4)[1:]
    keys = {key: value for key, place, _, value in rows.tolist() if not place}
    return "degree" if keys.get(_MODEL) == _GEOGRAPHIC else _EPSG_UNITS.get(keys.get(_LINEAR_UNITS, 0))


def _wkt_units(text: str) -> str | None:
    """Return the unit of the horizontal system in well-known text."""
    start = re.search(r"PROJ(CS|CRS|ECTEDCRS)\b", text)
    if not start:
        return "degree" if re.search(r"GEOG(CS|CRS|RAPHICCRS)\b", text) else None
    depth, end = 0, len(text)
    for mark in re.finditer(r'"[^"]*"|[\[\]]', text[start.end() :]):
        depth += {"[": 1, "]": -1}.get(mark[0], 0)
        if mark[0] == "]" and not depth:
            end = start.end() + mark.end()
            break
    factors = _UNIT.findall(text[start.end() : end])  # the last one is that of the axes
    return _UNIT_METRES.get(f"{float(factors[-1]):.7g}") if factors else None
