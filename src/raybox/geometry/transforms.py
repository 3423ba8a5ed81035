"""Affine matrices of instances: checked, or made of positions, rotations and scales.

`around` bounds the images of boxes under such maps.
"""

import math

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.exact.instance_definition import determinant_sign
from raybox.exact.splitter import SPLITTER
from raybox.geometry.angles import check_yaw
from raybox.validation import ArrayInput, Bools, Floats

_CERTAIN = 2.0**-48  # relative to the sum of absolute terms: more than a determinant's rounding error
_TAME = 2.0**300  # products of three numbers between it and its inverse neither over- nor underflow


def matrices(value: ArrayInput, dims: int) -> Floats:
    """Return validated affine maps, (M, 3, 4).

    In 2D the third axis is mapped to itself.
    """
    found = validation.floats(value, "transforms")
    wide = dims + 1
    if found.ndim == 2:
        found = found[None]
    if found.ndim != 3 or found.shape[1:] not in ((wide, wide), (dims, wide)):
        raise InvalidInput(
            f"transforms must have shape (M, {wide}, {wide}) or (M, {dims}, {wide}), one matrix for each "
            f"instance of a geometry in {dims}D; got shape {found.shape}. Positions and rotations go into "
            "Instances.from_poses(geometry, positions, rotations=...)."
        )
    flat = found.reshape(len(found), found.shape[1] * wide)
    validation.require_finite(flat, "transforms", "instance", "Drop those instances")
    last = found[:, dims:]
    if last.size and (last != np.eye(wide)[dims]).any():
        bad = (last != np.eye(wide)[dims]).any(axis=(1, 2))
        way_out = "If the translation is in that row, transpose: np.swapaxes(transforms, 1, 2)"
        rule = f"the last row of transforms must be {np.eye(wide)[dims].astype(int).tolist()}"
        validation.refuse_rows(bad, rule, {"transforms": found}, "instance", way_out)
    placed = _embedded(found[:, :dims, :dims], found[:, :dims, dims])
    bad = _singular(placed)
    if bad.any():
        rule = "transforms must not flatten space: the determinant must not be 0"
        way_out = "Drop those instances, or give them some thickness"
        validation.refuse_rows(bad, rule, {"transforms": found}, "instance", way_out)
    return placed


def matrix(value: ArrayInput) -> Floats:
    """Return one affine map in 3D, (3, 4), which may be singular."""
    found = validation.floats(value, "matrix")
    if found.shape not in ((4, 4), (3, 4)):
        raise InvalidInput(
            f"matrix must have shape (4, 4) or (3, 4), [A b] with p -> A p + b; got shape {found.shape}. "
            "For a rotation alone: np.hstack([rotation, np.zeros((3, 1))])."
        )
    validation.require_finite(found, "matrix", "row", "Give 12 finite numbers")
    if (found[3:] != np.eye(4)[3]).any():
        raise InvalidInput(
            f"the last row of matrix must be [0, 0, 0, 1]; got {found[3].tolist()}. "
            "If the translation is in that row, pass the transpose."
        )
    return found[:3]


def images(placed: Floats, points: Floats) -> Floats:
    """Return A p + b of points (N, 3), rounded; raise `InvalidInput` where float64 does not hold it."""
    x, y, z = points.T
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        found = np.stack([row[0] * x + row[1] * y + row[2] * z + row[3] for row in placed], axis=-1)
    bad = ~np.isfinite(found).all(axis=1)
    if bad.any():
        rule = "images of vertices must be within float64"
        validation.refuse_rows(bad, rule, {"vertices": points}, "vertex", "Scale by less")
    return found


def mirrors(placed: Floats) -> bool:
    """Return whether the determinant of a map (3, 4) is below 0, exactly."""
    return determinant_sign(tuple(map(tuple, placed.tolist()))) < 0


def of_poses(positions: ArrayInput, rotation: dict[str, ArrayInput | None], scales: ArrayInput) -> Floats:
    """Return matrices (M, D, D + 1) that scale, then rotate, then translate.

    rotation: rotations, quaternions and yaw, of which one at most is not None.
    """
    at = validation.rows(positions, "positions")
    validation.require_finite(at, "positions", "instance", "Drop those instances")
    count, dims = at.shape
    size = validation.axis_floats(scales, "scales")
    if size.shape == (count,) and (count != dims or count == 1):
        size = size[:, None]
    if size.shape not in ((), (dims,), (count, 1), (count, dims)):
        raise InvalidInput(
            f"scales must be a scalar, or have shape ({count},) for each instance, ({dims},) for each axis, "
            f"or ({count}, {dims}); got shape {size.shape}. For one scale each, pass shape ({count}, 1)."
        )
    size = np.broadcast_to(size, at.shape)
    validation.require_finite(size, "scales", "instance", "Drop those instances")
    matrix = np.broadcast_to(_rotations(rotation, count, dims), (count, dims, dims))
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([matrix * size[:, None, :], at[:, :, None]], axis=2)


