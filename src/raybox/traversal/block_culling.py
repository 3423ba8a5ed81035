"""Blocks of up to 256 rays of a picture that certainly hit nothing: found at a few nodes, by intervals.

Of a block's rays, the origins are in an interval of each axis, and the directions, too. A ray that hits a
slot is inside of its planes at one time t of its range. So on each axis, for t >= 0::

    low <= o + t d <= greatest o + t * greatest d
     up >= o + t d >=    least o + t *    least d

That is t g >= s, six times, with g = greatest d and s = low - greatest o, or with g = -least d and s = least
o - up. Where g > 0 the slot is entered at s / g or later, where g < 0 it is left at s / g or before. The
block misses the slot if the last of these entries comes after the first of these exits.

**Margins.** All is float64 in tree coordinates, u = 2^-53. Origins are rounded there once: by u of
themselves, less than `_ROUND`, and by an underflow less than `NUDGE`. A greater g accepts more times, so
those below 2^-60 of the longest direction, and 0, are taken for that. So 1 / g, s and their product are each
off by u of themselves, a time s / g by 4u, of which `_LATER` is 16u, and by an underflow less than `_SHORT`:
directions are within 2^`_TAME`, and the inverse of g at least 2^-`_TAME`.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, NUDGE, ROOT_ALONE, ROW, WIDTH
from raybox.compiler.decorators import device, whole
from raybox.compiler.intrinsics import Fields, int64, larger, smaller, vector_code
from raybox.compiler.simd import (
    F32,
    F64,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    greater,
    joined,
    lesser,
    splat,
)
from raybox.compiler.simd_arrays import Memory, Register, loop, on_stack, while_true
from raybox.traversal.job import Job
from raybox.traversal.packet_tiles import SIDE, rows_of
from raybox.traversal.ray_setup import CENTER, LANES, REACH, SCALE
from raybox.traversal.workspace import NO_OCTANT, UNFIT, PacketRecorder, Span

MOST_NODES = 8  # at which a block is tested; with more it takes longer than its packets
TILES = 16  # of a block, at most
_ROUND = 2.0**-51
_LATER = 2.0**-49
_FLAT = 2.0**-60
_TAME = 400
_PATIENCE, _MOST_SKIPPED = 4, 8
_ROW = 64  # rays of a block's row, of rays in a row
_SHORT = 2.0**-500
_PLANES = 0, 1, 2, 4, 5, 6  # lanes of three lower planes, then of three upper ones


class Block(NamedTuple):
    """Neighbouring tiles of some bands: rows of rays, `stride` apart."""

    first: int
    stride: int
    bands: int
    columns: int  # tiles of a band
    apart: int  # rays from one of these to the next


class _Interval(NamedTuple):
    """The least and greatest numbers of a block's rays, of an axis in each lane; the fourth is not used."""

    low: Lanes
    high: Lanes


class _Limits(NamedTuple):
    """Six times t g >= s, for three lower planes, then three upper ones; and the range of t."""

    origin: list[Lanes]  # s is a lower plane less this, or this less an upper plane
    inverse: list[Lanes]  # of g
    enters: list[Lanes]  # whether g > 0
    first: Lanes
    last: Lanes


class Streak(NamedTuple):
    """How many blocks in a row may hit something, and how many are not tested before the next one is."""

    survived: int
    skipped: int


