"""`Region`: a convex region, the points inside of all planes. `Frustum`: what a camera's picture shows."""

from __future__ import annotations

from math import inf, isfinite
from typing import Literal, Self, final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.exact import half_spaces
from raybox.geometry import camera, planes
from raybox.geometry.array_container import ArrayContainer
from raybox.geometry.camera import ViewPlanes
from raybox.geometry.planes import Planes
from raybox.validation import ArrayInput, Bools, Floats


@guard_class("normals", "offsets", "planes", "ndim_space")
class Region(ArrayContainer):
    """A convex region: the points p with ``n·p <= offset`` for every plane.

    Normals point outwards. The region is closed: points on its planes belong to it. It may be unbounded, flat
    or empty; without planes it is the whole space. All arrays are read-only copies.

    Parameters
    ----------
    normals : array_like, shape (M, D), or Planes
        D is 2 or 3; of any length but zero. `Planes` have their offsets with them.
    offsets : array_like, shape (M,)
        In units of the normals. A scalar is used for all normals.

    Raises
    ------
    InvalidInput
        As for `Planes`.

    Examples
    --------
    >>> import raybox as rb
    >>> corner = rb.Region([[-1, 0], [0, -1], [1, 1]], [0, 0, 2])
    >>> corner
    Region(3, D=2)
    >>> corner.contains([[1, 1], [2, 1]])
    array([ True, False])
    >>> rb.Region(rb.Planes([0, 0, 1], [5.0]))
    Region(1, D=3)
    """

    __slots__ = ("_planes",)
    _AS_ARRAY = "numpy.column_stack([region.normals, region.offsets])"
    _planes: Planes

    def __init__(self, normals: ArrayInput | Planes, offsets: ArrayInput | None = None) -> None:
        if isinstance(normals, Planes) == (offsets is not None):
            refuse_arrays(type(self).__name__, normals, offsets)
        if isinstance(normals, Planes):
            self._planes = planes.restored(normals.normals, normals.offsets)
        elif offsets is not None:
            self._planes = Planes(normals, offsets)

    @property
    def normals(self) -> Floats:
        """The normals, outwards and of any length: shape (M, D), read-only."""
        return self._planes.normals

    @property
    def offsets(self) -> Floats:
        """The values of n . p on each plane: shape (M,), read-only."""
        return self._planes.offsets

    @property
    def planes(self) -> Planes:
        """The planes, without ids and labels."""
        return self._planes

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        return self._planes.ndim_space

    def __len__(self) -> int:
        """Return the number of planes."""
        return len(self._planes)

    def contains(self, points: ArrayInput) -> Bools:
        """Return which points are in the region, or on its planes: exactly.

        Parameters
        ----------
        points : array_like, shape (..., D)
            Finite.

        Returns
        -------
        ndarray of bool, shape (...)

        Raises
        ------
        InvalidInput
            If the shape does not fit, or a point is not finite.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Region([[3, 1], [-1, 0]], [1, 0]).contains([[0, 1], [1 / 3, 0], [0.3, 0.2]])
        array([ True,  True, False])
        """
        p = validation.finite_points(points, self.ndim_space)
        inside = half_spaces.are_inside(self.normals, self.offsets, p.reshape(-1, self.ndim_space))
        return inside.reshape(p.shape[:-1])

    def _compared(self) -> tuple[object, ...]:
        return self.normals, self.offsets

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self)}, D={self.ndim_space})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return type(self), (self._planes,)


