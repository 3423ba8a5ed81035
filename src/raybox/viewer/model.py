"""The state of the viewer and the results of clicks, without a browser, in scene coordinates."""

import math
from typing import NamedTuple, final

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Mesh, Rays
from raybox.hits import AllHits
from raybox.validation import ArrayInput
from raybox.viewer.stage import Stage

MAX_LISTED = 200  # contacts in a result, at most
Point = tuple[float, ...]


class Contact(NamedTuple):
    """A hit object: its number and id, the row hit first, that t and its point, labels."""

    object: int
    index: int  # type: ignore[assignment]  # not the method of tuples
    id: str | None
    t: float
    point: Point
    t_last: float
    """the t of the last contact: of a box, the first"""
    contacts: int
    """how many of its boxes or triangles are hit"""
    length: float
    """inside of a box"""
    labels: tuple[tuple[str, str], ...] = ()


class Picked(NamedTuple):
    """What the ray of a click hits: ``contacts``, the first `MAX_LISTED` objects of ``total``, in order."""

    ray: Rays
    face: str
    contacts: tuple[Contact, ...]
    total: int
    noun: str = "Box"

    @property
    def nearest(self) -> int:
        """The row of the first hit, -1 for a miss."""
        return self.contacts[0].index if self.contacts else -1


class LineStart(NamedTuple):
    """The first end of a line of sight."""

    end: Contact


class LineOfSight(NamedTuple):
    """A line of sight between two clicked points, and the contacts that block it.

    The two clicked boxes or triangles do not block it.
    """

    ray: Rays
    ends: tuple[Contact, Contact]
    clear: bool
    contacts: tuple[Contact, ...]
    total: int


ClickResult = Picked | LineStart | LineOfSight


def pick(stage: Stage, ray: Rays) -> Picked:
    """Return all hits of one ray, in order."""
    hits = stage.scene.nearest(ray, workers=1, where=stage.where)
    everything = stage.scene.all(ray, workers=1, where=stage.where)
    face = _face(stage, hits.normals.tolist()) if hits.hit else ""
    return Picked(ray, face, *_contacts(stage, ray, everything), stage.noun)


def line_of_sight(stage: Stage, start: Contact, end: Contact) -> LineOfSight:
    """Return the line of sight between two clicked points; their own rows never block."""
    where = np.ones(len(stage.scene), np.bool_) if stage.where is None else stage.where.copy()
    where[[start.index, end.index]] = False
    ray = Rays.segments(start.point, end.point)
    blocked = bool(stage.scene.occluded(ray, workers=1, where=where))
    everything = stage.scene.all(ray, workers=1, where=where)
    return LineOfSight(ray, (start, end), not blocked, *_contacts(stage, ray, everything))


def _contacts(stage: Stage, ray: Rays, everything: AllHits) -> tuple[tuple[Contact, ...], int]:
    """Return the first objects along a ray, and how many there are."""
    objects = everything.by_object()
    _, first = np.unique(everything.object, return_index=True)  # the first hit of each object
    first = np.sort(first)[:MAX_LISTED]
    found = (
        *(getattr(everything, name)[first].tolist() for name in ("object", "index", "t", "lengths")),
        *(getattr(objects, name)[:MAX_LISTED].tolist() for name in ("t_last", "contacts")),
    )
    contacts = tuple(
        Contact(
            *(number, i, stage.id_of(i), t, tuple(ray.at(t).tolist()), last, count, length),
            stage.labels_of(i),
        )
        for number, i, t, length, last, count in zip(*found, strict=True)
    )
    return contacts, len(objects)


def _face(stage: Stage, normal: list[float]) -> str:
    """Return the name of the face hit.

    ``-x`` is the face at the box's lower x, ``inside`` none; a triangle gives its normal.
    """
    if isinstance(stage.drawn, Mesh):
        return "normal " + ", ".join(f"{x:.4g}" for x in normal)
    axis = int(np.argmax(np.abs(normal)))
    return "inside" if normal[axis] == 0.0 else ("-" if normal[axis] < 0 else "+") + "xyz"[axis]


@final
class PageState:
    """The stage, the range of t, and the clicks so far; methods return results of clicks."""

    def __init__(self, stage: Stage) -> None:
        self.open(stage)

    def open(self, stage: Stage) -> None:
        """Replace the scene; reset the clicks and the range."""
        self.stage = stage
        self.range = 0.0, math.inf
        self.setting_line = False
        self.forget()

    def forget(self) -> None:
        """Reset the clicks."""
        self.result: ClickResult | None = None
        self._ray: tuple[ArrayInput, ArrayInput] | None = None
        self._start: Contact | None = None

    def click(self, origin: ArrayInput, direction: ArrayInput) -> ClickResult:
        """Return the result of a click, whose ray goes from the eye through the pixel."""
        picked = self._pick(origin, direction)
        if self.setting_line:
            self.result = self._set_end(picked)
        else:
            self._ray, self.result = (origin, direction), picked
        return self.result

    def set_mode(self, setting_line: bool) -> None:
        """Reset clicks; let them pick (False) or set ends of a line of sight (True)."""
        self.forget()
        self.setting_line = setting_line

    def limit(self, t_min: float, t_max: float) -> ClickResult | None:
        """Set the range of t; return the last click's result in it."""
        if not t_min <= t_max:
            raise InvalidInput(f"the range of t from {t_min:g} to {t_max:g} is empty; move the sliders apart")
        self.range = t_min, t_max
        if self._ray is not None:
            self.result = self._pick(*self._ray)
        return self.result

    def _pick(self, origin: ArrayInput, direction: ArrayInput) -> Picked:
        ray = Rays(origin, direction, t_min=self.range[0], t_max=self.range[1])
        if ray.shape or ray.ndim_space != 3:
            raise InvalidInput(
                f"a click must be one ray in 3D; got rays of shape {ray.shape}, D={ray.ndim_space}"
            )
        return pick(self.stage, ray)

    def _set_end(self, picked: Picked) -> ClickResult:
        """Set the nearest contact as an end of the line; a miss raises and changes nothing."""
        if not picked.contacts:
            raise InvalidInput("the ray of this click hits nothing; click on a box or triangle to set an end")
        end, start = picked.contacts[0], self._start
        if start is None:
            self._start = end
            return LineStart(end)
        self._start = None
        return line_of_sight(self.stage, start, end)
