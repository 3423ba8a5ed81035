"""Results of a chunk of rays as columns of a file."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.entry_points import entry
from raybox.geometry import RayRows, Rays
from raybox.hits import Hits
from raybox.hits.file_columns import ChunkResults, Columns, Scratch, Sparse, index_dtypes
from raybox.hits.point_kernel import coordinate
from raybox.hits.tables import part_columns
from raybox.primitives.ray import origin_row
from raybox.validation import Bools, Floats

RAY = {"ray": np.dtype(np.int64)}
"""The first column of a file with rows of rays or of hits: the number of the ray."""


def hit_dtypes(ids: Any, numbers: Any) -> dict[str, np.dtype[Any]]:
    """Return the columns of hits: ray, index, id if there are ids, t, and more numbers."""
    real = np.dtype(np.float64)
    return {**RAY, **index_dtypes(ids), "t": real, **dict.fromkeys(numbers, real)}


def sum_columns(name: str, sums: Floats) -> Columns:
    """Return sums (N,), or (N, C) of C channels, as columns of this name."""
    if sums.ndim == 1:
        return {name: sums}
    return {f"{name}_{c}": np.ascontiguousarray(sums[:, c]) for c in range(sums.shape[1])}


def sum_dtypes(name: str, channels: tuple[int, ...]) -> dict[str, np.dtype[Any]]:
    """Return the columns of sums of so many channels; () for one without an axis of channels."""
    names = [f"{name}_{c}" for c in range(channels[0])] if channels else [name]
    return dict.fromkeys(names, np.dtype(np.float64))


def number_results(name: str, first: int, values: NDArray[Any]) -> ChunkResults:
    """Return results of one number a ray, from ray `first` on, as a column of this name."""
    columns: Columns = {"ray": range(first, first + len(values)), name: values}
    return ChunkResults(int(np.count_nonzero(values)), lambda _: columns)


@entry
def points_of(rays: RayRows, t: Floats, hit: Bools, points: tuple[Floats, ...]) -> int:
    """Write the points of hits side by side; return how many there are.

    points: an array for each axis, in a tuple, over which loops are unrolled (two thirds of the time).
    """
    at = 0
    for i in range(hit.size):
        origin = origin_row(rays, i)
        # of a miss, too, in the place of the next one: no branch is mispredicted
        for k in range(len(points)):
            points[k][at] = coordinate(rays.origins[origin, k], rays.directions[i, k], t[i])
        at += hit[i]
    return at


def hit_columns(rays: Rays, hits: Hits, first: int, scratch: Scratch) -> Columns:
    """Lay out one hit a ray, from ray `first` on, with its point: bit for bit, but column by column."""
    index, t, hit = hits.index, hits.t, hits.hit
    if len(scratch.get("points", [()])[0]) < len(t):
        scratch["points"] = np.empty((rays.ndim_space, len(t)))
    found = points_of(rays._rows(), t, hit, tuple(scratch["points"]))
    points = (Sparse(hit, numbers[:found]) for numbers in scratch["points"])
    columns: Columns = {"ray": range(first, first + len(t)), "index": index, "t": t}
    return columns | part_columns(hits._source, hits) | dict(zip("xyz", points, strict=False))
