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
        _shift(group, (_GROUP_OFFSET,), by)
        for column in group[_COLUMNS][1].items:
            _shift(column, _CHUNK_OFFSETS, by)
            _shift(column[_META][1], _META_OFFSETS, by)
    return _serialise(fields)


def _shift(fields: Fields, offsets: tuple[int, ...], by: int) -> None:
    """Add to the offsets that are there: 0 is none, because the magic stands there."""
    for field in offsets:
        if field in fields and fields[field][1] > 0:
            fields[field] = fields[field][0], fields[field][1] + by


def merge(footers: list[bytes]) -> bytes:
    """Return one footer for all row groups of several."""
    parsed = [_parse(footer) for footer in footers]
    first, groups = parsed[0], [group for fields in parsed for group in fields[_GROUPS][1].items]
    rows = sum(fields[_ROWS][1] for fields in parsed)
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
    return _Reader(data).fields()


def _serialise(fields: Fields) -> bytes:
    """Write a struct."""
    out = bytearray()
    _write_struct(out, fields)
    return bytes(out)


class _Reader:
    """Reads values from bytes, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data, self._offset = data, 0

    def _take(self, size: int) -> bytes:
        self._offset += size
        return self._data[self._offset - size : self._offset]

    def _varint(self) -> int:
        value = shift = 0
        while (byte := self._take(1)[0]) >= 0x80:
            value, shift = value | (byte & 0x7F) << shift, shift + 7
        return value | byte << shift

    def _integer(self) -> int:
        zigzag = self._varint()
        return zigzag >> 1 ^ -(zigzag & 1)

    def fields(self) -> Fields:
        """Return the next struct."""
        fields, number = Fields(), 0
        while head := self._take(1)[0]:
            kind, delta = head & 15, head >> 4
            number = number + delta if delta else self._integer()
            fields[number] = kind, kind == TRUE if kind in (TRUE, FALSE) else self._value(kind)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (I16, I32, I64):
            return self._integer()
        if kind == BINARY:
            return self._take(self._varint())
        if kind in (LIST, SET):
            head = self._take(1)[0]
            size = head >> 4 if head < 0xF0 else self._varint()
            return ThriftList(head & 15, [self._value(head & 15) for _ in range(size)])
        if kind == STRUCT:
            return self.fields()
        if kind == DOUBLE:
            return struct.unpack("<d", self._take(8))[0]
        if kind in (TRUE, FALSE, BYTE):
            return self._take(1)[0]
        raise ValueError(f"a footer of Parquet holds nothing of type {kind}")


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
