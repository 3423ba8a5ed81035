"""`Hits`, the result of queries that return one hit for each ray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry import Ids
from raybox.geometry.row_ids import ArrayIndex
from raybox.hits.hit_ids import (
    PrimitiveIds,
    Source,
    derive,
    distances_of,
    frozen,
    normals_of,
    points_of,
    restored,
    spans,
)
from raybox.hits.tables import HTML_ROWS, Columns, HitTables, first_indices, number_columns
from raybox.validation import Bools, Floats, Ints, freeze

if TYPE_CHECKING:
    from raybox.hits.image import Picture

ImageKind = Literal["depth", "index", "object", "normal"]


@final
@guard_class("__init__", "index", "primitive", "t", "shape", "t_enter", "t_exit")
class Hits(HitTables):
    """One hit for each ray, in the shape of the rays.

    `Scene.first` adds an axis of k hits.

    Boxes are closed and rays include both ends of their range. `index`, and so `hit`, is exact: as in
    rational arithmetic on the float64 input. Times are the exact ones rounded once to float64 (half a
    unit in the last place; beyond float64's range, infinite), in lengths of the ray's direction. Other
    fields are computed on first access. Arrays are read-only.

    ``hits[i]``, slices, masks and every other NumPy index over `shape` give `Hits`; `len` is the first number
    of the shape. ``bool(hits)`` is whether a single hit, of shape (), is one; for others it is an error.

    Examples
    --------
    >>> import raybox as rb
    >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
    >>> hits = scene.nearest(rb.Rays([[0, 0], [4, 0], [0, 9]], [1, 0]))
    >>> hits[1].t, hits[hits.hit].index
    (array(1.), array([0, 1]))
    >>> [int(hit.index) for hit in hits]
    [0, 1, -1]
    """

    def __init__(self, hit_id: Ints, t: Floats, source: Source) -> None:
        freeze(hit_id, t)
        self._hit_id, self._t, self._source = hit_id, t, source

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return restored, (Hits, self._source, self._hit_id, self._t)

    @cached_property
    def _primitives(self) -> PrimitiveIds:
        return self._source.scene.primitives_of(self._hit_id)

    @property
    def index(self) -> Ints:
        """Row that each ray hits: int64, -1 for a miss.

        For `Instances`, the instance.
        """
        return self._hit_id if self._source.scene.ids_are_rows else self._primitives.index

    @property
    def primitive(self) -> Ints:
        """Row of the geometry of `Instances` that each ray hits, else `index`.

        -1 for a miss.
        """
        return self._primitives.primitive

    @cached_property
    def geometry(self) -> Ints:
        """Number of the geometry that each ray hits.

        0 in a scene of one, -1 for a miss.
        """
        return self._source.scene.geometry_of(self._hit_id)

    @cached_property
    def object(self) -> Ints:
        """Number of the object that each ray hits: int64, -1 for a miss.

        It counts within the geometry. Of a mesh, ``mesh.objects`` of the triangle; of boxes, cells and planes
        the row, of `Instances` the copy. Mask misses before you index by it.
        """
        return self._source.scene.objects_of(self._hit_id)

    @cached_property
    def ids(self) -> Ids:
        """The id of the object that each ray hits; None for a miss.

        str or int, of dtype object: the names that the geometry was made with, or that its file has; of
        `Instances` without ids, those of their geometry. None, too, for hits of a geometry without ids, in a
        scene of several.

        Raises
        ------
        InvalidInput
            If no geometry of the scene has ids. See `Boxes` and `Mesh`; :func:`load` reads them.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]], ids=["door", "wall"]))
        >>> scene.nearest(rb.Rays([[0, 0], [4, 0], [0, 9]], [1, 0])).ids
        array(['door', 'wall', None], dtype=object)
        """
        return self._source.scene.ids_of(self._hit_id)

    @property
    def t(self) -> Floats:
        """First contact on the ray: at or after t_min. +inf for a miss."""
        return self._t

    @cached_property
    def distances(self) -> Floats:
        """The distance to the first contact: t times the direction's length.

        Negative where t is, +inf for a miss.
        Within 0.51 ulp of the exact product of `t` and the length (1 below float64's normal numbers). Where t
        is beyond float64's range, the exact time takes its place.
        """
        flat = self._ray_of, self._hit_id.reshape(-1), self._t.reshape(-1)
        return frozen(distances_of(self._source, *flat).reshape(self.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self._hit_id.shape

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a single hit, of shape (); hits[None] is a list of one")
        return self.shape[0]

    def __iter__(self) -> Iterator[Hits]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: ArrayIndex) -> Hits:
        """Return hits by any NumPy index over `shape`."""
        hit_id, t = np.asarray(self._hit_id[index], order="C"), np.asarray(self._t[index], order="C")
        position = np.asarray(self._positions[index], order="C")
        return Hits(hit_id, t, self._source._replace(position=position.reshape(-1)))

    def __bool__(self) -> bool:
        if self.shape:
            raise InvalidInput(
                f"bool() of hits of shape {self.shape} is ambiguous. Use hits.hit.any() or hits.hit.all()."
            )
        return bool(self._hit_id >= 0)

    def __repr__(self) -> str:
        return f"Hits(shape={self.shape}, {int(self.hit.sum())} hit)"

    @cached_property
    def hit(self) -> Bools:
        """Whether each ray hits anything."""
        return frozen(self._hit_id >= 0)

    @cached_property
    def _positions(self) -> Ints:
        return frozen(self._source.positions(self._hit_id.size).reshape(self.shape))

    @property
    def _ray_of(self) -> Ints:
        return self._source.ray_of(self._hit_id.size)

    @cached_property
    def _spans(self) -> tuple[Floats, Floats]:
        near, far = spans(self._source, self._ray_of, self._hit_id.reshape(-1))
        return near.reshape(self.shape), far.reshape(self.shape)

    @property
    def t_enter(self) -> Floats:
        """The t at which the whole line enters the primitive, unclamped.

        May be less than t_min. NaN for a miss.
        """
        return self._spans[0]

    @property
    def t_exit(self) -> Floats:
        """The t at which the whole line leaves the primitive, unclamped.

        NaN for a miss.
        """
        return self._spans[1]

    @cached_property
    def points(self) -> Floats:
        """The points o + t d of first contact, shape (..., D), in float64. NaN for a miss.

        Where t or t d is beyond float64's range, the exact point, rounded once: finite wherever floats are.
        """
        flat = self._ray_of, self._hit_id.reshape(-1), self._t.reshape(-1)
        return frozen(points_of(self._source, *flat).reshape(*self.shape, self._source.rays.ndim_space))

    @cached_property
    def normals(self) -> Floats:
        """The unit normal at the first contact, shape (..., D).

        NaN for a miss.

        Boxes: outward, of the face entered (of several at an edge or a corner: the lowest axis), zero
        where the ray starts inside. Planes and meshes: the geometric normal. Instances: the image of the
        geometry's normal, so that outward stays outward under mirroring.
        """
        found = normals_of(self._source, self._ray_of, self._hit_id.reshape(-1))
        return frozen(found.reshape(*self.shape, found.shape[-1]))

    @cached_property
    def uv(self) -> Floats:
        """Barycentric weights of a triangle's second and third corner, shape (..., 2).

        NaN otherwise.
        """
        uv = np.full((self._hit_id.size, 2), np.nan)
        derive(self._source, self._ray_of, self._hit_id.reshape(-1), "weights_of", uv)
        return frozen(uv.reshape(*self.shape, 2))

    def _compared(self) -> Iterable[Any]:
        numbers = self.index, self.primitive, self.geometry, self.object
        return *numbers, self._t, *self._spans, self.points, *self._named

    @property
    def _columns(self) -> Columns:
        columns = number_columns(self._source, self, self._ray_of)
        points = np.ascontiguousarray(self.points.reshape(-1, self.points.shape[-1]).T)
        return columns | {"t": self._t.reshape(-1)} | dict(zip("xyz", frozen(points), strict=False))

    @property
    def _first_columns(self) -> tuple[Columns, int]:
        return self[first_indices(self.shape, HTML_ROWS)]._columns, self._hit_id.size

    def image(self, kind: ImageKind = "depth") -> Picture:
        """Return a picture of hits of shape (height, width), a pixel for each.

        Notebooks show it.

        Parameters
        ----------
        kind : {"depth", "index", "object", "normal"}
            The colours. "depth": t, from dark (near) to pale (far); the nearest and the farthest half per
            cent share a colour each. "index": the primitive, as one of 21 colours, the same in all
            pictures; "object": likewise the object. "normal": red, green and blue are the normal's x, y and z
            from -1 to 1; middle grey where rays start inside of boxes.

        Returns
        -------
        ndarray of uint8, shape (height, width, 3)
            Red, green, blue. Misses are white; no hit is.

        Raises
        ------
        InvalidInput
            If the hits are not of shape (height, width), or the kind is unknown.

        Examples
        --------
        >>> import raybox as rb
        >>> rays = rb.Rays.pinhole([0, 0, 9], [0, 0, 0], up=[0, 1, 0], fov=40, width=5, height=3)
        >>> hits = rb.Scene(rb.Boxes([-1, -1, -1], [1, 1, 1])).nearest(rays)
        >>> hits.image().shape, hits.image("normal")[1, 2].tolist()
        ((3, 5, 3), [128, 128, 255])
        """
        from raybox.hits.image import Picture, of_depth, of_index, of_normals

        if len(self.shape) != 2:
            raise InvalidInput(
                f"a picture needs hits of shape (height, width); got shape {self.shape}. Query with "
                "the rays of Rays.pinhole, or reshape the rays first: rays.reshape(height, width)."
            )
        if kind == "depth":
            return of_depth(self._t, self.hit).view(Picture)
        if kind == "index":
            return of_index(self._hit_id).view(Picture)
        if kind == "object":
            starts = np.array(self._source.starts)[self.geometry]  # so that those of geometries differ
            return of_index(np.where(self.hit, starts + self.object, -1)).view(Picture)
        if kind == "normal":
            return of_normals(self.normals, self.hit).view(Picture)
        raise InvalidInput(f"kind must be 'depth', 'index', 'object' or 'normal'; got {kind!r}.")
