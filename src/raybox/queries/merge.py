"""Merge the hits of several geometries into one exact order.

Reported times are the exact ones rounded once, so two that differ are in exact order. Where two times are
equal and of different geometries, the exact ones are compared in integers (`raybox.primitives.exact_table`);
a true tie goes to the geometry that comes first.
"""

from collections.abc import Sequence
from functools import cmp_to_key
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from raybox.geometry.ray_rows import select_rows
from raybox.primitives import exact_table
from raybox.queries.query import Request
from raybox.validation import Floats, Ints


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
    one = exact_table.ray_at(select_rows(request.rays, slice(ray, ray + 1)), 0)
    return exact_table.exact_time(job.rows, one, number - request.starts[which])
