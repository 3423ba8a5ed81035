"""Rays at the triangles in the slots of nodes, in float32: see `raybox.primitives.triangle_slots`.

A list of rays is tested against one triangle after the other, a single ray against those of a node at once.
Certain hits are recorded as in packets, by the same `RecordTriangle` of a query; certain misses are dropped.
What is neither becomes a candidate, which float64 decides: of rays in a building, one in thirty.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, NUDGE, ROW, WIDTH, Tree
from raybox.compiler import huge_pages
from raybox.compiler.decorators import device
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, int64, vector_code, void
from raybox.compiler.simd import I1, I64, Builder, Lanes, Scalar, constant, mask_of, splat
from raybox.compiler.simd_arrays import Memory, Register, bits
from raybox.compiler.simd_transpose import eight_columns
from raybox.geometry import PrimitiveRows
from raybox.primitives.triangle_decision import (
    Ends,
    RaysAtTriangle,
    RecordTriangle,
    TriangleHits,
    TriangleState,
)
from raybox.primitives.triangle_simd import load_corners
from raybox.primitives.triangle_slots import (
    BEFORE,
    REACH,
    ROOM,
    WAY_WORDS,
    intersect,
    slot_words,
    way_of,
)
from raybox.traversal.certain_hits import CertainHits
from raybox.traversal.job import Job, Recorder
from raybox.traversal.ray_setup import (
    CENTER,
    LATER,
    PACKED_WORDS,
    RESULT,
    SCALE,
    STATE_WORDS,
    STOP,
    Frame,
)
from raybox.traversal.slab_coefficients import range_error
from raybox.traversal.workspace import LeafSlots, Workspace
from raybox.validation import Floats32

_LINE = 16  # words of a cache line
AtSlots: TypeAlias = Callable[[Recorder, Job, Workspace, LeafSlots, int], int]
"""Records certain hits of a ray at the triangles in some slots; returns a bit for each left to float64."""


def triangles_of(tree: Tree, rows: PrimitiveRows, frame: Frame) -> Floats32:
    """Return the words of the triangles in the slots of all nodes: (nodes, ROOM)."""
    words = huge_pages.zeros((len(tree.nodes), ROOM), np.float32)
    _write_triangles(tree, rows, frame, words)
    words.flags.writeable = False
    return words


@entry
def _write_triangles(tree: Tree, rows: PrimitiveRows, frame: Frame, words: Floats32) -> None:
    """Write the words of the triangles of a tree."""
    for node in range(tree.nodes.shape[0]):
        _write_node(tree.nodes, rows, frame, words, node)


@vector_code(void)
def _write_node(b: Builder, nodes: Memory, rows: Fields, frame: Fields, words: Memory, node: Scalar) -> None:
    """Write the words of the triangles in the slots of a node."""
    children = nodes.load(b.add(b.mul(node, I64(ROW)), I64(CHILD)), WIDTH)
    some = (children < 0) & (children > EMPTY)
    with b.if_then(some.any()):
        items = some.choose(~children, 0)
        corners = load_corners(b, rows, [b.sext(items.lane(k), I64) for k in range(WIDTH)])
        center = [frame.numbers.splat(CENTER + k, WIDTH) for k in range(3)]
        triangles = slot_words(corners, center, frame.numbers.splat(SCALE, WIDTH))
        for k, word in enumerate(triangles):
            words.store(word, b.add(b.mul(node, I64(ROOM)), I64(k * WIDTH)))


def prefetch_node(b: Builder, triangles: Memory, node: Scalar) -> None:
    """Prefetch the triangles in the slots of a node."""
    for word in range(0, ROOM, _LINE):
        triangles.prefetch(b.add(b.mul(node, I64(ROOM)), I64(word)))


@vector_code(void)
def prefetch_slots(b: Builder, triangles: Memory, node: Scalar) -> None:
    """Do as `prefetch_node`."""
    prefetch_node(b, triangles, node)


class _State(NamedTuple):
    """Ends and results so far of rays at triangles, in registers."""

    stop: Register
    before: Register
    result: Register

    def record(self, record: RecordTriangle, at: TriangleHits, item: Scalar, recorder: Fields) -> None:
        """Record the certain hits with a triangle."""
        late = at.high + at.high.magnitude() * LATER + NUDGE
        state = TriangleState(*(register.lanes for register in self))
        new = record(late.b, RaysAtTriangle(at.hits, at.low, late, item, *state, recorder))
        for register, lanes in zip(self, new, strict=True):
            register.value = lanes.value

    def write(self, b: Builder, workspace: Fields, ray: Scalar, lane: Scalar) -> None:
        """Write the state of one of the rays."""
        stop, before, result = (b.extract_element(register.value, lane) for register in self)
        workspace.packed_rays.put(stop, b.add(b.mul(ray, I64(PACKED_WORDS)), I64(STOP)))
        workspace.ways.put(before, b.add(b.mul(ray, I64(WAY_WORDS)), I64(BEFORE)))
        workspace.state.put(result, b.add(b.mul(ray, I64(STATE_WORDS)), I64(RESULT)))


class _TriangleLists(CertainHits):
    """Rays of a list at the triangles of a node, one after the other.

    record_triangle: None where float64 decides all that are hit.
    """

    def __init__(self, record_triangle: RecordTriangle | None, *given: Any) -> None:
        self.record_triangle = record_triangle
        super().__init__(*given)

    def begin(self) -> None:
        b, workspace, rays = self.b, self.workspace, self.rays
        numbers = [b.sext(rays.rays.lane(k), I64) for k in range(rays.count)]
        words = eight_columns([workspace.ways.load(b.mul(k, I64(WAY_WORDS)), WAY_WORDS) for k in numbers])
        results = workspace.state.gather([b.mul(k, I64(STATE_WORDS)) for k in numbers])
        self.way, self.off = way_of(words), range_error(words[REACH])
        self.state = _State(rays.stop, Register(b, words[BEFORE].value), Register(b, results.value))
        self.changed = Register(b, I64(0))

    def record(self, slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        b, some = self.b, near <= far
        left = Register(b, constant(b, I1, some.count, 0).value)
        with b.if_then(some.any()):
            ends = Ends(self.state.before.lanes, self.state.stop.lanes, self.off)
            culled = self.job.rows.cull_back
            open_still, decide = intersect(partial(self._word, slot), self.way, ends, culled)
            with b.if_then((open_still & some).any()):
                left.value = self._recorded(slot, decide(), some).value
        return left.lanes

    def _word(self, slot: Scalar, k: int) -> Lanes:
        place = self.b.add(self.slots.triangle(slot, ROOM), I64(k * WIDTH))
        return self.job.triangles.splat(place, self.rays.count)

    def _recorded(self, slot: Scalar, found: TriangleHits, some: Lanes) -> Lanes:
        """Record certain hits of some rays; return those that stay undecided."""
        hits, open_still = found.hits & some, found.undecided & some
        if self.record_triangle is None:
            return hits | open_still
        with self.b.if_then(hits.any()):
            at = found._replace(hits=hits)
            self.state.record(self.record_triangle, at, self.slots.item(slot), self.recorder)
            self.changed.value = self.b.or_(self.changed.value, hits.mask())
        return open_still

    def finish(self) -> None:
        with bits(self.b, self.changed.value) as lane:
            self.state.write(self.b, self.workspace, self.ray(lane), lane)


@cache
def triangle_lists(record_triangle: RecordTriangle | None) -> Callable[..., CertainHits]:
    """Return what records the hits of lists at triangles, of a query that records certain hits so."""
    return partial(_TriangleLists, record_triangle)


def _at_slots(b: Builder, job: Fields, workspace: Fields, slots: Fields, ray: Scalar) -> TriangleHits:
    """Return what float32 decides of a ray at the triangles in some slots of a node."""
    row = b.mul(ray, I64(WAY_WORDS))
    words = [workspace.ways.splat(b.add(row, I64(k)), WIDTH) for k in range(WAY_WORDS)]
    stop = workspace.packed_rays.splat(b.add(b.mul(ray, I64(PACKED_WORDS)), I64(STOP)), WIDTH)
    place = b.mul(slots.node, I64(ROOM))

    def word(k: int) -> Lanes:
        return job.triangles.load(b.add(place, I64(k * WIDTH)), WIDTH)

    ends = Ends(words[BEFORE], stop, range_error(words[REACH]))
    left, decide = intersect(word, way_of(words), ends, job.rows.cull_back)
    some, found = left & mask_of(b, slots.possible, WIDTH), decide()
    return found._replace(hits=found.hits & some, undecided=found.undecided & some)


@cache
def slot_triangles(record_triangle: RecordTriangle | None) -> AtSlots:
    """Return what tests a single ray, of a query that records certain hits so."""

    @vector_code(int64)
    def write(
        b: Builder, recorder: Fields, job: Fields, workspace: Fields, slots: Fields, ray: Scalar
    ) -> Scalar:
        found = _at_slots(b, job, workspace, slots, ray)
        if record_triangle is None:
            return (found.hits | found.undecided).mask()
        left = Register(b, found.undecided.mask())
        with b.if_then(found.hits.any()):
            more = _record_hits(b, record_triangle, (recorder, job, workspace), slots, ray, found)
            left.value = b.or_(left.value, more)
        return left.value

    @device
    def intersect_slots(
        recorder: Recorder, job: Job, workspace: Workspace, slots: LeafSlots, ray: int
    ) -> int:
        return write(recorder, job, workspace, slots, ray)

    return intersect_slots


def _record_hits(
    b: Builder,
    record: RecordTriangle,
    memory: tuple[Fields, Fields, Fields],
    slots: Fields,
    ray: Scalar,
    found: TriangleHits,
) -> Scalar:
    """Record certain hits one by one; return a bit for each of which the order is not certain."""
    recorder, job, workspace = memory
    children = b.add(b.mul(slots.node, I64(ROW)), I64(CHILD))
    stop = workspace.packed_rays.splat(b.add(b.mul(ray, I64(PACKED_WORDS)), I64(STOP)), 1)
    before = workspace.ways.splat(b.add(b.mul(ray, I64(WAY_WORDS)), I64(BEFORE)), 1)
    result = workspace.state.splat(b.mul(ray, I64(STATE_WORDS)), 1)
    state, left = _State(*(Register(b, lanes.value) for lanes in (stop, before, result))), Register(b, I64(0))
    with bits(b, found.hits.mask()) as slot:
        low, high = (splat(b, b.extract_element(x.value, slot), 1) for x in (found.low, found.high))
        open_still = low <= state.stop.lanes  # not where the ray has ended
        hits = open_still & (high < state.before.lanes)
        one = TriangleHits(hits, open_still & ~hits, low, high, open_still)
        left.value = b.or_(left.value, b.shl(one.undecided.to(I64).lane(0), slot))
        with b.if_then(hits.any()):
            state.record(record, one, b.not_(job.tree.nodes.get(b.add(children, slot))), recorder)
    state.write(b, workspace, ray, I64(0))
    return left.value
