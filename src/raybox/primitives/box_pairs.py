"""Pairs of rays and boxes decided eight at a time, without a tree: hit or miss, and the time, rounded once.

Pairs that float64 leaves undecided (bounds as in `raybox.primitives.box_simd`), mostly touches, get
`UNDECIDED_INDEX`; `raybox.primitives.box` decides them.
"""

from collections.abc import Iterable
from functools import reduce
from operator import and_
from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, int64, vector_code, void
from raybox.compiler.simd import F64, I64, Builder, Lanes, Scalar, constant, splat, steps
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.geometry import BoxRows, RayRows
from raybox.primitives.box_simd import (
    BoxSlabs,
    Float64Rays,
    Interval,
    classify_slabs,
    contact,
    intersect_slabs,
    load_boxes,
    load_rays,
    numbers,
    status_of,
)
from raybox.primitives.pairs import Pairing, decide_pair, ray_of
from raybox.primitives.ray import origin_row
from raybox.primitives.status import MISS_INDEX, UNDECIDED, UNDECIDED_INDEX
from raybox.validation import Floats, Ints

LANES = 8
TILE = 112  # numbers of one ray and one box, eight times each: see `_fill`
_ROW = 3 * LANES
_LIMIT = 2.0**400  # with numbers up to this size, no time over- or underflows


class Work(NamedTuple):
    """Rays, boxes, their pairs, and memory."""

    rays: RayRows
    boxes: BoxRows
    pairing: Pairing
    tile: Floats  # (TILE,)


def make_work(rays: RayRows, boxes: BoxRows, pairing: Pairing) -> Work:
    """Return pairs for the kernels."""
    return Work(rays, boxes, pairing, np.empty(TILE))


def _in_range(vectors: list[Lanes], least: float) -> Lanes:
    """Return where the numbers' sizes lie between `least` and `_LIMIT`, or are 0."""
    sizes = [vector.magnitude() for vector in vectors]
    return reduce(and_, [((size < _LIMIT) & (size >= least)) | size.equals(0.0) for size in sizes])


def _classify(ray: Float64Rays, boxes: Iterable[Interval]) -> tuple[Lanes, Lanes, BoxSlabs]:
    """Return which of eight pairs hit, which miss, and when lines cross the boxes' planes."""
    slabs = intersect_slabs(ray, boxes)
    in_range = (slabs.extent < _LIMIT) & _in_range(ray.origin, 0.0)
    in_range = in_range & _in_range(ray.direction, 1 / _LIMIT)
    real = (ray.t_min <= ray.t_max) & (ray.t_min < np.inf) & (ray.t_max > -np.inf)
    certain = classify_slabs(slabs, ray)
    misses = (certain.misses & in_range) | ~real
    return certain.hits & in_range & ~misses, misses, slabs


def _columns(memory: Memory, place: Scalar) -> list[Lanes]:
    """Load eight rows of three numbers, as their columns."""
    b = memory.b
    parts = [memory.load(b.add(place, I64(LANES * k)), LANES) for k in range(3)]
    columns = []
    for k in range(3):
        picks = [3 * lane + k for lane in range(LANES)]
        two = parts[0].shuffled(parts[1], [p if p < 2 * LANES else 0 for p in picks])
        rest = [lane if p < 2 * LANES else p - LANES for lane, p in enumerate(picks)]
        columns.append(two.shuffled(parts[2], rest))
    return columns


class _Fixed(NamedTuple):
    """What is the same in all pairs of a run, and in the tile: 1, or 0."""

    ray: int
    origin: int
    t_min: int
    t_max: int
    box: int


class _Run(NamedTuple):
    """Numbers of the first ray, box and pair of a run, and how many pairs it has."""

    ray: int
    item: int
    pair: int
    number: int


