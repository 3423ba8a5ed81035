"""A private primitive: closed disks perpendicular to an axis. Container, kernels, exact functions.

The plane of a disk is crossed at t = (c_k - o_k)/d_k, with k its axis; a ray along the plane misses. With
e_j = (o_j - c_j) d_k + (c_k - o_k) d_j on the two other axes, the point is within the disk where
e_u^2 + e_v^2 <= (r d_k)^2.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import allocating, device, inlined
from raybox.compiler.intrinsics import prefetch, vector_code, void
from raybox.compiler.simd import I64, Lanes, greater, lesser
from raybox.compiler.simd_arrays import loop
from raybox.exact import bigint
from raybox.exact.predicate import order, sign, time
from raybox.primitives.box_simd import LANES, Pairs, fill_up, inverse_of, quotient, status_of, timed_status
from raybox.primitives.exact_table import ExactFunctions
from raybox.primitives.status import UNKNOWN_ORDER

FILLS_BOXES = False

_SLACK = 2.0**-46  # of e and r d: eight roundings each, squared and summed
_PAD = 2.0**-50  # four times the relative error of a quotient of a difference
_UNDERFLOW = 1e-300
_HUGE = 1e300
_RAY = 8  # numbers of a ray: origin, direction, t_min, t_max


class DiskRows(NamedTuple):
    """Disks as the kernels read them."""

    centers: np.ndarray  # float64 (M, 3)
    axes: np.ndarray  # int64 (M,)
    radii: np.ndarray  # float64 (M,)


class Disks:
    """Closed disks, each perpendicular to one axis. The arrays are read-only copies."""

    __slots__ = ("_arrays",)
    ndim_space = 3

    def __init__(self, centers, axes, radii):
        rows = DiskRows(
            np.array(centers, np.float64, ndmin=2), np.array(axes, np.int64), np.array(radii, np.float64)
        )
        assert rows.centers.shape == (len(rows.axes), 3) == (len(rows.radii), 3)
        assert np.isfinite(rows.centers).all()
        assert ((rows.radii >= 0) & (rows.radii < np.inf)).all()
        assert np.isin(rows.axes, (0, 1, 2)).all()
        for array in rows:
            array.flags.writeable = False
        object.__setattr__(self, "_arrays", rows)

    def __setattr__(self, name, value):
        raise AttributeError("disks are frozen")

    def _rows(self) -> DiskRows:
        return self._arrays

    def __len__(self) -> int:
        return len(self._arrays.radii)


def bounds(disks: DiskRows) -> tuple[np.ndarray, np.ndarray]:
    reach = np.repeat(disks.radii[:, None], 3, axis=1)
    flat = np.arange(3) == disks.axes[:, None]
    with np.errstate(over="ignore"):
        low = np.nextafter(disks.centers - reach, -np.inf)
        up = np.nextafter(disks.centers + reach, np.inf)
    return np.where(flat, disks.centers, low), np.where(flat, disks.centers, up)


# One ray and one disk, in compiled code.


@device
def _axes(k: int) -> tuple[int, int]:
    """Return the two other axes."""
    return (k + 1) % 3, (k + 2) % 3


@device
def _side(disks: Any, ray: Any, i: int) -> int:
    """Return 1 where the crossing is within the disk, 0 on its rim, -1 outside, exactly."""
    k = disks.axes[i]
    d, to_plane = ray.direction[k], disks.centers[i, k] - ray.origin[k]
    total, size = 0.0, 0.0
    for j in _axes(k):
        from_axis = ray.origin[j] - disks.centers[i, j]
        e = from_axis * d + to_plane * ray.direction[j]
        total += e * e
        size += abs(from_axis * d) + abs(to_plane * ray.direction[j])
    reach = disks.radii[i] * d
    value = reach * reach - total
    if abs(value) > (size * size + reach * reach) * _SLACK + _UNDERFLOW:
        return sign(value)
    return _side_exact(disks, ray, i)


@allocating
def _side_exact(disks: Any, ray: Any, i: int) -> int:
    k = disks.axes[i]
    d, to_plane = bigint.from_float(ray.direction[k]), bigint.difference(disks.centers[i, k], ray.origin[k])
    reach = bigint.mul(bigint.from_float(disks.radii[i]), d)
    value = bigint.mul(reach, reach)
    for j in _axes(k):
        from_axis = bigint.difference(ray.origin[j], disks.centers[i, j])
        e = bigint.add(bigint.mul(from_axis, d), bigint.mul(to_plane, bigint.from_float(ray.direction[j])))
        value = bigint.sub(value, bigint.mul(e, e))
    return value.sign


@device
def intersect(disks: Any, ray: Any, i: int) -> tuple[bool, float]:
    k = disks.axes[i]
    p, o, d = disks.centers[i, k], ray.origin[k], ray.direction[k]
    if d == 0.0 or order(p, o, d, ray.t_min, 0.0, 1.0) < 0 or order(p, o, d, ray.t_max, 0.0, 1.0) > 0:
        return False, np.inf
    return (True, time(p, o, d)) if _side(disks, ray, i) >= 0 else (False, np.inf)


@device
def tie(disks: Any, ray: Any, i: int, j: int) -> int:
    k, m = disks.axes[i], disks.axes[j]
    return order(
        disks.centers[i, k],
        ray.origin[k],
        ray.direction[k],
        disks.centers[j, m],
        ray.origin[m],
        ray.direction[m],
    )


@device
def span(disks: Any, ray: Any, i: int) -> tuple[float, float]:
    k = disks.axes[i]
    t = time(disks.centers[i, k], ray.origin[k], ray.direction[k])
    return t, t


@device
def normal(disks: Any, _ray: Any, i: int) -> tuple[float, float, float]:
    k = disks.axes[i]
    return 1.0 if k == 0 else 0.0, 1.0 if k == 1 else 0.0, 1.0 if k == 2 else 0.0


@device
def weights(_disks: Any, _ray: Any, _i: int) -> tuple[float, float]:
    return np.nan, np.nan


# Many rays: eight pairs at a time.


@device
def prefetch_rows(disks: Any, i: int) -> None:
    prefetch(disks.centers, 3 * i)
    prefetch(disks.centers, 3 * i + 2)


@device
def certain_order(disks: Any, exact: Any, r: int, i: int, j: int) -> int:
    k = disks.axes[i]
    if k != disks.axes[j]:
        return UNKNOWN_ORDER
    p, q = disks.centers[i, k], disks.centers[j, k]
    return int(sign(exact[r, 3 + k])) * (int(p > q) - int(p < q))


class _Pairs(NamedTuple):
    """Eight rays and disks; along the disk's axis: plane, origin, direction."""

    plane: Lanes
    o: Lanes
    d: Lanes
    rays: Lanes  # where each ray's numbers begin
    disks: Lanes
    axis: Lanes


