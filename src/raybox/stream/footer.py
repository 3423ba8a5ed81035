"""Parquet's footers: those of files that are put one behind the other become the one footer of all.

Row groups are moved to where they stand now. So a chunk is encoded once, by itself, and appended; Arrow's own
writer can neither append to a file nor go on with one.

Format: Apache Parquet, ``parquet.thrift``.
"""

from raybox.stream.thrift import I16, I64, LIST, STRUCT, Fields, List, parse, serialise

MAGIC = b"PAR1"
_TAIL = 8  # the length of the footer, and the magic once more


# Fields of FileMetaData, RowGroup, ColumnChunk and ColumnMetaData in parquet.thrift.
_ROWS, _GROUPS = 3, 4
_COLUMNS, _SIZE, _GROUP_ROWS, _GROUP_OFFSET, _PACKED, _ORDINAL = 1, 2, 3, 5, 6, 7
_CHUNK_OFFSETS, _META = (2, 4, 6), 3  # of the chunk (deprecated: may be 0), of its offset and column index
_META_OFFSETS = (9, 10, 11, 14)  # of data pages, index pages, dictionary, Bloom filter


def split(file: memoryview) -> tuple[memoryview, bytes]:
    """Cut a file into what stands between its magic and its footer, and the footer."""
    size = int.from_bytes(file[-_TAIL:-4], "little")
    end = len(file) - _TAIL - size
    return file[len(MAGIC) : end], bytes(file[end:-_TAIL])


def moved(footer: bytes, by: int) -> bytes:
    """Give the footer of a file whose row groups stand so many bytes further on."""
    fields = parse(footer)
    for group in fields[_GROUPS][1].items:
        _shift(group, _GROUP_OFFSET, by)
        for column in group[_COLUMNS][1].items:
            move(column, by)
    return serialise(fields)


def move(column: Fields, by: int) -> None:
    """Change what a footer says of a column that stands so many bytes further on."""
    for field in _CHUNK_OFFSETS:
        _shift(column, field, by)
    for field in _META_OFFSETS:
        _shift(column[_META][1], field, by)


def columns_of(footer: bytes) -> list[Fields]:
    """Give what a footer says of the columns of its first row group."""
    items: list[Fields] = parse(footer)[_GROUPS][1].items[0][_COLUMNS][1].items
    return items


def of_group(template: bytes, columns: tuple[list[Fields], int], rows: int, size: int) -> bytes:
    """Give the footer of one row group: its columns, and where they begin; all else is the template's."""
    told, start = columns
    group = {_COLUMNS: (LIST, List(STRUCT, told)), _SIZE: (I64, size), _GROUP_ROWS: (I64, rows)}
    group |= {_GROUP_OFFSET: (I64, start), _PACKED: (I64, size)}
    return serialise(parse(template) | {_ROWS: (I64, rows), _GROUPS: (LIST, List(STRUCT, [group]))})


def _shift(fields: Fields, field: int, by: int) -> None:
    """Add to an offset, if it is there: no offset is 0, where the magic stands."""
    if field in fields and fields[field][1] > 0:
        fields[field] = fields[field][0], fields[field][1] + by


def merged(footers: list[bytes]) -> bytes:
    """Give one footer for all row groups of several."""
    first = parse(footers[0])
    groups = list[Fields]()
    rows = 0
    for footer in footers:
        fields = parse(footer)
        rows += fields[_ROWS][1]
        groups += fields[_GROUPS][1].items
    for number, group in enumerate(groups):
        # 16 bits in the format; it is for encryption only, and optional
        group.pop(_ORDINAL, None)
        if number < 1 << 15:
            group[_ORDINAL] = I16, number
    first[_ROWS] = I64, rows
    first[_GROUPS] = LIST, List(STRUCT, groups)
    return serialise(first)


def closing(footer: bytes) -> bytes:
    """Give what ends a file: the footer, its length, the magic."""
    return footer + len(footer).to_bytes(4, "little") + MAGIC
