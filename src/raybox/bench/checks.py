"""Compares results of a peer with raybox's, ray by ray; rational arithmetic verifies a sample.

`exact_hits` tests every box that a ray may hit.
"""

from functools import cmp_to_key
from typing import Any, NamedTuple

import numpy as np

from raybox.bench.data import BoxSet, RaySet
from raybox.bench.raybox_scene import rays_of
from raybox.exact import definition
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, Ints

_SLACK = 1e-9  # far more than float64 loses in a subtraction and a division


class ExactHit(NamedTuple):
    """A box hit, and t; ``surface`` is the first t on the box's surface."""

    box: int
    t: float
    surface: float
    crossings: int


def exact_hits(boxes: BoxSet, origin: Floats, direction: Floats) -> list[ExactHit]:
    """Return the exact hits of a ray with t >= 0, by (t, index)."""
    ray = definition.Ray1(tuple(origin.tolist()), tuple(direction.tolist()), 0.0, float("inf"))
    found = []
    for index in _candidates(boxes, origin, direction).tolist():
        crossing = definition.box(ray, *_corners(boxes, index))
        if crossing is not None:
            outside = crossing.t_enter >= 0.0
            surface = crossing.t_enter if outside else crossing.t_exit
            found.append(ExactHit(index, crossing.t, surface, 1 + outside))

    def order(a: ExactHit, b: ExactHit) -> int:
        if a.t == b.t and min(a.t, b.t) > 0.0:
            exactly = definition.box_order(ray, _corners(boxes, a.box), _corners(boxes, b.box))
            return exactly or a.box - b.box
        return (a.t > b.t) - (a.t < b.t) or a.box - b.box

    return sorted(found, key=cmp_to_key(order))


