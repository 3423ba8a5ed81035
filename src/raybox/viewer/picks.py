"""What the ray of a click hits, by object, for Python."""

from typing import NamedTuple

import numpy as np

from raybox.geometry import Boxes, Grid, Rays
from raybox.validation import Bools
from raybox.viewer.stage import Stage

MAX_CONTACTS = 200  # objects in a result, at most


class Contact(NamedTuple):
    """A hit object: its number in its geometry, its id, the row hit first, that t and its point, labels."""

    object: int
    index: int  # type: ignore[assignment]  # not the method of tuples
    id: str | None
    t: float
    point: tuple[float, ...]
    t_last: float
    """the t of the last contact: of a box, the first"""
    contacts: int
    """how many of its boxes or triangles are hit"""
    length: float
    """inside of a box"""
    labels: tuple[tuple[str, str], ...] = ()
    geometry: int = 0


class Picked(NamedTuple):
    """What the ray of a click hits: ``contacts``, the first `MAX_CONTACTS` objects of ``total``, in order."""

    ray: Rays
    face: str
    contacts: tuple[Contact, ...]
    total: int

    @property
    def nearest(self) -> int:
        """The row of the first hit, -1 for a miss."""
        return self.contacts[0].index if self.contacts else -1


def pick(stage: Stage, ray: Rays, mask: Bools | None = None) -> Picked:
    """Return all hits of one ray with the objects of a mask, by object, in order."""
    hits = stage.all(ray, mask)
    objects, numbers = hits.by_object(), stage.objects_of(hits)
    _, first = np.unique(numbers, return_index=True)  # the first hit of each object
    first = np.sort(first)[:MAX_CONTACTS]
    contacts = [
        Contact(
            object=int(hits.object[row]),
            index=int(hits.index[row]),
            id=None if stage.ids is None else stage.ids[numbers[row]] or None,
            t=float(hits.t[row]),
            point=tuple(ray.at(hits.t[row]).tolist()),
            t_last=float(objects.t_last[rank]),
            contacts=int(objects.contacts[rank]),
            length=float(hits.lengths[row]),
            labels=_labels(stage, numbers[row], int(hits.geometry[row]), int(hits.index[row])),
            geometry=int(hits.geometry[row]),
        )
        for rank, row in enumerate(first.tolist())
    ]
    return Picked(ray, _face(stage, ray, mask), tuple(contacts), len(objects))


def _labels(stage: Stage, number: int, geometry: int, index: int) -> tuple[tuple[str, str], ...]:
    """Return the labels of an object that say more than its id; of a cell, first its place on each axis."""
    solid = stage.parts[geometry].geometry
    place = np.unravel_index(index, solid.shape) if isinstance(solid, Grid) else ()
    own = [("cell", ", ".join(map(str, place)))] if place else []
    for name, column in stage.labels.items():
        value = column[number]
        if value is not None and value == value and str(value) not in ("", stage.ids and stage.ids[number]):
            own.append((name, str(value)))
    return tuple(own)


def _face(stage: Stage, ray: Rays, mask: Bools | None) -> str:
    """Return the name of the face hit first, empty for a miss.

    ``-x`` is the face at the box's lower x, ``inside`` none; triangles, planes and copies give the normal.
    """
    hit = stage.scene.nearest(ray, workers=1, where=stage.where(mask))
    geometry, normal = int(hit.geometry), hit.normals.tolist()
    if geometry < 0:
        return ""
    if not isinstance(stage.parts[geometry].geometry, Boxes | Grid):
        return "normal " + ", ".join(f"{x:.4g}" for x in normal)
    axis = int(np.argmax(np.abs(normal)))
    return "inside" if normal[axis] == 0.0 else ("-" if normal[axis] < 0 else "+") + "xyz"[axis]
