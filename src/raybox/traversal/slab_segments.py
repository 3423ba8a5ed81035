"""The cells of a ray in a grid of even planes, in order, with exact times, eight slabs at a time.

A slab has up to three cells (`raybox.traversal.plane_slabs`): that which a ray enters by the major axis, and
those which it enters by planes of the others, in the order of their computed times, which is exact. Each slab
stores three, with times that are rounded once; the next slab overwrites those that are none:

    slab 0    A B C            C is none: the ray crosses one plane of the other axes
    slab 1        A B C        neither B nor C is one
    slab 2          A B C
    stored    A B A A B C
"""

from raybox.compiler.decorators import inlined
from raybox.compiler.intrinsics import Fields, int64, vector_code
from raybox.compiler.simd import I64, Builder, Lanes, Scalar
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.traversal.plane_slabs import FEWEST, LANES, SlabRun, Slabs, Way, crossings_of
from raybox.validation import Floats, Ints

PADDING = 3  # items behind the last cell that are overwritten


def _places_of(b: Builder, slabs: Slabs, begin: Scalar) -> list[Scalar]:
    """Return where the cells of each slab begin, and where the last ones end."""
    masks = [part.is_in.mask() for part in slabs.parts]
    places = [begin]
    for s in range(1, LANES + 1):
        counts = [b.ctpop(b.and_(mask, I64((1 << s) - 1))) for mask in masks]
        places.append(b.add(begin, b.add(counts[0], b.add(counts[1], counts[2]))))
    return places


def _put_in_order(memory: Memory, slabs: Slabs, each: list[Lanes], places: list[Scalar]) -> None:
    """Store a number of each part of slabs in the order in which a ray enters them, slab after slab."""
    (_, one, two), (entered, of_one, of_two) = slabs.parts, each
    swapped = two.times < one.times
    second, third = swapped.choose(of_two, of_one), swapped.choose(of_one, of_two)
    pairs = [
        entered.shuffled(second, [k + n for k in range(first, LANES, 2) for n in (0, LANES)])
        for first in (0, 1)
    ]
    for s in range(LANES):
        memory.store(pairs[s & 1].permuted([s & ~1, s | 1]), places[s])
        memory.put(third.lane(s), memory.b.add(places[s], I64(2)))


@vector_code(int64)
def _write(b: Builder, index: Memory, times: Memory, begin: Scalar, way: Fields) -> Scalar:
    """Write cells and times of a ray from a place on; return where they end, -1 if one is not certain."""
    run = SlabRun(b, way.major, way.others, way.ends)
    at, uncertain = Register(b, begin), Register(b, I64(0))
    with loop(b, run.slab_count, LANES) as s:
        slabs = run.enter(s)
        known, exact = run.exact_times(s, slabs)
        places = _places_of(b, slabs, at.value)
        _put_in_order(index, slabs, [part.cells for part in slabs.parts], places)
        _put_in_order(times, slabs, exact, places)
        at.value = places[LANES]
        uncertain.value = b.or_(uncertain.value, (slabs.is_slab & ~(slabs.is_certain & known)).mask())
    return b.select(b.icmp_signed("==", uncertain.value, I64(0)), at.value, I64(-1))


@inlined
def write_segments(way: Way, index: Ints, times: Floats, begin: int) -> int:
    """Write a ray's cells, and when it enters each, from a place on; return how many, 0 if not certain.

    The ends of its course are rounded once. Without room for all cells and `PADDING`, nothing is written.
    """
    crossings = crossings_of(way.axes, way.scales, way.course)
    planes = way.course.x.crossed + way.course.y.crossed + way.course.z.crossed
    if planes < FEWEST or begin + planes + 1 + PADDING > index.size:
        return 0
    return max(0, _write(index, times, begin, crossings) - begin)
