"""Affine matrices for moved copies: checked, or made of positions, rotations and scales."""

from typing import Any

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.exact.instance_definition import is_singular
from raybox.validation import Bools, Floats

_SURE = 2.0**-48  # of the sum of a determinant's terms: more than its roundings can move it
_TINY = 1e-290


def matrices(value: Any, dims: int) -> Floats:
    """Return affine maps as (M, 3, 4), checked; in 2D the third row and column are those of the identity."""
    found = validation.floats(value, "transforms")
    wide = dims + 1
    if found.ndim == 2:
        found = found[None]
    if found.ndim != 3 or found.shape[1:] not in ((wide, wide), (dims, wide)):
        raise InvalidInput(
            f"transforms must have shape (M, {wide}, {wide}) or (M, {dims}, {wide}), one matrix for each "
            f"copy of what is in {dims}D; got shape {found.shape}. Positions and rotations go into "
            "Instances.from_poses(geometry, positions, rotations=...)."
        )
    flat = found.reshape(len(found), found.shape[1] * wide)
    validation.require_finite(flat, "transforms", "copy", "Drop those copies")
    last = found[:, dims:]
    if last.size and (last != np.eye(wide)[dims]).any():
        bad = (last != np.eye(wide)[dims]).any(axis=(1, 2))
        way_out = "If the translation is in that row, transpose them: np.swapaxes(transforms, 1, 2)"
        rule = f"the last row of transforms must be {np.eye(wide)[dims].astype(int).tolist()}"
        validation.refuse_rows(bad, rule, {"transforms": found}, "copy", way_out)
    placed = _embedded(found[:, :dims, :dims], found[:, :dims, dims])
    bad = _singular(placed)
    if bad.any():
        rule = "transforms must not flatten space: the determinant must not be 0"
        way_out = "Drop those copies, or give them some thickness"
        validation.refuse_rows(bad, rule, {"transforms": found}, "copy", way_out)
    return placed


def of_poses(positions: Any, turns: dict[str, Any], scales: Any) -> Floats:
    """Return the matrices (M, D, D + 1) of scaling first, then turning, then moving."""
    at = validation.rows(positions, "positions")
    validation.require_finite(at, "positions", "copy", "Drop those copies")
    number, dims = at.shape
    size = validation.floats(scales, "scales")
    if size.shape == (number,) and (number != dims or number == 1):
        size = size[:, None]
    if size.shape not in ((), (dims,), (number, 1), (number, dims)):
        raise InvalidInput(
            f"scales must be a scalar, or have shape ({number},) for each copy, ({dims},) for each axis, or "
            f"({number}, {dims}); got shape {size.shape}. One for each copy goes in as shape ({number}, 1)."
        )
    size = np.broadcast_to(size, at.shape)
    validation.require_finite(size, "scales", "copy", "Drop those copies")
    turn = np.broadcast_to(_turns(turns, number, dims), (number, dims, dims))
    with np.errstate(over="ignore", under="ignore"):
        return np.concatenate([turn * size[:, None, :], at[:, :, None]], axis=2)


def _turns(given: dict[str, Any], number: int, dims: int) -> Floats:
    """Return rotation matrices, one for each copy or one for all."""
    came = {name: value for name, value in given.items() if value is not None}
    if not came:
        return np.eye(dims)
    if len(came) > 1:
        raise InvalidInput(
            f"a turn must be given in one way; got {' and '.join(came)}. Leave out all but one."
        )
    ((name, value),) = came.items()
    found = validation.floats(value, name)
    shape = {"rotations": (dims, dims), "quaternions": (4,), "yaw": ()}[name]
    if found.shape not in (shape, (number, *shape)):
        raise InvalidInput(
            f"{name} must have shape {(number, *shape)}, one for each copy, or {shape} for all; "
            f"got shape {found.shape}."
        )
    rows = found.reshape(-1, max(1, int(np.prod(shape))))
    validation.require_finite(rows, name, "copy", "Drop those copies")
    if name == "rotations":
        return found
    if name == "yaw":
        return _about_z(found, dims)
    if dims == 2:
        raise InvalidInput("quaternions turn in 3D; got positions in 2D. Pass yaw=, an angle in radians.")
    return _of_quaternions(rows)


def _about_z(angle: Floats, dims: int) -> Floats:
    cos, sin = np.cos(angle.reshape(-1)), np.sin(angle.reshape(-1))
    turn = np.zeros((cos.size, dims, dims))
    turn[:, dims - 1, dims - 1] = 1.0
    turn[:, 0, 0], turn[:, 0, 1], turn[:, 1, 0], turn[:, 1, 1] = cos, -sin, sin, cos
    return turn


def _of_quaternions(q: Floats) -> Floats:
    """Return rotation matrices of quaternions (w, x, y, z) of any length but zero."""
    zero = ~q.any(axis=1)
    if zero.any():
        way_out = "Pass [1, 0, 0, 0] for no turn"
        validation.refuse_rows(zero, "quaternions must not be zero", {"quaternions": q}, "copy", way_out)
    q = q / np.abs(q).max(axis=1, keepdims=True)
    w, x, y, z = (q / np.sqrt((q * q).sum(axis=1, keepdims=True))).T
    rows = (
        (1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)),
        (2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)),
        (2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)),
    )
    return np.moveaxis(np.array(rows), 2, 0)


def _embedded(linear: Floats, shift: Floats) -> Floats:
    """Return maps of space, (M, 3, 4), C-ordered."""
    dims = shift.shape[1]
    placed = np.zeros((len(linear), 3, 4))
    placed[:, 2, 2] = 1.0
    placed[:, :dims, :dims], placed[:, :dims, 3] = linear, shift
    return placed


def _singular(placed: Floats) -> Bools:
    """Tell which matrices have the determinant 0, exactly: in floats where they can tell."""
    x, y, z = (placed[:, k, :3] for k in range(3))
    with np.errstate(all="ignore"):
        terms = [x[:, a] * (y[:, b] * z[:, c]) for a, b, c in _ORDERS]
        det = terms[0] + terms[1] + terms[2] - terms[3] - terms[4] - terms[5]
        size = sum(np.abs(term) for term in terms)
        sure = np.abs(det) > size * _SURE + _TINY
    bad = np.zeros(len(placed), np.bool_)
    for k in np.flatnonzero(~sure | ~np.isfinite(size)):
        bad[k] = is_singular(tuple(map(tuple, placed[k].tolist())))
    return bad


_ORDERS = ((0, 1, 2), (1, 2, 0), (2, 0, 1), (0, 2, 1), (1, 0, 2), (2, 1, 0))
