"""Columns of Parquet whose numbers lie in the file as in memory: read straight from their pages.

Rays are floats, which hardly shrink, so that many files hold them plain: then this takes half of Arrow's
time, of which reading takes a fifth of a cast (measured). It is sure of itself or leaves a row group to
Arrow: one with another type, packed, with numbers missing, or damaged.
"""

import os
import sys
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from raybox.files.common import Floats, broken
from raybox.kernels import paging

_NUMBER = 8  # bytes
_HEAD = 512  # bytes: more than a head of a page of floats, and what says that none is missing
_PLAIN = {"PLAIN", "RLE", "BIT_PACKED"}  # the last two are of what says which are missing


class Column(NamedTuple):
    """Where the numbers of a column are: from row ``rows[k]`` on at ``places[k]``; the last row ends it."""

    rows: list[int]
    places: list[int]


def columns(file: BinaryIO, metadata: Any, group: int, names: list[str]) -> list[Column] | None:
    """Find columns in a row group; None if they are for Arrow."""
    told = metadata.row_group(group)
    if sys.byteorder != "little" or not told.num_rows:
        return None
    numbered = {told.column(k).path_in_schema: k for k in range(told.num_columns)}
    found = []
    for name in names:
        number = numbered.get(name)
        column = None
        if number is not None and _is_plain(told.column(number), metadata.schema.column(number)):
            column = _pages(file, told.column(number), metadata.schema.column(number), told.num_rows)
        if column is None:
            return None
        found.append(column)
    return found


def expect(file: BinaryIO, metadata: Any, group: int, names: list[str]) -> None:
    """Have the system read columns of a row group ahead, where it can: the disk then waits for nobody."""
    if not hasattr(os, "posix_fadvise") or group >= metadata.num_row_groups:
        return
    told = metadata.row_group(group)
    for column in map(told.column, range(told.num_columns)):
        if column.path_in_schema in names:
            start = column.dictionary_page_offset or column.data_page_offset
            size = column.total_compressed_size
            os.posix_fadvise(file.fileno(), start, size, os.POSIX_FADV_WILLNEED)


def _is_plain(told: Any, schema: Any) -> bool:
    return bool(
        told.physical_type == "DOUBLE"
        and told.compression == "UNCOMPRESSED"
        and not told.has_dictionary_page
        and set(told.encodings) <= _PLAIN
        and schema.max_repetition_level == 0
        and schema.max_definition_level <= 1
    )


def _pages(file: BinaryIO, told: Any, schema: Any, rows: int) -> Column | None:
    """Look at every page of a column; most have the head of the one before."""
    at, end, row = told.data_page_offset, told.data_page_offset + told.total_compressed_size, 0
    column, room = Column([], []), np.empty((3, paging.ROOM), np.int64)
    if end > os.fstat(file.fileno()).st_size:
        return None
    numbers, begin, size, before = 0, 0, 0, b""
    while at < end:
        file.seek(at)
        head = file.read(_HEAD)
        if not before or not head.startswith(before):
            if not paging.look(np.frombuffer(head, np.uint8), schema.max_definition_level == 1, *room):
                return None
            numbers, begin, size = room[2, :3].tolist()
            before = head[:begin]
        column.rows.append(row)
        column.places.append(at + begin)
        row, at = row + numbers, at + size
    column.rows.append(row)
    return column if (at, row) == (end, rows) else None


def batches(file: BinaryIO, found: list[Column], first: int, size: int, path: Path) -> Iterator[list[Floats]]:
    """Give so many rows at a time, or whole pages of fewer, in memory that the next ones take."""
    rows = found[0].rows
    room: Any = np.empty((len(found), min(size, rows[-1])))
    places = [memoryview(some).cast("B") for some in room]
    while first < rows[-1]:
        end = _end(rows, first, size)
        for column, place in zip(found, places, strict=True):
            _read(file, column, first, place[: _NUMBER * (end - first)], path)
        yield list(room[:, : end - first])
        first = end


def _end(rows: list[int], begin: int, size: int) -> int:
    """Tell where a batch ends: with the last page that fits, since a page in two is two reads."""
    end = min(begin + size, rows[-1])
    whole = rows[bisect_right(rows, end) - 1]
    return whole if whole > begin else end


def _read(file: BinaryIO, column: Column, row: int, left: memoryview, path: Path) -> None:
    """Read rows of a column, from one on."""
    page = bisect_right(column.rows, row) - 1
    while left:
        some = left[: _NUMBER * (column.rows[page + 1] - row)]
        file.seek(column.places[page] + _NUMBER * (row - column.rows[page]))
        if file.readinto(some) != len(some):  # type: ignore[attr-defined]
            raise broken(path, "has become shorter while it was read", "leave it alone meanwhile")
        left, page = left[len(some) :], page + 1
        row = column.rows[page]
