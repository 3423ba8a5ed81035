"""Structs of Thrift's compact protocol, read into plain values whatever they hold, and written again.

Format: Apache Thrift, "Thrift Compact protocol encoding".
"""

import struct
from typing import Any, NamedTuple

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)


class List(NamedTuple):
    """A list or set: the type of its items, and the items."""

    type: int
    items: list[Any]


Fields = dict[int, tuple[int, Any]]
"""A struct: of each field, its type and its value."""


def parse(data: bytes) -> Fields:
    """Read a struct."""
    return _read_struct(data, 0)[0]


def serialise(fields: Fields) -> bytes:
    """Write a struct."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


def varint(value: int) -> bytes:
    """Write a whole number that is not negative, in as few bytes as it takes."""
    out = bytearray()
    _write_varint(out, value)
    return bytes(out)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _read_struct(data: bytes, at: int) -> tuple[Fields, int]:
    fields: Fields = {}
    number = 0
    while data[at]:
        kind, delta = data[at] & 15, data[at] >> 4
        at += 1
        if delta:
            number += delta
        else:
            zigzag, at = _read_varint(data, at)
            number = zigzag >> 1 ^ -(zigzag & 1)
        value, at = (kind == TRUE, at) if kind in (TRUE, FALSE) else _read(data, at, kind)
        fields[number] = kind, value
    return fields, at + 1


def _read(data: bytes, at: int, kind: int) -> tuple[Any, int]:
    if kind in (I16, I32, I64):
        zigzag, at = _read_varint(data, at)
        return zigzag >> 1 ^ -(zigzag & 1), at
    if kind == BINARY:
        size, at = _read_varint(data, at)
        return data[at : at + size], at + size
    if kind in (LIST, SET):
        return _read_list(data, at)
    if kind == STRUCT:
        return _read_struct(data, at)
    if kind == DOUBLE:
        return struct.unpack_from("<d", data, at)[0], at + 8
    if kind in (TRUE, FALSE, BYTE):
        return data[at], at + 1
    raise ValueError(f"a footer of Parquet holds nothing of type {kind}")


def _read_list(data: bytes, at: int) -> tuple[List, int]:
    kind, size = data[at] & 15, data[at] >> 4
    at += 1
    if size == 15:
        size, at = _read_varint(data, at)
    items = []
    for _ in range(size):
        item, at = _read(data, at, kind)
        items.append(item)
    return List(kind, items), at


def _write_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_struct(out: bytearray, fields: Fields) -> None:
    before = 0
    for number, (kind, value) in sorted(fields.items()):
        told = (TRUE if value else FALSE) if kind in (TRUE, FALSE) else kind
        if 0 < number - before < 16:
            out.append((number - before) << 4 | told)
        else:
            out.append(told)
            _write_varint(out, number << 1 ^ number >> 15)
        before = number
        if kind not in (TRUE, FALSE):
            _write(out, kind, value)
    out.append(0)


def _write(out: bytearray, kind: int, value: Any) -> None:
    if kind in (I16, I32, I64):
        _write_varint(out, value << 1 ^ value >> 63)
    elif kind == BINARY:
        _write_varint(out, len(value))
        out += value
    elif kind in (LIST, SET):
        size = len(value.items)
        out.append(min(size, 15) << 4 | value.type)
        if size >= 15:
            _write_varint(out, size)
        for item in value.items:
            _write(out, value.type, item)
    elif kind == STRUCT:
        _write_struct(out, value)
    elif kind == DOUBLE:
        out += struct.pack("<d", value)
    else:
        out.append(value)
