"""Boxes, eight pairs of a ray and a box at a time: what floats can tell for sure, and what they cannot.

For *tame* rays and boxes (`raybox.bvh.aim`): nothing here over- or underflows. A time is computed as
``fl(fl(p - o) * fl(1/d))``: three roundings, relative error below 2^-51. Bounds on either side are
2^-50 of it away. Where the direction is 0 a face's time is -inf or +inf, or of no account: a ray
that runs in a face is inside.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from raybox.kernels.jit import inlined
from raybox.kernels.lanes import (
    I32,
    I64,
    Lanes,
    fused,
    greater,
    lesser,
    loop,
    transposed,
    vector_code,
)

LANES = 8
_PAD = 2.0**-50
_UNDERFLOW = 1e-300
_ZIV = 2.0**-49  # eight times the relative error of a quotient's correction
_TAME = 2.0**300
_FAR = 2.0**500


class Pairs(NamedTuple):
    """Pairs of a ray's row and a primitive, and what came of them; room for 8 more than there are."""

    ray: Any  # int32
    item: Any  # int32
    verdict: Any  # int32: 1 met, 0 missed, -1 not sure
    low: Any  # float64: bounds of the time of first contact
    high: Any
    source: Any  # int64: which ray it is among all


def make_pairs(number: int) -> Pairs:
    """Make room for so many pairs."""
    kinds = (np.int32, np.int32, np.int32, np.float64, np.float64, np.int64)
    return Pairs(*(np.empty(number + LANES, kind) for kind in kinds))


class _Met(NamedTuple):
    """Eight rays and boxes, axis by axis: the near planes, about when they are crossed, and the range."""

    o: list[Lanes]
    plane: list[Lanes]
    near: list[Lanes]
    far: list[Lanes]
    t_min: Lanes
    t_max: Lanes
    tame: Lanes  # no plane is so far that times might overflow, short of those at infinity


def _cross(b: Any, boxes: Any, exact: Any, rays: list[Any], items: list[Any]) -> _Met:
    """Return about when rays cross the planes of their boxes."""
    rows = transposed([exact.load(b.mul(ray, I64(8)), 8) for ray in rays])
    o, inverses = rows[:3], rows[3:6]
    plane, near, far = [], [], []
    tame = rows[7].equals(rows[7])
    for k in range(3):
        places = [b.add(b.mul(item, I64(3)), I64(k)) for item in items]
        low, up = boxes.lower.gather(places), boxes.upper.gather(places)
        for side in (low, up):
            size = side.magnitude()
            tame = tame & ((size < _FAR) | size.equals(np.inf))
        inverse = inverses[k]
        backward = inverse < 0.0
        plane.append(backward.choose(up, low))
        first = (plane[k] - o[k]) * inverse
        last = (backward.choose(low, up) - o[k]) * inverse
        near.append((first > -np.inf).choose(first, -np.inf))
        far.append((last < np.inf).choose(last, np.inf))
    return _Met(o, plane, near, far, rows[6], rows[7], tame)


def _down(t: Lanes) -> Lanes:
    """Return a bound below every exact time that may have come out as t."""
    return lesser(t * (1.0 - _PAD), t * (1.0 + _PAD)) - _UNDERFLOW


def _up(t: Lanes) -> Lanes:
    """Return a bound above every exact time that may have come out as t."""
    return greater(t * (1.0 - _PAD), t * (1.0 + _PAD)) + _UNDERFLOW


def _numbers(b: Any, memory: Any, at: Any) -> list[Any]:
    """Load eight numbers as plain values of 64 bits."""
    # one load for each: these were stored one by one just now, which a vector's load would wait for
    numbers = [memory.get(b.add(at, I64(k))) for k in range(LANES)]
    return [number if number.type == I64 else b.sext(number, I64) for number in numbers]


@vector_code(types.void)
def _screen(b: Any, boxes: Any, exact: Any, pairs: Any, number: Any) -> None:
    with loop(b, number, LANES) as at:
        met = _cross(b, boxes, exact, _numbers(b, pairs.ray, at), _numbers(b, pairs.item, at))
        near = greater(greater(met.near[0], met.near[1]), met.near[2])
        far = lesser(lesser(met.far[0], met.far[1]), met.far[2])
        missed = _down(greater(near, met.t_min)) > _up(lesser(far, met.t_max))
        # a slab as thin as a sheet of paper is surely between its own two faces: ask of other axes only
        sure = (_down(far) > met.t_min) & (_up(near) < met.t_max)
        for k in range(3):
            other = lesser(met.far[(k + 1) % 3], met.far[(k + 2) % 3])
            sure = sure & (_up(met.near[k]) < _down(other))
        verdict = met.tame.choose(missed.choose(sure.to(I32) * 0, sure.choose(sure.to(I32), -1)), -1)
        pairs.verdict.store(verdict, at)
        pairs.low.store(greater(_down(near), met.t_min), at)
        pairs.high.store(greater(_up(near), met.t_min), at)


@inlined
def screen(boxes: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Judge pairs of rays and boxes: fill verdict, low and high."""
    for k in range(number, (number + LANES - 1) // LANES * LANES):
        pairs.ray[k], pairs.item[k] = pairs.ray[0], pairs.item[0]
    _screen(boxes, exact, pairs, number)


@vector_code(types.void)
def _settle(b: Any, boxes: Any, directions: Any, exact: Any, pairs: Any, number: Any) -> None:
    with loop(b, number, LANES) as at:
        met = _cross(b, boxes, exact, _numbers(b, pairs.ray, at), _numbers(b, pairs.item, at))
        places = [b.mul(place, I64(3)) for place in _numbers(b, pairs.source, at)]
        near = greater(greater(met.near[0], met.near[1]), met.near[2])
        bound = greater(_down(near), met.t_min)
        t = met.t_min
        sure = None
        for k in range(3):
            d = directions.gather([b.add(place, I64(k)) for place in places])
            known, time = _quotient(met.plane[k], met.o[k], d)
            # rounding is monotone: the greatest rounded time is the greatest time, rounded
            counts = _up(met.near[k]) >= bound
            t = counts.choose(greater(time, t), t)
            sure = known | ~counts if sure is None else sure & (known | ~counts)
        assert sure is not None
        pairs.verdict.store(sure.to(I32), at)
        pairs.low.store(t, at)


def _quotient(p: Lanes, o: Lanes, d: Lanes) -> tuple[Lanes, Lanes]:
    """Return (known, (p - o)/d rounded once), as `raybox.kernels.exact.quick_time`."""
    s = p - o
    back = s - p
    e = (p - (s - back)) - (o + back)
    q = s / d
    # s - q d is a float (the remainder of a division), so only + e and / d round here
    correction = (fused(q * -1.0, d, s) + e) / d
    slack = correction.magnitude() * _ZIV
    t = q + (correction - slack)
    size, step = s.magnitude(), d.magnitude()
    tame = (size < _TAME) & ((size > 1 / _TAME) | size.equals(0.0)) & (step < _TAME) & (step > 1 / _TAME)
    endless = p.magnitude().equals(np.inf)
    known = (tame & t.equals(q + (correction + slack))) | endless
    return known, endless.choose(s / d, t) + 0.0


@inlined
def settle(boxes: Any, rays: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Write the times of first contact, rounded once, to `low`; verdict 0 where floats cannot tell.

    Pairs name the ray among `rays`, too.
    """
    for k in range(number, (number + LANES - 1) // LANES * LANES):
        pairs.ray[k], pairs.item[k], pairs.source[k] = pairs.ray[0], pairs.item[0], pairs.source[0]
    _settle(boxes, rays.directions, exact, pairs, number)
