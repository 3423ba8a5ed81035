"""The single-ray traversal of a tree: nodes nearest first, each primitive decided exactly at its leaf.

Tables name the geometries that are traversed in another way (`raybox.traversal.single`).
"""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol, TypeVar, cast

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, ROW, STACK, WIDTH
from raybox.compiler.decorators import accessor, declare, inlined, whole
from raybox.compiler.intrinsics import int64, lowest_bit, vector_code
from raybox.compiler.simd import F32, I64, Builder, Scalar, greater, lesser, splat
from raybox.compiler.simd_arrays import Memory
from raybox.geometry import PrimitiveRows
from raybox.primitives.instance_ray import AnyRay
from raybox.primitives.ray import Mover, Ray, excluded_by, get_ray, is_empty, start_of
from raybox.primitives.table import TABLE, finish_ray
from raybox.traversal.grid_rays import GridScratch, make_grid_scratch
from raybox.traversal.job import Job, RaySpan, Recorder
from raybox.traversal.node_test import near_and_far
from raybox.traversal.protocol import finish, resolve, start
from raybox.traversal.single_ray_setup import SHARP, RaySlabs, latest, make_ray_slabs
from raybox.validation import Bools, Floats32, Ints, Ints32

F = TypeVar("F", bound=Callable[..., object])
_LESS, _MORE = 1.0 - 2.0**-22, 1.0 + 2.0**-22
_START, _EXCLUDED = 0, 1  # in `Scratch.given`


class Scratch(NamedTuple):
    """Memory of a traversal, made once for many rays."""

    node: Ints32  # the stack
    time: Floats32  # entry times of the nodes of the stack
    slots: Floats32  # entry times of a node's slots
    visited: Ints  # (2,): `Visits`
    given: Ints  # (2,): the row of `Tree.starts` at which the ray starts, and what it does not hit
    grid: GridScratch


class Visits(NamedTuple):
    """How many nodes were tested, and how many primitives were resolved."""

    nodes: int
    primitives: int


@accessor
def visits(scratch: Scratch) -> Visits:
    """Return what was visited so far."""
    return Visits(scratch.visited[0], scratch.visited[1])


@accessor
def count_node(scratch: Scratch) -> None:
    """Count the test of a node."""
    scratch.visited[0] += 1


@accessor
def count_primitive(scratch: Scratch) -> None:
    """Count a primitive that is resolved."""
    scratch.visited[1] += 1


def make_scratch() -> Scratch:
    """Return the memory of a traversal; made outside of compiled code, which so compiles faster."""
    return Scratch(
        np.empty(2 * STACK, np.int32),  # for a tree whose boxes are trees
        np.empty(2 * STACK, np.float32),
        np.empty(WIDTH, np.float32),
        np.zeros(2, np.int64),
        np.zeros(2, np.int64),
        make_grid_scratch(),
    )


@vector_code(int64)
def intersect_slots(
    b: Builder, nodes: Memory, row: Scalar, slabs: RaySlabs, stop: Scalar, slots: Memory
) -> Scalar:
    """Return a bit for each slot that the ray may hit before `stop`, and store their entry times."""
    planes = nodes.as_items(F32)
    near, far = splat(b, slabs.start, WIDTH), splat(b, stop, WIDTH)
    for axis in range(2, -1, -1):
        first, last = near_and_far(b, row, b.zext(slabs.backward[axis], I64), axis)
        inverse = splat(b, slabs.inverse[axis], WIDTH)
        near = greater((planes.load(first, WIDTH) - splat(b, slabs.near[axis], WIDTH)) * inverse, near)
        far = lesser((planes.load(last, WIDTH) - splat(b, slabs.far[axis], WIDTH)) * inverse, far)
    near = lesser(near * _LESS, near * _MORE)
    far = greater(far * _LESS, far * _MORE)
    slots.store(near, 0)
    return (near <= far).mask()


class NodeStack(Protocol):
    """The arrays of a stack of nodes."""

    @property
    def node(self) -> Ints32: ...  # noqa: D102
    @property
    def time(self) -> Floats32: ...  # noqa: D102


@inlined
def push(scratch: NodeStack, base: int, top: int, node: int, time: float) -> int:
    """Push a node so that the nearest of those above `base` is on top; return the new top."""
    place = top
    while place > base and scratch.time[place - 1] < time:
        scratch.node[place] = scratch.node[place - 1]
        scratch.time[place] = scratch.time[place - 1]
        place -= 1
    scratch.node[place] = node
    scratch.time[place] = time
    return top + 1


@inlined
def push_starts(scratch: Scratch, starts: Ints32, slabs: RaySlabs) -> int:
    """Put the nodes at which the ray starts on the stack; return how many there are.

    A tree of another kind that is traversed for the same ray, that of an instance, is started at its root.
    """
    top, row = whole(0), scratch.given[_START]
    scratch.given[_START] = 0
    while row >= 0:
        for node in range(starts[row, 0], starts[row, 0] + starts[row, 1]):
            scratch.node[top], scratch.time[top] = node, slabs.start
            top += 1
        row = 0 if row > 0 else -1
    return top


@inlined
def intersect_node(nodes: Ints32, node: int, slabs: RaySlabs, stop: np.float32, scratch: Scratch) -> int:
    """Return a bit for each slot of a node that the ray may hit before `stop`; see `intersect_slots`."""
    count_node(scratch)
    return intersect_slots(nodes, node * ROW, slabs, stop, scratch.slots)