def _load(disks: Any, exact: Any, pairs: Any, at: Any) -> _Pairs:
    rays = pairs.ray.load(at, LANES).to(I64) * _RAY
    items = pairs.item.load(at, LANES).to(I64)
    axis = disks.axes.pick(items)
    plane = disks.centers.pick(items * 3 + axis)
    return _Pairs(plane, exact.pick(rays + axis), exact.pick(rays + axis + 3), rays, items, axis)


def _next(axis: Lanes) -> Lanes:
    return (axis >= 2).choose(axis - 2, axis + 1)


def _room(disks: Any, exact: Any, eight: _Pairs) -> tuple[Lanes, Lanes]:
    """Return (r d)^2 - e_u^2 - e_v^2, and a bound of what roundings cost it."""
    reach = disks.radii.pick(eight.disks) * eight.d
    value, size, axis = reach * reach, None, eight.axis
    for _ in range(2):
        axis = _next(axis)
        across = (exact.pick(eight.rays + axis) - disks.centers.pick(eight.disks * 3 + axis)) * eight.d
        along = (eight.plane - eight.o) * exact.pick(eight.rays + axis + 3)
        e, sizes = across + along, across.magnitude() + along.magnitude()
        value, size = value - e * e, sizes if size is None else size + sizes
    return value, (size * size + reach * reach) * _SLACK + _UNDERFLOW


@vector_code(void)
def _classify(b: Any, disks: Any, exact: Any, pairs: Any, number: Any) -> None:
    with loop(b, number, LANES) as at:
        eight = _load(disks, exact, pairs, at)
        t_min, t_max = exact.pick(eight.rays + 6), exact.pick(eight.rays + 7)
        time = (eight.plane - eight.o) / eight.d
        low = lesser(time * (1.0 - _PAD), time * (1.0 + _PAD)) - _UNDERFLOW
        high = greater(time * (1.0 - _PAD), time * (1.0 + _PAD)) + _UNDERFLOW
        value, slack = _room(disks, exact, eight)
        known = time.magnitude() < _HUGE
        misses = eight.d.equals(0.0) | (value < -slack) | (known & ((high < t_min) | (low > t_max)))
        hits = known & (value > slack) & (low > t_min) & (high < t_max)
        pairs.status.store(status_of(hits, misses), at)
        pairs.low.store(low, at)
        pairs.high.store(high, at)


@inlined
def classify(disks: Any, exact: Any, pairs: Pairs, number: int) -> None:
    fill_up(pairs, number)
    _classify(disks, exact, pairs, number)


@vector_code(void)
def _first_contacts(b: Any, disks: Any, exact: Any, pairs: Any, number: Any) -> None:
    with loop(b, number, LANES) as at:
        eight = _load(disks, exact, pairs, at)
        known, t = quotient(eight.plane, eight.o, eight.d, inverse_of(eight.d))
        pairs.status.store(timed_status(known), at)
        pairs.low.store(t, at)


@inlined
def first_contacts(disks: Any, exact: Any, pairs: Pairs, number: int) -> None:
    fill_up(pairs, number)
    _first_contacts(disks, exact, pairs, number)


# Exact times, for scenes of several geometries.


def _exact_time(disks, ray, i):
    k = int(disks.axes[i])
    if not ray.t_min <= ray.t_max or ray.direction[k] == 0.0:
        return None
    center = [Fraction(x) for x in disks.centers[i].tolist()]
    o, d = ([Fraction(x) for x in vector] for vector in (ray.origin, ray.direction))
    t = (center[k] - o[k]) / d[k]
    distance = sum((o[j] + t * d[j] - center[j]) ** 2 for j in range(3))
    if t < ray.t_min or t > ray.t_max or distance > Fraction(float(disks.radii[i])) ** 2:
        return None
    return t.numerator, t.denominator


EXACT = ExactFunctions(_exact_time)
