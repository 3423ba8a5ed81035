"""Find the boxes of one query, without the preparations that pay only for several."""

import numpy as np

from raybox.spatial.cells import Cells
from raybox.spatial.closest_tree import find_closest_in_tree, make_search_stack
from raybox.spatial.found_rows import FoundRoom
from raybox.spatial.neighbor_heap import NearestRows, make_heap
from raybox.spatial.overlap_cells import find_in_cells
from raybox.spatial.overlap_tree import BoxTree, find_in_tree, make_stack
from raybox.spatial.query_boxes import QueryBoxes
from raybox.traversal.job import RaySpan
from raybox.validation import Ints

_ROOM = 1 << 10
_SPAN = RaySpan(0, 1)


def find_rows_of_one(boxes: BoxTree | Cells, query: QueryBoxes) -> Ints:
    """Return the rows of one geometry that one query finds, sorted."""
    room = FoundRoom(np.empty(_ROOM, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64))
    if not _find(boxes, query, room):
        room = room._replace(rows=np.empty(int(room.counts[0]), np.int64))
        _find(boxes, query, room)
    return room.rows[: room.used[0]]


def _find(boxes: BoxTree | Cells, query: QueryBoxes, room: FoundRoom) -> int:
    """Write the rows of a query; return 0 if they have no room."""
    if isinstance(boxes, Cells):
        return find_in_cells(boxes, query, _SPAN, room)
    return find_in_tree(boxes, query, _SPAN, make_stack(), room)


def find_closest_of_one(boxes: BoxTree, query: QueryBoxes, k: int) -> Ints | None:
    """Return the k rows nearest to one query; None: there are fewer, or others may tie with the last."""
    found = NearestRows(np.empty((1, k + 1), np.int64), np.empty((1, k + 1)), np.empty((0, k + 1, 6)))
    find_closest_in_tree(boxes, query, _SPAN, make_search_stack(), make_heap(k + 1), found)
    last, next_one = found.distances[0, k - 1 :].tolist()
    return found.rows[0, :k] if last < next_one else None
