"""The single-ray traversal: nodes nearest first, each primitive decided exactly at its leaf."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.cell_tree import MAX_LEVELS
from raybox.bvh.node import CHILD, EMPTY, ROW, STACK, WIDTH
from raybox.compiler import simd_single as simd
from raybox.compiler.decorators import dispatch, exact_entry, inlined, whole
from raybox.compiler.struct_ref import struct
from raybox.primitives.ray import get_ray, is_empty
from raybox.primitives.table import TABLE, finish_ray
from raybox.traversal.protocol import finish, resolve, start
from raybox.traversal.single_ray_setup import SHARP, RaySlabs, latest, make_ray_slabs

_LESS = np.float32(1.0 - 2.0**-22)
_MORE = np.float32(1.0 + 2.0**-22)


@struct
class Job(NamedTuple):
    """What a query runs on: a tree, the rows of its primitives, rays, and which primitives may be hit."""

    tree: Any  # a `Tree`, or the `CellTree` of a grid
    rows: Any
    rays: Any
    allowed: Any  # bool for each primitive, or empty: all
    frame: Any = None  # the `Frame` of the tree, for primitives with vector code
    base: int = 0  # the index of row 0


class Scratch(NamedTuple):
    """Memory of a traversal, made once for many rays."""

    node: Any  # int32: the stack
    time: Any  # float32: entry times of the nodes of the stack
    slots: Any  # float32: entry times of a node's slots
    cells: Any  # int64 (levels, 7): the stack of a tree of cells
    visited: Any  # int64: how many nodes were tested, and how many primitives were resolved


def make_scratch() -> Scratch:
    """Return the memory of a traversal; made outside of compiled code, which so compiles faster."""
    return Scratch(
        np.empty(2 * STACK, np.int32),  # for a tree whose boxes are trees
        np.empty(2 * STACK, np.float32),
        np.empty(WIDTH, np.float32),
        np.empty((MAX_LEVELS, 7), np.int64),
        np.zeros(2, np.int64),
    )


@inlined
def _near_far(nodes: Any, row: int, axis: int, slabs: RaySlabs) -> tuple[Any, Any]:
    """Return the times at which the ray crosses eight slots' near and far planes on one axis."""
    low = row + axis * WIDTH
    up = low + 3 * WIDTH
    backward = slabs.backward[axis]
    near = up if backward else low
    far = low if backward else up
    inverse = simd.splat(slabs.inverse[axis])
    return (
        simd.mul(simd.sub(simd.load(nodes, near), simd.splat(slabs.near[axis])), inverse),
        simd.mul(simd.sub(simd.load(nodes, far), simd.splat(slabs.far[axis])), inverse),
    )


@inlined
def intersect_slots(nodes: Any, row: int, slabs: RaySlabs, stop: Any, slots: Any) -> int:
    """Return a bit for each slot that the ray may hit before `stop`, and store their entry times."""
    near_x, far_x = _near_far(nodes, row, 0, slabs)
    near_y, far_y = _near_far(nodes, row, 1, slabs)
    near_z, far_z = _near_far(nodes, row, 2, slabs)
    near = simd.maximum(near_x, simd.maximum(near_y, simd.maximum(near_z, simd.splat(slabs.start))))
    far = simd.minimum(far_x, simd.minimum(far_y, simd.minimum(far_z, simd.splat(stop))))
    near = simd.minimum(simd.mul(near, simd.splat(_LESS)), simd.mul(near, simd.splat(_MORE)))
    far = simd.maximum(simd.mul(far, simd.splat(_LESS)), simd.mul(far, simd.splat(_MORE)))
    simd.store(slots, 0, near)
    return simd.mask_le(near, far)


@inlined
def push(scratch: Any, base: int, top: int, node: int, time: Any) -> int:
    """Push a node so that the nearest of those above `base` is on top; return the new top.

    scratch: anything with the arrays `node` and `time`.
    """
    place = top
    while place > base and scratch.time[place - 1] < time:
        scratch.node[place] = scratch.node[place - 1]
        scratch.time[place] = scratch.time[place - 1]
        place -= 1
    scratch.node[place] = node
    scratch.time[place] = time
    return top + 1


@inlined
def push_root(scratch: Scratch, slabs: RaySlabs) -> int:
    """Make the root the only node of the stack; return the number of nodes."""
    scratch.node[0] = 0
    scratch.time[0] = slabs.start
    return 1


@inlined
def intersect_node(nodes: Any, node: int, slabs: RaySlabs, stop: Any, scratch: Scratch) -> int:
    """Return a bit for each slot of a node that the ray may hit before `stop`; see `intersect_slots`."""
    scratch.visited[0] += 1
    return intersect_slots(nodes, node * ROW, slabs, stop, scratch.slots)


