"""The cells of a ray in a grid of even planes, eight slabs at a time, without merging planes.

The axis of which the ray crosses most planes in a unit of time is the *major* one; between two of its planes,
and before the first and behind the last, is a *slab*. In a slab the ray crosses at most one plane of each
other axis, if planes are even. So it passes up to three cells there:

    T         min(u, v)     max(u, v)         T'        T, T': the times of the slab's planes
    |---- A ------|------ B ----|----- C ------|        u, v: those of the planes of the other axes;
                                                        T' where none is crossed

Which plane of an axis is next at T is guessed, as if its planes were crossed at equal intervals: 0 at the
ray's begin, and all planes are crossed at its end.

**Why the order is exact.** The computed times of an axis ascend: differences and products are monotone. So do
the guesses: they are monotone functions of T. Three things are tested of each slab:

    the guess at T' is that at T, or 1 more
    each of T, u, v, T' that is crossed is later than the one before by more than the slack
    the next plane of each other axis behind the slab, if any is left, is later than T' by more than the slack

By the third, the cells up to a slab are right whatever is guessed behind it (`raybox.traversal.grid_scan`).
By the first, every plane of the other axes is in one slab. So the times of all slabs, one after the other,
are those of begin, of every plane once, and of end. By the second they ascend by more than the slack: their
computed order is exact (`raybox.traversal.segments`), and cells and times are those of
`raybox.traversal.plane_merge.merge`, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import Fields, int64, larger, vector_code, void
from raybox.compiler.simd import (
    F64,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    greater,
    lesser,
    splat,
    steps,
)
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.geometry import GridRows
from raybox.traversal.grid_axes import GridAxes, GridAxis, exact_times, product_times
from raybox.traversal.grid_clip import AxisCourse, AxisScales, Course
from raybox.traversal.plane_merge import MergeMemory
from raybox.traversal.time_keys import PADDING, Stretches, get, put, times_of
from raybox.validation import Floats, Ints

LANES = 8
FEWEST = 8  # planes: fewer are merged in less time
_CACHED = 1 << 19  # numbers that a core's second cache holds, about
_EVEN = 2.0**-6  # of a cell
_WIDEST = 1 << 31  # cells from one to the next on an axis, in vector code


class Crossings(NamedTuple):
    """The planes of one axis that a ray crosses."""

    edges: Floats
    origin: float
    direction: float
    inverse: float
    first: int  # number of the first plane
    step: int
    crossed: int
    stride: int
    rate: float  # planes in a unit of time, on average


class Way(NamedTuple):
    """A ray's way through a grid, and memory for its cells."""

    axes: GridAxes
    scales: AxisScales
    course: Course
    memory: MergeMemory


class Passages(NamedTuple):
    """How long a ray is in cells, each once, in any order.

    `PADDING` more follow, of no time in the last cell, so that loops may take four at a time.
    """

    durations: Ints  # bits of float64
    cells: Ints
    cell_count: int


class RayEnds(NamedTuple):
    """The begin of a ray, and its end, slack and first cell."""

    begin: float
    end: float
    slack: float
    cell: int


class WayCrossings(NamedTuple):
    """The planes that a ray crosses, of the major axis and of the others, and its ends."""

    major: Crossings
    others: tuple[Crossings, Crossings]
    ends: RayEnds


def _planes_from(b: Builder, axis: Fields, place: Scalar, is_plane: Lanes) -> Lanes:
    """Return planes from a place on, in the order of travel; only those of a mask are loaded."""
    first = b.add(axis.first, b.mul(axis.step, place))
    backwards = list(range(LANES))[::-1]
    up = b.icmp_signed(">", axis.step, I64(0))
    mask = Lanes(b, b.select(up, is_plane.value, is_plane.permuted(backwards).value))
    found = axis.edges.load_some(b.select(up, first, b.sub(first, I64(LANES - 1))), mask)
    return Lanes(b, b.select(up, found.value, found.permuted(backwards).value))


def _planes_at(b: Builder, axis: Fields, places: Lanes) -> Lanes:
    """Return planes by their places in the order of travel."""
    down = splat(b, b.ashr(axis.step, I64(63)), LANES)
    return axis.edges.pick((places ^ down) - down + splat(b, axis.first, LANES))


def _shifted(before: Lanes, after: Lanes) -> Lanes:
    """Return lanes that begin with the last one before, less the last one after."""
    return before.shuffled(after, range(LANES - 1, 2 * LANES - 1))


class _SlabPlanes(NamedTuple):
    """The planes of another axis than the major one in eight slabs."""

    behind: Lanes
    """from the cell of the ray's begin to that before the plane"""
    is_in: Lanes
    """whether there is one"""
    is_alone: Lanes
    """whether there is no other: all that follow are crossed after the slab"""
    times: Lanes
    """when it is crossed; when the slab ends, if there is none"""
    planes: Lanes
    """where it is"""
    ahead: Lanes
    """from the cell before it to that behind it; 0 if there is none"""


