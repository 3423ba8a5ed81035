"""`RayHits`, all hits of one ray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, final

import numpy as np
from numpy.typing import NDArray

from raybox.geometry import Ids, Rays
from raybox.geometry.array_container import ArrayContainer, ReadOnly
from raybox.geometry.row_ids import ArrayIndex
from raybox.hits.hit_ids import LabelColumns, frozen
from raybox.validation import Floats, Ints


class _HitsOfRays(Protocol):
    """`AllHits`, as far as the hits of one ray need them."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def offsets(self) -> Ints: ...

    @property
    def _rays(self) -> Rays: ...

    @property
    def _named(self) -> tuple[Ids | None, LabelColumns]: ...

    def labels(self, *names: str) -> NDArray[Any] | LabelColumns: ...

    def __getitem__(self, index: ArrayIndex) -> _HitsOfRays: ...


@final
class RayHits(ArrayContainer):
    """All hits of one ray, nearest first: ``all_hits[i]``. Fields are those of `AllHits`.

    `len` is the number of hits. A NumPy index over them gives `RayHits`: ``hits[0]`` is the nearest one, with
    fields of shape ().

    Examples
    --------
    >>> import raybox as rb
    >>> scene = rb.Scene(rb.Boxes([[5, -1], [2, -1]], [[6, 1], [4, 1]]))
    >>> hits = scene.all(rb.Rays([[0, 0], [0, 9]], [1, 0]))[0]
    >>> len(hits), hits.index, hits[0].t
    (2, array([1, 0]), array(2.))
    """

    __slots__ = ("_all_hits", "_ray", "_rows")
    _AS_ARRAY = "hits.index and hits.t"

    def __init__(
        self, all_hits: _HitsOfRays, ray: int, rows: Ints | slice[None, None, None] = slice(None)
    ) -> None:
        # rows: a slice or array of numbers among the hits of the ray
        self._all_hits, self._ray, self._rows = all_hits, ray, rows

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        place = np.unravel_index(self._ray, self._all_hits.shape)
        return RayHits, (self._all_hits[(None, *place)], 0, self._rows)  # without the hits of other rays

    def _values(self, field: str) -> NDArray[Any]:
        return self._rows_of(getattr(self._all_hits, field))

    def _rows_of(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of these hits, of those of all rays."""
        first, last = self._all_hits.offsets[self._ray : self._ray + 2]
        return frozen(values[first:last][self._rows])

    @property
    def index(self) -> Ints:
        """Row of each hit. For `Instances`, the instance."""
        return self._values("index")

    @property
    def t(self) -> Floats:
        """First contact on the ray: at or after t_min."""
        return self._values("t")

    @property
    def t_enter(self) -> Floats:
        """The t at which the whole line enters the primitive, unclamped."""
        return self._values("t_enter")

    @property
    def t_exit(self) -> Floats:
        """The t at which the whole line leaves the primitive, unclamped."""
        return self._values("t_exit")

    @property
    def distances(self) -> Floats:
        """The distance to each first contact; see `Hits.distances`."""
        return self._values("distances")

    @property
    def points(self) -> Floats:
        """The points of first contact, shape (..., D); see `Hits.points`."""
        return self._values("points")

    @property
    def normals(self) -> Floats:
        """The unit normal at each first contact, shape (..., D); see `Hits.normals`."""
        return self._values("normals")

    @property
    def lengths(self) -> Floats:
        """The length in space of the path inside each box, within the ray's range."""
        return self._values("lengths")

    @property
    def geometry(self) -> Ints:
        """Number of the geometry of each hit."""
        return self._values("geometry")

    @property
    def primitive(self) -> Ints:
        """Row of the geometry of `Instances` of each hit; otherwise `index`."""
        return self._values("primitive")

    @property
    def uv(self) -> Floats:
        """Barycentric weights of a triangle's second and third corner, shape (..., 2); NaN otherwise."""
        return self._values("uv")

    @property
    def ids(self) -> Ids:
        """The id of the object of each hit, str or int; see `Hits.ids`."""
        return self._values("ids")

    @property
    def object(self) -> Ints:
        """Number of the object of each hit, in its geometry; see `Hits.object`."""
        return self._values("object")

    def labels(self, *names: str) -> NDArray[Any] | LabelColumns:
        """Return labels of the object of each hit; see `Hits.labels`."""
        found = self._all_hits.labels(*names)
        return self._columns_of(found) if isinstance(found, Mapping) else self._rows_of(found)

    def _columns_of(self, columns: LabelColumns) -> LabelColumns:
        return ReadOnly({name: self._rows_of(values) for name, values in columns.items()})

    def _compared(self) -> Iterable[Any]:
        names = "index", "primitive", "geometry", "object", "t", "t_enter", "t_exit"
        ids, labels = self._all_hits._named
        named = None if ids is None else self._rows_of(ids), self._columns_of(labels)
        return *(self._values(name) for name in names), self._all_hits._rays.reshape(-1)[self._ray], *named

    def __len__(self) -> int:
        if not self.t.ndim:
            raise TypeError("len() of a single hit")
        return len(self.t)

    def __bool__(self) -> bool:
        return self.t.size > 0

    def __iter__(self) -> Iterator[RayHits]:
        return (self[k] for k in range(len(self)))

    def __getitem__(self, index: ArrayIndex) -> RayHits:
        """Return hits by any NumPy index over the hits of the ray."""
        first, last = self._all_hits.offsets[self._ray : self._ray + 2]
        rows = np.arange(last - first)[self._rows][index]
        return RayHits(self._all_hits, self._ray, frozen(rows))

    def __repr__(self) -> str:
        return f"RayHits({self.t.size} hits)"
