"""Walk the tree with one ray: nodes nearest first, boxes handed to the question's sink."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import CHILD, EMPTY, ROW, STACK, WIDTH, Tree
from raybox.compiler import simd_single as simd
from raybox.compiler.decorators import dispatch, inlined
from raybox.compiler.struct_ref import held
from raybox.primitives.ray import get_ray, is_empty
from raybox.primitives.table import TABLE
from raybox.queries.exact_recorders import offer
from raybox.traversal.single_ray_setup import SHARP, Probe, latest, make_probe

_LESS = np.float32(1.0 - 2.0**-22)
_MORE = np.float32(1.0 + 2.0**-22)


@held
class Job(NamedTuple):
    """What every question is asked of: the tree, the rows of its primitives, rays, and which may be met."""

    tree: Tree
    rows: Any
    rays: Any
    allowed: Any  # bool for each primitive, or empty: all
    frame: Any = None  # what `raybox.traversal.ray_setup` needs of the tree
    base: int = 0  # the number of row 0


class Scratch(NamedTuple):
    """Memory of a walk, made once for many rays: the stack, and the times of a node's slots."""

    node: Any
    time: Any
    slots: Any
    visited: Any


def make_scratch() -> Scratch:
    """Make the memory that walks need (outside of compiled code, which so compiles faster)."""
    return Scratch(
        np.empty(2 * STACK, np.int32),  # for a tree whose boxes are trees
        np.empty(2 * STACK, np.float32),
        np.empty(WIDTH, np.float32),
        np.zeros(2, np.int64),
    )


@inlined
def _near_far(nodes: Any, row: int, axis: int, probe: Probe) -> tuple[Any, Any]:
    """Return the times at which the ray crosses eight slots' near and far planes on one axis."""
    low = row + axis * WIDTH
    up = low + 3 * WIDTH
    backward = probe.backward[axis]
    near = up if backward else low
    far = low if backward else up
    inverse = simd.splat(probe.inverse[axis])
    return (
        simd.mul(simd.sub(simd.load(nodes, near), simd.splat(probe.near[axis])), inverse),
        simd.mul(simd.sub(simd.load(nodes, far), simd.splat(probe.far[axis])), inverse),
    )


@inlined
def meet_slots(nodes: Any, row: int, probe: Probe, stop: Any, slots: Any) -> int:
    """Return a bit for each slot that the ray may meet before `stop`, and store their near times."""
    near_x, far_x = _near_far(nodes, row, 0, probe)
    near_y, far_y = _near_far(nodes, row, 1, probe)
    near_z, far_z = _near_far(nodes, row, 2, probe)
    near = simd.maximum(near_x, simd.maximum(near_y, simd.maximum(near_z, simd.splat(probe.start))))
    far = simd.minimum(far_x, simd.minimum(far_y, simd.minimum(far_z, simd.splat(stop))))
    near = simd.minimum(simd.mul(near, simd.splat(_LESS)), simd.mul(near, simd.splat(_MORE)))
    far = simd.maximum(simd.mul(far, simd.splat(_LESS)), simd.mul(far, simd.splat(_MORE)))
    simd.store(slots, 0, near)
    return simd.mask_le(near, far)


@inlined
def push(scratch: Any, base: int, top: int, node: int, time: Any) -> int:
    """Push a node so that the nearest of those above `base` is on top; return the new top.

    scratch: anything with a stack of `node` and `time`.
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
def descend(rows: Any, job: Job, probe: Probe, ray: Any, sink: Any, scratch: Scratch) -> float:
    """Offer the sink every allowed primitive whose box the ray may meet, until none can matter.

    Return the time up to which others are of interest, NaN for none at all.
    """
    nodes = job.tree.nodes
    allowed = job.allowed
    stop = probe.stop
    limit = np.inf
    scratch.node[0] = 0
    scratch.time[0] = probe.start
    top = 1
    while top > 0:
        # Take the nearest node that is not too late by now.
        top -= 1
        if scratch.time[top] > stop:
            continue
        node = int(scratch.node[top])
        mask = meet_slots(nodes, node * ROW, probe, stop, scratch.slots)
        scratch.visited[0] += 1

        # Decide the boxes among its slots; keep the inner nodes.
        base = top
        while mask != 0:
            slot = simd.lowest_bit(mask)
            mask &= mask - 1
            child = nodes[node, CHILD + slot]
            if child >= 0:
                top = push(scratch, base, top, child, scratch.slots[slot])
            elif child != EMPTY and scratch.slots[slot] <= stop and (allowed.size == 0 or allowed[~child]):
                scratch.visited[1] += 1
                interest = offer(sink, rows, ray, job.base + int(~child))
                if math.isnan(interest):
                    return interest
                if interest < limit:
                    limit = interest
                    stop = min(stop, latest(limit, probe.exponent, probe.shift))
    return limit


WALKS: dict[type, Callable[..., Any]] = dict.fromkeys(TABLE, descend)
"""How the tree of each kind of rows is walked."""


def visit(rows: Any, job: Job, probe: Probe, ray: Any, sink: Any, scratch: Scratch) -> float:
    """Walk the tree of rows of this kind; see `descend`."""
    raise NotImplementedError("compiled code only")


dispatch(visit, WALKS.get, inline=True)


@inlined
def walk(job: Job, k: int, sink: Any, scratch: Scratch) -> None:
    """Offer the sink every allowed primitive whose box ray k may meet, until none can matter."""
    ray = get_ray(job.rays, k)
    if is_empty(ray):
        return
    meets, probe = make_probe(job.tree, ray, SHARP)
    if meets:
        visit(job.rows, job, probe, ray, sink, scratch)
