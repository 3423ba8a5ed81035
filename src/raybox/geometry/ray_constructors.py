"""Constructors of `Rays`: segments, lines and cameras."""

from __future__ import annotations

from math import inf
from typing import Literal, Self

import numpy as np

from raybox import validation
from raybox.compiler import huge_pages
from raybox.compiler.float_environment import guard_class
from raybox.geometry import camera, lidar, ray_input, segment_margins, table_columns
from raybox.geometry.camera import Calibration
from raybox.geometry.lidar import LidarSweep
from raybox.geometry.ray_blocks import goes_past_caches, write_lidar, write_pinhole
from raybox.geometry.ray_input import INF, MINUS_INF, ONE, ZERO, Invalid, RayArrays
from raybox.geometry.table_columns import TableInput
from raybox.validation import ArrayInput, Floats, freeze


def segment_arrays(starts: ArrayInput, ends: ArrayInput, margin: ArrayInput | None) -> RayArrays:
    """Return the arrays of `Rays.segments`; starts and ends are not yet known to be finite."""
    start, end = validation.points(starts, "starts"), validation.points(ends, "ends")
    ray_input.common_shape(RayArrays(start, end, ZERO, ONE, "starts", "ends"))
    with np.errstate(invalid="ignore", over="ignore"):
        directions = end - start
    ranges = segment_margins.ranges_of(start, end, directions, margin)
    return RayArrays(start, directions, *ranges, "starts", "ends - starts")


