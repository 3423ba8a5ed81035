"""What a question answers: `Hits`, one contact for each ray; `AllHits`, every contact of every ray."""

from functools import cached_property
from typing import Any, NamedTuple, TypeVar, final

import numpy as np

from raybox.errors import InvalidInput
from raybox.hits.hit_ids import Place, Source, derive
from raybox.hits.image import Bytes, of_depth, of_index, of_normals
from raybox.validation import Bools, Floats, Ints, freeze

A = TypeVar("A", bound=np.ndarray[Any, Any])


@final
class Hits:
    """The contact of each ray with what it met, in the shape of the question.

    Boxes are closed and rays include both ends of their range. `index`, and so `hit`, is exact: what
    rational arithmetic says of the very numbers given. Times are the exact ones rounded once to
    float64 (half a unit in the last place; beyond float64's range, infinite), counted in lengths of
    the ray's direction. Other fields are computed when first asked for. Arrays are read-only.
    """

    def __init__(self, number: Ints, t: Floats, source: Source) -> None:
        freeze(number, t)
        self._number, self._t, self._source = number, t, source

    @cached_property
    def _place(self) -> Place:
        return self._source.place_of(self._number)

    @property
    def index(self) -> Ints:
        """Which row each ray met: int64, -1 for a miss. Of `Instances` it is the copy."""
        return self._place.index

    @property
    def primitive(self) -> Ints:
        """Of `Instances`, which row of what is copied each ray met; else the same as `index`."""
        return self._place.primitive

    @cached_property
    def geometry(self) -> Ints:
        """Which geometry of a scene of several each ray met; 0 where there is one, -1 for a miss."""
        return self._source.geometry_of(self._number)

    @property
    def t(self) -> Floats:
        """First contact on the ray: at or after t_min. +inf for a miss."""
        return self._t

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the answer."""
        return self._number.shape

    def __len__(self) -> int:
        return len(self._number)

    def __repr__(self) -> str:
        return f"Hits(shape={self.shape}, {int(self.hit.sum())} hit)"

    @cached_property
    def hit(self) -> Bools:
        """Which rays met anything."""
        return _frozen(self._number >= 0)

    @property
    def _ray_of(self) -> Ints:
        return self._source.ray_of(self._number.size)

    @cached_property
    def _spans(self) -> tuple[Floats, Floats]:
        near, far = _spans(self._source, self._ray_of, self._number.reshape(-1))
        return near.reshape(self.shape), far.reshape(self.shape)

    @property
    def t_enter(self) -> Floats:
        """Where the whole line enters what was met, unclamped: may be before t_min. NaN for a miss."""
        return self._spans[0]

    @property
    def t_exit(self) -> Floats:
        """Where the whole line leaves what was met, unclamped. NaN for a miss."""
        return self._spans[1]

    @cached_property
    def points(self) -> Floats:
        """The points o + t d of first contact, shape (..., D), in float64. NaN for a miss."""
        rays = self._source.rays
        k = self._ray_of
        t = np.where(self.hit, self._t, np.nan).reshape(-1, 1)
        origins, directions = (a.reshape(-1, rays.ndim_space)[k] for a in (rays.origins, rays.directions))
        # a ray without direction is its origin, at any t
        with np.errstate(invalid="ignore", over="ignore"):
            points = origins + np.where(directions == 0.0, np.where(np.isnan(t), t, 0.0), t * directions)
        return _frozen(points.reshape(*self.shape, rays.ndim_space))

    @cached_property
    def normals(self) -> Floats:
        """The unit normal at the first contact, shape (..., D); NaN for a miss.

        Boxes: outward, of the face entered (of several at an edge or a corner: the lowest axis), zero
        where the ray starts inside. Planes and meshes: the geometric normal. Copies: that of what is copied,
        turned along, so that outward stays outward in a mirror.
        """
        normals = np.full((self._number.size, 3), np.nan)
        derive(self._source, self._ray_of, self._number.reshape(-1), "normals_of", normals)
        dims = self._source.rays.ndim_space
        return _frozen(np.ascontiguousarray(normals[:, :dims]).reshape(*self.shape, dims))

    @cached_property
    def uv(self) -> Floats:
        """Barycentric weights of a triangle's second and third corner, shape (..., 2); NaN otherwise."""
        uv = np.full((self._number.size, 2), np.nan)
        derive(self._source, self._ray_of, self._number.reshape(-1), "weights_of", uv)
        return _frozen(uv.reshape(*self.shape, 2))

    def image(self, kind: str = "depth") -> Bytes:
        """Return what a camera's rays see as a picture: the hits' rows and columns are its pixels.

        Parameters
        ----------
        kind : {"depth", "index", "normal"}
            What colours say. "depth": t, from dark (near) to pale (far); the nearest and the farthest half
            per cent share a colour each. "index": which primitive, by one of 21 colours; a primitive keeps
            its colour in all pictures. "normal": red, green and blue are the normal's x, y and z from -1
            to 1; middle grey where rays start inside of boxes.

        Returns
        -------
        ndarray of uint8, shape (height, width, 3)
            Red, green, blue. Misses are white, which no contact is.

        Raises
        ------
        InvalidInput
            If the hits are not of shape (height, width), or there is no such kind.

        Examples
        --------
        >>> import raybox as rb
        >>> rays = rb.Rays.pinhole([0, 0, 9], [0, 0, 0], up=[0, 1, 0], fov=40, width=5, height=3)
        >>> hits = rb.Scene(rb.Boxes([-1, -1, -1], [1, 1, 1])).nearest(rays)
        >>> hits.image().shape, hits.image("normal")[1, 2].tolist()
        ((3, 5, 3), [128, 128, 255])
        """
        if len(self.shape) != 2:
            raise InvalidInput(
                f"a picture needs hits of shape (height, width); got shape {self.shape}. Ask with the "
                "rays of Rays.pinhole, or reshape the rays first: rays.reshape(height, width)."
            )
        if kind == "depth":
            return of_depth(self._t, self.hit)
        if kind == "index":
            return of_index(self._number)
        if kind == "normal":
            return of_normals(self.normals, self.hit)
        raise InvalidInput(f"kind must be 'depth', 'index' or 'normal'; got {kind!r}.")


