"""Pack rays: eight words each; `raybox.traversal.ray_setup` says what they are and why no box is lost."""

from typing import NamedTuple

from raybox.bvh.node import NUDGE
from raybox.compiler.intrinsics import Fields, vector_code, void
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
    multiply_add,
)
from raybox.compiler.simd_arrays import Memory, loop
from raybox.compiler.simd_transpose import transposed
from raybox.primitives.box_simd import Float64Rays
from raybox.primitives.status import MISS_INDEX, UNDECIDED_INDEX
from raybox.primitives.table import has_volumes
from raybox.primitives.triangle_slots import reach_of
from raybox.traversal.ray_bounds import ClippedRays, clip_rays, largest
from raybox.traversal.ray_setup import (
    LATER,
    NOT_PACKED,
    NUMBERS,
    PASSES,
    STATE_WORDS,
    at_a_time,
)
from raybox.traversal.slab_coefficients import join_halves, pack_slack, range_error

_ROUND = 2.0**-50  # of where the origin is: many times what float64 rounds off
_LEAST = 2.0**-38  # slack
_LESS, _MORE = 1.0 - 2.0**-22, 1.0 + 2.0**-22
_AHEAD = 64  # rays that are prefetched


class PackedRays(NamedTuple):
    """The words of packed rays, column by column, their first results, and where the rays are."""

    c: list[Lanes]
    inverse: list[Lanes]
    slack: Lanes
    stop: Lanes
    before: Lanes  # certain hits so early are within the range
    result: Lanes
    x: list[Lanes]  # at time 0, on each axis
    w: list[Lanes]  # float64: direction
    rough: Lanes  # what float64 rounds off x

    def columns(self) -> list[Lanes]:
        """Return the eight words of a row."""
        return [*self.c, *self.inverse, self.slack, self.stop]


def pack_rays(clipped: ClippedRays) -> PackedRays:
    """Return packed rays; those that hit nothing, or cannot be packed, end before they begin."""
    length = clipped.stop - clipped.start
    length = length + length.magnitude() * LATER + NUDGE
    start = clipped.start.to(F64)
    places = [multiply_add(start, w, v) for v, w in zip(clipped.v, clipped.w, strict=True)]
    c = [(-(at * slope.to(F64))).to(F32) for at, slope in zip(places, clipped.inverse, strict=True)]
    x = [place.to(F32) for place in places]
    rough = largest(clipped.place) * _ROUND + _LEAST
    range_end = lesser(clipped.last * _MORE, clipped.last * _LESS) - clipped.start
    slack = pack_slack(rough, _ends_off(clipped, length, range_end))
    before = range_end * _LESS - range_error(slack)
    stop, result = _ends(clipped, length)
    return PackedRays(c, clipped.inverse, slack, stop, before, result, x, clipped.w, rough)


def _ends_off(clipped: ClippedRays, length: Lanes, range_end: Lanes) -> Lanes:
    """Return by how much times begin before the range and end after it, at most.

    What is before, or after, all boxes does not count: most ranges are wider than the scene. range_end: in
    times of the packed ray, rounded down.
    """
    none = constant(length.b, F32, length.count, 0.0)
    first = greater(clipped.first * _MORE, clipped.first * _LESS)
    return greater(first - clipped.start, none) + greater(length - range_end, none)


def _ends(clipped: ClippedRays, length: Lanes) -> tuple[Lanes, Lanes]:
    """Return where rays end, and their first results."""
    b, count, unpackable = length.b, length.count, clipped.alive & ~clipped.tame
    none = unpackable.choose(constant(b, F32, count, NOT_PACKED), PASSES)
    stop = (clipped.alive & clipped.tame).choose(length, none)
    return stop, unpackable.choose(constant(b, I32, count, UNDECIDED_INDEX), MISS_INDEX)


