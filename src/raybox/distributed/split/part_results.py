"""Results of each query as parts of a scene add to them, contacts in one exact order.

A query has a `limit` for each ray: parts that are entered later cannot change its result. NaN: none can.
"""

from typing import Any, NamedTuple, Protocol

import numpy as np

from raybox.distributed.split.merging_kernels import settle
from raybox.distributed.split.open_parts import Part
from raybox.geometry import RayRows
from raybox.scene.scene import state_of
from raybox.validation import Bools, Floats, Ints, freeze


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


class Asked(Protocol):
    """A question to rays, which parts answer one by one."""

    visits: Ints

    @property
    def limit(self) -> Floats:
        """Up to which time a part must be entered to matter, for each ray."""
        ...

    def visit(self, part: Part, which: Ints, how: dict[str, Any]) -> None:
        """Ask a part for the rays of these numbers; `how` are the arguments of its scene's questions."""
        ...


def _contacts(part: Part, ray: Ints, index: Ints, t: Floats) -> Contacts:
    """Give contacts the numbers that boxes have in the whole."""
    return Contacts(ray, part.numbers[index], t, pick(state_of(part.scene)[0].rows, index))


def _blank(like: Any, number: int) -> Any:
    """Make rows like others, to be written to."""
    return type(like)(*(np.zeros((number, *array.shape[1:])) for array in arrays_of(like)))


class Nearest:
    """What each ray meets first, so far."""

    visits: Ints

    def __init__(self, rays: RayRows, like: Any) -> None:
        number = len(rays.origins)
        self._rays = rays
        self.index, self.t, self.rows = np.full(number, -1), np.full(number, np.inf), _blank(like, number)
        self.limit = self.t

    def visit(self, part: Part, which: Ints, how: dict[str, Any]) -> None:
        """Keep what is met earlier than before; at the very same time, what has the lower number."""
        hits = part.scene.nearest(**how)
        met = np.flatnonzero(hits.index >= 0)
        found = _contacts(part, which[met], hits.index[met], hits.t[met])
        ray = found.ray
        better = (self.index[ray] < 0) | (found.t < self.t[ray])
        level = np.flatnonzero(~better & (found.t == self.t[ray]))
        if level.size:
            held = Contacts(
                ray[level], self.index[ray[level]], self.t[ray[level]], pick(self.rows, ray[level])
            )
            other = Contacts(ray[level], found.index[level], found.t[level], pick(found.rows, level))
            better[level] = earlier(self._rays, held, other)
        ray = ray[better]
        self.index[ray], self.t[ray] = found.index[better], found.t[better]
        for array, new in zip(arrays_of(self.rows), arrays_of(found.rows), strict=True):
            array[ray] = new[better]


class Occluded:
    """Which rays meet anything, so far."""

    visits: Ints

    def __init__(self, rays: RayRows, like: Any) -> None:
        self.met: Bools = np.zeros(len(rays.origins), np.bool_)
        self.limit = np.full(len(rays.origins), np.inf)

    def visit(self, part: Part, which: Ints, how: dict[str, Any]) -> None:
        """Be done with rays that meet something."""
        met = which[part.scene.occluded(**how)]
        self.met[met], self.limit[met] = True, np.nan


class Count:
    """How many each ray meets, so far."""

    visits: Ints

    def __init__(self, rays: RayRows, like: Any) -> None:
        self.number = np.zeros(len(rays.origins), np.int64)
        self.limit = np.full(len(rays.origins), np.inf)

    def visit(self, part: Part, which: Ints, how: dict[str, Any]) -> None:
        """Add."""
        self.number[which] += part.scene.count(**how)


class All:
    """Everything that each ray meets, so far."""

    visits: Ints

    def __init__(self, rays: RayRows, like: Any) -> None:
        self._rays = rays
        self.limit = np.full(len(rays.origins), np.inf)
        none = np.empty(0, np.int64)
        self._found = [Contacts(none, none, np.empty(0), _blank(like, 0))]

    def visit(self, part: Part, which: Ints, how: dict[str, Any]) -> None:
        """Keep all."""
        hits = part.scene.all(**how)
        self._found.append(_contacts(part, which[hits.ray], hits.index, hits.t))

    def arranged(self) -> tuple[Ints, Contacts]:
        """Return where each ray's contacts begin, and all of them in order."""
        contacts = join(self._found)
        order = arrange(self._rays, contacts)
        ray = contacts.ray[order]
        offsets = np.searchsorted(ray, np.arange(len(self._rays.origins) + 1))
        return offsets, Contacts(ray, contacts.index[order], contacts.t[order], pick(contacts.rows, order))


class First:
    """The k first that each ray meets, so far."""

    visits: Ints

    def __init__(self, rays: RayRows, like: Any, *, k: int) -> None:
        number = len(rays.origins)
        self._rays, self._k = rays, k
        self.index, self.t = np.full((number, k), -1), np.full((number, k), np.inf)
        self.rows = _blank(like, number * k)
        self.limit = self.t[:, -1]

    def visit(self, part: Part, which: Ints, how: dict[str, Any]) -> None:
        """Put what is met among what was met, and keep the k first."""
        hits = part.scene.first(k=self._k, **how)
        met = np.flatnonzero(hits.index >= 0)
        new = _contacts(part, which[met // self._k], hits.index.reshape(-1)[met], hits.t.reshape(-1)[met])
        both = join([self._held(which), new])
        order = arrange(self._rays, both)
        ray = both.ray[order]
        rank = np.arange(len(ray)) - np.searchsorted(ray, ray)
        order, ray, rank = (array[rank < self._k] for array in (order, ray, rank))
        self.index[ray, rank], self.t[ray, rank] = both.index[order], both.t[order]
        for array, rows in zip(arrays_of(self.rows), arrays_of(both.rows), strict=True):
            array[ray * self._k + rank] = rows[order]

    def _held(self, which: Ints) -> Contacts:
        """Return the contacts of some rays."""
        place, rank = np.nonzero(self.index[which] >= 0)
        ray = which[place]
        rows = pick(self.rows, ray * self._k + rank)
        return Contacts(ray, self.index[ray, rank], self.t[ray, rank], rows)


QUESTIONS: dict[str, Any] = {"nearest": Nearest, "occluded": Occluded, "count": Count, "all": All}