@inlined
def is_allowed(allowed: Bools, leaf: int) -> bool:
    """Return whether the primitive of a leaf may be hit."""
    return allowed.size == 0 or allowed[~leaf]


@accessor
def excluded_in(scratch: Scratch) -> int:
    """Return what the ray does not hit."""
    return int(scratch.given[_EXCLUDED])


@inlined
def is_excluded(job: Job, excluded: int, i: int) -> bool:
    """Return whether primitive i, or its owner, is what a ray does not hit."""
    return excluded >= 0 and excluded == (job.owners[i] if job.owners.size > 0 else job.first + i)


@inlined
def resolve_other(
    recorder: Recorder, job: Job, rows: PrimitiveRows, ray: AnyRay, i: int, scratch: Scratch
) -> float:
    """Resolve primitive i as the query does, unless it is what the ray does not hit."""
    if is_excluded(job, scratch.given[_EXCLUDED], i):
        return np.inf
    count_primitive(scratch)
    return resolve(recorder, rows, ray, i)


@inlined
def earlier(limit: float, time: float, stop: np.float32, slabs: RaySlabs) -> tuple[float, np.float32]:
    """Return the earlier of two times after which no hit matters, and where the ray then ends.

    stop: where it ends by `limit`, in tree coordinates.
    """
    if time < limit:
        return time, min(stop, latest(time, slabs.exponent, slabs.shift))
    return limit, stop


@inlined
def traverse_tree(
    rows: PrimitiveRows, job: Job, slabs: RaySlabs, ray: AnyRay, recorder: Recorder, scratch: Scratch
) -> float:
    """Resolve every allowed primitive whose box the ray may hit, nearest first, until none matters.

    Return the time after which no other hit matters; NaN: none matters at all.
    """
    nodes, allowed = job.tree.nodes, job.allowed
    limit, stop = np.inf, slabs.stop
    top = push_starts(scratch, job.tree.starts, slabs)
    while top > 0:
        # Pop the nearest node; the ray may end before it by now.
        top -= 1
        if scratch.time[top] > stop:
            continue
        node = int(scratch.node[top])

        # Resolve the leaves among its slots; push the inner nodes.
        mask, base = intersect_node(nodes, node, slabs, stop, scratch), top
        while mask != 0:
            slot = lowest_bit(mask)
            mask &= mask - 1
            child = nodes[node, CHILD + slot]
            if child >= 0:
                top = push(scratch, base, top, child, scratch.slots[slot])
            elif child != EMPTY and scratch.slots[slot] <= stop and is_allowed(allowed, child):
                time = resolve_other(recorder, job, rows, ray, job.base + int(~child), scratch)
                if math.isnan(time):
                    return time
                limit, stop = earlier(limit, time, stop, slabs)
    return limit


def _by_rows(kernel: F, table: Mapping[type, object]) -> F:
    """Return a function whose compiled calls are redirected by class of rows."""

    def pick(kind: type) -> object:
        return table.get(kind, kernel if kind in TABLE else None)

    return cast(F, declare(kernel.__name__, pick, inline=True))


TREE_TRAVERSALS: dict[type, object] = {}
"""Traversals of trees of boxes by class of rows; `traverse_tree` is that of all others."""

traverse_rows = _by_rows(traverse_tree, TREE_TRAVERSALS)


@inlined
def traverse_by_slabs(
    rows: PrimitiveRows, job: Job, ray: Ray | Mover, recorder: Recorder, scratch: Scratch
) -> None:
    """Set up the slabs of a ray and traverse the tree, unless the ray misses all of it."""
    hit, slabs = make_ray_slabs(job.tree, ray, SHARP)
    if hit:
        traverse_rows(rows, job, slabs, ray, recorder, scratch)


RAY_TRAVERSALS: dict[type, object] = {}
"""Traversals of trees of their own, by class of rows; `traverse_by_slabs` is that of all others."""

traverse_ray = _by_rows(traverse_by_slabs, RAY_TRAVERSALS)


@inlined
def traverse(job: Job, k: int, recorder: Recorder, scratch: Scratch) -> None:
    """Resolve every allowed primitive whose box ray k may hit, nearest first, until none matters."""
    ray = get_ray(job.rays, k)
    scratch.given[_START], scratch.given[_EXCLUDED] = start_of(job.rays, k), excluded_by(job.rays, k)
    if not is_empty(ray):
        traverse_ray(job.rows, job, ray, recorder, scratch)


@inlined
def traverse_one_by_one(
    _rows: PrimitiveRows, job: Job, span: RaySpan, scratch: Scratch, recorder: Recorder
) -> int:
    """Write the results of a span of rays; return the first without room, or its end."""
    for k in range(span.begin, span.end):
        state = start(recorder, k)
        traverse(job, k, state, scratch)
        if not finish(recorder, state, job, k):
            return whole(k)
        finish_ray(job.rows, k)
    return whole(span.end)


SPAN_TRAVERSALS: dict[type, object] = {}
"""Traversals of many rays, by class of rows; `traverse_one_by_one` is that of all others."""

traverse_span = _by_rows(traverse_one_by_one, SPAN_TRAVERSALS)
