"""Boxes, eight pairs of a ray and a box at a time: what floats can tell for sure, and what they cannot.

For *tame* rays and boxes (`raybox.traversal.ray_setup`): nothing here over- or underflows. A time is computed
as ``fl(fl(p - o) * fl(1/d))``: three roundings, relative error below 2^-51. Bounds on either side are 2^-50
of it away. Where the direction is 0 a face's time is -inf or +inf, or of no account: a ray that runs in a
face is inside.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numba import types

from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F64, I1, I32, I64, Lanes, constant, fused, greater, lesser, transposed
from raybox.compiler.simd_loops import Register, loop, while_any

LANES = 8
_PAD = 2.0**-50
_UNDERFLOW = 1e-300
_ZIV = 2.0**-49  # five times the relative error of a quotient's correction: three roundings
_TAME = 2.0**300
_FAR = 2.0**500
AHEAD = 24  # so many pairs before its turn a box is asked for: 8 ns a pair, not 14; of 10^6 boxes 15, not 42


class Pairs(NamedTuple):
    """Pairs of a ray's row and a primitive, and what came of them; room for 8 more than there are."""

    ray: Any  # int32
    item: Any  # int32
    status: Any  # int32: 1 met, 0 missed, -1 not sure
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
    d: list[Lanes]
    inverse: list[Lanes]  # 1/d, +inf where d is 0
    plane: list[Lanes]
    near: list[Lanes]
    far: list[Lanes]
    t_min: Lanes
    t_max: Lanes
    tame: Lanes  # no plane is so far that times might overflow, short of those at infinity


def _cross(b: Any, boxes: Any, exact: Any, rays: list[Any], items: list[Any]) -> _Met:
    """Return about when rays cross the planes of their boxes."""
    rows = transposed([exact.load(b.mul(ray, I64(8)), 8) for ray in rays])
    o, d = rows[:3], rows[3:6]
    inverses = [inverse_of(x) for x in d]
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
    return _Met(o, d, inverses, plane, near, far, rows[6], rows[7], tame)


def _down(t: Lanes) -> Lanes:
    """Return a bound below every exact time that may have come out as t."""
    return lesser(t * (1.0 - _PAD), t * (1.0 + _PAD)) - _UNDERFLOW


def _up(t: Lanes) -> Lanes:
    """Return a bound above every exact time that may have come out as t."""
    return greater(t * (1.0 - _PAD), t * (1.0 + _PAD)) + _UNDERFLOW


def numbers(b: Any, memory: Any, at: Any) -> list[Any]:
    """Load eight numbers as plain values of 64 bits."""
    # one load for each: these were stored one by one just now, which a vector's load would wait for
    numbers = [memory.get(b.add(at, I64(k))) for k in range(LANES)]
    return [number if number.type == I64 else b.sext(number, I64) for number in numbers]


