"""Build the top of a tree: parts of many boxes, each split by all threads together.

The chunks of a part are binned in parallel, and moved in parallel to a second array, in the order they had:
neither the bins nor the order depend on the threads. Where a level has at least one part for each thread, one
thread splits each. Parts of up to `least` boxes are left to `raybox.bvh.sah_build`.
"""

from typing import NamedTuple

import numpy as np

from raybox.bvh import sah_bins, sah_rows
from raybox.bvh.build_threads import INLINE, TaskRunner, chunks
from raybox.bvh.node import CHILD, EMPTY, ROW, WIDTH
from raybox.bvh.sah_build import SAH_DEPTH
from raybox.compiler.entry_points import entry
from raybox.validation import Floats32, Ints32

_CHUNK = 2**15  # boxes: 1 MB


class PartRows(NamedTuple):
    """Boxes begin:end of one of the two arrays of rows, their bounds, and those of their centres."""

    side: int
    begin: int
    end: int
    bounds: Floats32
    centers: Floats32


@entry
def _fill_bins(rows: Floats32, begin: int, end: int, centers: Floats32, out: Floats32) -> None:
    """Sort boxes begin:end of a part into bins."""
    grid = sah_bins.grid_over(sah_rows.load(centers, 0))
    sah_bins.clear(out)
    for i in range(begin, end):
        row = sah_rows.load(rows, i)
        sah_bins.add(out, sah_bins.cell(row, grid), row)


class _Sides(NamedTuple):
    """The array that the boxes of both sides of a cut move to, and the next row of each side."""

    rows: Floats32
    left: int
    right: int


@entry
def _move(
    rows: Floats32, span: tuple[int, int], centers: Floats32, cut: int, to: _Sides, out: Floats32
) -> None:
    """Move boxes of a part to the rows of their sides; write the bounds of the sides' centres."""
    grid = sah_bins.grid_over(sah_rows.load(centers, 0))
    last = sah_bins.limits(cut)
    left = sah_rows.nothing()
    right = sah_rows.nothing()
    left_at = to.left
    right_at = to.right
    for i in range(span[0], span[1]):
        row = sah_rows.load(rows, i)
        side = sah_bins.is_left(sah_bins.cell(row, grid), last)
        sah_rows.store(
            to.rows, right_at + side * (left_at - right_at), row
        )  # no branch: it would be unpredictable
        left_at += side
        right_at += 1 - side
        center = sah_bins.center(row)
        left = sah_rows.union_if(left, center, side)
        right = sah_rows.union_if(right, center, 1 - side)
    sah_rows.store(out, 0, left)
    sah_rows.store(out, 1, right)


@entry
def _cheapest(table: Floats32, scratch: Floats32) -> int:
    """Return the cut of least cost, -1 where there is none."""
    return sah_bins.cheapest(table, scratch)


def _area(part: PartRows) -> float:
    """Return half the surface area of a part's bounds, clamped to finite sizes."""
    planes = part.bounds.clip(-sah_rows.CLAMP, sah_rows.CLAMP)
    x, y, z = np.maximum(planes[:3] + planes[4:7], 0).tolist()
    return float(x * y + y * z + z * x)


def _bin_chunks(
    run_each: TaskRunner, rows: Floats32, part: PartRows, centers: Floats32
) -> tuple[list[tuple[int, int]], Floats32]:
    """Return a part's chunks, and their bins: (chunks, 16, 3, 8)."""
    spans = chunks(part.begin, part.end, _CHUNK)
    tables = np.empty((len(spans), sah_bins.BINS, 3, 8), np.float32)
    run_each(_fill_bins, [(rows, *span, centers, table) for span, table in zip(spans, tables, strict=True)])
    return spans, tables


def _halve(run_each: TaskRunner, rows: Floats32, part: PartRows) -> list[PartRows]:
    """Return the halves of a part, split by number of boxes."""
    middle = (part.begin + part.end) // 2
    halves = [part._replace(end=middle), part._replace(begin=middle)]
    one_bin = np.zeros((1, 8), np.float32)  # of no length: all boxes are in the first
    bounds = [_bin_chunks(run_each, rows, half, one_bin)[1][:, 0, 0].max(axis=0) for half in halves]
    return [half._replace(bounds=b) for half, b in zip(halves, bounds, strict=True)]


