"""Rays in tree coordinates, clipped to the bounds of all boxes; see `raybox.traversal.ray_setup`.

**Clipping** is float32. With u = 2^-24: an origin in tree coordinates is off by little more than u of itself
(`slack` is four times that), a bound of everything not at all; the inverse of a direction is rounded twice,
so that a time of entry or exit is off by 5u of itself, of which `_ROUGH` is 8u.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh.node import FAR, NUDGE
from raybox.compiler.intrinsics import Fields
from raybox.compiler.simd import F32, F64, I32, I64, Builder, Lanes, Scalar, constant, greater, lesser, splat
from raybox.compiler.simd_arrays import Memory
from raybox.primitives.box_simd import Float64Rays
from raybox.traversal.ray_setup import CENTER, HIGH, LOW, REACH, SCALE

SINGLE = 2.0**-22  # four times what float32 rounds off
_ROUGH = 2.0**-21
_BEFORE = 2.0**-12  # rays begin so long before they enter the bounds: what they hit there, they enter later
_STEADY = 2.0**-64  # direction parts below this share of the largest, but not 0, cannot be packed
_STILL = 2.0**-100  # what 0 is taken for
_NEAR = 2.0**26  # rays that stand still on an axis can be packed from here,
_LONG = 2.0**61  # if they leave the bounds of all boxes so soon, or move as fast on all other axes
_POWER, _BIAS, _BITS = 0x7FF, 1023, 52  # of a float64: its exponent
_TAME = 500  # exponents of directions that can be packed


class ClippedRays(NamedTuple):
    """Rays in tree coordinates, one a lane: float32, except v and w."""

    v: list[Lanes]  # float64: origin
    w: list[Lanes]  # float64: direction, its longest part in [1/2, 1)
    place: list[Lanes]  # the origin once more, rounded
    inverse: list[Lanes]  # of the direction; 2^100 where the ray stands still
    moves: list[Lanes]
    backward: list[Lanes]
    first: Lanes  # the range
    last: Lanes
    start: Lanes  # the range clipped to the bounds of all boxes, from shortly before, rounded outward
    stop: Lanes
    tame: Lanes  # whether the ray can be packed
    alive: Lanes  # whether it may hit anything
    size: Lanes  # times are multiplied by two to this power


class _ScaledDirection(NamedTuple):
    """A direction by its power of two, and what times are multiplied by."""

    w: list[Lanes]
    unit: Lanes
    size: Lanes
    tame: Lanes


def clip_rays(b: Builder, given: Float64Rays, frame: Fields) -> ClippedRays:
    """Return rays in tree coordinates, clipped to the bounds of all boxes."""
    numbers, count = frame.numbers, given.t_min.count
    v = [
        (o - numbers.splat(CENTER + k, count)) * numbers.splat(SCALE, count)
        for k, o in enumerate(given.origin)
    ]
    place = [x.to(F32) for x in v]
    scaled = _scale_direction(b, given.direction, frame.exponent)
    moves = [~d.equals(0.0) for d in given.direction]
    speed = [some.choose(w.to(F32), _STILL) for some, w in zip(moves, scaled.w, strict=True)]
    inverse = [constant(b, F32, count, 1.0) / w for w in speed]
    slow = [some.choose(w.magnitude(), 1.0) for some, w in zip(moves, speed, strict=True)]
    slowest = lesser(slow[0], lesser(slow[1], slow[2]))
    farthest = largest(place)
    sound = scaled.tame & (slowest >= _STEADY) & (farthest < numbers.splat(REACH, count).to(F32))

    first, last = ((t * scaled.unit).to(F32) for t in (given.t_min, given.t_max))
    last = (moves[0] | moves[1] | moves[2]).choose(last, first)  # a point is the same at all times
    start, stop, misses = _clip(numbers, (place, inverse, moves), (first, last))
    lost = sound & misses
    near = (farthest < _NEAR) & ((stop - start < _LONG) | (slowest >= 0.5))
    tame = sound & (start.magnitude() < FAR) & (stop > -FAR) & (near | moves[0] & moves[1] & moves[2])
    alive = (given.t_min <= given.t_max) & ~lost
    backward = [w < 0.0 for w in speed]
    return ClippedRays(
        v, scaled.w, place, inverse, moves, backward, first, last, start, stop, tame, alive, scaled.size
    )


def largest(axes: list[Lanes]) -> Lanes:
    """Return the greatest magnitude of three axes."""
    x, y, z = (axis.magnitude() for axis in axes)
    return greater(x, greater(y, z))


def _scale_direction(b: Builder, d: list[Lanes], exponent: Scalar) -> _ScaledDirection:
    """Scale directions so that the longest part is in [1/2, 1); exact, except parts below `_STEADY`.

    A direction of zero is scaled by 1/2.
    """
    count = d[0].count
    longest = largest(d)
    longest = longest.equals(0.0).choose(1.0, longest)
    power = longest.bits(I64) & (_POWER << _BITS)
    scale = (-power + ((2 * _BIAS - 1) << _BITS)).bits(F64)
    unit = (power + splat(b, b.shl(b.add(exponent, I64(1)), I64(_BITS)), count)).bits(F64)
    power = (power >> _BITS).to(I32)
    size = power + splat(b, b.trunc(b.sub(exponent, I64(_BIAS - 1)), I32), count)
    tame = (power > _BIAS - _TAME) & (power < _BIAS + _TAME)
    return _ScaledDirection([part * scale for part in d], unit, size, tame)


def _clip(
    numbers: Memory, rays: tuple[list[Lanes], list[Lanes], list[Lanes]], ends: tuple[Lanes, Lanes]
) -> tuple[Lanes, Lanes, Lanes]:
    """Clip ranges to the bounds of all boxes, outward; return also which rays miss these bounds.

    What is too large for float32 ends at `FAR`.
    """
    b, count = ends[0].b, ends[0].count
    begin = start = lesser(ends[0], constant(b, F32, count, FAR))
    stop = greater(ends[1], constant(b, F32, count, -FAR))
    room = constant(b, F32, count, 0.0)
    for k, (place, inverse, moves) in enumerate(zip(*rays, strict=True)):
        slack = place.magnitude() * SINGLE
        below = numbers.splat(LOW + k, count).to(F32) - place - slack
        above = numbers.splat(HIGH + k, count).to(F32) - place + slack
        one, other = below * inverse, above * inverse
        start = greater(moves.choose(lesser(one, other), -np.inf), start)
        stop = lesser(moves.choose(greater(one, other), np.inf), stop)
        room = lesser(moves.choose(0.0, lesser(above, -below)), room)
    stop = stop + stop.magnitude() * _ROUGH + NUDGE
    misses = (room < 0.0) | (_outward(start) > stop)
    return _outward(greater(start - _BEFORE, begin)), stop, misses


def _outward(start: Lanes) -> Lanes:
    return start - start.magnitude() * _ROUGH - NUDGE
