"""What the ray of a click hits, by object, for Python."""

from typing import Any, NamedTuple

import numpy as np

from raybox.geometry import Boxes, Grid, Rays
from raybox.validation import Bools
from raybox.viewer.stage import Stage

MAX_CONTACTS = 200  # objects in a result, at most
Point = tuple[float, ...]


class Contact(NamedTuple):
    """A hit object: its number in its geometry, its id, the row hit first, that t and its point, labels."""

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
    objects = hits.by_object()
    numbers = stage.objects_of(hits)
    _, first = np.unique(numbers, return_index=True)  # the first hit of each object
    first = np.sort(first)[:MAX_CONTACTS]
    fields = {name: getattr(hits, name)[first].tolist() for name in ("object", "index", "t", "geometry")}
    fields |= {name: getattr(objects, name)[: len(first)].tolist() for name in ("t_last", "contacts")}
    fields["length"] = hits.lengths[first].tolist()
    rows = [dict(zip(fields, values, strict=True)) for values in zip(*fields.values(), strict=True)]
    contacts = [
        _contact(stage, ray, number, row) for number, row in zip(numbers[first].tolist(), rows, strict=True)
    ]
    return Picked(ray, _face(stage, ray, mask), tuple(contacts), len(objects))


def _contact(stage: Stage, ray: Rays, number: int, fields: dict[str, Any]) -> Contact:
    """Return a contact with an object of the stage, from its other fields."""
    name = None if stage.ids is None else stage.ids[number] or None
    values = [(label, column[number]) for label, column in stage.labels.items()]
    texts = [(label, str(value)) for label, value in values if value is not None and value == value]
    labels = [
        *_cell(stage, fields["geometry"], fields["index"]),
        *((k, v) for k, v in texts if v not in ("", name)),
    ]
    return Contact(
        id=name, point=tuple(ray.at(fields["t"]).reshape(-1).tolist()), labels=tuple(labels), **fields
    )


def _cell(stage: Stage, geometry: int, index: int) -> list[tuple[str, str]]:
    """Return the place of a cell on each axis, as a label; none of other geometries."""
    solid = stage.parts[geometry].geometry
    if not isinstance(solid, Grid):
        return []
    return [("cell", ", ".join(str(k) for k in np.unravel_index(index, solid.shape)))]


def _face(stage: Stage, ray: Rays, mask: Bools | None) -> str:
    """Return the name of the face hit first, empty for a miss.

    ``-x`` is the face at the box's lower x, ``inside`` none; triangles, planes and copies give the normal.
    """
    hit = stage.scene.nearest(ray, workers=1, where=stage.where(mask))
    geometry, normal = int(hit.geometry.reshape(-1)[0]), hit.normals.reshape(-1).tolist()
    if geometry < 0:
        return ""
    if not isinstance(stage.parts[geometry].geometry, Boxes | Grid):
        return "normal " + ", ".join(f"{x:.4g}" for x in normal)
    axis = int(np.argmax(np.abs(normal)))
    return "inside" if normal[axis] == 0.0 else ("-" if normal[axis] < 0 else "+") + "xyz"[axis]
