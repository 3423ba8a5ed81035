"""Boxes, eight pairs of a ray and a box at a time: hits and misses that are certain in float64.

For *tame* rays and boxes (`raybox.traversal.ray_setup`): nothing here over- or underflows. A time is computed
as ``fl(fl(p - o) * fl(1/d))``: three roundings, relative error below 2^-51. Bounds on either side are 2^-50
of it away. Where the direction is 0 a face's time is -inf or +inf, or NaN and ignored: a ray in a face is
inside.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import Fields, vector_code, void
from raybox.compiler.simd import F64, I1, I32, I64, Builder, Lanes, Scalar, constant, greater, lesser
from raybox.compiler.simd_arrays import Memory, Register, loop, while_any
from raybox.compiler.simd_transpose import transposed
from raybox.exact.error_free_simd import remainder
from raybox.geometry import BoxRows
from raybox.primitives.status import HIT, MISS, UNDECIDED
from raybox.validation import Floats, Ints, Ints32

LANES = 8
_PAD = 2.0**-50
_UNDERFLOW = 1e-300
_ZIV = 2.0**-49  # five times the relative error of a quotient's correction: three roundings
_TAME = 2.0**300
_MANTISSA = (1 << 52) - 1  # the bits of a power of two that are zero
_FAR = 2.0**500
Interval: TypeAlias = tuple[Lanes, Lanes]  # the bounds of eight boxes on an axis
AHEAD = 24  # a box is prefetched so many pairs before: halves the time of a pair


class Numbers(Protocol):
    """Pairs of a ray and a primitive, of any class: with room for 8 more."""

    @property
    def ray(self) -> Ints32:
        """The rows of the rays."""
        ...

    @property
    def item(self) -> Ints32:
        """The primitives."""
        ...


class Pairs(NamedTuple):
    """Pairs of a ray's row and a primitive, and their results; with room for 8 more."""

    ray: Ints32
    item: Ints32
    status: Ints32  # HIT, MISS or UNDECIDED
    low: Floats  # bounds of the time of first contact
    high: Floats
    source: Ints  # number of the ray among all


def make_pairs(number: int) -> Pairs:
    """Return memory for so many pairs."""
    size = number + LANES
    ray, item, status = np.empty(size, np.int32), np.empty(size, np.int32), np.empty(size, np.int32)
    return Pairs(ray, item, status, np.empty(size), np.empty(size), np.empty(size, np.int64))


class Float64Rays(NamedTuple):
    """Rays as they were given, in float64."""

    origin: list[Lanes]
    direction: list[Lanes]
    t_min: Lanes
    t_max: Lanes


def load_rays(b: Builder, exact: Memory, rays: list[Scalar]) -> Float64Rays:
    """Return eight rays, by their rows of origin, direction, t_min and t_max."""
    columns = transposed([exact.load(b.mul(ray, I64(8)), 8) for ray in rays])
    return Float64Rays(columns[:3], columns[3:6], *columns[6:])


def load_boxes(b: Builder, boxes: Fields, items: list[Scalar]) -> Iterator[Interval]:
    """Yield the lower and upper bounds of eight boxes, axis by axis."""
    for k in range(3):
        places = [b.add(b.mul(item, I64(3)), I64(k)) for item in items]
        yield boxes.lower.gather(places), boxes.upper.gather(places)


def inverse_of(d: Lanes) -> Lanes:
    """Return 1/d, +inf where d is 0."""
    zero = d.equals(0.0)
    return zero.choose(np.inf, constant(d.b, F64, LANES, 1.0) / zero.choose(1.0, d))


class NearPlanes(NamedTuple):
    """For each axis, the near planes of eight boxes, and the rays that cross them."""

    p: list[Lanes]
    o: list[Lanes]
    d: list[Lanes]
    inverse: list[Lanes]  # 1/d, +inf where d is 0


class BoxSlabs(NamedTuple):
    """The times at which eight rays cross the planes of their boxes, within three roundings, axis by axis."""

    planes: NearPlanes
    near: list[Lanes]
    far: list[Lanes]
    extent: Lanes  # the size of the greatest finite plane