class RayHits(NamedTuple):
    """Every contact of one ray, nearest first: arrays of equal length."""

    index: Ints  # type: ignore[assignment]  # of tuples, where nobody looks for it
    t: Floats
    t_enter: Floats
    t_exit: Floats
    lengths: Floats
    geometry: Ints
    primitive: Ints


@final
class AllHits:
    """Every contact of every ray, in compressed rows: ray i's are ``offsets[i]`` to ``offsets[i + 1]``.

    Rays count flat, in C order, whatever their shape. Each ray's contacts are sorted by (t, index),
    exactly. Numbers are those of `Hits`.
    """

    def __init__(self, offsets: Ints, number: Ints, t: Floats, source: Source) -> None:
        freeze(offsets, number, t)
        self._offsets, self._number, self._t, self._source = offsets, number, t, source

    @cached_property
    def _place(self) -> Place:
        return self._source.place_of(self._number)

    @property
    def offsets(self) -> Ints:
        """Where each ray's contacts begin, shape (N + 1,)."""
        return self._offsets

    @property
    def index(self) -> Ints:
        """Which row was met. Of `Instances` it is the copy."""
        return self._place.index

    @property
    def primitive(self) -> Ints:
        """Of `Instances`, which row of what is copied was met; else the same as `index`."""
        return self._place.primitive

    @cached_property
    def geometry(self) -> Ints:
        """Which geometry of a scene of several was met; 0 where there is one."""
        return self._source.geometry_of(self._number)

    @property
    def t(self) -> Floats:
        """First contact on the ray: at or after t_min."""
        return self._t

    @cached_property
    def ray(self) -> Ints:
        """Which ray, counted flat."""
        return _frozen(np.repeat(np.arange(len(self._offsets) - 1), np.diff(self._offsets)))

    @cached_property
    def _spans(self) -> tuple[Floats, Floats]:
        return _spans(self._source, self.ray, self._number)

    @property
    def t_enter(self) -> Floats:
        """Where the whole line enters what was met, unclamped."""
        return self._spans[0]

    @property
    def t_exit(self) -> Floats:
        """Where the whole line leaves what was met, unclamped."""
        return self._spans[1]

    @cached_property
    def lengths(self) -> Floats:
        """The length in space of the path inside each box, within the ray's range."""
        rays = self._source.rays.rows()
        low, high = (np.broadcast_to(t, len(rays.origins))[self.ray] for t in (rays.t_min, rays.t_max))
        x, y, z = rays.directions[self.ray].T
        speed = np.hypot(np.hypot(x, y), z)
        with np.errstate(invalid="ignore", over="ignore"):
            paths = (np.minimum(self.t_exit, high) - np.maximum(self.t_enter, low)) * speed
        return _frozen(np.where(speed == 0.0, 0.0, np.maximum(paths, 0.0)))

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, ray: Any) -> RayHits:
        """Return the contacts of one ray, by its flat number or its place in the rays' shape."""
        shape = self._source.rays.shape
        flat = int(np.ravel_multi_index(ray, shape)) if isinstance(ray, tuple) else range(len(self))[ray]
        part = slice(self._offsets[flat], self._offsets[flat + 1])
        names = RayHits._fields
        return RayHits(*(getattr(self, name)[part] for name in names))

    def __repr__(self) -> str:
        return f"AllHits({len(self)} rays, {len(self._number)} hits)"


def _frozen(array: A) -> A:
    freeze(array)
    return array


def _spans(source: Source, ray_of: Ints, number: Ints) -> tuple[Floats, Floats]:
    """Return where each line enters and leaves what it met; NaN for a miss."""
    near, far = np.full(number.size, np.nan), np.full(number.size, np.nan)
    derive(source, ray_of, number, "spans_of", near, far)
    return _frozen(near), _frozen(far)