@guard_class()
class RayConstructors:
    """The class methods of `Rays`."""

    __slots__ = ()

    @classmethod
    def _of(cls, origins: Floats, directions: Floats, t_min: Floats, t_max: Floats) -> Self:
        """Return rays of valid, C-ordered arrays, which are frozen."""
        raise NotImplementedError

    @classmethod
    def segments(
        cls,
        starts: ArrayInput,
        ends: ArrayInput,
        *,
        margin: ArrayInput | None = 0.0,
        invalid: Invalid = "raise",
    ) -> Self:
        """Return rays from start to end, with t from 0 to 1.

        The direction is end - start, rounded to float64. `Scene.visible` tests lines of sight.

        Parameters
        ----------
        starts, ends : array_like, shape (..., D)
            Broadcast against each other.
        margin : array_like, scalar or shape (...)
            A length in space that is left out at both ends: t is from m to 1 - m, where m is margin over the
            direction's length, rounded once. A segment shorter than two margins hits nothing: its range is
            t_min = t_max = +inf. None: the default margin of `Scene.visible`.
        invalid : {"raise", "miss"}
            As for `Rays`.

        Raises
        ------
        InvalidInput
            If shapes do not fit, a margin is negative or not finite, or as for `Rays`.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Rays.segments([1, 1], [4, 5]).directions
        array([3., 4.])
        >>> inner = rb.Rays.segments([1, 1], [4, 5], margin=1.25)
        >>> inner.t_min, inner.t_max
        (array(0.25), array(0.75))
        """
        return cls._of(*ray_input.validated(segment_arrays(starts, ends, margin), invalid))

    @classmethod
    def lines(cls, points: ArrayInput, directions: ArrayInput, *, invalid: Invalid = "raise") -> Self:
        """Return whole lines: rays with t from -inf to inf.

        Parameters
        ----------
        points, directions : array_like, shape (..., D)
            Broadcast against each other.
        invalid : {"raise", "miss"}
            As for `Rays`.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Rays.lines([0, 0, 0], [0, 0, 1]).t_min
        array(-inf)
        """
        p, d = validation.points(points, "points"), validation.points(directions, "directions")
        arrays = RayArrays(p, d, MINUS_INF, INF, "points")
        return cls._of(*ray_input.validated(arrays, invalid))

    @classmethod
    def from_array(
        cls, rays: TableInput, *, t_min: ArrayInput = 0.0, t_max: ArrayInput = inf, invalid: Invalid = "raise"
    ) -> Self:
        """Return rays from one array or table: each row is an origin, followed by a direction.

        Parameters
        ----------
        rays : array_like, shape (..., 2 * D), or table
            ``ox, oy, [oz], dx, dy, [dz]``. Of a table (a data frame, an Arrow table, a dict of columns), the
            columns ``origin_x, origin_y, [origin_z], direction_x, direction_y, [direction_z]``; others but
            ``t_min`` and ``t_max`` are ignored.
        t_min, t_max, invalid
            As for `Rays`. A column of a table with one of these names is used in its place.

        Raises
        ------
        InvalidInput
            If the last axis has neither 4 nor 6 numbers, a column is missing, or as for `Rays`.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Rays.from_array([[0, 0, 5, 1, 0, 0], [1, 1, 1, 0, 0, 2]]).directions
        array([[1., 0., 0.],
               [0., 0., 2.]])
        >>> table = {"origin_x": [0, 1], "origin_y": [0, 1], "direction_x": [1, 0], "direction_y": [0, 2]}
        >>> rb.Rays.from_array(table | {"t_max": [5, 6]}).t_max
        array([5., 6.])
        """
        names = validation.names_of(rays)
        if names is not None:
            low, high = (table_columns.column(rays, name) for name in ("t_min", "t_max"))
            t_min, t_max = t_min if low is None else low, t_max if high is None else high
            rays = table_columns.stacked(rays, names, ("origin_", "direction_"), "rays")
        found = validation.points(rays, "rays", (4, 6))  # type: ignore[arg-type]  # no Mapping
        origins, directions = validation.halves(found)
        low, high = validation.floats(t_min, "t_min"), validation.floats(t_max, "t_max")
        return cls._of(*ray_input.validated(RayArrays(origins, directions, low, high), invalid))

    @classmethod
    def from_camera(
        cls,
        K: ArrayInput,
        R: ArrayInput,
        t: ArrayInput,
        *,
        width: int,
        height: int,
        convention: Literal["opencv", "opengl"] = "opencv",
    ) -> Self:
        """Return the rays of a calibrated camera, one through the centre of each pixel.

        A point X of the world is at ``R @ X + t`` in the camera's axes, and is seen at ``K @ (R @ X + t)`` in
        homogeneous pixels, as OpenCV defines them, without distortion. The centre of the pixel in column i
        and row j has the pixel coordinates (i, j): the middle of a picture is at cx = (width - 1) / 2. If K
        counts from the corner of the first pixel (COLMAP: cx = width / 2), subtract 0.5 from cx and cy.

        Parameters
        ----------
        K : array_like, shape (3, 3)
            ``[[fx, skew, cx], [0, fy, cy], [0, 0, 1]]``, in pixels.
        R : array_like, shape (3, 3)
            The rotation from the world to the camera.
        t : array_like, shape (3,) or (3, 1)
            The translation from the world to the camera. The camera's centre is ``-R.T @ t``.
        width, height : int
            Pixels.
        convention : {"opencv", "opengl"}
            The camera's axes. "opencv": x to the right, y down, z along the view. "opengl": x to the right, y
            up, z against the view. Pixels are numbered alike: rows downwards.

        Returns
        -------
        Rays
            Of shape (height, width), row 0 at the top, column 0 at the left. Every direction has the
            component 1 along the view, so that **t of rays and hits is depth**, OpenCV's z (not distance).

        Raises
        ------
        InvalidInput
            If K is of another form, R is no rotation, or a number is not finite.

        Examples
        --------
        >>> import raybox as rb
        >>> K, R = [[2, 0, 1], [0, 2, 1], [0, 0, 1]], [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> rays = rb.Rays.from_camera(K, R, [0, 0, 5], width=3, height=3)
        >>> rays.origins[0, 0], rays.directions[0, 2]
        (array([ 0.,  0., -5.]), array([ 0.5, -0.5,  1. ]))
        """
        found = camera.calibrated(K, R, t, (width, height), convention)
        rays = RayArrays(found.centre, _calibrated_directions(found), ZERO, INF)
        return cls._of(*ray_input.validated(rays, "raise", found.is_bounded))

    @classmethod
    def lidar(
        cls,
        origin: ArrayInput,
        azimuths: ArrayInput,
        elevations: ArrayInput,
        *,
        rotation: ArrayInput | None = None,
    ) -> Self:
        """Return the rays of a spinning lidar, at one pose or at several.

        There is a ray for each pose, elevation and azimuth: the shape is (N, E, A), or (E, A) if neither
        origin nor rotation has a first axis of poses. A ray takes 24 bytes of memory, with several origins
        48: make the rays of a long drive some poses at a time.

        Parameters
        ----------
        origin : array_like, shape (3,) or (N, 3)
            The sensor, or its position in each pose.
        azimuths : array_like, shape (A,) or (E, A)
            In degrees, counter-clockwise from +x, seen from above: for all elevations, or a row for each.
        elevations : array_like, shape (E,)
            In degrees from the xy plane, from -90 to 90, upwards: one for each laser.
        rotation : array_like, shape (3, 3) or (N, 3, 3), optional
            From the sensor's axes to those of the world: its columns are the sensor's axes. None: they are
            those of the world. A single origin or rotation is that of all poses.

        Returns
        -------
        Rays
            Of shape (E, A) or (N, E, A). Directions have length 1, rounded, so that **t is the distance**.

        Raises
        ------
        InvalidInput
            If shapes do not fit, a matrix is no rotation, a number is not finite, or an elevation is out of
            range.

        Warns
        -----
        AngleWarning
            If azimuths or elevations look like radians: `raybox.errors.AngleWarning`.

        Examples
        --------
        >>> import raybox as rb
        >>> rays = rb.Rays.lidar([0, 0, 1.8], azimuths=range(0, 360, 90), elevations=[-15, 0])
        >>> rays.shape, rays.directions[1].tolist()
        ((2, 4), [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])

        A drive along x, of two lasers that fire at azimuths 1.5 degrees apart:

        >>> import numpy as np
        >>> path = [[x, 0, 1.8] for x in range(10)]
        >>> drive = rb.Rays.lidar(path, np.arange(0, 360, 2) + np.array([[0], [1.5]]), [-15, 0])
        >>> drive.shape, drive[9].origins[0, 0]
        ((10, 2, 180), array([9. , 0. , 1.8]))
        """
        sweep, shape = lidar.sweep_of(origin, azimuths, elevations, rotation)
        return cls._of(*_lidar_vectors(sweep, shape), ZERO, INF)

    @classmethod
    def pinhole(
        cls, eye: ArrayInput, target: ArrayInput, *, up: ArrayInput, fov: float, width: int, height: int
    ) -> Self:
        """Return a camera's rays, one through the centre of each pixel.

        The camera is at ``eye`` and looks at ``target``.

        Parameters
        ----------
        eye, target, up : array_like, shape (3,)
            ``up`` points up in the picture; it need not be perpendicular to the view.
        fov : float
            The vertical field of view in degrees, between 0 and 180: from the top edge of the picture to its
            bottom edge.
        width, height : int
            Pixels, square.

        Returns
        -------
        Rays
            Of shape (height, width), row 0 at the top, column 0 at the left. Every direction has the
            component 1 along the view, so that **t is depth** (not distance).

        Raises
        ------
        InvalidInput
            If eye and target coincide, up is parallel to the view, fov or the size is out of range.

        Warns
        -----
        AngleWarning
            If fov looks like radians: `raybox.errors.AngleWarning`.

        Examples
        --------
        >>> import raybox as rb
        >>> rays = rb.Rays.pinhole([0, 0, 0], [0, 5, 0], up=[0, 0, 1], fov=90, width=3, height=3)
        >>> rays.shape, rays[1, 1].directions
        ((3, 3), array([0., 1., 0.]))
        """
        origin, rows, columns = camera.pinhole(eye, target, up, fov, (width, height))
        return cls._of(origin, _pinhole_directions(rows, columns), ZERO, INF)


