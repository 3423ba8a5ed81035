"""Results of a chunk of rays as columns of a file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.validation import Bools, Floats


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A column that has nothing in some rows: of three rays in four that miss, no points need memory."""

    there: Bools
    numbers: Floats
    """Of rows that have one."""

    def __len__(self) -> int:
        return len(self.there)


Column = NDArray[Any] | range | Sparse  # consecutive numbers need no memory
Columns = dict[str, Column]
Scratch = dict[str, NDArray[Any]]  # memory that the writer reuses from chunk to chunk


class ChunkResults(NamedTuple):
    """Results of some rays of a chunk: how many hits, or rays that hit; `columns` lays them out."""

    hit: int
    columns: Callable[[Scratch], Columns]


RAY = {"ray": np.dtype(np.int64)}
"""The first column of every file: the number of the ray."""


def hit_dtypes(ids: Any, numbers: Any) -> dict[str, np.dtype[Any]]:
    """Return the columns of hits: ray, index, id if there are ids, t, and more numbers."""
    real = np.dtype(np.float64)
    named = {} if ids is None else {"id": np.array([*ids, ""], dtype=str).dtype}
    return {**RAY, "index": np.dtype(np.int64), **named, "t": real, **dict.fromkeys(numbers, real)}


def number_results(name: str, first: int, values: NDArray[Any]) -> ChunkResults:
    """Return results of one number a ray, from ray `first` on, as a column of this name."""
    columns: Columns = {"ray": range(first, first + len(values)), name: values}
    return ChunkResults(int(np.count_nonzero(values)), lambda _: columns)
