"""Merge the hits of several geometries, or of several parts of a scene, into one exact order.

Reported times are the exact ones rounded once, so two that differ are in exact order.

*Geometries.* Where two times are equal and of different geometries, the exact ones are compared in integers
(`raybox.primitives.exact_table`); a true tie goes to the geometry that comes first.

*Parts.* Of times that are equal, compiled code compares the exact ones; true ties are in the order of their
indices. No machine holds all primitives, so hits carry the rows of theirs.
"""

from collections.abc import Sequence
from functools import cmp_to_key
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.entry_points import entry
from raybox.geometry import RayRows, Rows
from raybox.geometry.ray_sources import select_rows
from raybox.primitives import exact_table
from raybox.primitives.ray import get_ray
from raybox.primitives.table import tie
from raybox.queries.query import Request, ScenePart
from raybox.validation import Floats, Ints, freeze


class FlatHits(NamedTuple):
    """Hits one after the other, of any number of rays."""

    ray: Ints
    id: Ints
    t: Floats


def merge_hits(request: Request, parts: Sequence[FlatHits]) -> FlatHits:
    """Return the hits with each geometry, ids counted within it, in exact order along each ray."""
    starts = zip(parts, request.starts, strict=True)
    columns = zip(*((part.ray, part.id + start, part.t) for part, start in starts), strict=True)
    ray, number, t = (np.concatenate(column) for column in columns)
    order = np.lexsort((t, ray))  # hits with one geometry stay in their order
    ray, number, t = ray[order], number[order], t[order]
    geometry = np.searchsorted(request.starts, number, side="right")
    same = (ray[1:] == ray[:-1]) & (t[1:] == t[:-1])
    runs = np.concatenate([[0], np.cumsum(~same, dtype=np.int64)])  # of equal times
    crossed = np.unique(runs[1:][same & (geometry[1:] != geometry[:-1])])
    members = np.flatnonzero(np.isin(runs, crossed))
    for _, group in groupby(members.tolist(), key=runs.__getitem__):
        places = list(group)
        exact = [(exact_time(request, int(ray[places[0]]), int(number[k])), int(number[k])) for k in places]
        number[places] = [i for _, i in sorted(exact, key=cmp_to_key(exact_table.compare_contacts))]
    return FlatHits(ray, number, t)


def comes_before(request: Request, ray: int, one: int, other: int) -> bool:
    """Return whether the first of two hits of a ray, given by their ids, comes first, exactly."""
    times = (exact_time(request, ray, one), one), (exact_time(request, ray, other), other)
    return exact_table.compare_contacts(*times) < 0


def exact_time(request: Request, ray: int, number: int) -> Any:
    """Return the exact time of a hit."""
    which = int(np.searchsorted(request.starts, number, side="right")) - 1
    job = request.jobs[which]
    one = exact_table.ray_at(select_rows(job.rays, slice(ray, ray + 1)), 0)
    return exact_table.exact_time(job.rows, one, number - request.starts[which])


class PartHits(NamedTuple):
    """Hits, and the row of the primitive of each."""

    ray: Ints
    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats
    rows: Any


def hits_of_part(part: ScenePart, ray: Ints, index: Ints, t: Floats) -> PartHits:
    """Return hits of a part, with the indices that primitives have in the whole."""
    return PartHits(ray, part.in_whole(index), t, part.rows_of(index))


def blank_rows(like: Any, count: int) -> Any:
    """Return rows like others, to be written to."""
    return type(like)(*(np.zeros((count, *array.shape[1:])) for array in arrays_of(like)))


def pick_rows(rows: Any, which: Any) -> Any:
    """Return some rows, as kernels read them."""
    return _frozen_rows(type(rows), [np.ascontiguousarray(array[which]) for array in arrays_of(rows)])


def arrays_of(rows: Any) -> list[Any]:
    """Return the arrays that rows are made of; other fields say how they are tested."""
    return [array for array in rows if isinstance(array, np.ndarray)]


def _frozen_rows(kind: Any, arrays: Any) -> Any:
    freeze(*arrays)
    return kind(*arrays)


def join_hits(parts: list[PartHits]) -> PartHits:
    """Return hits one after the other."""
    ray, index, t = (np.concatenate([part[k] for part in parts]) for k in range(3))
    columns = zip(*(arrays_of(part.rows) for part in parts), strict=True)
    rows = _frozen_rows(type(parts[0].rows), [np.concatenate(arrays) for arrays in columns])
    return PartHits(ray, index, t, rows)


def exact_order(rays: RayRows, hits: PartHits) -> Ints:
    """Return the order of hits: by ray, exact time, index."""
    order = np.lexsort((hits.index, hits.t, hits.ray))
    ray, t = hits.ray[order], hits.t[order]
    alike = (ray[1:] == ray[:-1]) & (t[1:] == t[:-1])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], alike, [False]]).astype(np.int8)))
    if edges.size:
        runs = edges.reshape(-1, 2)
        runs[:, 1] += 1
        _sort_equal_times(rays, hits.rows, ray[runs[:, 0]], runs, order)
    return order


def comes_earlier(rays: RayRows, best: PartHits, other: PartHits) -> Any:
    """Return, of pairs of hits of one ray and one reported time each, where the other comes first."""
    count = len(best.ray)
    order = np.empty((count, 2), np.int64)
    first = np.arange(count, dtype=np.int64)
    order[:, 0], order[:, 1] = first, count + first
    order[best.index > other.index] = order[best.index > other.index, ::-1]
    flat = order.reshape(-1)
    runs = 2 * first[:, None] + np.array([0, 2])
    _sort_equal_times(rays, join_hits([best, other]).rows, best.ray, runs, flat)
    return flat[::2] >= count


@entry
def _sort_equal_times(rays: RayRows, rows: Rows, ray_of: Ints, runs: Ints, order: Ints) -> None:
    """Sort the hits order[begin:end] of each run by exact time; true ties stay as they are.

    runs: (R, 2), begin and end; ray_of: each run's ray; hit c is with row c of `rows`.
    """
    for k in range(runs.shape[0]):
        ray = get_ray(rays, ray_of[k])
        for i in range(runs[k, 0] + 1, runs[k, 1]):
            hit = order[i]
            place = i
            while place > runs[k, 0] and tie(rows, ray, hit, order[place - 1]) < 0:
                order[place] = order[place - 1]
                place -= 1
            order[place] = hit