def _rotations(rotation: dict[str, ArrayInput | None], count: int, dims: int) -> Floats:
    """Return rotation matrices, one for each instance or one for all."""
    passed = {name: value for name, value in rotation.items() if value is not None}
    if not passed:
        return np.eye(dims)
    if len(passed) > 1:
        raise InvalidInput(
            f"a rotation must be given in one way; got {' and '.join(passed)}. Leave out all but one."
        )
    ((name, value),) = passed.items()
    found = validation.axis_floats(value, name)
    shape = {"rotations": (dims, dims), "quaternions": (4,), "yaw": ()}[name]
    if found.shape not in (shape, (count, *shape)):
        raise InvalidInput(
            f"{name} must have shape {(count, *shape)}, one for each instance, or {shape} for all; "
            f"got shape {found.shape}."
        )
    rows = found.reshape(-1, max(1, math.prod(shape)))
    validation.require_finite(rows, name, "instance", "Drop those instances")
    if name == "rotations":
        return found
    if name == "yaw":
        check_yaw(found)
        return _about_z(found, dims)
    if dims == 2:
        raise InvalidInput("quaternions rotate in 3D; got positions in 2D. Pass yaw=, an angle in radians.")
    return _of_quaternions(rows)


def _about_z(angle: Floats, dims: int) -> Floats:
    cos, sin = np.cos(angle.reshape(-1)), np.sin(angle.reshape(-1))
    matrix = np.zeros((cos.size, dims, dims))
    matrix[:, dims - 1, dims - 1] = 1.0
    matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 1, 0], matrix[:, 1, 1] = cos, -sin, sin, cos
    return matrix


def _of_quaternions(q: Floats) -> Floats:
    """Return rotation matrices of quaternions (w, x, y, z) of any length but zero."""
    zero = ~q.any(axis=1)
    if zero.any():
        way_out = "Pass [1, 0, 0, 0] for no rotation"
        validation.refuse_rows(zero, "quaternions must not be zero", {"quaternions": q}, "instance", way_out)
    q = q / np.abs(q).max(axis=1, keepdims=True)
    return of_unit_quaternions(q / np.sqrt((q * q).sum(axis=1, keepdims=True)))


def of_unit_quaternions(q: Floats) -> Floats:
    """Return rotation matrices (M, 3, 3) of quaternions (w, x, y, z) of length 1."""
    w, x, y, z = q.T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.moveaxis(np.array(rows), 2, 0)


def _embedded(linear: Floats, shift: Floats) -> Floats:
    """Return affine maps in 3D, (M, 3, 4), C-ordered."""
    dims = shift.shape[1]
    placed = np.zeros((len(linear), 3, 4))
    placed[:, 2, 2] = 1.0
    placed[:, :dims, :dims], placed[:, :dims, 3] = linear, shift
    return placed


def _singular(placed: Floats) -> Bools:
    """Return which determinants are exactly 0: in floats, or in integers where undecided."""
    x, y, z = (placed[:, k, :3] for k in range(3))
    with np.errstate(all="ignore"):
        terms = [x[:, a] * (y[:, b] * z[:, c]) for a, b, c in _ORDERS]
        det = terms[0] + terms[1] + terms[2] - terms[3] - terms[4] - terms[5]
        size = sum(np.abs(term) for term in terms)
        nonzero = np.abs(det) > size * _CERTAIN
    sizes = np.abs(placed[:, :, :3])
    tame = ((sizes == 0.0) | ((sizes > 1.0 / _TAME) & (sizes < _TAME))).all(axis=(1, 2))
    bad = np.zeros(len(placed), np.bool_)
    for k in np.flatnonzero(~(nonzero & tame)):
        bad[k] = determinant_sign(tuple(map(tuple, placed[k].tolist()))) == 0
    return bad


_ORDERS = ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0))


_LARGEST = np.finfo(float).max
_SLACK = 2.0**-50  # relative to the sum of absolute terms: more than the rounding errors
_SMALLEST = 1e-290  # products below may have lost bits


def around(placed: Floats, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
    """Return bounds of the images of all boxes under each map.

    lower, upper: (K, 3). placed: maps, (M, 3, 4). Returns lower and upper bounds, (M, 3) each.
    """
    low, up = np.full((len(placed), 3), np.inf), np.full((len(placed), 3), -np.inf)
    linear, shift = placed[:, :, :3], placed[:, :, 3]
    with np.errstate(all="ignore"):
        for one, other in zip(lower, upper, strict=True):
            backward = linear < 0.0
            begin = _summed(shift, linear, np.where(backward, other, one), -1.0)
            end = _summed(shift, linear, np.where(backward, one, other), 1.0)
            # overflow is rounded outwards, too
            low = np.minimum(low, np.where(np.isnan(begin), -np.inf, np.minimum(begin, _LARGEST)))
            up = np.maximum(up, np.where(np.isnan(end), np.inf, np.maximum(end, -_LARGEST)))
    return low, up


def _summed(shift: Floats, linear: Floats, corner: Floats, outward: float) -> Floats:
    """Return shift + sum(linear * corner) on the last axis, rounded outward unless exact."""
    total, size, lost = shift, np.abs(shift), np.zeros(shift.shape, np.bool_)
    for k in range(3):
        product = linear[:, :, k] * corner[:, :, k]
        size = size + np.abs(product)
        lost |= ~_is_exact(linear[:, :, k], corner[:, :, k], product)
        longer = total + product
        part = longer - total
        lost |= (total - (longer - part)) + (product - part) != 0.0
        total = longer
    return np.where(lost, total + outward * (size * _SLACK + _SMALLEST), total)


def _is_exact(a: Floats, b: Floats, product: Floats) -> Bools:
    """Return where a * b is certainly exact (Dekker 1971)."""
    c, d = SPLITTER * a, SPLITTER * b
    a_high, b_high = c - (c - a), d - (d - b)
    a_low, b_low = a - a_high, b - b_high
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    exact: Bools = ((error == 0.0) & (np.abs(product) > _SMALLEST)) | (a == 0.0) | (b == 0.0)
    return exact