def _make_vectors(*shape: int) -> Floats:
    vectors: Floats = huge_pages.pooled_input((*shape, 3), np.float64)
    return vectors


def _pinhole_directions(rows: Floats, columns: Floats) -> Floats:
    """Return the directions (height, width, 3): each the sum of a row's vector and a column's."""
    made = _make_vectors(len(rows), len(columns))
    freeze(rows, columns)
    write_pinhole(rows, columns, made.reshape(-1, 3), goes_past_caches(made))
    return made


def _calibrated_directions(camera: Calibration) -> Floats:
    """Return the directions (height, width, 3) of a calibrated camera; some may overflow."""
    _, rows, across, skewed, focal, right = camera
    with np.errstate(over="ignore", invalid="ignore"):  # `Rays.from_camera` refuses what is not finite
        if not skewed.any():
            return _pinhole_directions(rows, (across / focal)[:, None] * right)
        x = (across - skewed[:, None]) / focal
        directions: Floats = rows[:, None] + x[..., None] * right
    return directions


def _lidar_vectors(sweep: LidarSweep, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return the origins of a lidar's rays, or the one of all, and their directions (*shape, 3)."""
    directions = _make_vectors(*shape)
    freeze(*sweep)
    write_lidar(sweep, directions.reshape(-1, 3))
    if len(sweep.origins) == 1:
        return sweep.origins[0], directions
    origins = _make_vectors(*shape)
    origins[...] = sweep.origins[:, None, None]
    return origins, directions
