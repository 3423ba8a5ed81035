"""Heads of pages of Parquet: whether a page holds plain numbers, none missing, and where they begin.

A head is a struct of Thrift's compact protocol; Python takes 25 microseconds for one, and there are three
hundred in a million rays (measured). What is not as it should be is refused: Arrow then reads it.

Format: Apache Parquet, ``parquet.thrift``, "Data Pages"; Apache Thrift, "Thrift Compact protocol encoding".
"""

from typing import Any

from raybox.kernels.jit import device, entry

_BYTE, _DOUBLE, _BINARY, _STRUCT = 3, 7, 8, 12  # types; 4 to 6 are whole numbers
_TYPE, _SIZE, _PACKED, _FIRST, _SECOND = 1, 2, 3, 5, 8  # fields of PageHeader; the last two are structs
_DEEPEST = 3
_FIELDS = 16

# What a head tells: fields of PageHeader, of DataPageHeader and of DataPageHeaderV2, sixteen numbers each.
ROOM = 3 * _FIELDS


@device
def _varint(data: Any, at: int) -> tuple[int, int]:
    """Return a number and where it ends, -1 where it does not."""
    value = shift = 0
    while at < data.size and shift < 63:
        byte = int(data[at])
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
    return 0, -1


@device
def _skip(data: Any, at: int, kind: int) -> int:
    """Return where a value that is no whole number and no struct ends, -1 for what no head holds."""
    if kind <= 2:  # a truth, told by its type
        return at
    if kind == _BYTE:
        return at + 1
    if kind == _DOUBLE:
        return at + 8
    if kind == _BINARY:
        size, at = _varint(data, at)
        return at + size if at >= 0 else -1
    return -1


@device
def _head(data: Any, told: Any, last: Any) -> int:
    """Write the whole numbers of a head; return where it ends, -1 if it is none."""
    told[:] = -1
    last[:] = 0
    at, depth, row = 0, 0, 0
    while 0 <= at < data.size:
        byte = int(data[at])
        at += 1
        if byte == 0:
            depth -= 1
            if depth < 0:
                return at
            row = row if depth == 1 else 0
            continue
        kind, delta = byte & 15, byte >> 4
        if delta == 0:
            return -1  # fields far apart: no head has them
        last[depth] += delta
        if kind == _STRUCT:
            if depth == 0:
                if last[0] != _FIRST and last[0] != _SECOND:
                    return -1
                row = 1 if last[0] == _FIRST else 2
            depth += 1
            if depth == _DEEPEST:
                return -1
            last[depth] = 0
        elif 4 <= kind <= 6:
            zigzag, at = _varint(data, at)
            if depth < 2 and last[depth] < _FIELDS:
                told[row * _FIELDS + last[depth]] = zigzag >> 1 ^ -(zigzag & 1)
        else:
            at = _skip(data, at, kind)
    return -1


@device
def _levels(data: Any, at: int, size: int, numbers: int) -> bool:
    """Tell whether levels say that so many numbers are all there: in one run of ones."""
    run, end = _varint(data, at)
    return (
        0 <= end < data.size
        and run & 1 == 0
        and run >> 1 == numbers
        and data[end] == 1
        and end + 1 - at == size
    )


@entry
def look(data: Any, optional: bool, told: Any, last: Any, found: Any) -> bool:
    """Look at the page that data begin with; found: how many numbers it has, where they begin, where it ends.

    False: they are packed, or some are missing, or it is no page. told and last are room to work in.
    """
    at = _head(data, told, last)
    if at < 0 or told[_SIZE] != told[_PACKED]:
        return False
    second = told[_TYPE] == 3
    row = 2 * _FIELDS if second else _FIELDS
    numbers, encoding = told[row + 1], told[row + (4 if second else 2)]
    if (not second and told[_TYPE] != 0) or encoding != 0 or numbers < 0:
        return False
    size = 0
    if second:
        size = told[row + 5]
        if told[row + 2] != 0 or told[row + 3] != numbers or told[row + 6] != 0 or size < 0:
            return False  # some are missing, or rows are lists
        if optional and not _levels(data, at, size, numbers):
            return False
    elif optional:
        if at + 4 > data.size:
            return False
        size = int(data[at]) | int(data[at + 1]) << 8 | int(data[at + 2]) << 16 | int(data[at + 3]) << 24
        if not _levels(data, at + 4, size, numbers):
            return False
        size += 4
    found[0], found[1], found[2] = numbers, at + size, at + told[_SIZE]
    return size + 8 * numbers == told[_SIZE]