@device
def cull_blocks(job: Job, recorder: PacketRecorder, span: Span, stride: int, streak: Streak) -> Streak:
    """Mark the tiles of blocks that certainly hit nothing `NO_OCTANT`, others `UNFIT`.

    The span is a group of tiles, and tile k of it is marked in `recorder.octant`. Where one block after the
    other may hit something, few are tested.
    """
    survived, skipped = streak
    for k in range((span.end - span.begin) // LANES):
        recorder.octant[k] = UNFIT
    shape = _shape_of(job, span, stride)
    in_band, high = shape.stride // SIDE, shape.bands
    if high == 0:
        return streak
    bands = (span.end - span.begin) // (SIDE * shape.stride)
    for top in range(0, bands, high):
        band = smaller(top, bands - high)  # the last blocks overlap those before
        first = span.base + span.begin + SIDE * band * shape.stride
        for left in range(0, in_band, shape.columns):
            column = smaller(left, in_band - shape.columns)
            skipped -= 1
            if skipped >= 0:
                continue
            if is_culled(job, Block(first + SIDE * column, *shape[1:])):
                survived, skipped = whole(0), whole(0)
                for row in range(band, band + high):
                    for k in range(row * in_band + column, row * in_band + column + shape.columns):
                        recorder.octant[k] = NO_OCTANT
            else:
                survived, skipped = survived + 1, smaller(survived // _PATIENCE, _MOST_SKIPPED)
    return Streak(survived, skipped)


@device
def _shape_of(job: Job, span: Span, stride: int) -> Block:
    """Return a block as all of a group are; one without bands where none can be culled."""
    bands = (span.end - span.begin) // (SIDE * larger(stride, _ROW if stride == SIDE else 0))
    if bands == 0 or job.tree.starts.size != ROOT_ALONE.size or job.tree.starts[0, 1] != 1:
        return Block(0, _ROW, 0, 1, SIDE)
    if stride == SIDE:  # rays in a row: a band of all columns has those of whole tiles
        return Block(0, _ROW, 1, TILES, SIDE)
    columns = smaller(stride // SIDE, TILES // smaller(SIDE, bands))
    return Block(0, stride, smaller(TILES // columns, bands), columns, SIDE)


@device
def is_culled(job: Job, block: Block) -> bool:
    """Return whether all rays of a block certainly hit nothing.

    Most blocks that hit something are found by rays of their edges alone.
    """
    edges = Block(
        block.first, block.stride * (SIDE * block.bands - 1) // (SIDE - 1), 1, 2, SIDE * (block.columns - 1)
    )
    for part in (edges, block):  # noqa: SIM110  # its code is there once
        if misses_all(job, part) == 0:
            return False
    return True


@vector_code(int64)
def misses_all(b: Builder, job: Fields, block: Fields) -> Scalar:
    """Return 1 if all rays of a block certainly hit nothing, else 0."""
    limits, tame = _limits(b, job, block)
    left = Register(b, I64(1))
    with b.if_then(tame):
        left.value = _nodes_left(b, job.tree, limits)
    return b.zext(b.icmp_signed("==", left.value, I64(0)), I64)


def _nodes_left(b: Builder, tree: Fields, limits: _Limits) -> Scalar:
    """Return 0 if a few nodes prove that nothing is within limits."""
    stack = on_stack(b, I32, MOST_NODES * WIDTH + WIDTH)
    stack.put(tree.starts.get(0), 0)
    left, visits, planes = Register(b, I64(1)), Register(b, I64(MOST_NODES)), tree.nodes.as_items(F32)

    def goes_on() -> Scalar:
        return b.and_(*(b.icmp_signed(">", number.value, I64(0)) for number in (left, visits)))

    with while_true(b, goes_on):
        left.value, visits.value = b.sub(left.value, I64(1)), b.sub(visits.value, I64(1))
        row = b.mul(b.sext(stack.get(left.value), I64), I64(ROW))
        children = tree.nodes.load(b.add(row, I64(CHILD)), WIDTH)
        within = _within(limits, planes, row) & ~children.equals(EMPTY)
        inner = within & (children > -1)
        stack.squeeze(children, inner, left.value)
        boxes = (within & (children < 0)).any()
        left.value = b.add(left.value, b.ctpop(within.mask()))
        visits.value = b.select(boxes, I64(0), visits.value)
    return left.value


def _within(limits: _Limits, planes: Memory, row: Scalar) -> Lanes:
    """Return which slots of a node may be within limits."""
    enter, leave = limits.first, limits.last
    for k, (origin, inverse, enters) in enumerate(zip(*limits[:3], strict=True)):
        plane = planes.load(planes.b.add(row, I64(WIDTH * k)), WIDTH).to(F64)
        t = (plane - origin if k < 3 else origin - plane) * inverse
        enter, leave = enters.choose(greater(t, enter), enter), enters.choose(leave, lesser(t, leave))
    return ~(enter * (1.0 - _LATER) - _SHORT > leave)


def _limits(b: Builder, job: Fields, block: Fields) -> tuple[_Limits, Scalar]:
    """Return what limits the hits of a block, and whether its numbers are within those of the proof."""
    rays, numbers = job.rays, job.frame.numbers
    center, scale = numbers.load(CENTER, SIDE), numbers.splat(SCALE, SIDE)
    low, high = ((x - center) * scale for x in _extremes(b, rays.origins, block, 3))
    low, high = low - low.magnitude() * _ROUND - NUDGE, high + high.magnitude() * _ROUND + NUDGE
    slowest, fastest = _extremes(b, rays.directions, block, 3)
    growth = joined([fastest, -slowest])
    longest = splat(b, _largest(growth).lane(0), WIDTH)
    growth = (growth.magnitude() < longest * _FLAT).choose(longest * _FLAT, growth)
    inverse, origin = constant(b, F64, WIDTH, 1.0) / growth, joined([high, low])
    origins, inverses = ([x.permuted([k] * WIDTH) for k in _PLANES] for x in (origin, inverse))
    first = _extremes(b, rays.t_min, block, 1).low.permuted([0])
    last = _extremes(b, rays.t_max, block, 1).high.permuted([0])
    tame = (first >= 0.0) & (_largest(origin) < numbers.splat(REACH, 1))
    for bounded in (longest.permuted([0]) > 2.0**-_TAME, longest.permuted([0]) < 2.0**_TAME):
        tame = tame & bounded
    ends = [(t * numbers.splat(SCALE, 1)).permuted([0] * WIDTH) for t in (first, last)]
    return _Limits(origins, inverses, [each > 0.0 for each in inverses], *ends), tame.lane(0)


def _largest(planes: Lanes) -> Lanes:
    """Return the largest magnitude of six numbers, in their lanes."""
    return planes.magnitude().permuted([*_PLANES, *_PLANES[:2]]).greatest()


def _extremes(b: Builder, memory: Memory, block: Fields, width: int) -> _Interval:
    """Return the extremes of a block's vectors of so many numbers, or of the one vector of all rays.

    NaN is left out: such rays hit nothing.
    """
    low, high = (
        [Register(b, constant(b, F64, SIDE, x).value) for _ in range(width)] for x in (np.inf, -np.inf)
    )
    alone = b.icmp_signed("<=", memory.size, I64(width))
    with b.if_then(alone):
        one = memory.gather([min(k, width - 1) for k in range(SIDE)])
        low[0].value = high[0].value = one.value
    bands = b.select(alone, I64(0), block.bands)
    with loop(b, bands) as band, loop(b, block.columns) as column:
        at = b.add(b.mul(b.mul(band, I64(SIDE)), block.stride), b.mul(column, block.apart))
        for row in rows_of(b, b.add(block.first, at), block.stride):
            for k in range(width):
                some = memory.load(b.add(b.mul(row, I64(width)), I64(SIDE * k)), SIDE)
                low[k].value, high[k].value = (
                    lesser(some, low[k].lanes).value,
                    greater(some, high[k].lanes).value,
                )
    return _Interval(_folded(low, lesser), _folded(high, greater))


def _folded(vectors: list[Register], fold: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
    """Return one number of each axis, or one alone: vectors are rows of numbers, or numbers."""
    if len(vectors) == 1:
        one = vectors[0].lanes
        return fold(
            fold(one, one.permuted([1, 0, 3, 2])),
            fold(one.permuted([2, 3, 0, 1]), one.permuted([3, 2, 1, 0])),
        )
    x, y, z = (vector.lanes for vector in vectors)
    second, third = x.shuffled(y, [3, 4, 5, 5]), y.shuffled(z, [2, 3, 4, 4])
    return fold(fold(x, second), fold(third, z.permuted([1, 2, 3, 3])))
