"""`Rays`: origins and directions, each with a range of t."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import inf, prod
from typing import Any, SupportsIndex, final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class, in_default_environment
from raybox.errors import InvalidInput
from raybox.exact.paths import moved
from raybox.geometry import ray_input
from raybox.geometry.file_facts import NO_FACTS, FromFile, SourceFacts
from raybox.geometry.ray_constructors import RayConstructors, segment_arrays
from raybox.geometry.ray_input import INF, ZERO, Invalid, RayArrays
from raybox.geometry.ray_rows import FROM_START, NO_ROWS, TO_INFINITY
from raybox.geometry.row_ids import ArrayIndex
from raybox.geometry.rows import RayRows, in_space
from raybox.geometry.two_arrays import of_two_arrays, refuse_one_of_rays
from raybox.validation import ArrayInput, Floats

_START = 0.0
_REST = NO_ROWS[2:]  # of rays without bounds


@final
@guard_class("__init__", "t_min", "t_max", "shape", "ndim_space")
class Rays(RayConstructors, FromFile):
    """Rays of any shape: each is the point set ``{o + t*d : t_min <= t <= t_max}``, both ends included.

    Input is converted to float64 exactly, without rounding, and all results are exact for these numbers. **t
    counts in lengths of d**, and d may have any length; a ray with a zero direction is the single point o.
    All arrays are read-only copies; one origin of all rays is stored once.

    Parameters
    ----------
    origins, directions : array_like, shape (..., D)
        D is 2 or 3; the two are broadcast against each other. Finite. A data frame is read by position, and
        has its columns in the order of the axes; `from_array` reads columns by name.
    t_min, t_max : array_like, scalar or shape (...)
        The range of t, ``t_min <= t_max``; either may be infinite. A range without a real t
        (t_min = +inf, or t_max = -inf) is allowed, and hits nothing.
    invalid : {"raise", "miss"}
        How to handle rays with NaN, an infinite origin or direction, or t_min > t_max: ``"raise"`` refuses
        them; ``"miss"`` sets their range to the empty one, t_min = +inf, t_max = -inf.

    Raises
    ------
    InvalidInput
        If shapes do not fit, float64 cannot hold a number, or a ray is invalid (see ``invalid``).

    Examples
    --------
    >>> import raybox as rb
    >>> rays = rb.Rays([0, 0, 0], [[1, 0, 0], [0, 2, 0]], t_max=10)
    >>> rays
    Rays(shape=(2,), D=3)
    >>> rays[1].at(3.0)
    array([0., 6., 0.])
    """

    __slots__ = ("_facts", "_rays", "_shape", "_t_max", "_t_min")
    _AS_ARRAY = "numpy.concatenate([rays.origins, rays.directions], axis=-1)"
    _rays: RayRows | tuple[Floats, Floats]
    """all as kernels read it; or origins, of which one may be (D,), and directions of another shape"""
    _shape: tuple[int, ...]
    _t_min: Floats
    _t_max: Floats
    """of the rays' shape, or scalar arrays"""

    @of_two_arrays
    def __init__(
        self,
        origins: ArrayInput,
        directions: ArrayInput,
        *,
        t_min: ArrayInput = _START,
        t_max: ArrayInput = inf,
        invalid: Invalid = "raise",
    ) -> None:
        is_usual = t_min is _START and t_max is inf and invalid == "raise"
        vectors = validation.finite_vectors(ray_input.LARGE, origins, directions) if is_usual else None
        if vectors is None:
            self._convert((origins, directions), (t_min, t_max), invalid)
        else:
            _set_vectors(self, *vectors)

    @in_default_environment
    def _convert(
        self,
        vectors: tuple[ArrayInput, ArrayInput],
        ranges: tuple[ArrayInput, ArrayInput],
        invalid: Invalid,
    ) -> None:
        """Set the arrays of these rays to input of any kind, converted and checked."""
        (origins, directions), (t_min, t_max) = vectors, ranges
        if directions is None:
            refuse_one_of_rays(origins)
        low = ZERO if t_min is _START else validation.floats(t_min, "t_min")
        high = INF if t_max is inf else validation.floats(t_max, "t_max")
        o, o_finite = ray_input.points(origins, "origins")
        d, d_finite = ray_input.points(directions, "directions")
        if low is ZERO and high is INF and invalid == "raise":
            copied = validation.finite_vectors(ray_input.LARGE, o, d)
            if copied is not None:
                _set_vectors(self, *copied)
                return
        finite = o_finite and d_finite
        _made(self, *ray_input.validated(RayArrays(o, d, low, high), invalid, finite))

    @classmethod
    def _of(cls, origins: Floats, directions: Floats, t_min: Floats, t_max: Floats) -> Rays:
        return _made(object.__new__(cls), origins, directions, t_min, t_max)

    @property
    def origins(self) -> Floats:
        """The points at t = 0: shape (..., D), read-only; a broadcast view where one point is stored."""
        origins, directions = self._rays[:2]
        return _spread(origins, directions.shape)

    @property
    def directions(self) -> Floats:
        """The directions, of any length: shape (..., D), read-only."""
        return self._rays[1]

    @property
    def t_min(self) -> Floats:
        """The lower end of each ray's range: shape (...), read-only."""
        return _spread(self._t_min, self._shape)

    @property
    def t_max(self) -> Floats:
        """The upper end of each ray's range: shape (...), read-only."""
        return _spread(self._t_max, self._shape)

    @property
    def shape(self) -> tuple[int, ...]:
        """The rays' shape; () for a single ray."""
        return self._shape

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        rays = self._rays
        return 3 if type(rays) is RayRows else rays[1].shape[-1]

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a single ray, of shape (); reshape(1) makes it a list of one")
        return self._shape[0]

    def __bool__(self) -> bool:
        raise InvalidInput(
            "bool() of rays is ambiguous. Use rays.shape for how many there are, or "
            "scene.nearest(rays).hit.any() for whether they hit anything."
        )

    def __iter__(self) -> Iterator[Rays]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: ArrayIndex) -> Rays:
        """Return rays by any NumPy index over `shape`."""
        key = index if isinstance(index, tuple) else (index,)
        if not any(part is Ellipsis for part in key):
            key = (*key, Ellipsis)
        # The last axis is that of coordinates, which the caller's index must not reach.
        rows = (*key, slice(None))
        o, d = self._rays[:2]
        try:
            o, d = o if o.shape != d.shape else o[rows], d[rows]
        except IndexError:
            np.broadcast_to(ZERO, self._shape)[index]  # the same error with the caller's number of axes
            raise
        low, high = (t if t.ndim == 0 else t[key] for t in (self._t_min, self._t_max))
        made = (np.asarray(values, order="C") for values in (o, d, low, high))
        return _made(object.__new__(Rays), *made, facts=self._facts)

    def reshape(self, *shape: SupportsIndex | Sequence[SupportsIndex]) -> Rays:
        """Return the same rays in another shape, as `numpy.reshape` takes it.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Rays.lines([0, 0], [[1, 0], [0, 1], [1, 1], [2, 1]]).reshape(2, -1)
        Rays(shape=(2, 2), D=2)
        """
        wanted: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        try:
            places: Floats = np.broadcast_to(ZERO, self._shape).reshape(wanted)
        except ValueError as error:
            raise InvalidInput(
                f"rays of shape {self.shape} do not fit into shape {tuple(wanted)}. "
                f"Keep their number, {prod(self.shape)}."
            ) from error
        made, (o, d) = places.shape, self._rays[:2]
        full = *made, d.shape[-1]
        o = o if o.shape != d.shape else o.reshape(full)
        ranges = [t if t.ndim == 0 else t.reshape(made) for t in (self._t_min, self._t_max)]
        return _made(object.__new__(Rays), o, d.reshape(full), *ranges, facts=self._facts)

    def at(self, t: ArrayInput) -> Floats:
        """Return the points o + t*d in float64 (two roundings; one where t*d alone would overflow).

        NaN for infinite t.

        Parameters
        ----------
        t : array_like
            Broadcast against `shape`; may lie outside a ray's range.

        Returns
        -------
        ndarray, shape (..., D)

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Rays([0, 0], [1, 2]).at([0.0, 0.5])
        array([[0. , 0. ],
               [0.5, 1. ]])
        """
        times = validation.floats(t, "t")
        try:
            np.broadcast_shapes(times.shape, self.shape)
        except ValueError as error:
            raise InvalidInput(
                f"t must broadcast against rays of shape {self.shape}; got shape {times.shape}. "
                f"Pass a scalar, or one t for each ray."
            ) from error
        times[np.isinf(times)] = np.nan
        overflows = list[bool]()
        with np.errstate(invalid="ignore", over="call", call=lambda *_: overflows.append(True)):
            points: Floats = self.origins + times[..., None] * self.directions
        if overflows:
            _put_exactly(points, self.origins, self.directions, times[..., None])
        return points

    def _compared(self) -> tuple[object, ...]:
        return self.origins, self.directions, self.t_min, self.t_max

    def _rows(self) -> RayRows:
        """Return the arrays for kernels, all valid; in 3D without a copy."""
        rays = self._rays
        if type(rays) is RayRows:
            return rays
        return RayRows(in_space(rays[0]), in_space(rays[1]), *_flat_ranges(self._t_min, self._t_max))

    def __repr__(self) -> str:
        return f"Rays(shape={self.shape}, D={self.ndim_space})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _restored, (*self._rays[:2], self._t_min, self._t_max, self._facts)


