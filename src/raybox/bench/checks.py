"""Do answers agree? Ray by ray against raybox; rational arithmetic settles who is right."""

from typing import Any, NamedTuple

import numpy as np

from raybox.bench import truth
from raybox.bench.data import BoxSet, RaySet
from raybox.bench.peers.raybox_scene import rays_of
from raybox.scene.scene import Scene
from raybox.validation import Bools, Ints

_TOLERANCE = 4e-6  # of t, in extents of the scene: some 30 roundings of a float32
_SETTLED = 24  # differing rays that are settled, at most
_PROVED = 16  # rays of raybox's own that are settled, differing or not
_BOXES = 20_000_000  # that rational arithmetic's sieve goes through for one answer of one peer
_COMPARED = 200_000  # rays that are compared, at most


class Agreement(NamedTuple):
    """How the answers of a peer compare with raybox's, in rays.

    ``near`` of them have another box at the same t within float32's tolerance: ties, for a float32.
    ``differ`` is the rest; of those ``settled`` by rational arithmetic, raybox was right ``raybox_right``
    times. Of raybox's own answers a sample is settled that differs from nothing.
    """

    compared: int
    met: int
    near: int
    differ: int
    settled: int
    raybox_right: int
    peer_right: int


class Judge:
    """Holds a scene of the boxes, and what it answered: many peers are asked the same rays."""

    def __init__(self, boxes: BoxSet, scene: Scene) -> None:
        self.boxes, self.scene = boxes, scene
        self._known: dict[tuple[str, str, int], tuple[RaySet, Any, int]] = {}

    def compare(
        self, question: str, meaning: str, rays: RaySet, answer: Any, *, prove: bool = False
    ) -> Agreement:
        """Hold a peer's answer to a question (in our form) against raybox's; ``prove`` raybox's own."""
        ours, met = self._known_of(question, meaning, rays)
        some = min(len(rays.origins), _COMPARED)
        rays, answer = _first_rays(rays), _head(question, answer, some)
        differ, near = _differing(question, ours, answer, self._reach(rays))
        room = max(2, _BOXES // max(1, len(self.boxes.lower)))
        chosen = _some_of(np.flatnonzero(differ), min(_SETTLED, room))
        if prove:
            chosen = np.union1d(chosen, _some_of(np.arange(some), min(_PROVED, room)))
        right = [self._settle(question, meaning, rays, int(k), ours, answer) for k in chosen]
        sides = [sum(side) for side in zip(*right, strict=True)] or [0, 0]
        return Agreement(some, met, int(near.sum()), int(differ.sum()), len(right), *sides)

    def _known_of(self, question: str, meaning: str, rays: RaySet) -> tuple[Any, int]:
        """Return raybox's answer and how many rays meet anything; worked out once for the same rays."""
        key = question, meaning, len(rays.origins)
        if key not in self._known or self._known[key][0] is not rays:
            first = _first_rays(rays)
            met = int(np.count_nonzero(self.scene.occluded(rays_of(first))))
            self._known[key] = rays, self._ours(question, meaning, first), met
        return self._known[key][1:]

    def _ours(self, question: str, meaning: str, rays: RaySet) -> Any:
        """Answer as a peer of this meaning should: raybox's boxes are solid, triangles are surfaces."""
        asked = rays_of(rays)
        if question == "nearest":
            hits = self.scene.nearest(asked)
            index, t = hits.index.copy(), hits.t.copy()
            inside = np.flatnonzero(hits.t_enter < 0.0)
            if meaning == "surface" and len(inside):
                index[inside], t[inside] = self._first_surface(RaySet(*(part[inside] for part in rays)))
            return index, t
        if question == "occluded":
            return self.scene.occluded(asked)
        if question == "count" and meaning == "solid":
            return self.scene.count(asked)
        found = self.scene.all(asked)
        if question == "all":
            return found.ray, found.index
        crossings = 1 + (found.t_enter >= 0.0)
        return np.bincount(found.ray, weights=crossings, minlength=len(rays.origins)).astype(np.int64)

    def _first_surface(self, rays: RaySet) -> tuple[Any, Any]:
        found = self.scene.all(rays_of(rays))
        t = np.where(found.t_enter >= 0.0, found.t_enter, found.t_exit)
        order = np.lexsort((found.index, t, found.ray))
        first = order[np.searchsorted(found.ray[order], np.arange(len(rays.origins)))]
        return found.index[first], t[first]

    def _reach(self, rays: RaySet) -> float:
        corners = np.abs(self.boxes.around).max()
        return float(_TOLERANCE * max(corners, np.abs(rays.origins).max(initial=0.0)))

    def _settle(
        self, question: str, meaning: str, rays: RaySet, k: int, ours: Any, theirs: Any
    ) -> tuple[bool, bool]:
        """Tell whether raybox, and whether the peer, says of one ray what rational arithmetic says."""
        met = truth.contacts(self.boxes, rays.origins[k], rays.directions[k])
        exact = _exact(question, meaning, met)
        sound = question != "nearest" or ours[1][k] == _first(met, meaning)[1]
        return sound and _item(question, ours, k) == exact, _item(question, theirs, k) == exact


def _first_rays(rays: RaySet) -> RaySet:
    return RaySet(*(part[:_COMPARED] for part in rays))


def _some_of(numbers: Ints, most: int) -> Ints:
    """Take up to so many, evenly."""
    return numbers if len(numbers) <= most else numbers[np.arange(most) * len(numbers) // most]


def _first(met: list[truth.Contact], meaning: str) -> tuple[int, float]:
    """Return the first box, and where it is met: as a solid, or on its surface."""
    if meaning == "surface":
        surfaces = sorted((contact.surface, contact.box) for contact in met)
        return (surfaces[0][1], surfaces[0][0]) if surfaces else (-1, np.inf)
    return (met[0].box, met[0].t) if met else (-1, np.inf)


def _exact(question: str, meaning: str, met: list[truth.Contact]) -> Any:
    """Return the answer to a question about one ray that meets this."""
    if question == "nearest":
        return _first(met, meaning)[0]
    if question == "occluded":
        return bool(met)
    if question == "count":
        return len(met) if meaning == "solid" else sum(contact.crossings for contact in met)
    return frozenset(contact.box for contact in met)


def _item(question: str, answer: Any, k: int) -> Any:
    """Return what an answer says of ray k."""
    if question == "all":
        ray, index = answer
        return frozenset(index[ray == k].tolist())
    return answer[0][k].item() if question == "nearest" else answer[k].item()


def _head(question: str, answer: Any, some: int) -> Any:
    """Keep the answers for the first rays."""
    if question == "all":
        ray, index = answer
        return ray[ray < some], index[ray < some]
    return tuple(part[:some] for part in answer) if question == "nearest" else answer[:some]


def _differing(question: str, ours: Any, theirs: Any, reach: float) -> tuple[Bools, Bools]:
    """Return which rays have another answer, and which another box at nearly the same t."""
    if question == "nearest":
        (index, t), (other, other_t) = ours, theirs
        with np.errstate(invalid="ignore"):
            close = np.abs(t - other_t) <= reach * (1.0 + np.where(np.isfinite(t), t, 0.0))
        same = (index == other) & (close | (index < 0))
        near = (index != other) & (index >= 0) & (other >= 0) & close
        return ~(same | near), near
    differ = _rays_of_unequal(ours, theirs) if question == "all" else np.asarray(ours != theirs)
    return differ, np.zeros_like(differ)


def _rays_of_unequal(ours: Any, theirs: Any) -> Bools:
    """Return for each ray whether the sets of its boxes are unlike (a box named twice counts once)."""
    rays = 1 + max((int(ray.max(initial=-1)) for ray, _ in (ours, theirs)), default=0)
    boxes = 1 + max((int(index.max(initial=0)) for _, index in (ours, theirs)), default=0)
    keys = [ray.astype(np.int64) * boxes + index for ray, index in (ours, theirs)]
    differ = np.zeros(max(rays, 1), bool)
    differ[np.setxor1d(*keys) // boxes] = True
    return differ
