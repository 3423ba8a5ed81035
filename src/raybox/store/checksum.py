"""The checksum of all that raybox stores: XXH3-128, in 32 hexadecimal digits.

It shows damage, not intent: whoever can write to a file can write a fitting checksum, too.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from io import BufferedIOBase
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xxhash import xxh3_128

Data: TypeAlias = "bytes | bytearray | memoryview | NDArray[Any]"
"""C-ordered bytes."""

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
Facts: TypeAlias = dict[str, Json]


class Checksum:
    """The checksum of bytes that come one after the other."""

    def __init__(self) -> None:
        self._state = xxh3_128()

    def update(self, data: Data) -> None:
        """Add bytes. The GIL is released for large ones."""
        self._state.update(as_bytes(data))

    def text(self) -> str:
        """Return the checksum of all bytes so far, in 32 hexadecimal digits."""
        return self._state.hexdigest()


def as_bytes(data: Data) -> bytes | bytearray | memoryview:
    """Return bytes as a file takes them, also of dtypes without a buffer, such as times."""
    return (
        np.ascontiguousarray(data).reshape(-1).view(np.uint8).data if isinstance(data, np.ndarray) else data
    )


def of_bytes(*data: Data) -> str:
    """Return the checksum of bytes, as if they were one piece."""
    checksum = Checksum()
    for item in data:
        checksum.update(item)
    return checksum.text()


def of_arrays(*arrays: NDArray[Any]) -> str:
    """Return the checksum of arrays, their shapes and dtypes included."""
    checksum = Checksum()
    for array in arrays:
        layout = repr((array.shape, np.lib.format.dtype_to_descr(array.dtype)))
        checksum.update(f"{len(layout)}:{layout}".encode())
        checksum.update(array)
    return checksum.text()


def of_texts(*texts: str) -> str:
    """Return the checksum of texts, the length of each included."""
    return of_bytes(*(f"{len(text)}:{text}".encode("utf-8", "surrogatepass") for text in texts))


def of_facts(facts: Json) -> str:
    """Return the checksum of facts as JSON, in any order of their keys."""
    return of_bytes(json.dumps(facts, sort_keys=True).encode())


def of_file(file: BinaryIO, size: int | None = None) -> str:
    """Return the checksum of a file from its position on.

    size: bytes that are read at most; None for all.
    """
    checksum = Checksum()
    for block in blocks_of(file, size):
        checksum.update(block)
    return checksum.text()


def blocks_of(file: BinaryIO, size: int | None = None, step: int = 1 << 18) -> Iterator[memoryview]:
    """Yield the bytes of a file from its position on, each block valid until the next one.

    size: how many, at most; None for all. The blocks share memory: the system needs four times as long to
    give fresh pages to each as to copy a file.
    """
    buffer, left = memoryview(bytearray(step)), size
    read_into = cast("BufferedIOBase", file).readinto
    while count := read_into(buffer if left is None else buffer[:left]):
        yield buffer[:count]
        left = None if left is None else left - count
