"""Pinhole cameras: a direction through the centre of every pixel."""

from math import hypot, radians, tan
from operator import index
from typing import NamedTuple, SupportsIndex

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry.angles import checked_fov
from raybox.validation import ArrayInput, Bools, Floats

# radians between up and the view, below which rounding would decide the direction to the right
_PARALLEL = 1e-9
# how far R times its transpose may be from 1: calibrations in float32 are nearer
_ORTHONORMAL = 1e-4
# the signs of a camera's axes in OpenCV's: x to the right, y down, z along the view
_AXES = {"opencv": np.array([1.0, 1.0, 1.0]), "opengl": np.array([1.0, -1.0, -1.0])}


class Calibration(NamedTuple):
    """A camera: the direction of a pixel is rows[j] + (across[i] - skewed[j]) / focal * right."""

    centre: Floats
    rows: Floats
    """(height, 3)"""
    across: Floats
    """(width,): of each column from the principal point, in pixels"""
    skewed: Floats
    """(height,): how far each row is moved along itself, in pixels"""
    focal: float
    right: Floats

    @property
    def is_bounded(self) -> bool:
        """Whether no number of any ray overflows, by the largest of each term."""
        with np.errstate(over="ignore", invalid="ignore"):
            x = (np.abs(self.across).max() + np.abs(self.skewed).max()) / self.focal
            most = np.abs(self.rows).max() + x * np.abs(self.right).max()
        return bool(np.isfinite(most)) and validation.all_finite(self.centre)


def pinhole(
    eye: ArrayInput, target: ArrayInput, up: ArrayInput, fov: float, size: tuple[int, int]
) -> tuple[Floats, Floats, Floats]:
    """Return the eye, and vectors of rows (height, 3) and of columns (width, 3).

    The direction of a pixel, of depth 1 along the view, is the sum of those of its row and its column.
    """
    width, height = _pixels(size[0], "width"), _pixels(size[1], "height")
    half = tan(radians(checked_fov(fov)) / 2)
    origin, forward, right, above = _frame(eye, target, up)

    # Count pixel centres from the middle of the picture, in half pixels, so that the middle is exactly 0.
    x = (2.0 * np.arange(width) + 1 - width) * (half / height)
    y = (height - 1 - 2.0 * np.arange(height)) * (half / height)
    return origin, forward + y[:, None] * above, x[:, None] * right


def calibrated(
    K: ArrayInput, R: ArrayInput, t: ArrayInput, size: tuple[int, int], convention: str
) -> Calibration:
    """Return the camera of `Rays.from_camera`, whose directions have depth 1."""
    width, height = _pixels(size[0], "width"), _pixels(size[1], "height")
    camera_matrix = _camera_matrix(K)
    pose, move = _pose(R, t, convention)
    to_world = _inverse(pose)

    (fx, skew, cx), (_, fy, cy), _ = camera_matrix.tolist()
    right, down, forward = to_world.T
    with np.errstate(over="ignore", invalid="ignore"):  # the caller refuses what is not finite
        y = (np.arange(height) - cy) / fy
        origin = 0.0 - (move[0] * right + move[1] * down + move[2] * forward)
        return Calibration(origin, forward + y[:, None] * down, np.arange(width) - cx, skew * y, fx, right)


class ViewPlanes(NamedTuple):
    """The planes that bound a camera's picture, outward: n . p <= offset; and the depth of points."""

    sides: Floats
    """(4, 3): left, right, top, bottom, of any length"""
    offsets: Floats
    """(4,)"""
    forward: Floats
    """(3,): the depth of a point is forward . p + start"""
    start: float


def calibrated_view(
    K: ArrayInput, R: ArrayInput, t: ArrayInput, size: tuple[int, int], convention: str
) -> ViewPlanes:
    """Return the planes of the picture of `Rays.from_camera`: half a pixel around the outer centres.

    A point (x, y, z) of the camera's axes is in column (fx x + skew y) / z + cx and in row fy y / z + cy.
    """
    width, height = _pixels(size[0], "width"), _pixels(size[1], "height")
    (fx, skew, cx), (_, fy, cy), _ = _camera_matrix(K).tolist()
    pose, move = _pose(R, t, convention)
    sides = [
        [-fx, -skew, -(cx + 0.5)],
        [fx, skew, cx - (width - 0.5)],
        [0.0, -fy, -(cy + 0.5)],
        [0.0, fy, cy - (height - 0.5)],
    ]
    return _view(np.array(sides), pose, move)


def pinhole_view(
    eye: ArrayInput, target: ArrayInput, up: ArrayInput, fov: float, size: tuple[int, int]
) -> ViewPlanes:
    """Return the planes of the picture of `Rays.pinhole`."""
    width, height = _pixels(size[0], "width"), _pixels(size[1], "height")
    half = tan(radians(checked_fov(fov)) / 2)
    origin, forward, right, above = _frame(eye, target, up)
    across = half * (width / height)
    sides = [[-1.0, 0.0, -across], [1.0, 0.0, -across], [0.0, -1.0, -half], [0.0, 1.0, -half]]
    pose = np.array([right, -above, forward])
    with np.errstate(over="ignore", invalid="ignore"):
        return _view(np.array(sides), pose, -_products(pose, origin))


