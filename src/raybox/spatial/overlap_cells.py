"""Find the occupied cells of a grid that overlap query boxes, or are at most so far away.

The cells that overlap a box are those of a range of places on each axis, which bisection of the edges finds
exactly, and in order. Their bits are read 64 at a time.
"""

from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import lowest_bit
from raybox.spatial.cells import Cells, corners_of_cell, range_on, word_of
from raybox.spatial.found_rows import FoundRoom, end_query, put_row
from raybox.spatial.gaps import gaps_between, grown, is_within
from raybox.spatial.query_boxes import Corners, QueryBoxes, corners_of, distance_of, is_before, next_query
from raybox.traversal.job import RaySpan
from raybox.traversal.tree import is_allowed


@inlined
def _is_found(cells: Cells, queries: QueryBoxes, q: int, box: Corners, i: int) -> bool:
    """Return whether query q finds cell i, which is in the ranges of the query."""
    if not is_allowed(cells.allowed, ~i) or not is_before(queries, q, cells.first + i):
        return False
    if queries.distances.size == 0:
        return True
    return is_within(gaps_between(box, corners_of_cell(cells.rows, i)), distance_of(queries, q))


@device
def _find(cells: Cells, queries: QueryBoxes, q: int, room: FoundRoom) -> int:
    """Write the cells that query q finds, in order; return how many there are."""
    grid, box, count = cells.rows, corners_of(queries.lower, queries.upper, q), 0
    around = box if queries.distances.size == 0 else grown(box, distance_of(queries, q))
    x = range_on(grid.x_edges, around.lower[0], around.upper[0])
    y = range_on(grid.y_edges, around.lower[1], around.upper[1])
    z = range_on(grid.z_edges, around.lower[2], around.upper[2])
    if z.begin >= z.end:
        return 0
    for a in range(x.begin, x.end):
        for b in range(y.begin, y.end):
            row = (a * grid.shape[1] + b) * grid.shape[2]
            begin, end = row + z.begin, row + z.end
            for k in range(begin >> 6, (end + 63) >> 6):
                bits = word_of(grid, k)
                while bits != 0:
                    i = (k << 6) + lowest_bit(bits)
                    bits &= bits - 1
                    if begin <= i < end and _is_found(cells, queries, q, box, i):
                        count = put_row(room, count, i)
    return count


@entry
def find_in_cells(cells: Cells, queries: QueryBoxes, span: RaySpan, room: FoundRoom) -> int:
    """Write the cells of queries, a span of their order; return the first without room, or its end."""
    for k in range(span.begin, span.end):
        q = next_query(queries, k)
        if not end_query(room, q, _find(cells, queries, q, room)):
            return k
    return span.end
