"""A column as pages of Parquet: numbers as they lie in memory, behind headers of a few bytes.

Floats are neither copied nor compressed (they hardly shrink), whole numbers packed as differences. Arrow's
own writer took a third as long as the question (measured).

Format: Apache Parquet, ``parquet.thrift``, "Data Pages" and "Encodings".
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.kernels import packing
from raybox.stream.answers import Column, Sparse
from raybox.stream.thrift import BINARY, I32, I64, LIST, STRUCT, TRUE, Fields, List, serialise, varint
from raybox.validate import Bools

PAGE = 1 << 17  # numbers: a megabyte of floats

_BOOLEAN, _INT64, _DOUBLE = 0, 2, 5  # types
_PLAIN, _RLE, _DELTA = 0, 3, 5  # encodings


class Encoded(NamedTuple):
    """Pages: the pieces that they are made of, and what a footer says of them."""

    pieces: list[Any]
    column: Fields
    size: int


def encode(name: str, numbers: Column, at: int, ascending: bool) -> Encoded:
    """Make pages that will stand at a place in the file; of ascending numbers, the footer tells the range."""
    kind, encoding, packed = _KINDS[_kind(numbers)]
    pieces: list[Any] = []
    size = 0
    for rows, levels, some in _parted(numbers):
        values = packed(some)
        head = _header(rows, len(levels) + values.nbytes, encoding)
        pieces += [head + levels, values]
        size += len(head) + len(levels) + values.nbytes
    told: Fields = {
        1: (I32, kind),
        2: (LIST, List(I32, [_RLE, encoding])),
        3: (LIST, List(BINARY, [name.encode()])),
        4: (I32, 0),  # not compressed
        5: (I64, len(numbers)),
        6: (I64, size),
        7: (I64, size),
        9: (I64, at),
    }
    if ascending:
        told[12] = STRUCT, _range(numbers)
    return Encoded(pieces, {2: (I64, 0), 3: (STRUCT, told)}, size)


def _kind(column: Column) -> str:
    if isinstance(column, range):
        return "range"
    return (column.numbers if isinstance(column, Sparse) else column).dtype.kind


def _parted(column: Column) -> Iterator[tuple[int, bytes, Any]]:
    """Give a column page by page: how many rows, what says which have a number, and these."""
    done = 0
    for start in range(0, len(column), PAGE):
        if isinstance(column, Sparse):
            there = column.there[start : start + PAGE]
            found = int(np.count_nonzero(there))
            yield len(there), _levels(there, found), column.numbers[done : done + found]
            done += found
        else:
            some = column[start : start + PAGE]
            yield len(some), _run(len(some), 1), some


@lru_cache(maxsize=256)
def _header(rows: int, size: int, encoding: int) -> bytes:
    """Give what stands before the numbers of a page."""
    of_data = {1: (I32, rows), 2: (I32, encoding), 3: (I32, _RLE), 4: (I32, _RLE)}
    return serialise({1: (I32, 0), 2: (I32, size), 3: (I32, size), 5: (STRUCT, of_data)})


def _levels(there: Bools, found: int) -> bytes:
    """Say which rows have a number: a bit for each, unless they are all alike."""
    if found in (0, len(there)):
        return _run(len(there), int(found > 0))
    bits = np.packbits(there, bitorder="little").tobytes()
    return _sized(varint(len(bits) << 1 | 1) + bits)


def _run(rows: int, level: int) -> bytes:
    """Say that all rows have a number, or that none has: one run."""
    return _sized(varint(rows << 1) + bytes([level]))


def _sized(levels: bytes) -> bytes:
    return len(levels).to_bytes(4, "little") + levels


def _range(numbers: Any) -> Fields:
    """Give the statistics of numbers that ascend: none is missing, both ends are exact."""
    low, high = (np.int64(number).tobytes() for number in (numbers[0], numbers[-1]))
    return {3: (I64, 0), 5: (BINARY, high), 6: (BINARY, low), 7: (TRUE, True), 8: (TRUE, True)}


def _differences(numbers: NDArray[Any]) -> NDArray[Any]:
    out = np.empty(packing.room(len(numbers)), np.uint8)
    return out[: packing.pack(_fixed(numbers), out)]


def _counting(numbers: range) -> NDArray[Any]:
    """Give what `_differences` does of numbers one after the other: each difference is 1."""
    head = b"".join(map(varint, (packing.BLOCK, packing.MINIS, len(numbers), numbers.start << 1)))
    blocks = -(-(len(numbers) - 1) // packing.BLOCK)
    return np.frombuffer(head + (varint(1 << 1) + bytes(packing.MINIS)) * blocks, np.uint8)


def _fixed(numbers: NDArray[Any]) -> NDArray[Any]:
    """Give numbers as the one kind of array that the loop is compiled for."""
    numbers = np.ascontiguousarray(numbers).view()
    numbers.setflags(write=False)
    return numbers


def _bits(numbers: NDArray[Any]) -> NDArray[Any]:
    return np.packbits(numbers, bitorder="little")


_KINDS: dict[str, tuple[int, int, Callable[[Any], NDArray[Any]]]] = {
    "b": (_BOOLEAN, _PLAIN, _bits),
    "i": (_INT64, _DELTA, _differences),
    "range": (_INT64, _DELTA, _counting),
    "f": (_DOUBLE, _PLAIN, np.ascontiguousarray),
}
