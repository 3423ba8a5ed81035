"""Rays in the order in which they come, each through the tree alone: fewer than are worth sorting."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np

from raybox.compiler import huge_pages
from raybox.compiler.buffer_pool import BufferPool
from raybox.compiler.struct_ref import plan_of
from raybox.geometry import RayRows
from raybox.traversal.job import Job, RaySpan, Recorder
from raybox.traversal.ray_groups import traverse_groups
from raybox.traversal.workspace import Order, Span, Workspace, make_order, make_workspace
from raybox.validation import Ints, Ints32

R = TypeVar("R", bound=Recorder)
PIECE = 1024  # rays that are set up at once
MOST_RAYS = 1 << 12
"""Up to so many rays go one by one, on the calling thread: to sort or share them takes as long as it saves.
Twice as many do at boxes where nodes come from memory that cores share."""
_LEAST_ROOM = 64  # rays that a recorder has room for, at least
PIECES = [Span(0, 0, count) for count in range(PIECE + 1)]
"""By a number of rays: the piece that holds them all, from the first ray on"""
_NONE = np.empty(0, np.int64)


class _Memory(NamedTuple):
    """The memory of a thread, laid out once, and two arrays of its order."""

    order: Order
    workspace: Workspace
    undecided: Ints32
    place: Ints


def _make_memory() -> _Memory:
    order = make_order(PIECE)._replace(starts=_NONE, place=huge_pages.empty((2,), np.int64))
    workspace = make_workspace(PIECE)._replace(rows=order.rows, where=order.where)
    return _Memory(plan_of(order), plan_of(workspace), order.undecided, order.place)


MEMORY = BufferPool(_make_memory)


def room(rays: int) -> int:
    """Return for how many rays a recorder of so many has room: one piece is recorded at a time."""
    return min(max(rays, _LEAST_ROOM), PIECE)


def traverse(
    job: Job, rays: RayRows, span: RaySpan, recorder: R, grow: Callable[[R, float], R] | None
) -> tuple[R, Ints]:
    """Record the results of some rays; those of misses are written before.

    Return the recorder, which `grow` may have replaced, and the undecided rays, from the first one on.
    """
    undecided = _NONE
    for base in range(span.begin, span.end, PIECE):
        piece = Span(base, 0, min(PIECE, span.end - base))
        recorder, lost = traverse_piece(job, rays, piece, recorder, grow)
        if lost.size:
            undecided = np.concatenate([undecided, base - span.begin + lost])
    return recorder, undecided


def traverse_piece(
    job: Job, rays: RayRows, piece: Span, recorder: R, grow: Callable[[R, float], R] | None
) -> tuple[R, Ints]:
    """Record the results of a piece as `traverse` does; return undecided rays from its base on."""
    memory, (base, begin, end), undecided = MEMORY.take(), piece, _NONE
    order, workspace, listed, place = memory
    while begin < end:
        while not traverse_groups(job, rays, piece, order, workspace, recorder):
            assert grow is not None  # of a query whose results may have no room
            recorder = grow(recorder, 1.0)
        begin, lost = place.tolist()
        if lost:
            undecided = np.concatenate([undecided, listed[:lost]])
        if begin < end:  # it has taken long: Python may end the query
            piece = Span(base, begin, end)
    MEMORY.put_back(memory)
    return recorder, undecided