def intersect_slabs(ray: Float64Rays, boxes: Iterable[Interval]) -> BoxSlabs:
    """Return the times at which rays cross the planes of their boxes."""
    inverses, near, far = [inverse_of(d) for d in ray.direction], [], []
    planes = NearPlanes([], ray.origin, ray.direction, inverses)
    extent = constant(ray.t_min.b, F64, LANES, 0.0)
    for (low, up), o, inverse in zip(boxes, ray.origin, inverses, strict=True):
        for size in (low.magnitude(), up.magnitude()):
            extent = greater(size.equals(np.inf).choose(0.0, size), extent)
        backward = inverse < 0.0
        planes.p.append(backward.choose(up, low))
        first = (planes.p[-1] - o) * inverse
        last = (backward.choose(low, up) - o) * inverse
        near.append((first > -np.inf).choose(first, -np.inf))  # NaN: the ray lies in the face
        far.append((last < np.inf).choose(last, np.inf))
    return BoxSlabs(planes, near, far, extent)


class Classified(NamedTuple):
    """Certain hits and misses of eight rays and primitives; where both, the ray's range is empty."""

    hits: Lanes
    misses: Lanes
    low: Lanes  # bounds of the times of hits
    high: Lanes


def classify_slabs(slabs: BoxSlabs, ray: Float64Rays) -> Classified:
    """Return which rays hit or miss their boxes, and when; their numbers are in range.

    A condition chooses what the next one compares: for a logic of masks AVX2 packs each mask first.
    """
    near = greater(greater(slabs.near[0], slabs.near[1]), slabs.near[2])
    far = lesser(lesser(slabs.far[0], slabs.far[1]), slabs.far[2])
    low, latest = greater(lower_bound(near), ray.t_min), upper_bound(near)
    misses = low > lesser(upper_bound(far), ray.t_max)
    # a slab, however thin, is entered before it is left: only other axes are compared
    hits = latest < (ray.t_min < lower_bound(far)).choose(ray.t_max, np.nan)
    for k in range(3):
        other = lesser(slabs.far[(k + 1) % 3], slabs.far[(k + 2) % 3])
        hits = upper_bound(slabs.near[k]) < hits.choose(lower_bound(other), np.nan)
    return Classified(hits, misses, low, greater(latest, ray.t_min))


def lower_bound(t: Lanes) -> Lanes:
    """Return a bound below every exact time that may have been computed as t."""
    return lesser(t * (1.0 - _PAD), t * (1.0 + _PAD)) - _UNDERFLOW


def upper_bound(t: Lanes) -> Lanes:
    """Return a bound above every exact time that may have been computed as t."""
    return greater(t * (1.0 - _PAD), t * (1.0 + _PAD)) + _UNDERFLOW


def status_of(hits: Lanes, misses: Lanes) -> Lanes:
    """Return the status of pairs that are hits or misses for certain; none is both."""
    decided = hits.to(I32) * (HIT - UNDECIDED) + UNDECIDED
    return misses.choose(MISS, decided)


def timed_status(known: Lanes) -> Lanes:
    """Return the status of hits: `UNDECIDED` if their times are not known."""
    return known.to(I32) * (HIT - UNDECIDED) + UNDECIDED


def numbers(b: Builder, memory: Memory, at: Scalar) -> list[Scalar]:
    """Load eight numbers as plain values of 64 bits."""
    # one load for each: a vector load would stall on the single stores just before
    numbers = [memory.get(b.add(at, I64(k))) for k in range(LANES)]
    return [number if number.type == I64 else b.sext(number, I64) for number in numbers]


