"""The cell of a grid that a ray touches first, if computed times prove it and all cells are occupied.

*Begin* is t_min, or the time at which the last axis enters the grid. Computed times that differ from it by
more than 2^-49 of it, the slack, are in exact order (`raybox.traversal.segments`). Let one of these four
times alone be that late: it is the exact begin. Let begin be before the end by more than the slack of both,
and the ray then between the two planes of a place on each axis, by more than the slack; on the axis that
enters last, at the outer plane, behind which there is no other place. Then this cell alone holds the ray's
point at begin: all others are touched later, or never.
"""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.geometry import GridRows
from raybox.primitives.ray import Ray
from raybox.traversal.grid_axes import SLACK, TINY, GridAxis, axes_of, interval_of
from raybox.traversal.grid_clip import AxisScale, AxisScales, AxisSpan, place_at, scale_of, span_of
from raybox.traversal.grid_rays import is_tame_grid, is_tame_ray

MISS, UNDECIDED = -1, -2


class FullGrid(NamedTuple):
    """What is the same for all rays through a grid whose cells are all occupied."""

    scales: AxisScales
    is_direct: bool  # whether first cells may be found: the grid is full, and tame


@device
def full_grid(rows: GridRows) -> FullGrid:
    """Return what is the same for all rays through a grid."""
    scales = scale_of(rows.x_edges), scale_of(rows.y_edges), scale_of(rows.z_edges)
    return FullGrid(scales, rows.blocks.size == 0 and is_tame_grid(rows))


@inlined
def _first_place(axis: GridAxis, scale: AxisScale, span: AxisSpan, begin: float, slack: float) -> int:
    """Return the only place of a ray on one axis at begin; -1 if that is not certain."""
    if axis.direction == 0.0:
        place, o = interval_of(axis.edges, axis.origin), axis.origin
        inside = (place == 0 or axis.edges[place] < o) and (
            place == scale.cells - 1 or o < axis.edges[place + 1]
        )
        return place if inside else -1
    if span.enter >= begin - slack:
        return 0 if axis.ahead == 1 else scale.cells - 1
    return place_at(axis, scale, begin, slack)


@inlined
def first_cell(rows: GridRows, ray: Ray, scales: AxisScales) -> int:
    """Return the cell that a ray touches first in a full grid, `MISS`, or `UNDECIDED`. The grid is tame."""
    d = ray.direction
    if (d[0] == 0.0 and d[1] == 0.0 and d[2] == 0.0) or not is_tame_ray(ray):
        return UNDECIDED
    x, y, z = axes_of(rows, ray, True)
    span_x, span_y, span_z = span_of(x, scales[0]), span_of(y, scales[1]), span_of(z, scales[2])
    begin = max(ray.t_min, span_x.enter, span_y.enter, span_z.enter)
    end = min(ray.t_max, span_x.leave, span_y.leave, span_z.leave)
    slack = abs(begin) * SLACK + TINY
    both = max(slack, abs(end) * SLACK + TINY)
    if begin == np.inf or begin > end + both:
        return MISS
    late = begin - slack
    last = (ray.t_min >= late) + (span_x.enter >= late) + (span_y.enter >= late) + (span_z.enter >= late)
    if last != 1 or not end > begin + both:
        return UNDECIDED
    a = _first_place(x, scales[0], span_x, begin, slack)
    b = _first_place(y, scales[1], span_y, begin, slack)
    c = _first_place(z, scales[2], span_z, begin, slack)
    if a < 0 or b < 0 or c < 0:
        return UNDECIDED
    return (a * rows.shape[1] + b) * rows.shape[2] + c
