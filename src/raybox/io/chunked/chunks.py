"""Pieces as a file holds them, put together to chunks of one size."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.geometry.rays import own
from raybox.io.chunked import passing_kernels
from raybox.io.formats.assembly import RANGES, build
from raybox.io.formats.common import Floats, Parts, Want

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


class _Filled(NamedTuple):
    """A room with so many rows in it, of which ``finite`` tells whether all but ranges are."""

    room: Room
    rows: int
    place: Place
    after: Place
    share: float | None
    finite: bool


def read(source: Source, size: int, start: Place, rooms: Rooms) -> Iterator[Chunk]:
    """Read chunks of so many rays, from one place on."""
    for filled in _filled(source, size, start, rooms):
        yield Chunk(filled.place.first, _rays(source, filled), filled.after, filled.share, filled.room)


def pass_over(source: Source, size: int, rows: int) -> Place | None:
    """Read so many rows again, to no end but to tell where they end and what their sum is."""
    place, rooms = Place(), Rooms()
    for filled in _filled(source, size, Place(), rooms):
        place = filled.after
        rooms.give_back(filled.room)
        if place.first >= rows:
            break
    return place if place.first == rows else None


def _filled(source: Source, size: int, start: Place, rooms: Rooms) -> Iterator[_Filled]:
    """Fill rooms with rows of as many pieces as it takes."""
    size = size if source.total is None else min(size, max(1, source.total))
    place, filled, room = start, 0, rooms.take(source.widths, size)
    sums, finite = _sums(start, source), True

    def whole(piece: Piece) -> _Filled:
        digest = " ".join(f"{total:016x}" for total in sums.values())
        after = Place(place.first + filled, piece.row, piece.at, digest)
        return _Filled(room, filled, place, after, piece.share, finite)

    for piece in source.pieces(start.row, start.at):
        taken = max(0, start.first - piece.row)
        while taken < piece.rows:
            more = min(size - filled, piece.rows - taken)
            finite &= _fill(room, filled, piece, slice(taken, taken + more), sums)
            filled, taken = filled + more, taken + more
            if filled == size:
                done = whole(piece)
                yield done
                place, filled, room, finite = done.after, 0, rooms.take(source.widths, size), True
        last = piece
    if filled:
        yield whole(last)


def _sums(start: Place, source: Source) -> dict[str, Any]:
    """Give the sum of each array up to a place."""
    told = [int(total, 16) for total in start.digest.split()] or [0] * len(source.widths)
    return dict(zip(source.widths, told, strict=True))


def _fill(room: Room, start: int, piece: Piece, rows: slice, sums: dict[str, Any]) -> bool:
    """Write rows of a piece into a room, and add them to the sums; return whether they are finite."""
    sound, end = True, start + rows.stop - rows.start
    for name, array in room.items():
        given = piece.arrays[name]
        columns = np.atleast_2d(given.T) if isinstance(given, np.ndarray) else given
        words = _words(array[start:end].reshape(end - start, -1))
        fixed = tuple(_fixed(column[rows]) for column in columns)
        finite, sums[name] = passing_kernels.weave(fixed, words, np.uint64(sums[name]))
        sound &= finite or name in RANGES
    return sound


def _fixed(column: Floats) -> NDArray[np.uint64]:
    """Give a column as words that the loop only reads: of one kind, so that it is compiled once."""
    words = _words(column)
    words.setflags(write=False)
    return words


def _words(array: Floats) -> NDArray[np.uint64]:
    return array.view(np.uint64)


def _rays(source: Source, filled: _Filled) -> Rays:
    """Make rays of a chunk; a wrong number is named by its place in the file."""
    first = filled.place.first
    arrays = {name: array[: filled.rows] for name, array in filled.room.items()}
    if "origins" in arrays:
        with suppress(InvalidInput):  # which is worded below, with the place in the file
            o, d, low, high = (arrays.get(name) for name in ("origins", "directions", *RANGES))
            assert o is not None
            assert d is not None
            return own((o, d, low, high), source.want.invalid, filled.finite)
    number = len(next(iter(arrays.values())))
    among = "" if source.total == number else f" in {number:,} rows"
    parts = Parts(arrays, lambda name, index: source.where(name, (first + index[0], *index[1:])), among=among)
    rays = build(parts, source.path, source.want).geometry
    assert isinstance(rays, Rays)
    return rays
