"""The memory of walks with many rays, made once and used again."""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import MAX_DEPTH, STACK, WIDTH
from raybox.compiler import huge_pages
from raybox.compiler.struct_ref import held
from raybox.primitives.box_simd import Pairs, make_pairs
from raybox.traversal.ray_setup import LANES, NOTES, PROBE

PENDING = MAX_DEPTH * WIDTH
LINES = 16
_ROOM = 64  # lists of all rays that the arena has room for; a walk that needs more goes on ray by ray


@held
class Desk(NamedTuple):
    """What is known of a group of rays, and where a walk stands."""

    probes: Any  # float32 (rays + 16, 8): see `raybox.traversal.ray_setup`
    answers: Any  # int32 (rays + 16, 2): ANSWER and TIMED
    exact: Any  # float64 (rays + 16, 8): origin, direction, t_min and t_max, of those that `spares` does not
    power: Any  # int32 (rays + 16,): the times of a probe are t * 2^power - shift
    shift: Any  # float32 (rays + 16,)
    pairs: Pairs  # what the node at hand proposes
    arena: Any  # int32: lists of rays
    times: Any  # float32: when each ray of a list meets the slot that the list is for
    starts: Any  # int64 (8,): where each slot's list begins
    lengths: Any  # int64 (8,): and how long it is
    pending: Any  # int64 (PENDING, 4): node, begin and end of its list, where memory is free
    node: Any  # int32 (STACK,): the stack of a single ray's walk
    time: Any  # float32 (STACK,)
    slots: Any  # float32 (8,): of a node's slots: times, or which come first
    work: Any  # int64 (8,): see `WORK`
    alone: Any  # float32 (16,): lines of a ray that walks by itself, see `raybox.traversal.slab_coefficients`
    lines: Any  # float32 (packets + 16, 16): of packets, likewise
    rows: Any  # those of an `Order`: ray r is in rows[where[work[FIRST] + r]]
    where: Any


FIRST, WAITING = 6, 7  # places in `work`: where the group begins, and how many pairs wait to be judged

WORK = ("tests of a ray by a list", "tests of a ray by itself", "pairs screened", "nodes tested by lists")


def room_for(rays: int) -> int:
    """Return for how many numbers of so many rays there is room in lists."""
    return _ROOM * (rays + LANES)


def make_desk(rays: int, room: int | None = None) -> Desk:
    """Make the memory for groups of up to so many rays, with room for so many numbers in lists."""
    room = room_for(rays) if room is None else room
    work = huge_pages.empty((8,), np.int64)
    work[:] = 0
    return Desk(
        huge_pages.empty((rays + LANES, PROBE), np.float32),
        huge_pages.empty((rays + LANES, NOTES), np.int32),
        huge_pages.empty((rays + LANES, 8), np.float64),
        huge_pages.empty((rays + LANES,), np.int32),
        huge_pages.empty((rays + LANES,), np.float32),
        make_pairs((WIDTH + 1) * rays),
        huge_pages.empty((room,), np.int32),
        huge_pages.empty((room,), np.float32),
        huge_pages.empty((WIDTH,), np.int64),
        huge_pages.empty((WIDTH,), np.int64),
        huge_pages.empty((PENDING, 4), np.int64),
        huge_pages.empty((STACK,), np.int32),
        huge_pages.empty((STACK,), np.float32),
        huge_pages.empty((WIDTH,), np.float32),
        work,
        huge_pages.empty((LINES,), np.float32),
        np.empty((0, LINES), np.float32),
        np.empty((0, 8)),
        np.empty(0, np.int32),
    )
