"""Checksums of scenes, ids and files: whether they are what they were."""

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import TypeAlias

import numpy as np

from raybox.validation import Array

Bytes: TypeAlias = "bytes | bytearray | memoryview | Array"
"""Objects with the buffer protocol."""

_END_BYTES = 1 << 16  # read at each end of a file
_blake2b = partial(blake2b, digest_size=16)

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
Facts: TypeAlias = dict[str, Json]


def of_arrays(*arrays: Array) -> str:
    """Return the checksum of arrays."""
    state = _blake2b()
    for array in arrays:
        state.update(repr(array.shape).encode())
        state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def blake2b_of(data: bytes) -> str:
    """Return the BLAKE2b checksum of bytes, in hexadecimal digits."""
    return _blake2b(data).hexdigest()


def of_text(*texts: str) -> str:
    """Return the checksum of texts."""
    state = _blake2b()
    for text in texts:
        state.update(f"{len(text)}:{text}".encode())
    return state.hexdigest()


def of_facts(facts: Facts) -> str:
    """Return the checksum of facts as JSON stores them."""
    return of_text(json.dumps(facts, sort_keys=True))


def of_bytes(data: Bytes, checksum: int = 0) -> int:
    """Return the checksum of bytes, after others of which this is the checksum."""
    return zlib.crc32(data.data if isinstance(data, np.ndarray) else data, checksum)


def fingerprint(path: Path) -> Facts:
    """Return facts that change with a file: those of `content_facts`, times of its inode, and inode.

    Where all are equal, the file is the same.
    """
    stats = [item.stat() for item in _files(path)]
    return content_facts(path) | {"inodes": of_text(*(f"{stat.st_ino} {stat.st_ctime_ns}" for stat in stats))}


def fingerprint_of(paths: Sequence[Path]) -> Facts:
    """Return the fingerprint of one file, or of several in their order."""
    found = [fingerprint(path) for path in paths]
    return found[0] if len(found) == 1 else {"files": found}


def content_facts(path: Path) -> Facts:
    """Return facts that change with a file's content, but not with its name.

    Size, modification time, checksum of both ends.

    Of a folder: the total size, and a checksum of the names, sizes and times of its files.
    """
    if path.is_dir():
        stats = [(str(item.relative_to(path)), item.stat()) for item in _files(path)]
        lines = (f"{name} {stat.st_size} {stat.st_mtime_ns}" for name, stat in stats)
        return {"bytes": sum(stat.st_size for _, stat in stats), "files": of_text(*lines)}
    stat = path.stat()
    with path.open("rb") as file:
        head = file.read(_END_BYTES)
        file.seek(max(0, stat.st_size - _END_BYTES))
        ends = blake2b_of(head + file.read(_END_BYTES))
    return {"bytes": stat.st_size, "modified": stat.st_mtime_ns, "ends": ends}


def _files(path: Path) -> list[Path]:
    """Return the files of a folder in order, or the one file."""
    return sorted(item for item in path.rglob("*") if item.is_file()) if path.is_dir() else [path]