def _put_exactly(points: Floats, *terms: Floats) -> None:
    """Write the points o + t*d that overflowed, rounded once.

    terms: o, d and t, which broadcast to the points.
    """
    full = [np.broadcast_to(term, points.shape) for term in terms]
    lost = np.isinf(points) & np.isfinite(full).all(axis=0)
    o, d, t = (term[lost].tolist() for term in full)
    points[lost] = [moved(p, q, s.as_integer_ratio()) for p, q, s in zip(o, d, t, strict=True)]


def _set_vectors(rays: Rays, o: Floats, d: Floats) -> None:
    """Set the arrays of rays without bounds to valid, read-only vectors of one shape."""
    shape = o.shape
    rays._shape, rays._t_min, rays._t_max, rays._facts = shape[:-1], ZERO, INF, NO_FACTS
    is_flat = len(shape) == 2 and shape[1] == 3
    rays._rays = tuple.__new__(RayRows, (o, d, *_REST)) if is_flat else (o, d)


def _made(
    rays: Rays,
    origins: Floats,
    directions: Floats,
    t_min: Floats,
    t_max: Floats,
    *,
    facts: SourceFacts = NO_FACTS,
) -> Rays:
    """Return ``rays`` with valid, C-ordered arrays, which are frozen.

    origins: of the shape of directions, or one point, (D,) or (1, D).
    """
    shape = directions.shape
    rays._shape, rays._t_min, rays._t_max, rays._facts = shape[:-1], t_min, t_max, facts
    validation.freeze(origins, directions, t_min, t_max)
    if len(shape) == 2 and shape[1] == 3:
        origins, (low, high) = origins.reshape(-1, 3), _flat_ranges(t_min, t_max)
        rays._rays = RayRows(origins, directions, low, high)
    else:
        rays._rays = origins if origins.shape == shape else origins.reshape(-1), directions
    return rays


