"""Pieces as a file holds them, put together to chunks of one size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.errors import InvalidInput
from raybox.files.common import Floats, Parts, Want
from raybox.files.parts import RANGES, build
from raybox.geometry import Rays
from raybox.geometry.rays import own
from raybox.kernels import passing
from raybox.stream import digest

CHUNK = 1 << 20  # rays: as many as the scene sorts at once
PIECE = 1 << 16  # rows that readers give at a time, where they can choose


class Piece(NamedTuple):
    """Some rows of a file; ``arrays`` hold (n, D) or n numbers, or are sequences of D columns."""

    row: int
    """The number of its first row."""
    at: int
    """Where its source finds it, or what it is a part of."""
    rows: int
    arrays: Mapping[str, Floats | Sequence[Floats]]
    share: float | None = None
    """How much of the file is read at its end, if that is all that tells how long it is."""


class Source(NamedTuple):
    """A file of rays or points that is read piece by piece."""

    path: Path
    want: Want
    widths: dict[str, int]
    """Its arrays, and the length of their rows; 0 for t_min and t_max."""
    total: int | None
    """How many rows, if the file tells."""
    pieces: Callable[[int, int], Iterator[Piece]]
    """All pieces from one on, given its ``row`` and ``at``; 0, 0 is the first."""
    where: Callable[[str, tuple[int, ...]], str]
    """Say where in the file a number stands, by its array and its place there."""

    @property
    def dimension(self) -> int:
        """D, the dimensions of space."""
        return max(self.widths.values())


class Place(NamedTuple):
    """Where a chunk begins: its first row, in a piece of this ``row`` and ``at``; the sum of all before."""

    first: int = 0
    row: int = 0
    at: int = 0
    digest: str = ""


Room = dict[str, Floats]


class Rooms:
    """Memory that goes round: fresh pages cost more than what is written to them."""

    def __init__(self) -> None:
        self._free: list[Room] = []

    def take(self, widths: dict[str, int], size: int) -> Room:
        """Lend arrays of so many rows."""
        if self._free:
            return self._free.pop()
        return {name: np.empty((size, width) if width else size) for name, width in widths.items()}

    def give_back(self, room: Room) -> None:
        """Take arrays back that nobody looks at any more."""
        self._free.append(room)


class Chunk(NamedTuple):
    """Rays in a row, and where the next ones are; ``room`` is the memory that they are in."""

    first: int
    rays: Rays
    after: Place
    share: float | None
    room: Room


def read(source: Source, size: int, start: Place, rooms: Rooms) -> Iterator[Chunk]:
    """Read chunks of so many rays, from one place on."""
    for room, rows, place, after, share in _filled(source, size, start, rooms):
        arrays = {name: array[:rows] for name, array in room.items()}
        yield Chunk(place.first, _rays(source, arrays, place.first), after, share, room)


def pass_over(source: Source, size: int, rows: int) -> Place | None:
    """Read so many rows again, to no end but to tell where they end and what their sum is."""
    place, rooms = Place(), Rooms()
    for room, _, _, place, _ in _filled(source, size, Place(), rooms):
        rooms.give_back(room)
        if place.first >= rows:
            break
    return place if place.first == rows else None


Filled = tuple[Room, int, Place, Place, float | None]


def _filled(source: Source, size: int, start: Place, rooms: Rooms) -> Iterator[Filled]:
    """Fill rooms with rows of as many pieces as it takes."""
    size = size if source.total is None else min(size, max(1, source.total))
    place, filled, room = start, 0, rooms.take(source.widths, size)

    def whole(piece: Piece) -> Filled:
        sums = digest.fold(place.digest, *(array[:filled] for array in room.values()))
        return room, filled, place, Place(place.first + filled, piece.row, piece.at, sums), piece.share

    for piece in source.pieces(start.row, start.at):
        taken = max(0, start.first - piece.row)
        while taken < piece.rows:
            more = min(size - filled, piece.rows - taken)
            _fill(room, filled, piece, slice(taken, taken + more))
            filled, taken = filled + more, taken + more
            if filled == size:
                done = whole(piece)
                yield done
                place, filled, room = done[3], 0, rooms.take(source.widths, size)
        last = piece
    if filled:
        yield whole(last)


def _fill(room: Room, start: int, piece: Piece, rows: slice) -> None:
    end = start + rows.stop - rows.start
    for name, array in room.items():
        given = piece.arrays[name]
        if isinstance(given, np.ndarray):
            array[start:end] = given[rows]
            continue
        passing.weave(tuple(_plain(column[rows]) for column in given), array[start:end])


def _plain(column: Floats) -> Floats:
    """Give a column as the one kind of array that the loop is compiled for."""
    column = np.ascontiguousarray(column)
    column.setflags(write=False)
    return column


def _rays(source: Source, arrays: Room, first: int) -> Rays:
    """Make rays of a chunk; a wrong number is named by its place in the file."""
    if "origins" in arrays:
        with suppress(InvalidInput):  # which is worded below, with the place in the file
            o, d, low, high = (arrays.get(name) for name in ("origins", "directions", *RANGES))
            assert o is not None
            assert d is not None
            return own(o, d, low, high, source.want.invalid)
    number = len(next(iter(arrays.values())))
    among = "" if source.total == number else f" in {number:,} rows"
    parts = Parts(arrays, lambda name, index: source.where(name, (first + index[0], *index[1:])), among=among)
    rays = build(parts, source.path, source.want).geometry
    assert isinstance(rays, Rays)
    return rays
