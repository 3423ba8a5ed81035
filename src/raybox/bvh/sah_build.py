"""Build a tree over rows of boxes by binned surface-area splits, directly to eight slots a node.

A node's boxes are split in two at the least cost, then the part with the largest area again, until
the slots are full or no part has more boxes than a node has slots. Slots that remain are spent on small
parts, whose boxes become slots of this node.

Cost: the sum over both halves of surface area times work (Goldsmith and Salmon 1987; see
`raybox.bvh.sah_bins.cheapest`), over 15 cuts between 16 bins on each axis (Wald 2007). Depth is bounded:
below level 48, or where centres coincide, parts are halved by number of boxes alone.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh import sah_bins as bins
from raybox.bvh import sah_rows
from raybox.bvh.node import EMPTY, MAX_DEPTH, WIDTH
from raybox.compiler.decorators import device, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.struct_ref import struct
from raybox.validation import Floats32, Ints, Ints32

SAH_DEPTH = 48
BEGIN, END, NODE, DEPTH = 0, 1, 2, 3  # columns of `task`


@struct
class SahWorkspace(NamedTuple):
    """Scratch memory of a builder, allocated outside of compiled code, which halves compile time.

    A stack of nodes to write: task (`BEGIN`, `END`, `NODE`, `DEPTH`) and the bounds of their centres.
    Parts of the current node: begin, end, area, bounds, and bounds of their centres.
    """

    task: Ints
    task_centers: Floats32
    waiting: Ints  # (1,): how many tasks are on the stack
    node_count: Ints  # (1,): nodes so far
    begin: Ints
    end: Ints
    area: Floats32
    bounds: Floats32
    centers: Floats32
    bins: Floats32
    scratch: Floats32


def make_workspace(begin: int, end: int, depth: int, centers: Floats32) -> SahWorkspace:
    """Return a workspace whose only task is a tree over rows begin:end, its root at this depth."""
    room = min(MAX_DEPTH * WIDTH, max(1, end - begin))  # tasks share no boxes
    workspace = SahWorkspace(
        task=np.empty((room, 4), np.int64),
        task_centers=np.empty((room, 8), np.float32),
        waiting=np.array([1], np.int64),
        node_count=np.array([1], np.int64),
        begin=np.zeros(WIDTH, np.int64),
        end=np.zeros(WIDTH, np.int64),
        area=np.zeros(WIDTH, np.float32),
        bounds=np.empty((WIDTH, 8), np.float32),
        centers=np.empty((WIDTH, 8), np.float32),
        bins=np.empty((bins.BINS, 3, 8), np.float32),
        scratch=np.empty((bins.BINS, 4), np.float32),
    )
    workspace.task[0] = begin, end, 0, depth
    workspace.task_centers[0] = centers
    return workspace


@device
def _choose(workspace: SahWorkspace, count: int, deep: bool) -> int:
    """Return the part to split next: of over 8 boxes, the largest area (when deep: number); -1: none."""
    best = -1
    most = np.float32(-1.0)
    for p in range(count):
        number = workspace.end[p] - workspace.begin[p]
        weight = np.float32(number) if deep else workspace.area[p]
        if number > WIDTH and weight > most:
            most = weight
            best = p
    return best


@device
def split(rows: Floats32, workspace: SahWorkspace, p: int, count: int, deep: bool) -> None:
    """Split part p in two, into itself and part `count`, at the least cost."""
    begin, end = workspace.begin[p], workspace.end[p]
    left = sah_rows.nothing()
    right = sah_rows.nothing()
    left_centers = sah_rows.load(workspace.centers, p)
    right_centers = left_centers
    grid = bins.grid_over(left_centers)
    cut = -1
    if not deep:
        # Sort into bins, and find the cut of least cost.
        bins.clear(workspace.bins)
        for i in range(begin, end):
            row = sah_rows.load(rows, i)
            bins.add(workspace.bins, bins.cell(row, grid), row)
        cut = bins.cheapest(workspace.bins, workspace.scratch)
    if cut >= 0:
        # Gather the bounds of both sides from their bins.
        for b in range(bins.BINS):
            here = sah_rows.load(workspace.bins, 3 * b + (cut >> 4))
            left = sah_rows.union_if(left, here, int(b <= cut & 15))
            right = sah_rows.union_if(right, here, int(b > cut & 15))

        # Move the left side's boxes to the front, without a branch.
        last = bins.limits(cut)
        left_centers = sah_rows.nothing()
        right_centers = sah_rows.nothing()
        middle = begin
        for i in range(begin, end):
            row = sah_rows.load(rows, i)
            other = sah_rows.load(rows, middle)
            side = bins.is_left(bins.cell(row, grid), last)
            sah_rows.store(rows, i, other)
            sah_rows.store(rows, middle, row)
            center = bins.center(row)
            left_centers = sah_rows.union_if(left_centers, center, side)
            right_centers = sah_rows.union_if(right_centers, center, 1 - side)
            middle += side
    else:
        middle = (begin + end) // 2
        for i in range(begin, middle):
            left = sah_rows.union(left, sah_rows.load(rows, i))
        for i in range(middle, end):
            right = sah_rows.union(right, sah_rows.load(rows, i))
    workspace.end[p] = middle
    workspace.begin[count], workspace.end[count] = middle, end
    workspace.area[p], workspace.area[count] = sah_rows.area(left), sah_rows.area(right)
    sah_rows.store(workspace.bounds, p, left)
    sah_rows.store(workspace.bounds, count, right)
    sah_rows.store(workspace.centers, p, left_centers)
    sah_rows.store(workspace.centers, count, right_centers)


@device
def _open_small(workspace: SahWorkspace, count: int) -> int:
    """Replace small parts by their boxes while slots are free; return the number of slots used.

    Each part saves a node; the part with the most area a slot comes first.
    """
    while True:
        best = -1
        most = np.float32(-1.0)
        for p in range(count):
            number = workspace.end[p] - workspace.begin[p]
            if number > 1 and count + number - 1 <= WIDTH:
                gain = workspace.area[p] / np.float32(number - 1)
                if gain > most:
                    most = gain
                    best = p
        if best < 0:
            return count
        begin, end = workspace.begin[best], workspace.end[best]
        workspace.end[best] = begin + 1
        for i in range(begin + 1, end):
            workspace.begin[count] = i
            workspace.end[count] = i + 1
            count += 1


@entry
def build_nodes(rows: Floats32, workspace: SahWorkspace, nodes: Ints32) -> bool:
    """Write nodes top down until there is no room for more; return whether all is done."""
    waiting, node_count = workspace.waiting[0], workspace.node_count[0]
    while waiting > 0 and node_count <= nodes.shape[0]:
        waiting -= 1
        begin, end = workspace.task[waiting, BEGIN], workspace.task[waiting, END]
        node, depth = workspace.task[waiting, NODE], workspace.task[waiting, DEPTH]
        workspace.begin[0], workspace.end[0] = begin, end
        sah_rows.store(workspace.centers, 0, sah_rows.load(workspace.task_centers, waiting))

        # Split until the slots are full.
        count = whole(1)
        while count < WIDTH:
            p = _choose(workspace, count, depth > SAH_DEPTH)
            if p < 0:
                break
            split(rows, workspace, p, count, depth > SAH_DEPTH)
            count += 1
        count = _open_small(workspace, count)

        # Write the slots, and put parts that need nodes of their own on the stack.
        for p in range(WIDTH):
            begin, end = workspace.begin[p], workspace.end[p]
            if p >= count or begin == end:
                sah_rows.write_slot(nodes, node, p, sah_rows.nothing(), EMPTY)
            elif end - begin == 1:
                row = sah_rows.load(rows, begin)
                sah_rows.write_slot(nodes, node, p, row, ~sah_rows.number_of(row))
            else:
                sah_rows.write_slot(nodes, node, p, sah_rows.load(workspace.bounds, p), node_count)
                workspace.task[waiting, BEGIN], workspace.task[waiting, END] = begin, end
                workspace.task[waiting, NODE], workspace.task[waiting, DEPTH] = node_count, depth + 1
                sah_rows.store(workspace.task_centers, waiting, sah_rows.load(workspace.centers, p))
                waiting += 1
                node_count += 1
    workspace.waiting[0], workspace.node_count[0] = waiting, node_count
    return waiting == 0