@vector_code(void)
def set_up_rays(
    b: Builder, task: Fields, workspace: Fields, rows: Memory, where: Memory, span: Fields
) -> None:
    """Pack the rays in rows[where[k]], begin <= k < end, and copy them in float64.

    task: a `Job`, or what has `rows` and a `frame` as well; span: a `SetupSpan`.
    """
    begin, end = span.begin, span.end
    count = at_a_time()
    with loop(b, b.sub(end, begin), count) as at:
        first = b.add(begin, at)
        for soon in _places(b, b.add(first, I64(_AHEAD)), end, count):
            rows.prefetch(_row(b, where.get(soon)))
        given = [rows.load(_row(b, where.get(k)), NUMBERS) for k in _places(b, first, end, count)]
        with b.if_then(b.not_(span.deferred)):
            for k, row in enumerate(given):
                workspace.rays64.store(row, b.mul(b.add(at, I64(k)), I64(NUMBERS)))
        clipped = clip_rays(b, _columns_of(given), task.frame)
        words = pack_rays(clipped)
        workspace.power.store(clipped.size, at)
        workspace.shift.store(clipped.start, at)
        _store_columns(workspace.packed_rays, words.columns(), at)
        if has_volumes(task.rows):
            _store_columns(workspace.ways, way_columns(words), at)
        untimed = constant(b, I32, count, MISS_INDEX)
        turns = [lane for k in range(count) for lane in (k, count + k)]
        workspace.state.store(words.result.shuffled(untimed, turns), b.mul(at, I64(STATE_WORDS)))


def way_columns(words: PackedRays) -> list[Lanes]:
    """Return packed rays as triangles need them, column by column: see `raybox.primitives.triangle_slots`."""
    reach = join_halves(reach_of(words.x, words.rough), words.slack)
    return [*words.x, *(w.to(F32) for w in words.w), reach, words.before]


def _store_columns(memory: Memory, columns: list[Lanes], first: Scalar) -> None:
    """Store eight columns of rays as rows of eight words, from row `first` on."""
    b, eights = memory.b, zip(*(column.eights() for column in columns), strict=True)
    for k, row in enumerate(row for eight in eights for row in transposed(list(eight))):
        memory.store(row, b.mul(b.add(first, I64(k)), I64(len(columns))))


@vector_code(void)
def load_float64(b: Builder, workspace: Fields, first: Scalar, number: Scalar) -> None:
    """Copy the rays of `number` candidates in float64, where `set_up_rays` has left that out.

    first: where the group begins.
    """
    with loop(b, number) as p:
        r = b.sext(workspace.pairs.ray.get(p), I64)
        row = workspace.rows.load(_row(b, workspace.where.get(b.add(first, r))), NUMBERS)
        workspace.rays64.store(row, b.mul(r, I64(NUMBERS)))


def _places(b: Builder, begin: Scalar, end: Scalar, count: int) -> list[Scalar]:
    """Return the numbers of `count` rays from begin on; past the end, the last one again."""
    last = b.sub(end, I64(1))
    lanes = [b.add(begin, I64(k)) for k in range(count)]
    return [b.select(b.icmp_signed("<", p, last), p, last) for p in lanes]


def _row(b: Builder, number: Scalar) -> Scalar:
    return b.mul(b.sext(number, I64), I64(NUMBERS))


def _columns_of(rows: list[Lanes]) -> Float64Rays:
    """Turn rows of origin, direction, t_min and t_max into columns."""
    parts = [transposed(rows[k : k + NUMBERS]) for k in range(0, len(rows), NUMBERS)]
    columns = [joined(list(column)) for column in zip(*parts, strict=True)]
    return Float64Rays(columns[:3], columns[3:6], *columns[6:])


def store_rows(b: Builder, _recorder: Fields, workspace: Fields, given: Float64Rays, packet: Scalar) -> None:
    """Store the sixteen rays of a packet as rows of origin, direction, t_min, t_max."""
    at = b.mul(packet, I64(given.t_min.count))
    columns = [*given.origin, *given.direction, given.t_min + 0.0, given.t_max]  # -0.0 becomes 0.0
    _store_columns(workspace.rays64, columns, at)
