"""Find the boxes of one query, without the preparations that pay only for several."""

import numpy as np

from raybox.spatial.closest_tree import find_closest_in_tree, make_search_stack
from raybox.spatial.neighbor_heap import NearestRows, make_heap
from raybox.spatial.query_boxes import QueryBoxes
from raybox.spatial.search import found_parts
from raybox.spatial.slot_boxes import BoxTree
from raybox.traversal.job import RaySpan
from raybox.validation import Ints

_SPAN = RaySpan(0, 1)


def find_rows_of_one(boxes: BoxTree, query: QueryBoxes) -> Ints:
    """Return the boxes that one query finds, sorted."""
    found = found_parts(boxes, query, _SPAN, np.empty(1, np.int64))
    return found[-1].rows.astype(np.int64)  # all others had no room


def find_closest_of_one(boxes: BoxTree, query: QueryBoxes, k: int) -> Ints | None:
    """Return the k rows nearest to one query; None: there are fewer, or others may tie with the last."""
    found = NearestRows(np.empty((1, k + 1), np.int64), np.empty((1, k + 1)), np.empty((0, k + 1, 6)))
    find_closest_in_tree(boxes, query, _SPAN, make_search_stack(), make_heap(k + 1), found)
    last, next_one = found.distances[0, k - 1 :].tolist()
    return found.rows[0, :k] if last < next_one else None