@inlined
def fill_up(pairs: Any, number: int) -> None:
    """Repeat the first pair until eight are full. pairs: anything with arrays `ray` and `item`."""
    for k in range(number, (number + LANES - 1) // LANES * LANES):
        pairs.ray[k], pairs.item[k] = pairs.ray[0], pairs.item[0]


@vector_code(void)
def _classify(b: Builder, boxes: Fields, exact: Memory, pairs: Fields, number: Scalar) -> None:
    with loop(b, number, LANES) as at:
        ray = load_rays(b, exact, numbers(b, pairs.ray, at))
        slabs = intersect_slabs(ray, load_boxes(b, boxes, numbers(b, pairs.item, at)))
        hits, misses, low, high = classify_slabs(slabs, ray)
        pairs.status.store((slabs.extent < _FAR).choose(status_of(hits, misses), UNDECIDED), at)
        pairs.low.store(low, at)
        pairs.high.store(high, at)


@inlined
def classify(boxes: BoxRows, exact: Floats, pairs: Pairs, number: int) -> None:
    """Write the status of pairs of rays and boxes, and bounds of their first contacts."""
    fill_up(pairs, number)
    _classify(boxes, exact, pairs, number)


@vector_code(void)
def _first_contacts(b: Builder, boxes: Fields, exact: Memory, pairs: Fields, number: Scalar) -> None:
    with loop(b, number, LANES) as at:
        look_ahead(b, pairs, at, number, partial(prefetch_box, b, boxes))
        ray = load_rays(b, exact, numbers(b, pairs.ray, at))
        slabs = intersect_slabs(ray, load_boxes(b, boxes, numbers(b, pairs.item, at)))
        known, t = contact(slabs.planes, slabs.near, ray.t_min)
        pairs.status.store(timed_status(known), at)
        pairs.low.store(t, at)


def look_ahead(
    b: Builder, pairs: Fields, at: Scalar, number: Scalar, prefetch_rows: Callable[[Scalar], None]
) -> None:
    """Prefetch eight primitives some pairs ahead."""
    soon = b.add(at, I64(AHEAD))
    with b.if_then(b.icmp_signed("<", soon, number)):
        for item in numbers(b, pairs.item, soon):
            prefetch_rows(item)


def prefetch_box(b: Builder, boxes: Fields, item: Scalar) -> None:
    """Prefetch the corners of a box."""
    for corner in (boxes.lower, boxes.upper):
        corner.prefetch_row(b.mul(item, I64(3)))


def contact(planes: NearPlanes, near: list[Lanes], t_min: Lanes) -> tuple[Lanes, Lanes]:
    """Return (known, first contact rounded once) of rays that hit their boxes.

    near: the times of the planes, within three roundings.
    """
    b = t_min.b
    bound = greater(lower_bound(greater(greater(near[0], near[1]), near[2])), t_min)
    counts = [((upper_bound(x) >= bound) & (x > -np.inf)).to(I64) << k for k, x in enumerate(near)]
    left = Register(b, (counts[0] | counts[1] | counts[2]).value)
    t, all_known = Register(b, t_min.value), Register(b, constant(b, I1, LANES, 1).value)
    # rounding is monotone: the greatest rounded time is the greatest time, rounded; mostly one axis counts
    with while_any(b, left):
        counted, axis = left.lanes > 0, _lowest(left.lanes)
        known, time = quotient(*(_picked(axis, each) for each in planes))
        t.value = counted.choose(greater(time, t.lanes), t.lanes).value
        all_known.value = (all_known.lanes & (known | ~counted)).value
        left.value = (left.lanes & (left.lanes - 1)).value
    return all_known.lanes, t.lanes


def _lowest(bits: Lanes) -> Lanes:
    """Return the number of the lowest of three bits; 2 if none is set."""
    two = constant(bits.b, I64, bits.count, 2)
    return ((bits & 1) > 0).choose(two * 0, ((bits & 2) > 0).choose(two - 1, two))


def _picked(axis: Lanes, each: list[Lanes]) -> Lanes:
    """Return the vector of each lane's axis."""
    return axis.equals(0).choose(each[0], axis.equals(1).choose(each[1], each[2]))


def quotient(p: Lanes, o: Lanes, d: Lanes, inverse: Lanes) -> tuple[Lanes, Lanes]:
    """Return (known, (p - o)/d rounded once); inverse: 1/d, rounded.

    Where d is a power of two, as of rays along an axis, p - o often lies halfway between two floats. Its
    rounding is s, and the division exact.
    """
    s = p - o
    back = s - p
    e = (p - (s - back)) - (o + back)
    q = s / d
    # s - q d is a float (the remainder of a division), so only + e and the product round here
    correction = (remainder(s, q, d) + e) * inverse
    slack = correction.magnitude() * _ZIV
    t = q + (correction - slack)
    size, is_power = s.magnitude(), (d.bits(I64) & _MANTISSA).equals(0)
    tame = (size < _TAME) & ((size > 1 / _TAME) | size.equals(0.0)) & is_tame_divisor(d)
    endless = p.magnitude().equals(np.inf)
    known = (tame & (t.equals(q + (correction + slack)) | is_power)) | endless
    return known, (endless | is_power).choose(q, t) + 0.0


def is_tame_divisor(d: Lanes) -> Lanes:
    """Return whether parts of directions are neither 0 nor so large or small that times might be lost."""
    size = d.magnitude()
    return (size < _TAME) & (size > 1 / _TAME)


@inlined
def first_contacts(boxes: BoxRows, exact: Floats, pairs: Pairs, number: int) -> None:
    """Write first contacts, rounded once, to `low`, and the status: `HIT`, or `UNDECIDED`."""
    fill_up(pairs, number)
    _first_contacts(boxes, exact, pairs, number)