def _view(sides: Floats, pose: Floats, move: Floats) -> ViewPlanes:
    """Return planes through the camera in the world; some numbers may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        normals = (sides[:, :, None] * pose).sum(axis=1)
        return ViewPlanes(normals, -_products(sides, move), pose[2].copy(), float(move[2]))


def _products(rows: Floats, vector: Floats) -> Floats:
    """Return scalar products, by sums in one order on all machines."""
    products: Floats = (rows * vector).sum(axis=1)
    return products


def _pose(R: ArrayInput, t: ArrayInput, convention: str) -> tuple[Floats, Floats]:
    """Return rotation and translation from the world to the axes of OpenCV's cameras."""
    rotation = _world_to_camera(R)
    if convention not in _AXES:
        raise InvalidInput(f"convention must be one of {', '.join(map(repr, _AXES))}; got {convention!r}.")
    return rotation * _AXES[convention][:, None], _translation(t) * _AXES[convention]


def _camera_matrix(K: ArrayInput) -> Floats:
    matrix = _finite(K, "K", ((3, 3),), "[[fx, skew, cx], [0, fy, cy], [0, 0, 1]]")
    below = [matrix[1, 0], *matrix[2].tolist()]
    if below != [0, 0, 0, 1] or matrix[0, 0] <= 0 or matrix[1, 1] <= 0:
        raise InvalidInput(
            "K must be [[fx, skew, cx], [0, fy, cy], [0, 0, 1]] with fx and fy above 0; "
            f"got {matrix.tolist()}. For a camera with y up, pass convention='opengl'."
        )
    return matrix


def are_rotations(matrices: Floats) -> Bools:
    """Return which matrices (..., 3, 3) are rotations; those with NaN and infinity are not."""
    with np.errstate(all="ignore"):
        off = np.abs(matrices @ np.swapaxes(matrices, -1, -2) - np.eye(3)).max(axis=(-1, -2))
        handed = (matrices[..., 0, :] * np.cross(matrices[..., 1, :], matrices[..., 2, :])).sum(axis=-1)
        found: Bools = (off <= _ORTHONORMAL) & (handed >= 0.0)
    return found


def _world_to_camera(value: ArrayInput) -> Floats:
    """Return the rotation R of a camera, or raise `InvalidInput`."""
    matrix = _finite(value, "R", ((3, 3),), "a rotation; of a vector of Rodrigues, cv2.Rodrigues(rvec)[0]")
    if not are_rotations(matrix):
        raise InvalidInput(
            f"R must be a rotation: its rows are the camera's axes, of length 1, perpendicular and "
            f"right-handed; got {matrix.tolist()}. For a matrix from camera to world, pass its transpose."
        )
    return matrix


def _translation(t: ArrayInput) -> Floats:
    return _finite(t, "t", ((3,), (3, 1)), "the camera's R and t with x_camera = R x + t").reshape(3)


def _finite(value: ArrayInput, name: str, shapes: tuple[tuple[int, ...], ...], meaning: str) -> Floats:
    found = validation.floats(value, name)
    if found.shape not in shapes or not validation.all_finite(found):
        expected = " or ".join(map(str, shapes))
        raise InvalidInput(
            f"{name} must be finite and have shape {expected}; got {found.tolist()}. Pass {meaning}."
        )
    return found


def _inverse(matrix: Floats) -> Floats:
    """Return the inverse of a matrix (3, 3), from products and sums alone."""
    a, b, c = matrix
    columns: Floats = np.array([np.cross(b, c), np.cross(c, a), np.cross(a, b)])
    return columns.T / float(a @ columns[0])


def _frame(eye: ArrayInput, target: ArrayInput, up: ArrayInput) -> tuple[Floats, Floats, Floats, Floats]:
    """Return the eye, and unit vectors forward, right and up."""
    origin, goal, vertical = (vector(v, name) for v, name in ((eye, "eye"), (target, "target"), (up, "up")))
    with np.errstate(over="ignore"):
        view = goal - origin
    if not (view.any() and np.isfinite(view).all()):
        raise InvalidInput(
            f"eye and target must be different points, at a finite distance; got eye = {origin.tolist()} and "
            f"target = {goal.tolist()}. The camera looks from eye towards target."
        )
    forward = _unit(view)
    right = np.cross(forward, _unit(vertical)) if vertical.any() else np.zeros(3)
    if hypot(*right) < _PARALLEL:
        raise InvalidInput(
            f"up must not be zero or parallel to the view; got up = {vertical.tolist()} and the view "
            f"{forward.tolist()}. Choose another up, such as one of the axes across the view."
        )
    right = _unit(right)
    return origin, forward, right, np.cross(right, forward)


def vector(value: ArrayInput, name: str) -> Floats:
    """Return a finite point of 3 numbers, or raise `InvalidInput`."""
    found = validation.points(value, name, (3,))
    if found.shape != (3,):
        raise InvalidInput(
            f"{name} must be one point of 3 numbers; got shape {found.shape}. Make one camera each."
        )
    validation.require_finite(found, name, "point", f"Give {name} as 3 finite numbers")
    return found


def _unit(vector: Floats) -> Floats:
    vector = vector / np.abs(vector).max()  # so that squares neither over- nor underflow
    return vector / hypot(*vector)


def _pixels(value: SupportsIndex, name: str) -> int:
    try:
        count = index(value)
    except TypeError:
        count = 0
    if count < 1:
        raise InvalidInput(
            f"{name} must be a whole number of pixels, at least 1; got {value!r}. Pass an int."
        )
    return count
