"""Find the boxes of one query, without the preparations that pay only for several."""

import numpy as np

from raybox.bvh.node import WIDTH
from raybox.spatial.closest_tree import find_closest_in_tree, make_search_stack
from raybox.spatial.found_rows import FoundRoom
from raybox.spatial.neighbor_heap import NearestRows, make_heap
from raybox.spatial.overlap_tree import find_in_tree, make_shared
from raybox.spatial.query_boxes import QueryBoxes
from raybox.spatial.slot_boxes import BoxTree, make_stack
from raybox.traversal.job import RaySpan
from raybox.validation import Ints

_ROOM = 1 << 10
_SPAN = RaySpan(0, 1)


def find_rows_of_one(boxes: BoxTree, query: QueryBoxes) -> Ints:
    """Return the boxes that one query finds, sorted."""
    room = FoundRoom(np.empty(_ROOM, np.int32), np.zeros(1, np.int64), np.zeros(1, np.int64))
    if not find_in_tree(boxes, query, _SPAN, make_stack(), make_shared(), room):
        room = room._replace(rows=np.empty(int(room.counts[0]) + WIDTH, np.int32))
        find_in_tree(boxes, query, _SPAN, make_stack(), make_shared(), room)
    return room.rows[: room.used[0]].astype(np.int64)


def find_closest_of_one(boxes: BoxTree, query: QueryBoxes, k: int) -> Ints | None:
    """Return the k rows nearest to one query; None: there are fewer, or others may tie with the last."""
    found = NearestRows(np.empty((1, k + 1), np.int64), np.empty((1, k + 1)), np.empty((0, k + 1, 6)))
    find_closest_in_tree(boxes, query, _SPAN, make_search_stack(), make_heap(k + 1), found)
    last, next_one = found.distances[0, k - 1 :].tolist()
    return found.rows[0, :k] if last < next_one else None