def _split(
    run_each: TaskRunner, rows: tuple[Floats32, Floats32], part: PartRows, deep: bool
) -> list[PartRows]:
    """Return the two parts of a split at the least cost."""
    here, there = rows[part.side], rows[1 - part.side]
    if deep:
        return _halve(run_each, here, part)
    centers = part.centers.reshape(1, 8)
    spans, tables = _bin_chunks(run_each, here, part, centers)
    table = tables.max(axis=0)
    counts = tables[..., 7].view(np.int32).astype(np.int64)
    table[..., 7] = counts.sum(axis=0).astype(np.int32).view(np.float32)
    cut = _cheapest(table, np.empty((sah_bins.BINS, 4), np.float32))
    if cut < 0:
        return _halve(run_each, here, part)
    axis, last = cut >> 4, (cut & 15) + 1

    # Each chunk's boxes go behind those of the chunks before it.
    lefts = counts[:, :last, axis].sum(axis=1)
    rights = counts[:, last:, axis].sum(axis=1)
    middle = part.begin + int(lefts.sum())
    left_at = part.begin + np.cumsum(lefts) - lefts
    right_at = middle + np.cumsum(rights) - rights
    out = np.empty((len(spans), 2, 8), np.float32)
    moves = [
        (here, span, centers, cut, _Sides(there, *places), sides)
        for span, *places, sides in zip(spans, left_at.tolist(), right_at.tolist(), out, strict=True)
    ]
    run_each(_move, moves)
    centers = out.max(axis=0)
    bounds = table[:last, axis].max(axis=0), table[last:, axis].max(axis=0)
    ends = (part.begin, middle), (middle, part.end)
    return [PartRows(1 - part.side, *ends[k], bounds[k], centers[k]) for k in range(2)]


def _divide(
    run_each: TaskRunner, rows: tuple[Floats32, Floats32], part: PartRows, deep: bool
) -> list[PartRows]:
    """Split a part into the parts of one node, as `raybox.bvh.sah_build` does."""
    parts = [part]
    while len(parts) < WIDTH:
        weights = [
            -1.0 if p.end - p.begin <= WIDTH else float(p.end - p.begin) if deep else _area(p) for p in parts
        ]
        p = int(np.argmax(weights))
        parts[p], other = _split(run_each, rows, parts[p], deep)
        parts.append(other)
    return parts


class BuildTask(NamedTuple):
    """A part to be grown by one thread, and the place of its root: a slot of a node, and its depth."""

    part: PartRows
    node: int
    slot: int
    depth: int


def build_top(
    run_each: TaskRunner, rows: tuple[Floats32, Floats32], whole: PartRows, least: int
) -> tuple[Ints32, list[BuildTask]]:
    """Return the top nodes (their slots for tasks lack a child), and the tasks in order."""
    nodes: list[Ints32] = []
    tasks: list[BuildTask] = []
    level = [BuildTask(whole, -1, -1, 1)]
    while level:
        large = [job for job in level if job.part.end - job.part.begin > least]
        tasks += [job for job in level if job.part.end - job.part.begin <= least]
        level = []
        for job, parts in zip(large, _divide_all(run_each, rows, large), strict=True):
            if job.node >= 0:
                nodes[job.node][CHILD + job.slot] = len(nodes)
            level += [BuildTask(part, len(nodes), slot, job.depth + 1) for slot, part in enumerate(parts)]
            nodes.append(_node(parts))
    return np.array(nodes, np.int32).reshape(-1, ROW), tasks


def _divide_all(
    run_each: TaskRunner, rows: tuple[Floats32, Floats32], jobs: list[BuildTask]
) -> list[list[PartRows]]:
    """Return the parts that each task of a level is split into.

    All threads split each part together while there are fewer parts than threads; then one thread splits
    each, which is 10 % faster.
    """
    sizes = [job.part.end - job.part.begin for job in jobs]
    arguments = [(rows, job.part, job.depth > SAH_DEPTH) for job in jobs]
    if len(jobs) < run_each.threads:
        return [_divide(run_each, *one) for one in arguments]
    return run_each.largest_first(_divide, [(INLINE, *one) for one in arguments], sizes)


def _node(parts: list[PartRows]) -> Ints32:
    """Return a node with the bounds of its parts in its slots."""
    node = np.empty(ROW, np.int32)
    rows = np.array([part.bounds for part in parts])
    planes = np.concatenate([-rows[:, :3], rows[:, 4:7]], axis=1)
    node[:CHILD] = planes.T.ravel().view(np.int32)
    node[CHILD:] = EMPTY
    return node