@inlined
def fill_up(pairs: Pairs, number: int) -> None:
    """Repeat the first pair until eight are full."""
    for k in range(number, (number + LANES - 1) // LANES * LANES):
        pairs.ray[k], pairs.item[k] = pairs.ray[0], pairs.item[0]


@vector_code(types.void)
def _screen(b: Any, boxes: Any, exact: Any, pairs: Any, number: Any) -> None:
    with loop(b, number, LANES) as at:
        met = _cross(b, boxes, exact, numbers(b, pairs.ray, at), numbers(b, pairs.item, at))
        near = greater(greater(met.near[0], met.near[1]), met.near[2])
        far = lesser(lesser(met.far[0], met.far[1]), met.far[2])
        missed = _down(greater(near, met.t_min)) > _up(lesser(far, met.t_max))
        # a slab as thin as a sheet of paper is surely between its own two faces: ask of other axes only
        sure = (_down(far) > met.t_min) & (_up(near) < met.t_max)
        for k in range(3):
            other = lesser(met.far[(k + 1) % 3], met.far[(k + 2) % 3])
            sure = sure & (_up(met.near[k]) < _down(other))
        status = met.tame.choose(missed.choose(sure.to(I32) * 0, sure.choose(sure.to(I32), -1)), -1)
        pairs.status.store(status, at)
        pairs.low.store(greater(_down(near), met.t_min), at)
        pairs.high.store(greater(_up(near), met.t_min), at)


@inlined
def classify(boxes: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Judge pairs of rays and boxes: fill verdict, low and high."""
    fill_up(pairs, number)
    _screen(boxes, exact, pairs, number)


@vector_code(types.void)
def _settle(b: Any, boxes: Any, exact: Any, pairs: Any, number: Any) -> None:
    with loop(b, number, LANES) as at:
        look_ahead(b, pairs, at, number, partial(_fetch, b, boxes))
        met = _cross(b, boxes, exact, numbers(b, pairs.ray, at), numbers(b, pairs.item, at))
        sure, t = contact((met.plane, met.o, met.d, met.inverse), met.near, met.t_min)
        pairs.status.store(sure.to(I32), at)
        pairs.low.store(t, at)


def look_ahead(b: Any, pairs: Any, at: Any, number: Any, prefetch_rows: Callable[[Any], None]) -> None:
    """Ask for eight primitives whose turn comes soon."""
    soon = b.add(at, I64(AHEAD))
    with b.if_then(b.icmp_signed("<", soon, number)):
        for item in numbers(b, pairs.item, soon):
            prefetch_rows(item)


def _fetch(b: Any, boxes: Any, item: Any) -> None:
    """Ask for the corners of a box."""
    for corner in (boxes.lower, boxes.upper):
        corner.prefetch_row(b.mul(item, I64(3)))


def inverse_of(d: Lanes) -> Lanes:
    """Return 1/d, +inf where d is 0."""
    still = d.equals(0.0)
    return still.choose(np.inf, constant(d.b, F64, LANES, 1.0) / still.choose(1.0, d))


def contact(numbers: tuple[list[Lanes], ...], near: list[Lanes], t_min: Lanes) -> tuple[Lanes, Lanes]:
    """Return (known, first contact rounded once) of rays and boxes that meet.

    numbers: for each axis the near plane, the origin, the direction and 1 / direction; near: about when that
    plane is crossed.
    """
    b = t_min.b
    bound = greater(_down(greater(greater(near[0], near[1]), near[2])), t_min)
    counts = [((_up(x) >= bound) & (x > -np.inf)).to(I64) << k for k, x in enumerate(near)]
    left = Register(b, (counts[0] | counts[1] | counts[2]).value)
    t, sure = Register(b, t_min.value), Register(b, constant(b, I1, LANES, 1).value)
    # rounding is monotone: the greatest rounded time is the greatest time, rounded; mostly one axis counts
    with while_any(b, left):
        asked, axis = left.lanes > 0, _lowest(left.lanes)
        known, time = quotient(*(_picked(axis, each) for each in numbers))
        t.value = asked.choose(greater(time, t.lanes), t.lanes).value
        sure.value = (sure.lanes & (known | ~asked)).value
        left.value = (left.lanes & (left.lanes - 1)).value
    return sure.lanes, t.lanes


def _lowest(bits: Lanes) -> Lanes:
    """Return the number of the lowest of three bits; 2 if none is set."""
    two = constant(bits.b, I64, bits.count, 2)
    return ((bits & 1) > 0).choose(two * 0, ((bits & 2) > 0).choose(two - 1, two))


def _picked(axis: Lanes, each: list[Lanes]) -> Lanes:
    """Return what is said of one axis each."""
    return axis.equals(0).choose(each[0], axis.equals(1).choose(each[1], each[2]))


def quotient(p: Lanes, o: Lanes, d: Lanes, inverse: Lanes) -> tuple[Lanes, Lanes]:
    """Return (known, (p - o)/d rounded once); inverse: 1/d, rounded."""
    s = p - o
    back = s - p
    e = (p - (s - back)) - (o + back)
    q = s / d
    # s - q d is a float (the remainder of a division), so only + e and the product round here
    correction = (fused(q * -1.0, d, s) + e) * inverse
    slack = correction.magnitude() * _ZIV
    t = q + (correction - slack)
    size, step = s.magnitude(), d.magnitude()
    tame = (size < _TAME) & ((size > 1 / _TAME) | size.equals(0.0)) & (step < _TAME) & (step > 1 / _TAME)
    endless = p.magnitude().equals(np.inf)
    known = (tame & t.equals(q + (correction + slack))) | endless
    return known, endless.choose(s / d, t) + 0.0


@inlined
def first_contacts(boxes: Any, exact: Any, pairs: Pairs, number: int) -> None:
    """Write the times of first contact, rounded once, to `low`; verdict 0 where floats cannot tell."""
    fill_up(pairs, number)
    _settle(boxes, exact, pairs, number)