class _Other:
    """The planes of another axis than the major one, slab by slab."""

    def __init__(self, b: Builder, axis: Fields) -> None:
        self.b, self.axis = b, axis
        start = b.fmul(b.fsub(axis.edges.get(axis.first), axis.origin), axis.inverse)
        self.start, self.rate = splat(b, start, LANES), splat(b, axis.rate, LANES)
        self.count = splat(b, b.sitofp(axis.crossed, F64), LANES)
        self.stride = splat(b, b.trunc(axis.stride, I32), LANES).to(I64)
        self.next = Register(b, constant(b, I64, LANES, 0).value)
        self.later = Register(b, self.start.value)
        self.plane = Register(b, splat(b, axis.edges.get(axis.first), LANES).value)

    def enter(self, until: Lanes, is_plane: Lanes, slack: Lanes) -> _SlabPlanes:
        """Return the planes in eight slabs. until: when these end, at a plane or with the ray."""
        guess = (until - self.start) * self.rate + 1.0
        after = is_plane.choose(lesser(greater(guess, 0.0), self.count), self.count).to(I32).to(I64)
        plane = _planes_at(self.b, self.axis, after)
        later = product_times(self.b, self.axis, plane)
        before, times = _shifted(self.next.lanes, after), _shifted(self.later.lanes, later)
        planes = _shifted(self.plane.lanes, plane)
        self.next.value, self.later.value, self.plane.value = after.value, later.value, plane.value
        is_in, count = after > before, splat(self.b, self.axis.crossed, LANES)
        times, is_behind = is_in.choose(times, until), (later - until > slack) | (after >= count)
        ahead = is_in.choose(self.stride, constant(self.b, I64, LANES, 0))
        is_alone = (after - before < 2) & is_behind
        return _SlabPlanes(before * self.stride, is_in, is_alone, times, planes, ahead)


class SlabPart(NamedTuple):
    """The cells that rays enter by a plane of one axis, a lane for each slab."""

    is_in: Lanes
    """whether there is one"""
    cells: Lanes
    times: Lanes
    """when it is entered"""
    until: Lanes
    planes: Lanes
    """by which it is entered, but for the ray's first cell"""


class Slabs(NamedTuple):
    """Eight slabs of a ray."""

    is_slab: Lanes
    is_certain: Lanes
    parts: tuple[SlabPart, ...]
    """entered by the major axis, and by the others"""


class SlabRun:
    """A ray's way through a grid; `enter` emits eight slabs, and is emitted once, in a loop."""

    def __init__(self, b: Builder, axis: Fields, others: Sequence[Fields], ray: Fields) -> None:
        self.b, self.axis, self.ray = b, axis, ray
        self.others = [_Other(b, other) for other in others]
        self.until = Register(b, splat(b, ray.begin, LANES).value)
        self.plane = Register(b, self.until.value)
        self.ahead = steps(b, I64(0), LANES) * splat(b, axis.stride, LANES)
        self.slab_count = b.add(axis.crossed, I64(1))

    def enter(self, s: Scalar) -> Slabs:
        """Return the slabs from number s on."""
        b, axis, ray = self.b, self.axis, self.ray
        numbers, slack = steps(b, s, LANES), splat(b, ray.slack, LANES)
        is_plane = numbers < splat(b, axis.crossed, LANES)
        planes = _planes_from(b, axis, s, is_plane)
        until = is_plane.choose(product_times(b, axis, planes), splat(b, ray.end, LANES))
        t, entered = _shifted(self.until.lanes, until), _shifted(self.plane.lanes, planes)
        self.until.value, self.plane.value = until.value, planes.value
        one, two = (other.enter(until, is_plane, slack) for other in self.others)

        cells = self.ahead + splat(b, b.add(ray.cell, b.mul(s, axis.stride)), LANES)
        cells += one.behind + two.behind
        is_slab = numbers <= splat(b, axis.crossed, LANES)
        parts = [SlabPart(is_slab, cells, t, lesser(one.times, two.times), entered)]
        certain = (parts[0].until - t > slack) & one.is_alone & two.is_alone
        for this, other in ((one, two), (two, one)):
            behind = cells + this.ahead + (other.times < this.times).choose(other.ahead, 0)
            left = (other.times >= this.times).choose(other.times, until)
            parts.append(SlabPart(this.is_in, behind, this.times, left, this.planes))
            certain &= ~this.is_in | (left - this.times > slack)
        return Slabs(is_slab, certain, tuple(parts))

    def exact_times(self, s: Scalar, slabs: Slabs) -> tuple[Lanes, list[Lanes]]:
        """Return of which slabs all times are known, and when cells are entered, rounded once.

        s: the number of the first slab, which the ray enters when it begins.
        """
        b, exact = self.b, []
        is_first = steps(b, s, LANES).equals(0)
        all_known = is_first | ~is_first
        for axis, part in zip((self.axis, *(other.axis for other in self.others)), slabs.parts, strict=True):
            known, times = exact_times(b, axis, part.planes)
            if axis is self.axis:
                known, times = known | is_first, is_first.choose(part.times, times)
            all_known &= known | ~part.is_in
            exact.append(times)
        return all_known, exact


