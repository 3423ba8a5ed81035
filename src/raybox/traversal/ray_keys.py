"""The keys by which rays are sorted: the octant that they run into, and the cell in which they enter.

A rough test in float32 is enough here: a ray has `MISS_KEY` where it certainly hits nothing, `SINGLE_RAY_KEY`
where its direction is out of reach of float32. `raybox.traversal.ray_setup` finds the other rays that hit
nothing, or are not packed.
"""

import numpy as np

from raybox.bvh.node import NUDGE
from raybox.compiler.decorators import device
from raybox.compiler.intrinsics import Fields, int64, vector_code, void
from raybox.compiler.simd import (
    F32,
    F64,
    I1,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    greater,
    lesser,
    lined_up,
    steps,
)
from raybox.compiler.simd_arrays import Memory, Register, loop, vector_at
from raybox.traversal.packet_tiles import load_bounds, load_origins, load_rows, rows_of, store_tile
from raybox.traversal.ray_setup import CELLS, CELLS_A_UNIT, CENTER, CORNER, HIGH, LANES, LOW, NUMBERS, SCALE
from raybox.validation import Ints, Ints32

SINGLE_RAY_KEY = 8 * CELLS**3  # the key of rays that go one by one, each decision exact
MISS_KEY = SINGLE_RAY_KEY + 1  # the key of rays that hit nothing
_ROUGH = 2.0**-20  # many times what float32 rounds off
_SLOW = 2.0**-40  # direction parts below this share of the largest constrain nothing here
_LIMIT = 2.0**80
_AHEAD = 176  # rays that are prefetched: 4 KB of origins
_LINE = 8  # numbers in a cache line


def columns_of(rows: Lanes) -> list[Lanes]:
    """Return the columns of sixteen rows of three."""
    return [rows.permuted(range(k, 3 * LANES, 3)) for k in range(3)]


@device
def sort_by(keys: Ints32, number: int, starts: Ints, order: Ints32) -> None:
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


@vector_code(void)
def sort_keys(b: Builder, rays: Fields, frame: Fields, begin: Scalar, end: Scalar, keys: Memory) -> None:
    """Write the keys of the rays begin <= k < end: octant and cell of entry, or one of the keys above.

    keys[0] is that of ray begin. There are 16 rays at least.
    """
    number = b.sub(end, begin)
    last = b.sub(number, I64(LANES))
    sorter = _Sorter(b, frame.numbers)
    with loop(b, number, LANES) as step:
        at = b.select(b.icmp_signed("<", step, last), step, last)  # the last vector overlaps the one before
        _prefetch_rays(b, rays, b.add(begin, at))
        keys.store(sorter.key(rays, [b.add(begin, at)]), at)


@vector_code(void)
def sort_tile(b: Builder, rays: Fields, frame: Fields, base: Scalar, tile: Fields, keys: Memory) -> None:
    """Write the keys of a tile, as `sort_keys` does: keys[k] is that of ray base + k."""
    rows = rows_of(b, tile.first, tile.stride)
    store_tile(keys, rows, _Sorter(b, frame.numbers).key(rays, [b.add(base, row) for row in rows]))


def _prefetch_rays(b: Builder, rays: Fields, at: Scalar) -> None:
    """Prefetch sixteen rays to come: a core by itself fetches too few lines at once."""
    for vectors in (rays.origins, rays.directions):
        first = vector_at(b, vectors, b.add(at, I64(_AHEAD)))
        for item in range(0, 3 * LANES, _LINE):
            vectors.prefetch(b.add(first, I64(item)))


@vector_code(int64)
def keep_keys(
    b: Builder, keys: Memory, span: list[Scalar], row: Scalar, listed: Memory, numbers: Memory
) -> Scalar:
    """List the keys and numbers of the rays begin <= k < end that may hit anything; return where they end.

    span: (begin, end); keys[0] is that of ray begin. The lists go on from `row`, and `listed` may be the
    memory that keys are in, if begin is not before row.
    """
    begin, end = span
    free, number = Register(b, row), b.sub(end, begin)
    whole = b.and_(number, I64(-LANES))
    with loop(b, whole, LANES) as at:
        some = keys.load(at, LANES)
        left = some < MISS_KEY
        listed.squeeze(some, left, free.value)
        numbers.squeeze(steps(b, b.add(begin, at), LANES).to(I32), left, free.value)
        free.value = b.add(free.value, b.ctpop(left.mask()))
    with loop(b, b.sub(number, whole)) as step:
        at = b.add(whole, step)
        key = keys.get(at)
        listed.put(key, free.value)
        numbers.put(b.trunc(b.add(begin, at), I32), free.value)
        free.value = b.add(free.value, b.zext(b.icmp_signed("<", key, I32(MISS_KEY)), I64))
    return free.value