def _corners(boxes: BoxSet, index: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    return tuple(boxes.lower[index].tolist()), tuple(boxes.upper[index].tolist())


def _candidates(boxes: BoxSet, origin: Floats, direction: Floats) -> Ints:
    """Return boxes that may be hit: float64 slabs with slack; axes without a quotient pass."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        one, two = (boxes.lower - origin) / direction, (boxes.upper - origin) / direction
        near = np.where(np.isnan(one) | np.isnan(two), -np.inf, np.minimum(one, two)).max(axis=1)
        far = np.where(np.isnan(one) | np.isnan(two), np.inf, np.maximum(one, two)).min(axis=1)
        reach = _SLACK * (1.0 + np.where(np.isfinite(near), abs(near), 0.0))
        return np.flatnonzero(~((near > far + reach) | (far < -_SLACK)))


_TOLERANCE = 4e-6  # of t, in extents of the scene: some 30 roundings of a float32
_SETTLED = 24  # differing rays that are verified exactly, at most
_PROVED = 16  # rays of raybox itself that are verified, differing or not
_BOXES = 20_000_000  # filtered for the exact tests of one result, at most
_COMPARED = 200_000  # rays, at most


class Agreement(NamedTuple):
    """Agreement of a peer's results with raybox's, in numbers of rays.

    ``near``: another box at the same t within float32's tolerance, a tie in float32. ``differ``: all other
    differences. ``settled``: verified by rational arithmetic; raybox was right for ``raybox_right`` of them.
    Of raybox's own results, a sample that does not differ is verified too.
    """

    compared: int
    hits: int
    near: int
    differ: int
    settled: int
    raybox_right: int
    peer_right: int


class _Cached(NamedTuple):
    """Results of raybox for some rays, and the number of rays that hit."""

    rays: RaySet
    results: Any
    hit_count: int


class Checker:
    """Compares results with a scene's; caches its results, as many peers get the same rays."""

    def __init__(self, boxes: BoxSet, scene: Scene) -> None:
        self.boxes, self.scene = boxes, scene
        self._cached: dict[tuple[str, str, int], _Cached] = {}

    def compare(
        self, query: str, meaning: str, rays: RaySet, results: Any, *, prove: bool = False
    ) -> Agreement:
        """Return the agreement of a peer's results of a query with raybox's.

        prove: the results are raybox's own, and a sample of all rays is verified exactly.
        """
        ours, hit_count = self._raybox_results(query, meaning, rays)
        some = min(len(rays.origins), _COMPARED)
        rays, results = _first_rays(rays), _head(query, results, some)
        differ, near = _differing(query, ours, results, self._reach(rays))
        room = max(2, _BOXES // max(1, len(self.boxes.lower)))
        chosen = _some_of(np.flatnonzero(differ), min(_SETTLED, room))
        if prove:
            chosen = np.union1d(chosen, _some_of(np.arange(some), min(_PROVED, room)))
        right = [self._verify(query, meaning, rays, int(k), ours, results) for k in chosen]
        sides = [sum(side) for side in zip(*right, strict=True)] or [0, 0]
        return Agreement(some, hit_count, int(near.sum()), int(differ.sum()), len(right), *sides)

    def _raybox_results(self, query: str, meaning: str, rays: RaySet) -> tuple[Any, int]:
        """Return raybox's results and its number of hits, computed once for the same rays."""
        key = query, meaning, len(rays.origins)
        if key not in self._cached or self._cached[key].rays is not rays:
            first = _first_rays(rays)
            hit_count = int(np.count_nonzero(self.scene.occluded(rays_of(first))))
            self._cached[key] = _Cached(rays, self._compute(query, meaning, first), hit_count)
        return self._cached[key].results, self._cached[key].hit_count

    def _compute(self, query: str, meaning: str, rays: RaySet) -> Any:
        """Return results by this meaning: raybox's boxes are solid, triangles are surfaces."""
        cast = rays_of(rays)
        if query == "nearest":
            hits = self.scene.nearest(cast)
            index, t = hits.index.copy(), hits.t.copy()
            inside = np.flatnonzero(hits.t_enter < 0.0)
            if meaning == "surface" and len(inside):
                index[inside], t[inside] = self._first_surfaces(RaySet(*(part[inside] for part in rays)))
            return index, t
        if query == "occluded":
            return self.scene.occluded(cast)
        if query == "count" and meaning == "solid":
            return self.scene.count(cast)
        found = self.scene.all(cast)
        if query == "all":
            return found.ray, found.index
        crossings = 1 + (found.t_enter >= 0.0)
        return np.bincount(found.ray, weights=crossings, minlength=len(rays.origins)).astype(np.int64)

    def _first_surfaces(self, rays: RaySet) -> tuple[Any, Any]:
        found = self.scene.all(rays_of(rays))
        t = np.where(found.t_enter >= 0.0, found.t_enter, found.t_exit)
        order = np.lexsort((found.index, t, found.ray))
        first = order[np.searchsorted(found.ray[order], np.arange(len(rays.origins)))]
        return found.index[first], t[first]

    def _reach(self, rays: RaySet) -> float:
        corners = np.abs(self.boxes.around).max()
        return float(_TOLERANCE * max(corners, np.abs(rays.origins).max(initial=0.0)))

    def _verify(
        self, query: str, meaning: str, rays: RaySet, k: int, ours: Any, theirs: Any
    ) -> tuple[bool, bool]:
        """Return whether raybox, and whether the peer, is exactly right for one ray."""
        hits = exact_hits(self.boxes, rays.origins[k], rays.directions[k])
        exact = _exact(query, meaning, hits)
        sound = query != "nearest" or ours[1][k] == _first(hits, meaning)[1]
        return sound and _item(query, ours, k) == exact, _item(query, theirs, k) == exact


def _first_rays(rays: RaySet) -> RaySet:
    return RaySet(*(part[:_COMPARED] for part in rays))


def _some_of(numbers: Ints, most: int) -> Ints:
    """Return up to so many numbers, evenly spread."""
    return numbers if len(numbers) <= most else numbers[np.arange(most) * len(numbers) // most]


def _first(hits: list[ExactHit], meaning: str) -> tuple[int, float]:
    """Return the first box and its t, of solids or of surfaces; -1 and inf for a miss."""
    if meaning == "surface":
        surfaces = sorted((hit.surface, hit.box) for hit in hits)
        return (surfaces[0][1], surfaces[0][0]) if surfaces else (-1, np.inf)
    return (hits[0].box, hits[0].t) if hits else (-1, np.inf)


def _exact(query: str, meaning: str, hits: list[ExactHit]) -> Any:
    """Return the result of a query for one ray with these hits."""
    if query == "nearest":
        return _first(hits, meaning)[0]
    if query == "occluded":
        return bool(hits)
    if query == "count":
        return len(hits) if meaning == "solid" else sum(hit.crossings for hit in hits)
    return frozenset(hit.box for hit in hits)


def _item(query: str, results: Any, k: int) -> Any:
    """Return the result for ray k."""
    if query == "all":
        ray, index = results
        return frozenset(index[ray == k].tolist())
    return results[0][k].item() if query == "nearest" else results[k].item()


def _head(query: str, results: Any, some: int) -> Any:
    """Return the results for the first rays."""
    if query == "all":
        ray, index = results
        return ray[ray < some], index[ray < some]
    return tuple(part[:some] for part in results) if query == "nearest" else results[:some]


def _differing(query: str, ours: Any, theirs: Any, reach: float) -> tuple[Bools, Bools]:
    """Return which rays have another result, and which another box at nearly the same t."""
    if query == "nearest":
        (index, t), (other, other_t) = ours, theirs
        with np.errstate(invalid="ignore"):
            close = np.abs(t - other_t) <= reach * (1.0 + np.where(np.isfinite(t), t, 0.0))
        same = (index == other) & (close | (index < 0))
        near = (index != other) & (index >= 0) & (other >= 0) & close
        return ~(same | near), near
    differ = _rays_of_unequal(ours, theirs) if query == "all" else np.asarray(ours != theirs)
    return differ, np.zeros_like(differ)


def _rays_of_unequal(ours: Any, theirs: Any) -> Bools:
    """Return for each ray whether its sets of boxes differ; repeated boxes count once."""
    rays = 1 + max((int(ray.max(initial=-1)) for ray, _ in (ours, theirs)), default=0)
    boxes = 1 + max((int(index.max(initial=0)) for _, index in (ours, theirs)), default=0)
    keys = [ray.astype(np.int64) * boxes + index for ray, index in (ours, theirs)]
    differ = np.zeros(max(rays, 1), bool)
    differ[np.setxor1d(*keys) // boxes] = True
    return differ
