"""By what rays are sorted: the octant that they run into, and the cell of the scene in which they enter.

A glance in float32 is enough here: a ray is `LOST` where that is safe to say, and `CAREFUL` where its
direction is out of reach of float32. `raybox.bvh.aim` finds the rest of those that meet nothing, or are
not for vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba import types

from raybox.bvh.aim import CELLS, LANES, NUMBERS
from raybox.bvh.layout import NUDGE
from raybox.kernels.jit import device
from raybox.kernels.lanes import (
    F32,
    F64,
    I32,
    I64,
    Lanes,
    Register,
    bits,
    constant,
    greater,
    lesser,
    loop,
    splat,
    steps,
    vector_code,
)

CAREFUL = 8 * CELLS**3  # the key of rays that are not for vectors
LOST = CAREFUL + 1  # the key of rays that meet nothing
_ROUGH = 2.0**-20  # many times what float32 rounds off
_SLOW = 2.0**-40  # direction parts below this share of the largest constrain nothing here
_REACH = 2.0**80
_AHEAD = 176  # rays that are asked for before their turn: 4 KB of origins
_LINE = 8  # numbers in a cache line


def bounds_in_a_row(b: Any, bound: Any, at: Any) -> Lanes:
    """Load one bound of sixteen neighbouring rays; one given once serves every ray."""
    with b.if_else(b.icmp_signed(">", bound.size, I64(1))) as (many, once):
        with many:
            each = bound.load(at, LANES).value
            there = b.block
        with once:
            same = bound.splat(0, LANES).value
            here = b.block
    chosen = b.phi(each.type)
    chosen.add_incoming(each, there)
    chosen.add_incoming(same, here)
    return Lanes(b, chosen)


def columns_of(rows: Lanes) -> list[Lanes]:
    """Return the columns of sixteen rows of three."""
    return [rows.shuffled(rows, list(range(k, 3 * LANES, 3))) for k in range(3)]


@device
def sort_by(keys: Any, number: int, starts: Any, order: Any) -> None:
    """Write so many rays in the order of their keys, and where each key begins.

    Key k has starts[k] <= place < starts[k + 1]; there is room in starts for two more than the largest key.
    """
    starts[:] = 0
    for k in range(number):
        starts[keys[k] + 1] += 1
    for key in range(1, starts.size - 1):
        starts[key + 1] += starts[key]
    for k in range(number):
        order[starts[keys[k]]] = k
        starts[keys[k]] += 1
    for key in range(starts.size - 1, 0, -1):
        starts[key] = starts[key - 1]
    starts[0] = 0


@vector_code(types.void)
def sort_keys(b: Any, rays: Any, frame: Any, begin: Any, end: Any, keys: Any) -> None:
    """Write by what each ray begin <= k < end is best sorted: octant and cell of entry, or CAREFUL, or LOST.

    keys[0] is that of ray begin. There are 16 rays at least.
    """
    number = b.sub(end, begin)
    last = b.sub(number, I64(LANES))
    look = _Look(b, frame.numbers)
    with loop(b, number, LANES) as step:
        at = b.select(b.icmp_signed("<", step, last), step, last)  # the last vector overlaps the one before
        _ask_ahead(b, rays, b.add(begin, at))
        keys.store(look.key(rays, b.add(begin, at)), at)


def _ask_ahead(b: Any, rays: Any, at: Any) -> None:
    """Ask for the memory of sixteen rays to come: a core by itself fetches too few lines at once."""
    row = b.mul(b.add(at, I64(_AHEAD)), I64(3))
    for vectors in (rays.origins, rays.directions):
        for item in range(0, 3 * LANES, _LINE):
            vectors.prefetch(b.add(row, I64(item)))


@contextmanager
def _kept(b: Any, keys: Any, begin: Any, end: Any) -> Iterator[tuple[Any, Any]]:
    """Emit a loop over the rays begin <= k < end that are not lost; yields k and its key."""
    number = b.sub(end, begin)
    with loop(b, number, LANES) as step:
        at = b.add(begin, step)
        valid = steps(b, step, LANES) < splat(b, number, LANES)
        with bits(b, ((keys.load(at, LANES) < LOST) & valid).mask()) as lane:
            k = b.add(at, lane)
            yield k, keys.get(k)


@vector_code(types.void)
def count_keys(b: Any, keys: Any, begin: Any, end: Any, counts: Any) -> None:
    """Add to counts[key] how many rays begin <= k < end have that key, LOST aside."""
    with _kept(b, keys, begin, end) as (_, key):
        counts.put(b.add(counts.get(key), I64(1)), key)


@vector_code(types.int64)
def copy_rays(b: Any, rays: Any, keys: Any, span: Any, row: Any, rows: Any) -> Any:
    """Copy the rays base + k, begin <= k < end, less the lost, to rows from `row` on; return where they end.

    span: (base, begin, end). While rays are at hand: a row is a cache line, and is found again in one fetch,
    where an origin and a direction lie in two or three, among those of rays that are lost.
    """
    base, begin, end = span
    free = Register(b, row)
    with _kept(b, keys, begin, end) as (k, _):
        to = b.mul(free.value, I64(NUMBERS))
        for number, value in enumerate(_numbers_of(b, rays, b.add(base, k))):
            rows.put(value, b.add(to, I64(number)))
        free.value = b.add(free.value, I64(1))
    return free.value


def _numbers_of(b: Any, rays: Any, ray: Any) -> list[Any]:
    """Load a ray, as a row has it."""
    first = b.mul(ray, I64(3))
    ways = [v.get(b.add(first, I64(axis))) for v in (rays.origins, rays.directions) for axis in range(3)]
    low, high = (
        bound.get(b.select(b.icmp_signed(">", bound.size, I64(1)), ray, I64(0)))
        for bound in (rays.t_min, rays.t_max)
    )
    return [*ways, b.fadd(low, F64(0.0)), high]  # -0.0 becomes 0.0


@vector_code(types.void)
def spread_keys(b: Any, keys: Any, span: Any, places: Any, order: Any, where: Any) -> None:
    """Write rays span[0] <= k < span[1], less the lost, to order[places[key]]: each key has a next place.

    To where[places[key]] goes the row that `copy_rays` gave the ray, from row span[0] on.
    """
    row = Register(b, span[0])
    with _kept(b, keys, span[0], span[1]) as (k, key):
        place = places.get(key)
        order.put(b.trunc(k, I32), place)
        where.put(b.trunc(row.value, I32), place)
        row.value = b.add(row.value, I64(1))
        places.put(b.add(place, I64(1)), key)


class _Look:
    """What sorting takes of a frame, in float32, and a glance at sixteen neighbouring rays."""

    def __init__(self, b: Any, numbers: Any) -> None:
        self.b = b
        three = numbers.load(0, 4)
        self.center = three.shuffled(three, list(range(3)) * LANES)
        self.scale = numbers.splat(3, 3 * LANES)
        self.unit = numbers.splat(3, LANES)
        self.low, self.up, self.corner, self.each = (
            [numbers.splat(begin + k, LANES).to(F32) for k in range(3)] for begin in (4, 7, 10, 13)
        )

    def key(self, rays: Any, at: Any) -> Lanes:
        """Return the keys of rays from `at` on."""
        b, row = self.b, self.b.mul(at, I64(3))
        o, d = (vectors.load(row, 3 * LANES) for vectors in (rays.origins, rays.directions))
        o, d = ((o - self.center) * self.scale).to(F32), d.to(F32)
        v, w = columns_of(o), columns_of(d)
        low_t, high_t = (bounds_in_a_row(b, bound, at) for bound in (rays.t_min, rays.t_max))
        real = (low_t <= high_t) & (low_t < np.inf) & (high_t > -np.inf)
        longest = greater(w[0].magnitude(), greater(w[1].magnitude(), w[2].magnitude()))
        start, stop = ((t * self.unit).to(F32) for t in (low_t, high_t))
        start, stop = self._clip(v, w, longest, start, stop)
        lost = ~real | (start > stop)
        calm = (longest > 1 / _REACH) & (longest < _REACH)
        return lost.choose(constant(b, I32, LANES, LOST), calm.choose(self._cell(v, w, start), CAREFUL))

    def _clip(
        self, v: list[Lanes], w: list[Lanes], longest: Lanes, start: Lanes, stop: Lanes
    ) -> tuple[Lanes, Lanes]:
        """Clip a range to the bounds of everything, outward; what overflows is NaN, and is no bound."""
        start = start - start.magnitude() * _ROUGH - NUDGE
        stop = stop + stop.magnitude() * _ROUGH + NUDGE
        for k in range(3):
            moves = w[k].magnitude() > longest * _SLOW
            inverse = constant(self.b, F32, LANES, 1.0) / moves.choose(w[k], 1.0)
            one, other = (self.low[k] - v[k]) * inverse, (self.up[k] - v[k]) * inverse
            size = greater(self.low[k].magnitude(), self.up[k].magnitude()) + v[k].magnitude()
            pad = size * _ROUGH * inverse.magnitude()
            start = moves.choose(greater(lesser(one, other) - pad, start), start)
            stop = moves.choose(lesser(greater(one, other) + pad, stop), stop)
        return start, stop

    def _cell(self, v: list[Lanes], w: list[Lanes], start: Lanes) -> Lanes:
        """Return the octant that rays run into and the cell in which they enter."""
        zero, last = (constant(self.b, F32, LANES, edge) for edge in (0.0, CELLS - 1.0))
        key = constant(self.b, I32, LANES, 0)
        for k in range(3):
            cell = (v[k] + start * w[k] - self.corner[k]) * self.each[k]
            whole = lesser(greater(cell, zero), last).to(I32)
            for bit in range(3):
                key = key | ((whole & (1 << bit)) << (2 * bit + k))
            key = key | ((w[k] < 0.0).to(I32) << (9 + k))
        return key