def _prefetch(sums: Memory, cells: Lanes) -> None:
    for k in range(LANES):
        sums.prefetch(cells.lane(k), far=True)


@vector_code(int64)
def _write(
    b: Builder, memory: Fields, sums: Memory, axis: Fields, others: list[Fields], ray: Fields
) -> Scalar:
    """Write the cells of a ray, and how long it is in each; return how many, 0 if that is not certain.

    There are no more than planes and one, so the memory is large enough.
    """
    run, at, uncertain = SlabRun(b, axis, others, ray), Register(b, I64(0)), Register(b, I64(0))
    with loop(b, run.slab_count, LANES) as s:
        slabs = run.enter(s)
        with b.if_then(b.icmp_signed(">", sums.size, I64(_CACHED))):
            for part in slabs.parts:
                _prefetch(sums, part.cells)
        for part in slabs.parts:
            durations = (part.until - part.times).bits(I64)
            memory.keys.squeeze(durations, part.is_in, at.value)
            memory.cells.squeeze(part.cells, part.is_in, at.value)
            at.value = b.add(at.value, b.ctpop(part.is_in.mask()))
        uncertain.value = b.or_(uncertain.value, (slabs.is_slab & ~slabs.is_certain).mask())
    return b.select(b.icmp_signed("==", uncertain.value, I64(0)), at.value, I64(0))


@inlined
def _crossings(axis: GridAxis, course: AxisCourse, density: float) -> Crossings:
    first, rate = course.first + axis.ahead, abs(axis.direction) * density
    return Crossings(
        axis.edges,
        axis.origin,
        axis.direction,
        axis.inverse,
        first,
        axis.step,
        course.crossed,
        axis.stride,
        rate,
    )


@inlined
def crossings_of(axes: GridAxes, scales: AxisScales, course: Course) -> WayCrossings:
    """Return the planes that a ray crosses on its way."""
    x = _crossings(axes[0], course.x, scales[0].density)
    y = _crossings(axes[1], course.y, scales[1].density)
    z = _crossings(axes[2], course.z, scales[2].density)
    first = course.x.first * abs(x.stride) + course.y.first * abs(y.stride) + course.z.first
    ends = RayEnds(course.begin, course.end, course.slack, first)
    if x.rate >= y.rate and x.rate >= z.rate:
        return WayCrossings(x, (y, z), ends)
    if y.rate >= z.rate:
        return WayCrossings(y, (x, z), ends)
    return WayCrossings(z, (x, y), ends)


@inlined
def pass_cells(way: Way, sums: Floats) -> Passages:
    """Write and return the cells of a ray, and how long it is in each; none, if that is not certain.

    sums: an item for each cell, which is prefetched.
    """
    memory, count = way.memory, 0
    major, others, ends = crossings_of(way.axes, way.scales, way.course)
    if major.crossed + others[0].crossed + others[1].crossed >= FEWEST:
        count = _write(memory, sums, major, others, ends)
    last = get(memory.cells, larger(count - 1, 0))
    for s in range(count, count + PADDING):
        put(memory.keys, s, 0)
        put(memory.cells, s, last)
    return Passages(memory.keys, memory.cells, count)


@device
def has_even_planes(rows: GridRows) -> bool:
    """Return whether rays may pass the cells of a grid slab by slab, and most are certain."""
    near = rows.shape[1] * rows.shape[2] < _WIDEST
    return near and _are_even(rows.x_edges) and _are_even(rows.y_edges) and _are_even(rows.z_edges)


@device
def _are_even(edges: Floats) -> bool:
    """Return whether planes are so nearly at equal distances that most guesses are right."""
    cells = edges.size - 1
    pitch, off = (edges[cells] - edges[0]) / cells, 0.0
    for k in range(cells + 1):
        off = max(off, abs(edges[k] - edges[0] - k * pitch))
    return off <= _EVEN * pitch


@inlined
def passages_of(stretches: Stretches) -> Passages:
    """Return stretches by how long they are, in the same memory."""
    _put_durations(stretches.keys, stretches.cell_count)
    return Passages(stretches.keys, stretches.cells, stretches.cell_count)


@vector_code(void)
def _put_durations(b: Builder, keys: Memory, count: Scalar) -> None:
    with loop(b, count, PADDING + 1) as s:
        begin, end = (times_of(keys.load(b.add(s, I64(k)), PADDING + 1)) for k in (0, 1))
        keys.store((end - begin).bits(I64), s)
