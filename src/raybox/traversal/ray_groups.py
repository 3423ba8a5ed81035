"""The loops of a query of many rays: rays are sorted and traversed in groups; results have the rays' order.

Threads share in each step: `list_keys` copies those of some rays that may hit anything, lists and counts them
by their keys, `scatter` puts them where those with their key belong, and `traverse_groups` traverses the
tree with a part of the sorted rays.
"""

from typing import NamedTuple

from raybox.bvh.node import ROW
from raybox.compiler.decorators import device, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import larger, prefetch_to_write, smaller
from raybox.geometry import RayRows
from raybox.primitives.ray import excluded_by, start_of
from raybox.traversal.job import Job, RaySpan, Recorder
from raybox.traversal.node_test import boxes, used
from raybox.traversal.packed_rays import set_up_rays
from raybox.traversal.protocol import has_unwritten, write_results
from raybox.traversal.ray_keys import copy_rays, keep_keys, sort_keys
from raybox.traversal.ray_setup import CELLS, LANES, STOP, octant_of
from raybox.traversal.stream import (
    float64_is_deferred,
    resolve_waiting,
    scan_span,
    traverse_starts,
)
from raybox.traversal.workspace import (
    ListSpan,
    Order,
    SetupSpan,
    Span,
    Workspace,
    clear_undecided,
    next_ray,
    set_next_ray,
    work_counts,
)
from raybox.validation import Ints, Ints32

CACHED_RAYS = 1024  # rays that a core's first cache holds
_PAIRS_AT_ONCE = 1 << 22  # about a tenth of a second, after which Python may end the query (Ctrl-C)
_OCTANT = CELLS**3
_ANY = 8  # in place of an octant
_AHEAD = 16  # places are prefetched so many rays before: halves the time of scattering


@device
def _set_up(job: Job, rays: RayRows, workspace: Workspace, order: Order, span: Span, deferred: bool) -> None:
    """Pack the rays of a group: emitted once, called twice."""
    workspace.first_ray[0] = span.begin
    set_up_rays(job, workspace, order.rows, order.where, SetupSpan(span.begin, span.end, deferred))
    workspace.excludes[0] = rays.excluded.size
    if rays.excluded.size > 0:
        for r in range(span.end - span.begin):
            workspace.excluded[r] = excluded_by(rays, span.base + order.order[span.begin + r])


@device
def _write(recorder: Recorder, job: Job, order: Order, workspace: Workspace, span: Span) -> bool:
    """Write a group's results: compiled once, for an entry and for a device function."""
    resolve_waiting(job, recorder, workspace)
    return write_results(recorder, job, order, workspace, span)


@device
def _list_all(workspace: Workspace, number: int) -> None:
    """Make all rays of a group the first list."""
    for r in range(number):
        workspace.lists[r], workspace.times[r] = r, 0.0


class KeySpan(NamedTuple):
    """The rays base + k, begin <= k < end, whose list goes on from `row`, which is not after begin."""

    base: int
    begin: int
    end: int
    row: int


@entry
def list_keys(job: Job, span: KeySpan, order: Order, counts: Ints, keys: Ints32) -> int:
    """List the keys of rays, less those that hit nothing, copy these rays, count each key; return the end.

    keys: room for those of CACHED_RAYS rays and 16 more; without any, keys are in `order.keys` already.
    There are 16 rays from the base on, at least: fewer are keyed with their neighbours.
    """
    base, begin, end, row = span
    listed = row
    for begin in range(span.begin, end, CACHED_RAYS):
        stop = smaller(begin + CACHED_RAYS, end)
        if keys.size > 0:
            first = smaller(begin, larger(0, stop - LANES))
            sort_keys(job.rays, job.frame, base + first, base + larger(stop, first + LANES), keys)
            marks = keys[begin - first :]
        else:
            marks = order.keys[begin:]
        last, row = row, keep_keys(marks, (begin, stop), row, order.keys, order.numbers)
        copy_rays(job.rays, base, order.numbers, RaySpan(last, row), order.rows)
    for k in range(listed, row):
        counts[order.keys[k]] += 1
    return whole(row)


@entry
def scatter(span: RaySpan, order: Order, places: Ints) -> None:
    """Put the rays begin <= row < end of the list in order; places: where the next ray of each key goes."""
    for row in range(span.begin, span.end):
        soon = places[order.keys[smaller(row + _AHEAD, span.end - 1)]]
        prefetch_to_write(order.order, soon)
        prefetch_to_write(order.where, soon)
        key = order.keys[row]
        place = places[key]
        order.order[place], order.where[place] = order.numbers[row], row
        places[key] += 1


@entry
def copy_sorted(rays: RayRows, span: Span, order: Order) -> None:
    """Copy the rays base + order[k], begin <= k < end, to the rows of their places in the order."""
    copy_rays(rays, span.base, order.order, RaySpan(span.begin, span.end), order.rows)