@vector_code(void)
def copy_rays(b: Builder, rays: Fields, base: Scalar, numbers: Memory, span: Fields, rows: Memory) -> None:
    """Copy the rays base + numbers[row], begin <= row < end, to rows. span: a `RaySpan`.

    A row is a cache line: one fetch, where an origin and a direction lie in two or three, among those of rays
    that hit nothing.
    """
    with loop(b, b.sub(span.end, span.begin)) as step:
        row = b.add(span.begin, step)
        copied = _row_of(b, rays, b.add(base, b.sext(numbers.get(row), I64)))
        rows.store(copied, b.mul(row, I64(NUMBERS)))


@vector_code(void)
def copy_ray(b: Builder, rays: Fields, ray: Scalar, rows: Memory, row: Scalar) -> None:
    """Copy one ray to a row."""
    rows.store(_row_of(b, rays, ray), b.mul(row, I64(NUMBERS)))


def _row_of(b: Builder, rays: Fields, ray: Scalar) -> Lanes:
    """Return the row of a ray: origin, direction, t_min, t_max."""
    vectors = rays.origins, rays.directions
    ways = [v.get(b.add(vector_at(b, v, ray), I64(axis))) for v in vectors for axis in range(3)]
    low, high = (
        bound.get(b.select(b.icmp_signed(">", bound.size, I64(1)), ray, I64(0)))
        for bound in (rays.t_min, rays.t_max)
    )
    return lined_up(b, [*ways, b.fadd(low, F64(0.0)), high])  # -0.0 becomes 0.0


class _Sorter:
    """The numbers of a frame that keys are made of, in float32."""

    def __init__(self, b: Builder, numbers: Memory) -> None:
        self.b = b
        three = numbers.load(CENTER, 4)
        self.center = three.permuted(list(range(3)) * LANES)
        self.scale = numbers.splat(SCALE, 3 * LANES)
        self.unit = numbers.splat(SCALE, LANES)
        self.low, self.up, self.corner, self.each = (
            [numbers.splat(begin + k, LANES).to(F32) for k in range(3)]
            for begin in (LOW, HIGH, CORNER, CELLS_A_UNIT)
        )

    def key(self, rays: Fields, places: list[Scalar]) -> Lanes:
        """Return the keys of sixteen rays, which begin at one place, or in rows at several."""
        b = self.b
        o, d = load_origins(rays.origins, places), load_rows(rays.directions, places, 3)
        v, w = columns_of(((o - self.center) * self.scale).to(F32)), columns_of(d.to(F32))
        low_t, high_t = (load_bounds(bound, places) for bound in (rays.t_min, rays.t_max))
        real = (low_t <= high_t) & (low_t < np.inf) & (high_t > -np.inf)
        longest = greater(w[0].magnitude(), greater(w[1].magnitude(), w[2].magnitude()))
        start, stop = ((t * self.unit).to(F32) for t in (low_t, high_t))
        start, stop = self._clip(v, w, longest, start, stop)
        misses = ~real | (start > stop)
        tame = (longest > 1 / _LIMIT) & (longest < _LIMIT) | self._points(d, longest)
        return misses.choose(
            constant(b, I32, LANES, MISS_KEY), tame.choose(self._cell(v, w, start), SINGLE_RAY_KEY)
        )

    def _points(self, d: Lanes, longest: Lanes) -> Lanes:
        """Return which rays have a direction of zero; in float32 that of others may be zero, too."""
        points = Register(self.b, constant(self.b, I1, LANES, 0).value)
        with self.b.if_then(longest.equals(0.0).any()):
            x, y, z = (axis.equals(0.0) for axis in columns_of(d))
            points.value = (x & y & z).value
        return points.lanes

    def _clip(
        self, v: list[Lanes], w: list[Lanes], longest: Lanes, start: Lanes, stop: Lanes
    ) -> tuple[Lanes, Lanes]:
        """Clip a range to the bounds of all boxes, outward; what overflows is NaN, and is no bound."""
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
