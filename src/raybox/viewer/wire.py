"""The binary form of frames: a JSON header, then arrays, little endian."""

import json
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]
_ALIGNMENT = 8  # of arrays: typed arrays of the page are views of the frame
_FRAGMENT = 2**18  # bytes


def frame(kind: str, arrays: Arrays | None = None, /, **fields: object) -> bytes:
    """Return a frame: the header's length (uint32), the header, and arrays at multiples of 8.

    The header's field ``arrays`` lists name, dtype (such as "f8"), shape, and offset after the header.
    """
    listed: list[tuple[str, str, tuple[int, ...], int]] = []
    blocks: list[bytes] = []
    offset = 0
    for name, values in (arrays or {}).items():
        block = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
        listed.append((name, values.dtype.str[1:], values.shape, offset))
        blocks.append(block + b"\0" * (-len(block) % _ALIGNMENT))
        offset += len(blocks[-1])
    header = json.dumps({"kind": kind, **fields, "arrays": listed}, allow_nan=False, ensure_ascii=False)
    content = header.encode("utf-8", "replace")
    content += b" " * (-(4 + len(content)) % _ALIGNMENT)
    return b"".join([struct.pack("<I", len(content)), content, *blocks])


def fragments(content: bytes) -> Iterator[memoryview]:
    """Return a frame in parts, so that a page that reads slowly needs no copy of it."""
    view = memoryview(content)
    return (view[start : start + _FRAGMENT] for start in range(0, len(view), _FRAGMENT))


def packed_bits(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """Return a bit for each element in C order, the lowest bit first."""
    return np.packbits(mask.ravel(), bitorder="little")