def _flat_ranges(t_min: Floats, t_max: Floats) -> tuple[Floats, Floats]:
    """Return ranges as kernels read them, (1,) or (N,)."""
    if t_min is ZERO and t_max is INF:
        return FROM_START, TO_INFINITY
    return t_min.reshape(-1), t_max.reshape(-1)


def _spread(values: Floats, shape: tuple[int, ...]) -> Floats:
    return values if values.shape == shape else np.broadcast_to(values, shape)


def own(arrays: tuple[Floats, Floats, Floats | None, Floats | None], invalid: Invalid, finite: bool) -> Rays:
    """Return rays that own the arrays: validated, frozen and not copied.

    arrays: origins, directions, t_min, t_max, C-ordered float64 of one shape; None: 0 and inf. invalid: as
    for `Rays`. finite: whether origins and directions are known to be finite.
    """
    o, d, low, high = arrays
    ranged = RayArrays(o, d, ZERO if low is None else low, INF if high is None else high)
    return _made(object.__new__(Rays), *ray_input.validated(ranged, invalid, finite))


def sight_lines(starts: ArrayInput, ends: ArrayInput, margin: ArrayInput | None) -> Rays:
    """Return the rays of `Scene.visible`; errors do not offer to let invalid ones miss, and so be visible."""
    arrays = segment_arrays(starts, ends, margin)._replace(way_out="Drop those points")
    return _made(object.__new__(Rays), *ray_input.validated(arrays, "raise"))


def _restored(
    origins: Floats,
    directions: Floats,
    t_min: Floats,
    t_max: Floats,
    facts: SourceFacts = NO_FACTS,
) -> Rays:
    return _made(object.__new__(Rays), origins, directions, t_min, t_max, facts=facts)