@entry
def traverse_groups(
    job: Job, rays: RayRows, span: Span, order: Order, workspace: Workspace, recorder: Recorder
) -> bool:
    """Record the results of sorted rays, in groups of what the workspace holds; return False without room.

    Continues at `next_ray`, and ends early there, after `_PAIRS_AT_ONCE` candidates. rays: those of the span,
    which go one by one if they are in no order; sorted ones are in the rows of their order.
    """
    base, begin, end = span
    if order.starts.size == 0:
        return _traverse_unsorted(job, rays, span, order, workspace, recorder)
    if rays.starts.size > 1:
        return _traverse_by_starts(job, rays, span, order, workspace, recorder)
    limit = work_counts(workspace).candidates + _PAIRS_AT_ONCE
    while next_ray(order) < end and work_counts(workspace).candidates < limit:
        begin, octant = next_ray(order), whole(0)
        while order.starts[(octant + 1) * _OCTANT] <= begin:
            octant += 1
        room = workspace.power.size - LANES
        stop = smaller(smaller(end, begin + room), order.starts[(octant + 1) * _OCTANT])
        group = Span(base, begin, stop)
        if not has_unwritten(recorder):
            _set_up(job, rays, workspace, order, group, float64_is_deferred(job, recorder))
            _list_all(workspace, stop - begin)
            traverse_starts(job, recorder, workspace, octant, stop - begin, whole(start_of(rays, 0)))
        if not _write(recorder, job, order, workspace, group):
            return False
        set_next_ray(order, stop)
    return True


@device
def _traverse_by_starts(
    job: Job, rays: RayRows, span: Span, order: Order, workspace: Workspace, recorder: Recorder
) -> bool:
    """Record the results of rays in the order of their starts; return False if there was no room."""
    base, begin, end = span
    limit = work_counts(workspace).candidates + _PAIRS_AT_ONCE
    while next_ray(order) < end and work_counts(workspace).candidates < limit:
        begin = next_ray(order)
        stop = smaller(end, begin + workspace.power.size - LANES)
        group = Span(base, begin, stop)
        if not has_unwritten(recorder):
            _set_up(job, rays, workspace, order, group, float64_is_deferred(job, recorder))
            first = begin
            while first < stop:
                row, last = start_of(rays, base + order.order[first]), first + 1
                while last < stop and start_of(rays, base + order.order[last]) == row:
                    last += 1
                if row > 0:
                    _traverse_row(job, recorder, workspace, RaySpan(first - begin, last - begin), row)
                first = last
            _traverse_row(job, recorder, workspace, RaySpan(0, stop - begin), 0)
        if not _write(recorder, job, order, workspace, group):
            return False
        set_next_ray(order, stop)
    return True


@device
def _traverse_row(job: Job, recorder: Recorder, workspace: Workspace, span: RaySpan, row: int) -> None:
    """Traverse the nodes of a row of starts with some rays of a group, of any octants."""
    nodes, first, count = job.tree.nodes, whole(job.tree.starts[row, 0]), whole(job.tree.starts[row, 1])
    if count == 0:
        return
    is_flat = used(nodes, first * ROW) & ~boxes(nodes, first * ROW) == 0
    if is_flat and workspace.excludes[0] == 0 and job.allowed.size == 0:
        number = _list_rays(workspace, span, _ANY)
        if number > 0:
            scan_span(job, recorder, workspace, ListSpan(first, first + count), number)
        return
    for octant in range(8):
        number = _list_rays(workspace, span, octant)
        if number > 0:
            traverse_starts(job, recorder, workspace, octant, number, whole(~row))


@device
def _list_rays(workspace: Workspace, span: RaySpan, octant: int) -> int:
    """Make the rays of an octant that have not ended the first list; return how many there are."""
    number = whole(0)
    for r in range(span.begin, span.end):
        if workspace.packed_rays[r, STOP] >= 0.0 and (
            octant == _ANY or octant_of(workspace.packed_rays, r) == octant
        ):
            workspace.lists[number], workspace.times[number] = r, 0.0
            number += 1
    return number


@device
def _traverse_unsorted(
    job: Job, rays: RayRows, span: Span, order: Order, workspace: Workspace, recorder: Recorder
) -> bool:
    """Record the results of rays one by one, in their own order; return False if there was no room.

    Ends early, at `next_ray`, after `_PAIRS_AT_ONCE` candidates.
    """
    base, begin, end = span
    if has_unwritten(recorder):
        return _write(recorder, job, order, workspace, Span(base, begin, next_ray(order)))
    clear_undecided(order)
    for k in range(begin, end):
        order.order[k], order.where[k] = k, k
    copy_rays(rays, base, order.order, RaySpan(begin, end), order.rows)
    _set_up(job, rays, workspace, order, span, float64_is_deferred(job, recorder))
    limit, stop = work_counts(workspace).candidates + _PAIRS_AT_ONCE, begin
    while stop < end and work_counts(workspace).candidates < limit:
        r = stop - begin
        if workspace.packed_rays[r, STOP] >= 0.0:  # others hit nothing, or are not packed
            workspace.lists[0], workspace.times[0] = r, 0.0
            octant, row = octant_of(workspace.packed_rays, r), whole(start_of(rays, base + stop))
            traverse_starts(job, recorder, workspace, octant, whole(1), row)
        stop += 1
    set_next_ray(order, stop)
    return _write(recorder, job, order, workspace, Span(base, begin, whole(stop)))