@inlined
def is_allowed(allowed: Any, leaf: int) -> bool:
    """Return whether the primitive of a leaf may be hit."""
    return allowed.size == 0 or allowed[~leaf]


@inlined
def earlier(limit: float, time: float, stop: Any, slabs: RaySlabs) -> tuple[float, Any]:
    """Return the earlier of two times after which no hit matters, and where the ray then ends.

    stop: where it ends by `limit`, in tree coordinates.
    """
    if time < limit:
        return time, min(stop, latest(time, slabs.exponent, slabs.shift))
    return limit, stop


@inlined
def traverse_tree(rows: Any, job: Job, slabs: RaySlabs, ray: Any, recorder: Any, scratch: Scratch) -> float:
    """Resolve every allowed primitive whose box the ray may hit, nearest first, until none matters.

    Return the time after which no other hit matters; NaN: none matters at all.
    """
    nodes, allowed = job.tree.nodes, job.allowed
    limit, stop = np.inf, slabs.stop
    top = push_root(scratch, slabs)
    while top > 0:
        # Pop the nearest node; the ray may end before it by now.
        top -= 1
        if scratch.time[top] > stop:
            continue
        node = int(scratch.node[top])

        # Resolve the leaves among its slots; push the inner nodes.
        mask, base = intersect_node(nodes, node, slabs, stop, scratch), top
        while mask != 0:
            slot = simd.lowest_bit(mask)
            mask &= mask - 1
            child = nodes[node, CHILD + slot]
            if child >= 0:
                top = push(scratch, base, top, child, scratch.slots[slot])
            elif child != EMPTY and scratch.slots[slot] <= stop and is_allowed(allowed, child):
                scratch.visited[1] += 1
                time = resolve(recorder, rows, ray, job.base + int(~child))
                if math.isnan(time):
                    return time
                limit, stop = earlier(limit, time, stop, slabs)
    return limit


TRAVERSALS: dict[type, Callable[..., Any]] = {}
"""Traversals by class of rows; `traverse_tree` is that of all others."""


def traverse_rows(rows: Any, job: Job, slabs: RaySlabs, ray: Any, recorder: Any, scratch: Scratch) -> float:
    """Traverse the tree of a job, as its class of rows requires; see `traverse_tree`."""
    raise NotImplementedError("compiled code only")


def _traversal_of(kind: type) -> Callable[..., Any] | None:
    from raybox.traversal import instances  # noqa: F401  # registers its traversal, which calls this one

    return TRAVERSALS.get(kind, traverse_tree if kind in TABLE else None)


dispatch(traverse_rows, _traversal_of, inline=True)


@inlined
def traverse_by_slabs(rows: Any, job: Job, ray: Any, recorder: Any, scratch: Scratch) -> None:
    """Set up the slabs of a ray and traverse the tree, unless the ray misses all of it."""
    hit, slabs = make_ray_slabs(job.tree, ray, SHARP)
    if hit:
        traverse_rows(rows, job, slabs, ray, recorder, scratch)


RAY_TRAVERSALS: dict[type, Callable[..., Any]] = {}
"""Traversals of trees of their own, by class of rows; `traverse_by_slabs` is that of all others."""


def traverse_ray(rows: Any, job: Job, ray: Any, recorder: Any, scratch: Scratch) -> None:
    """Resolve every allowed primitive that a ray may hit, as the class of the rows requires."""
    raise NotImplementedError("compiled code only")


def _ray_traversal_of(kind: type) -> Callable[..., Any] | None:
    from raybox.traversal import grid  # noqa: F401  # registers its traversal

    return RAY_TRAVERSALS.get(kind, traverse_by_slabs if kind in TABLE else None)


dispatch(traverse_ray, _ray_traversal_of, inline=True)


@inlined
def traverse(job: Job, k: int, recorder: Any, scratch: Scratch) -> None:
    """Resolve every allowed primitive whose box ray k may hit, nearest first, until none matters."""
    ray = get_ray(job.rays, k)
    if not is_empty(ray):
        traverse_ray(job.rows, job, ray, recorder, scratch)


@exact_entry
def traverse_rays(job: Job, span: Any, scratch: Scratch, recorder: Any) -> int:
    """Write the results of rays span[0] <= k < span[1]; return the first without room, or span[1]."""
    for k in range(span[0], span[1]):
        state = start(recorder, k)
        traverse(job, k, state, scratch)
        if not finish(recorder, state, job, k):
            return whole(k)
        finish_ray(job.rows, k)
    return whole(span[1])
