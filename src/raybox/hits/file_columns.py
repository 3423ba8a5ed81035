"""What a query declares of its results in files: columns, and the rows of a chunk at a time.

Tables of queries list these declarations; casts and readers of results follow them.
"""

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Any, Generic, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybox.validation import Bools, Floats, Ints

CHUNK_HITS = 1 << 20  # hits of a file that are in memory at once, about; those of a ray stay together
_STRETCH = 64  # rays whose hits are estimated by those of one


class Sparse:
    """A column that has nothing in some rows: of three rays in four that miss, no points need memory.

    there: which rows have a number; numbers: those of such rows.
    """

    __slots__ = "numbers", "there"

    def __init__(self, there: Bools, numbers: Floats) -> None:
        self.there, self.numbers = there, numbers

    def __len__(self) -> int:
        return len(self.there)


Column = NDArray[Any] | range | Sparse  # consecutive numbers need no memory
Columns = dict[str, Column]
Scratch = dict[str, NDArray[Any]]  # memory that the writer reuses from chunk to chunk


class ChunkResults(NamedTuple):
    """Results of some rays of a chunk: how many hits, or rays that hit; `columns` lays them out."""

    hit: int
    columns: Callable[[Scratch], Columns]


class Argument(Enum):
    """What a cast passes to a query in addition to rays."""

    PER_PRIMITIVE = "an array with a row for each primitive, or in the shape of a grid"
    PER_RAY = "an array with a row for each ray of the file, of which each chunk gets its own"
    NUMBER = "one number"
    OPTION = "any other value"


RowsOf = Literal["rays", "hits", "primitives"]
"""What the rows of an output are of: one for each ray, for each hit, or for each primitive of the scene."""
Reads = Literal["rays", "points", "boxes"]
"""What a query reads of a file, a row for each."""


class FileColumns(NamedTuple):
    """The columns of a query's results in a file."""

    dtypes: Callable[..., dict[str, np.dtype[Any]]]
    """(dimension, ids, arguments by name) -> the columns and their dtypes"""
    chunks: Callable[..., Iterator[ChunkResults]]
    """(scene, rays, number of the first ray, workers, arguments by name) -> results, in order

    Of points and boxes, `FileRows` in place of rays. Arguments: those below, `where`, and `groups`, if any.
    """
    rows: RowsOf = "rays"
    """"primitives": a row for each primitive in each chunk; the output is the sum of all chunks"""
    arguments: Mapping[str, Argument] = MappingProxyType({})
    """the arguments of the scene's method that a cast may be given"""
    reads: Reads = "rays"

    @property
    def has_channels(self) -> bool:
        """Whether results have a column for each channel of an argument."""
        return any(kind in (Argument.PER_PRIMITIVE, Argument.PER_RAY) for kind in self.arguments.values())


class FileRows(NamedTuple):
    """Points or boxes of a chunk, without those that break a rule."""

    rows: Any
    """points (n, D), or `Boxes`"""
    numbers: Ints
    """of each, among all of the chunk"""
    total: int
    """how many the chunk has"""


def index_dtypes(ids: Any) -> dict[str, np.dtype[Any]]:
    """Return the columns that name a primitive: index, and id if there are ids."""
    named = {} if ids is None else {"id": np.array([*ids, ""], dtype=str).dtype}
    return {"index": np.dtype(np.int64), **named}


def row_count(columns: Mapping[str, Column]) -> int:
    """Return the number of rows of columns."""
    return len(next(iter(columns.values())))


class HasOffsets(Protocol):
    """Results in compressed rows."""

    @property
    def offsets(self) -> Ints:
        """First hit of each ray, shape (N + 1,)."""
        ...


R = TypeVar("R", bound=HasOffsets)


class HitRun(NamedTuple, Generic[R]):
    """The hits of consecutive rays of a chunk."""

    begin: int
    """the first ray"""
    hits: R


def hit_runs(run: Callable[[Any], R], rays: int) -> Iterator[HitRun[R]]:
    """Yield the hits of a chunk, of rays that have few enough together.

    run: returns the hits of some rays, by a slice or by their numbers.
    """
    ends = np.cumsum(_estimated_counts(run, rays))
    begin = 0
    while begin < rays:
        before = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + CHUNK_HITS, side="right")))
        yield HitRun(begin, run(slice(begin, end)))
        begin = end


def _estimated_counts(run: Callable[[Any], HasOffsets], rays: int) -> Ints:
    """Return the number of hits of each ray, estimated by one ray of each stretch of rays."""
    starts = np.arange(0, rays, _STRETCH)
    lengths = np.minimum(rays - starts, _STRETCH)
    # not every 64th: rays of pictures and scanners repeat, and so would an error
    tried = starts + np.random.default_rng(0).integers(lengths)
    return np.repeat(np.diff(run(tried).offsets), lengths)
