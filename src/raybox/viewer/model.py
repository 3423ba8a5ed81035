"""A click in, an answer out: what the viewer knows, without any browser. All numbers are the scene's."""

import math
from typing import Any, NamedTuple, final

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Rays
from raybox.hits import AllHits
from raybox.viewer.stage import Stage

LISTED = 200  # contacts that an answer spells out
Point = tuple[float, ...]


class Contact(NamedTuple):
    """One thing on the way: its row and its names, where it is first met, how long the way inside is."""

    index: int  # type: ignore[assignment]  # of tuples, where nobody looks for it
    id: str | None
    t: float
    point: Point
    length: float
    labels: tuple[tuple[str, str], ...] = ()


class Picked(NamedTuple):
    """What the ray of a click meets: ``contacts`` in order, the first `LISTED` of ``total``."""

    ray: Rays
    face: str
    contacts: tuple[Contact, ...]
    total: int

    @property
    def nearest(self) -> int:
        """The row that is met first, -1 for none."""
        return self.contacts[0].index if self.contacts else -1


class Begun(NamedTuple):
    """A line of sight has its first end."""

    end: Contact


class Sight(NamedTuple):
    """A line of sight between two clicked points: what stands in its way, apart from what was clicked."""

    ray: Rays
    ends: tuple[Contact, Contact]
    clear: bool
    contacts: tuple[Contact, ...]
    total: int


Answer = Picked | Begun | Sight


def pick(stage: Stage, ray: Rays) -> Picked:
    """Tell everything that one ray meets, in order."""
    hits, everything = stage.scene.nearest(ray, workers=1), stage.scene.all(ray, workers=1)
    face = _face(stage, hits.normals.tolist()) if hits.hit else ""
    return Picked(ray, face, _contacts(stage, ray, everything), len(everything.index))


def sight(stage: Stage, start: Contact, end: Contact) -> Sight:
    """Tell what stands between two clicked points; the two that were clicked do not."""
    where = np.ones(len(stage.scene), np.bool_)
    where[[start.index, end.index]] = False
    ray = Rays.segments(start.point, end.point)
    blocked = bool(stage.scene.occluded(ray, workers=1, where=where))
    everything = stage.scene.all(ray, workers=1, where=where)
    return Sight(ray, (start, end), not blocked, _contacts(stage, ray, everything), len(everything.index))


def _contacts(stage: Stage, ray: Rays, everything: AllHits) -> tuple[Contact, ...]:
    columns = everything.index, everything.t, everything.lengths
    rows = zip(*(column[:LISTED].tolist() for column in columns), strict=True)
    return tuple(
        Contact(i, stage.id_of(i), t, tuple(ray.at(t).tolist()), length, stage.labels_of(i))
        for i, t, length in rows
    )


def _face(stage: Stage, normal: list[float]) -> str:
    """Name the face that is met: ``-x`` is the one at the box's lower x; a triangle has a normal."""
    if not isinstance(stage.solid, Boxes):
        return "normal " + ", ".join(f"{x:.4g}" for x in normal)
    axis = int(np.argmax(np.abs(normal)))
    return "inside" if normal[axis] == 0.0 else ("-" if normal[axis] < 0 else "+") + "xyz"[axis]


@final
class Model:
    """What the page remembers: the stage, the range of t, the clicks so far."""

    def __init__(self, stage: Stage) -> None:
        self.open(stage)

    def open(self, stage: Stage) -> None:
        """Show another scene; forget clicks and the range."""
        self.stage = stage
        self.range = 0.0, math.inf
        self.sighting = False
        self.forget()

    def forget(self) -> None:
        """Forget the clicks."""
        self.answer: Answer | None = None
        self._ray: tuple[Any, Any] | None = None
        self._start: Contact | None = None

    def click(self, origin: Any, direction: Any) -> Answer:
        """Answer a click, whose ray starts in the eye and goes through the pixel."""
        picked = self._pick(origin, direction)
        if self.sighting:
            self.answer = self._sight(picked)
        else:
            self._ray, self.answer = (origin, direction), picked
        return self.answer

    def look(self, sighting: bool) -> None:
        """Have clicks pick (False), or set the ends of a line of sight (True)."""
        self.forget()
        self.sighting = sighting

    def limit(self, t_min: float, t_max: float) -> Answer | None:
        """Change the range of t, and answer the last click in it."""
        if not t_min <= t_max:
            raise InvalidInput(f"t from {t_min:g} to {t_max:g} holds nothing; move the sliders apart")
        self.range = t_min, t_max
        if self._ray is not None:
            self.answer = self._pick(*self._ray)
        return self.answer

    def _pick(self, origin: Any, direction: Any) -> Picked:
        ray = Rays(origin, direction, t_min=self.range[0], t_max=self.range[1])
        if ray.shape or ray.ndim_space != 3:
            raise InvalidInput(f"a click is one ray in 3D; got rays of shape {ray.shape}, D={ray.ndim_space}")
        return pick(self.stage, ray)

    def _sight(self, picked: Picked) -> Answer:
        """Take the nearest contact as an end; a click on nothing leaves things as they are."""
        if not picked.contacts:
            raise InvalidInput("nothing is met there: an end of a line of sight is a point on something")
        end, start = picked.contacts[0], self._start
        if start is None:
            self._start = end
            return Begun(end)
        self._start = None
        return sight(self.stage, start, end)
