"""Footers of Parquet files: merge those of concatenated files into one.

Offsets of row groups are shifted to their new places. So a part is encoded once, by itself, and appended;
Arrow's writer can neither append to a file nor resume one, and to decode parts and encode them again takes
half as long as the query.

Footers are structs of Thrift's compact protocol. They are parsed and written again.

Formats: Apache Parquet, ``parquet.thrift``; Apache Thrift, "Thrift Compact protocol encoding".
"""

import struct
from typing import Any, NamedTuple

MAGIC = b"PAR1"
_TAIL = 8  # the length of the footer, and the magic once more

TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(1, 13)

# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData in parquet.thrift.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _SIZE, _GROUP_ROWS, _GROUP_OFFSET, _PACKED, _ORDINAL = 1, 2, 3, 5, 6, 7
_CHUNK_OFFSETS, _META = (2, 4, 6), 3  # of the chunk (deprecated: may be 0), of its offset and column index
_META_OFFSETS = (9, 10, 11, 14)  # of data pages, index pages, dictionary, Bloom filter


class ThriftList(NamedTuple):
    """A list or set: the type of its items, and the items."""

    type: int
    items: list[Any]


Fields = dict[int, tuple[int, Any]]
"""A struct: of each field, its type and its value."""


def footer_in(end: bytes) -> bytes:
    """Return the footer of a file that ends with these bytes."""
    size = int.from_bytes(end[-_TAIL : -len(MAGIC)], "little")
    return end[-_TAIL - size : -_TAIL]


def shift_offsets(footer: bytes, by: int) -> bytes:
    """Return a footer whose row groups stand `by` bytes further on."""
    fields = _parse(footer)
    for group in fields[_GROUPS][1].items:
        _add_to_offset(group, _GROUP_OFFSET, by)
        for column in group[_COLUMNS][1].items:
            _shift_column(column, by)
    return _serialise(fields)


def _shift_column(column: Fields, by: int) -> None:
    """Shift the offsets of a column by a number of bytes."""
    for field in _CHUNK_OFFSETS:
        _add_to_offset(column, field, by)
    for field in _META_OFFSETS:
        _add_to_offset(column[_META][1], field, by)


def _add_to_offset(fields: Fields, field: int, by: int) -> None:
    """Add to an offset, if there is one.

    0 is none, because the magic stands there.
    """
    if field in fields and fields[field][1] > 0:
        fields[field] = fields[field][0], fields[field][1] + by


def merge(footers: list[bytes]) -> bytes:
    """Return one footer for all row groups of several."""
    first = _parse(footers[0])
    groups = list[Fields]()
    rows = 0
    for footer in footers:
        fields = _parse(footer)
        rows += fields[_ROWS][1]
        groups += fields[_GROUPS][1].items
    for number, group in enumerate(groups):
        # 16 bits in the format; it is for encryption only, and optional
        group.pop(_ORDINAL, None)
        if number < 1 << 15:
            group[_ORDINAL] = I16, number
    first[_ROWS] = I64, rows
    first[_GROUPS] = LIST, ThriftList(STRUCT, groups)
    return _serialise(first)


def with_tail(footer: bytes) -> bytes:
    """Return the end of a file: footer, its length, magic."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC


def _parse(data: bytes) -> Fields:
    """Read a struct."""
    return _read_struct(data, 0)[0]


def _serialise(fields: Fields) -> bytes:
    """Write a struct."""
    out = bytearray()
    _write_struct(out, fields)
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


def _read_list(data: bytes, at: int) -> tuple[ThriftList, int]:
    kind, size = data[at] & 15, data[at] >> 4
    at += 1
    if size == 15:
        size, at = _read_varint(data, at)
    items = []
    for _ in range(size):
        item, at = _read(data, at, kind)
        items.append(item)
    return ThriftList(kind, items), at


def _write_varint(out: bytearray, value: int) -> None:
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def _write_struct(out: bytearray, fields: Fields) -> None:
    before = 0
    for number, (kind, value) in sorted(fields.items()):
        type_code = (TRUE if value else FALSE) if kind in (TRUE, FALSE) else kind
        if 0 < number - before < 16:
            out.append((number - before) << 4 | type_code)
        else:
            out.append(type_code)
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
