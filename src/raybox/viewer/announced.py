"""Rows and bytes that a file announces, from its headers: a small file can stand for many rows."""

import json
import math
import re
import struct
import zipfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from raybox.io.formats import numpy_arrays
from raybox.io.formats.common import require

_BLOCK = 1 << 24  # bytes read at a time
_HEADER = 1 << 16  # bytes of a text header that are searched


class Announced(NamedTuple):
    """Rows of a file, and its bytes once unpacked; 0 where the format does not say."""

    rows: int = 0
    bytes: int = 0


def announced(path: Path) -> Announced:
    """Return what the headers of a file announce; nothing for a damaged one, which its reader refuses."""
    count = _COUNTS.get(path.suffix.lower())
    with suppress(Exception):  # any header can be damaged in any way
        if count is not None:
            with path.open("rb") as file:
                return count(file)
    return Announced()


def _rows_of_shape(shape: tuple[int, ...]) -> int:
    return math.prod(shape[:-1] if len(shape) > 1 else shape)


def _npy(file: BinaryIO) -> Announced:
    path = Path(file.name)
    found = numpy_arrays.header(file, path.stat().st_size, path, "")
    return Announced(_rows_of_shape(found.shape), math.prod(found.shape) * found.dtype.itemsize)


def _npz(file: BinaryIO) -> Announced:
    path, sizes = Path(file.name), []
    with zipfile.ZipFile(file) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        for info in (members[name] for name in (*numpy_arrays.NAMES, "id") if name in members):
            with archive.open(info) as member:
                found = numpy_arrays.header(member, info.file_size, path, info.filename)
            sizes.append(Announced(_rows_of_shape(found.shape), info.file_size))
    return Announced(max(size.rows for size in sizes), sum(size.bytes for size in sizes))


def _parquet(file: BinaryIO) -> Announced:
    footer = require("pyarrow.parquet", "io", ".parquet").read_metadata(file)
    groups = (footer.row_group(k) for k in range(footer.num_row_groups))
    return Announced(footer.num_rows, sum(group.total_byte_size for group in groups))


def _text(file: BinaryIO, mark: bytes, besides: int = 0) -> Announced:
    """Count the marks in a text, less those that stand for no row."""
    blocks = iter(partial(file.read, _BLOCK), b"")
    return Announced(max(0, sum(block.count(mark) for block in blocks) - besides))


def _ply(file: BinaryIO) -> Announced:
    found = re.findall(rb"^element\s+(\w+)\s+(\d+)", file.read(_HEADER), re.MULTILINE)
    counts = {name: int(number) for name, number in found}
    return Announced(counts.get(b"face") or counts.get(b"vertex", 0))


def _pcd(file: BinaryIO) -> Announced:
    found = re.search(rb"^POINTS\s+(\d+)", file.read(_HEADER), re.MULTILINE)
    return Announced(int(found[1]) if found else 0)


def _las(file: BinaryIO) -> Announced:
    head = file.read(255)
    legacy, number = struct.unpack_from("<I", head, 107)[0], 0
    if head[25] >= 4:  # of version 1.4
        (number,) = struct.unpack_from("<Q", head, 247)
    return Announced(max(legacy, number))


def _stl(file: BinaryIO) -> Announced:
    head = file.read(84)
    count, size = int.from_bytes(head[80:], "little"), Path(file.name).stat().st_size
    return Announced(count) if size == 84 + 50 * count else _text(file, b"endfacet")


def _glb(file: BinaryIO) -> Announced:
    """Count the triangles of all nodes: several may show one mesh."""
    head = file.read(20)
    document = json.loads(file.read(int.from_bytes(head[12:16], "little")))
    counts: list[int] = [accessor["count"] for accessor in document.get("accessors", [])]

    def corners(primitive: "dict[str, Any]") -> int:
        used: list[int] = [primitive["attributes"]["POSITION"]]
        used += [primitive["indices"]] if "indices" in primitive else []
        return max(counts[k] for k in used)

    sizes = [sum(map(corners, mesh["primitives"])) for mesh in document.get("meshes", [])]
    return Announced(sum(sizes[node["mesh"]] for node in document.get("nodes", []) if "mesh" in node) // 3)


def _vox(file: BinaryIO) -> Announced:
    """Count the voxels of all shapes of the scene, of an animated one those of its largest frame.

    Several shapes may show one model. Without a scene, the first model is loaded.
    """
    counts, shapes = list[int](), list[list[int]]()
    file.seek(8)
    while len(head := file.read(12)) == 12:
        name, size, _ = struct.unpack("<4sii", head)
        content = file.read(max(size, 0) if name == b"nSHP" else min(max(size, 0), 4))
        file.seek(max(size, 0) - len(content), 1)
        if name == b"XYZI":
            counts += struct.unpack("<i", content)
        elif name == b"nSHP":
            shapes.append(_models_of(content))
    if not shapes:
        return Announced(counts[0] if counts else 0)
    return Announced(
        sum(max([counts[k] for k in shown if 0 <= k < len(counts)], default=0) for shown in shapes)
    )


def _models_of(shape: bytes) -> list[int]:
    """Return the models that a shape of the scene shows."""
    at, models = _after_texts(shape, 4), list[int]()
    (number,) = struct.unpack_from("<i", shape, at)
    at += 4
    for _ in range(number):
        models += struct.unpack_from("<i", shape, at)
        at = _after_texts(shape, at + 4)
    return models


def _after_texts(content: bytes, at: int) -> int:
    """Return where a mapping of texts ends that begins here."""
    (number,) = struct.unpack_from("<i", content, at)
    at += 4
    for _ in range(2 * number):
        at += 4 + max(0, *struct.unpack_from("<i", content, at))
    return at


_COUNTS: dict[str, Callable[[BinaryIO], Announced]] = {
    ".npz": _npz,
    ".npy": _npy,
    ".parquet": _parquet,
    ".csv": partial(_text, mark=b"\n", besides=1),  # the header
    ".obj": partial(_text, mark=b"\nf"),
    ".ply": _ply,
    ".pcd": _pcd,
    ".las": _las,
    ".laz": _las,
    ".stl": _stl,
    ".glb": _glb,
    ".vox": _vox,
}
