"""`ObjectHits`, all hits of each ray by object."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from math import prod
from typing import Any, final

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.geometry import Ids
from raybox.hits.hit_ids import Source
from raybox.hits.tables import HTML_ROWS, Columns, HitTables
from raybox.validation import Floats, Ints, freeze


@final
@guard_class("__init__", "ray", "geometry", "object", "t_first", "t_last", "contacts")
class ObjectHits(HitTables):
    """A row for each ray and each object that it hits: `AllHits.by_object`.

    Rows are sorted by ray, then by first contact. Labels of `Instances` without any are those of the first
    contact. All arrays are read-only.

    Examples
    --------
    >>> import raybox as rb
    >>> corners = [[1, 0, 0], [1, 4, 0], [1, 0, 4], [3, 0, 0], [3, 4, 0], [3, 0, 4]]
    >>> slab = rb.Mesh(corners, [[0, 1, 2], [3, 4, 5]], objects=[0, 0], ids=["slab"])
    >>> objects = rb.Scene(slab).all(rb.Rays([0, 1, 1], [1, 0, 0])).by_object()
    >>> objects.t_first, objects.t_last, objects.contacts
    (array([1.]), array([3.]), array([2]))
    """

    def __init__(self, rows: tuple[Ints, Ints, Ints], times: tuple[Floats, Floats], source: Source) -> None:
        # rows: ray, hit id of the first contact and number of contacts
        freeze(*rows, *times)
        self._rows, self._times, self._source, self._hit_id = rows, times, source, rows[1]

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _restored, (self._rows, self._times, self._source)

    @property
    def ray(self) -> Ints:
        """Flat number of each row's ray."""
        return self._rows[0]

    @cached_property
    def geometry(self) -> Ints:
        """Number of the geometry of each object; 0 in a scene of one."""
        return self._source.scene.geometry_of(self._hit_id)

    @cached_property
    def object(self) -> Ints:
        """Number of each object in its geometry; see `Hits.object`."""
        return self._source.scene.objects_of(self._hit_id)

    @property
    def t_first(self) -> Floats:
        """The t of the first contact with the object."""
        return self._times[0]

    @property
    def t_last(self) -> Floats:
        """The t of the last contact with the object: of a box, t_first."""
        return self._times[1]

    @property
    def contacts(self) -> Ints:
        """The number of hits: of triangles, boxes, cells or planes of the object."""
        return self._rows[2]

    @cached_property
    def ids(self) -> Ids:
        """The id of each object; see `Hits.ids`.

        Of `Instances` without ids, that of the first contact.
        """
        return self._source.scene.ids_of(self._hit_id)

    def __len__(self) -> int:
        return len(self._rows[0])

    def _compared(self) -> Iterable[Any]:
        return *self._rows[::2], self.geometry, self.object, *self._times, *self._named

    @property
    def _columns(self) -> Columns:
        columns: Columns = {"ray": self.ray, "object": self.object}
        if len(self._source.parts) > 1:
            columns["geometry"] = self.geometry
        if self._source.scene.has_ids:
            columns["id"] = self.ids
        return columns | {"t_first": self.t_first, "t_last": self.t_last, "contacts": self.contacts}

    @property
    def _first_columns(self) -> tuple[Columns, int]:
        rows = tuple(values[:HTML_ROWS] for values in self._rows)
        times = tuple(values[:HTML_ROWS] for values in self._times)
        return ObjectHits(rows, times, self._source)._columns, len(self)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        return f"ObjectHits({len(self)} of {len(np.unique(self.ray))} rays)"


def by_object(ray: Ints, hit_id: Ints, t: Floats, source: Source) -> ObjectHits:
    """Return a row for each ray and object, of hits in the order of `AllHits`."""
    keys = _keys(ray, source.scene.objects_of(hit_id), source.scene.geometry_of(hit_id))
    order = np.lexsort(keys)  # stable: hits of one ray and object stay sorted by time
    changes = np.zeros(len(ray), dtype=np.bool_)
    changes[:1] = True
    for key in keys:
        values = key[order]
        changes[1:] |= values[1:] != values[:-1]
    starts = np.flatnonzero(changes)
    ends = np.append(starts, len(ray))[1:]
    first, last = order[starts], order[ends - 1]
    rows = np.argsort(first)  # by ray, then by first contact
    first, last, contacts = first[rows], last[rows], (ends - starts)[rows]
    return ObjectHits((ray[first], hit_id[first], contacts), (t[first], t[last]), source)


def _keys(ray: Ints, number: Ints, geometry: Ints) -> tuple[Ints, ...]:
    """Return sort keys of ray and object: one where 63 bits hold it, which sorts four times as fast."""
    sizes = [int(values.max(initial=0)) + 1 for values in (ray, geometry, number)]
    if prod(sizes) >= 2**63:
        return number, geometry, ray
    return ((ray * sizes[1] + geometry) * sizes[2] + number,)


def _restored(rows: tuple[Ints, Ints, Ints], times: tuple[Floats, Floats], source: Source) -> ObjectHits:
    source.freeze()
    return ObjectHits(rows, times, source)
