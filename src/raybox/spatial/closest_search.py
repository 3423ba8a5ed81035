"""Find the nearest boxes of points in all geometries of a scene."""

import numpy as np

from raybox.spatial.cells import Cells
from raybox.spatial.closest_cells import find_closest_in_cells, make_cell_stack
from raybox.spatial.closest_tree import find_closest_in_tree, make_search_stack
from raybox.spatial.neighbor_heap import NearestRows, make_heap
from raybox.spatial.query_boxes import QueryBoxes
from raybox.spatial.search import BATCH, batches, searched
from raybox.spatial.slot_boxes import BoxTree
from raybox.spatial.target import RunSettings, SearchTarget
from raybox.threads.chunks import Run, chunk_runner
from raybox.traversal.job import RaySpan

_LEAST = 64  # points of a chunk, at least


def find_closest(target: SearchTarget, points: QueryBoxes, k: int, how: RunSettings) -> NearestRows:
    """Return the k boxes nearest to each point; -1 and infinity where there are fewer."""
    total, most = len(points.lower), max(1, min(k, sum(part.size for part in target.parts)))
    found = _no_rows(total, most, carried=len(target.parts) > 1)
    steps = total * len(target.parts)
    with chunk_runner(steps, workers=how.workers, progress=how.progress, noun="points") as threads:
        for number, batch in enumerate(batches(points)):
            some = _some(found, slice(number * BATCH, (number + 1) * BATCH))
            for part in target.parts:
                _search_part(searched(target, part), batch, some, threads)
    if most == k:
        return found
    padded = _no_rows(total, k, carried=False)
    padded.rows[:, :most], padded.distances[:, :most] = found.rows, found.distances
    return padded


def _no_rows(total: int, k: int, *, carried: bool) -> NearestRows:
    """Return room for k rows of each point, none found yet."""
    rows, distances = np.full((total, k), -1, np.int64), np.full((total, k), np.inf)
    return NearestRows(rows, distances, np.empty((total if carried else 0, k, 6)))


def _some(found: NearestRows, some: slice) -> NearestRows:
    """Return the room of some points."""
    return NearestRows(found.rows[some], found.distances[some], found.gaps[some])


def _search_part(boxes: BoxTree | Cells, points: QueryBoxes, found: NearestRows, threads: Run) -> None:
    """Write the boxes of one geometry that are nearer than those found so far."""
    k = found.rows.shape[1]

    def work(begin: int, end: int) -> None:
        heap, span = make_heap(k), RaySpan(begin, end)
        if isinstance(boxes, Cells):
            find_closest_in_cells(boxes, points, span, make_cell_stack(), heap, found)
        else:
            find_closest_in_tree(boxes, points, span, make_search_stack(), heap, found)

    threads(work, len(points.lower), min_chunk=_LEAST)