@final
@guard_class()
class Frustum(Region):
    """The region that a camera's picture shows, between two depths: a `Region` in 3D.

    `from_camera` and `pinhole` take what those of `Rays` take. The planes are computed in float64, with
    rounding errors; the region is exactly that of these planes.

    Examples
    --------
    >>> import raybox as rb
    >>> picture = {"width": 4, "height": 4, "near": 1, "far": 9}
    >>> view = rb.Frustum.pinhole([0, 0, 0], [0, 5, 0], up=[0, 0, 1], fov=90, **picture)
    >>> view
    Frustum(6, D=3)
    >>> view.contains([[0, 5, 0], [4, 5, 4], [6, 5, 0], [0, 10, 0]])
    array([ True,  True, False, False])
    """

    __slots__ = ()

    @classmethod
    def from_camera(
        cls,
        K: ArrayInput,
        R: ArrayInput,
        t: ArrayInput,
        *,
        width: int,
        height: int,
        near: float,
        far: float,
        convention: Literal["opencv", "opengl"] = "opencv",
    ) -> Self:
        """Return the region that the rays of `Rays.from_camera` see, over whole pixels.

        The picture extends from pixel coordinates -0.5 to width - 0.5 and height - 0.5.

        Parameters
        ----------
        K, R, t, width, height, convention
            As for `Rays.from_camera`.
        near, far : float
            The least and the greatest depth along the view, OpenCV's z: 0 <= near < far. The region starts at
            the camera's centre if near is 0, and has no end if far is inf.

        Returns
        -------
        Frustum
            Of the planes left, right, top, bottom, then near and far where there are any.

        Raises
        ------
        InvalidInput
            As for `Rays.from_camera`, or if near and far are out of range.

        Examples
        --------
        >>> import raybox as rb
        >>> K, R = [[2, 0, 1], [0, 2, 1], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> view = rb.Frustum.from_camera(K, R, [0, 0, 5], width=3, height=3, near=0, far=float("inf"))
        >>> view.contains([[0, 0, -5], [0.75, 0, -4], [0.76, 0, -4]])
        array([ True,  True, False])
        """
        view = camera.calibrated_view(K, R, t, (width, height), convention)
        return cls._of_view(view, near, far)

    @classmethod
    def pinhole(
        cls,
        eye: ArrayInput,
        target: ArrayInput,
        *,
        up: ArrayInput,
        fov: float,
        width: int,
        height: int,
        near: float,
        far: float,
    ) -> Self:
        """Return the region that the rays of `Rays.pinhole` see, over whole pixels.

        Parameters
        ----------
        eye, target, up, fov, width, height
            As for `Rays.pinhole`; fov is in degrees.
        near, far : float
            As for `from_camera`.

        Returns
        -------
        Frustum
            Of the planes left, right, top, bottom, then near and far where there are any.

        Raises
        ------
        InvalidInput
            As for `Rays.pinhole`, or if near and far are out of range.

        Warns
        -----
        AngleWarning
            If fov looks like radians: `raybox.errors.AngleWarning`.

        Examples
        --------
        >>> import raybox as rb
        >>> view = rb.Frustum.pinhole(
        ...     [0, 0, 0], [1, 0, 0], up=[0, 0, 1], fov=90, width=8, height=4, near=0, far=10
        ... )
        >>> view.contains([[5, 9, 4], [5, 9, 6]])
        array([ True, False])
        """
        return cls._of_view(camera.pinhole_view(eye, target, up, fov, (width, height)), near, far)

    @classmethod
    def _of_view(cls, view: ViewPlanes, near: float, far: float) -> Self:
        """Return the region between two depths; of a view without overflows."""
        least, most = _depth(near, "near"), _depth(far, "far")
        if not (0.0 <= least < most and least < inf):
            raise InvalidInput(
                f"near and far must be depths with 0 <= near < far, near finite; got near = {near!r} and "
                f"far = {far!r}. For no near plane pass near=0, for no far plane far=math.inf."
            )
        normals, offsets = [*view.sides], view.offsets.tolist()
        with np.errstate(over="ignore", invalid="ignore"):
            if least > 0.0:
                normals.append(-view.forward)
                offsets.append(view.start - least)
            if isfinite(most):
                normals.append(view.forward)
                offsets.append(most - view.start)
        if not (np.isfinite(normals).all() and np.isfinite(offsets).all()):
            raise InvalidInput(
                f"a Frustum's planes must be finite numbers of float64; got offsets {offsets}. "
                f"Give the camera in smaller units."
            )
        return cls(np.array(normals), np.array(offsets))


def _depth(value: float, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InvalidInput(
            f"{name} must be a depth along the view, one number; got {value!r}. Pass a float."
        ) from None


def refuse_arrays(name: str, normals: object, offsets: object) -> None:
    """Raise `InvalidInput` for planes with other offsets, and for normals without any."""
    if offsets is not None:
        raise InvalidInput(
            f"{name} takes offsets with normals, not with Planes, which have their own; got both. "
            f"Write raybox.{name}(planes)."
        )
    raise InvalidInput(
        f"{name} needs Planes, or two arrays, normals and offsets; got one {type(normals).__name__}. "
        f"Write raybox.{name}(normals, offsets)."
    )