@vector_code(int64)
def _decide_run(b: Builder, work: Fields, fixed: Fields, run: Fields, index: Memory, t: Memory) -> Scalar:
    """Decide a run of at least eight pairs; return how many stay undecided."""
    rays, boxes, tile = work.rays, work.boxes, work.tile
    ray, item, pair, number = run.ray, run.item, run.pair, run.number
    same_ray, same_origin, same_low, same_high, same_box = (
        b.icmp_signed("!=", f, I64(0)) for f in (fixed.ray, fixed.origin, fixed.t_min, fixed.t_max, fixed.box)
    )
    undecided = Register(b, I64(0))
    zero = I64(0)
    with loop(b, number, LANES) as step:
        last = b.sub(number, I64(LANES))
        at = b.select(b.icmp_signed("<", step, last), step, last)

        def rows(memory: Memory, same: Scalar, place: int, begin: Scalar) -> tuple[Memory, Scalar]:
            data = b.select(same, tile.at(place), memory.data)
            return Memory(b, F64, data), b.select(same, zero, begin)

        def triples(memory: Memory, same: Scalar, place: int, begin: Scalar) -> list[Lanes]:
            chosen, start = rows(memory, same, place, begin)
            return _columns(chosen, b.mul(start, I64(3)))

        ray_at, item_at = b.add(ray, at), b.add(item, at)
        low_t, low_at = rows(rays.t_min, same_low, 4 * _ROW, ray_at)
        high_t, high_at = rows(rays.t_max, same_high, 4 * _ROW + LANES, ray_at)
        one = Float64Rays(
            triples(rays.origins, same_origin, 0, ray_at),
            triples(rays.directions, same_ray, _ROW, ray_at),
            low_t.load(low_at, LANES) + 0.0,
            high_t.load(high_at, LANES),
        )
        lower = triples(boxes.lower, same_box, 2 * _ROW, item_at)
        upper = triples(boxes.upper, same_box, 3 * _ROW, item_at)
        hits, misses, slabs = _classify(one, zip(lower, upper, strict=True))
        undecided_index = constant(b, I64, LANES, UNDECIDED_INDEX)
        no_index = misses.choose(MISS_INDEX, undecided_index)
        items = steps(b, b.select(same_box, zero, item_at), LANES)
        items = splat(b, same_box, LANES).choose(splat(b, item, LANES), items)
        to = b.add(pair, at)
        index.store(hits.choose(items, no_index), to)
        t.store(constant(b, F64, LANES, np.inf), to)
        with b.if_then(hits.any()):
            known, time = contact(slabs.planes, slabs.near, one.t_min)
            index.store(hits.choose(known.choose(items, UNDECIDED_INDEX), no_index), to)
            t.store((hits & known).choose(time, np.inf), to)
        left = index.load(to, LANES).equals(UNDECIDED_INDEX)
        undecided.value = b.add(undecided.value, b.ctpop(left.mask()))
    return undecided.value


@vector_code(void)
def decide_listed(b: Builder, boxes: Fields, exact: Memory, pairs: Fields, number: Scalar) -> None:
    """Write the status of pairs that are listed, and first contacts to `low`.

    `exact` holds each ray's origin, direction, t_min and t_max; `pairs`: `raybox.primitives.box_simd.Pairs`.
    """
    with loop(b, number, LANES) as at:
        ray = load_rays(b, exact, numbers(b, pairs.ray, at))
        hits, misses, slabs = _classify(ray, load_boxes(b, boxes, numbers(b, pairs.item, at)))
        status = status_of(hits, misses)
        pairs.status.store(status, at)
        with b.if_then(hits.any()):
            known, time = contact(slabs.planes, slabs.near, ray.t_min)
            pairs.status.store((hits & ~known).choose(UNDECIDED, status), at)
            pairs.low.store(time, at)


@device
def _fill(rays: RayRows, boxes: BoxRows, ray: int, item: int, tile: Floats) -> None:
    """Write to the tile one ray's origin, direction and range, and one box's corners, each eight times."""
    for k in range(LANES):
        for axis in range(3):
            at = 3 * k + axis
            tile[at] = rays.origins[origin_row(rays, ray), axis]
            tile[_ROW + at] = rays.directions[ray, axis]
            tile[2 * _ROW + at] = boxes.lower[item, axis]
            tile[3 * _ROW + at] = boxes.upper[item, axis]
        tile[4 * _ROW + k] = rays.t_min[ray if rays.t_min.size > 1 else 0]
        tile[4 * _ROW + LANES + k] = rays.t_max[ray if rays.t_max.size > 1 else 0]


@entry
def decide_runs(work: Work, span: tuple[int, int], index: Ints, t: Floats) -> int:
    """Write index and first contact of pairs span[0] <= k < span[1]; return how many stay undecided."""
    rays, boxes, pairing, tile = work
    undecided = 0
    same_ray, same_box = pairing.column == 0, pairing.step == 0
    same_origin = same_ray or rays.origins.shape[0] == 1
    same_low, same_high = same_ray or rays.t_min.size == 1, same_ray or rays.t_max.size == 1
    fixed = _Fixed(int(same_ray), int(same_origin), int(same_low), int(same_high), int(same_box))
    k = span[0]
    while k < span[1]:
        at = k % pairing.inner
        number = min(span[1] - k, pairing.inner - at)
        if number < LANES:
            for pair in range(k, k + number):
                index[pair] = UNDECIDED_INDEX
            undecided += number
        else:
            ray, item = ray_of(pairing, k), at * pairing.step
            _fill(rays, boxes, ray, item, tile)
            undecided += _decide_run(work, fixed, _Run(ray, item, k, number), index, t)
        k += number
    return undecided


@entry
def decide_undecided(work: Work, undecided: Ints, index: Ints, t: Floats) -> None:
    """Decide pairs, given by number, exactly."""
    rays, boxes, pairing, _ = work
    for k in undecided:
        decide_pair(rays, boxes, pairing, k, index, t)
