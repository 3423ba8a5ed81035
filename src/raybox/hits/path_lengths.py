"""Lengths of the paths of hits: by rounded times, or by exact ones where these are lost."""

from math import inf
from typing import NamedTuple

import numpy as np

from raybox.geometry import BoxRows, PrimitiveRows, RayRows
from raybox.hits.path_length import MODERATE, NORMAL
from raybox.primitives import exact_table
from raybox.validation import Bools, Floats, Ints

_NO_START, _NO_END = np.array([-inf]), np.array([inf])


class PathLengths(NamedTuple):
    """Lengths by rounded times, and the paths whose times are beyond float64's range, either way."""

    lengths: Floats
    lost: Ints


def path_lengths(rays: RayRows, ray_of: Ints, t_enter: Floats, t_exit: Floats) -> PathLengths:
    """Return the length of each path from t_enter to t_exit within its ray's range.

    Path k is of ray ray_of[k]. `write_exactly` computes those that are lost.
    """
    from raybox.hits.path_kernel import write_lengths

    lengths = np.empty(t_enter.size)
    if not write_lengths(rays, ray_of, t_enter, t_exit, lengths):
        return PathLengths(lengths, np.empty(0, np.int64))
    t_min, t_max = (np.broadcast_to(t, len(rays.directions))[ray_of] for t in (rays.t_min, rays.t_max))
    near, far, directions = np.maximum(t_enter, t_min), np.minimum(t_exit, t_max), rays.directions[ray_of]
    largest, latest = np.abs(directions).max(axis=1, initial=0.0), np.maximum(np.abs(near), np.abs(far))
    lost = ((latest == inf) & (largest > 0.0)) | ((latest < NORMAL) & (largest > MODERATE))
    return PathLengths(lengths, np.flatnonzero(lost))


def distances(rays: RayRows, ray_of: Ints, t: Floats) -> PathLengths:
    """Return t times the length of each ray's direction; negative before the origin.

    Time k is of ray ray_of[k].
    """
    endless = rays._replace(t_min=_NO_START, t_max=_NO_END)
    found, lost = path_lengths(endless, ray_of, np.minimum(t, 0.0), np.maximum(t, 0.0))
    return PathLengths(np.copysign(found, t), lost)


def write_exactly(rays: RayRows, rows: PrimitiveRows, hits: tuple[Ints, Ints], lengths: Floats) -> None:
    """Write the lengths of paths by exact times; those of primitives without exact times stay.

    hits: numbers of rays and of primitives.
    """
    endless = _endless(rays, rows, *hits) if isinstance(rows, BoxRows) else np.zeros(lengths.size, np.bool_)
    lengths[endless] = inf
    for k in np.flatnonzero(~endless):
        length = exact_table.path_length(rows, exact_table.ray_at(rays, hits[0][k]), int(hits[1][k]))
        if length is not None:
            lengths[k] = length


def _endless(rays: RayRows, boxes: BoxRows, ray_of: Ints, index: Ints) -> Bools:
    """Return which rays stay in their boxes forever, in either direction of time."""
    d, lower, upper = rays.directions[ray_of], boxes.lower[index], boxes.upper[index]
    near, far = np.where(d > 0.0, lower, upper), np.where(d > 0.0, upper, lower)
    early, late = (((d == 0.0) | np.isinf(planes)).all(axis=1) for planes in (near, far))
    t_min, t_max = (np.broadcast_to(t, len(rays.directions))[ray_of] for t in (rays.t_min, rays.t_max))
    endless: Bools = (early & (t_min == -inf)) | (late & (t_max == inf))
    return endless
