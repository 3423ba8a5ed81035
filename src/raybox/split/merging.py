"""Put contacts found in several parts into one exact order.

Reported times are the exact ones rounded once, so two that differ are in exact order. Of those that are
equal, `raybox.kernels.merging` compares the exact ones; those truly at once are in the order of their
numbers.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.geometry import RayRows
from raybox.kernels.merging import settle
from raybox.validate import Floats, Ints, freeze


class Contacts(NamedTuple):
    """Contacts, and what each is with: its row of `rows`."""

    ray: Ints
    index: Ints  # type: ignore[assignment]  # of tuples, where nobody looks for it
    t: Floats
    rows: Any


def pick(rows: Any, which: Any) -> Any:
    """Return some rows, as kernels take them."""
    return made(type(rows), [np.ascontiguousarray(array[which]) for array in arrays_of(rows)])


def arrays_of(rows: Any) -> list[Any]:
    """Return the arrays that rows are made of; what else is there tells how they are asked."""
    return [array for array in rows if isinstance(array, np.ndarray)]


def made(kind: Any, arrays: Any) -> Any:
    """Make rows of arrays of their own."""
    freeze(*arrays)
    return kind(*arrays)


def join(parts: list[Contacts]) -> Contacts:
    """Put contacts one behind the other."""
    ray, index, t = (np.concatenate([part[k] for part in parts]) for k in range(3))
    columns = zip(*(arrays_of(part.rows) for part in parts), strict=True)
    rows = made(type(parts[0].rows), [np.concatenate(arrays) for arrays in columns])
    return Contacts(ray, index, t, rows)


def arrange(rays: RayRows, contacts: Contacts) -> Ints:
    """Return the order of contacts: by ray, exact time, number."""
    order = np.lexsort((contacts.index, contacts.t, contacts.ray))
    ray, t = contacts.ray[order], contacts.t[order]
    alike = (ray[1:] == ray[:-1]) & (t[1:] == t[:-1])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], alike, [False]]).astype(np.int8)))
    if edges.size:
        runs = edges.reshape(-1, 2)
        runs[:, 1] += 1
        settle(rays, contacts.rows, ray[runs[:, 0]], runs, order)
    return order


def earlier(rays: RayRows, best: Contacts, other: Contacts) -> Any:
    """Tell of pairs of contacts, of one ray and one reported time each, where the other comes first."""
    number = len(best.ray)
    order = np.empty((number, 2), np.int64)
    order[:, 0], order[:, 1] = np.arange(number), number + np.arange(number)
    order[best.index > other.index] = order[best.index > other.index, ::-1]
    flat = order.reshape(-1)
    runs = 2 * np.arange(number)[:, None] + [0, 2]
    settle(rays, join([best, other]).rows, best.ray, runs, flat)
    return flat[::2] >= number
