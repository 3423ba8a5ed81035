"""Merge the hits of several geometries into one exact order.

Reported times are the exact ones rounded once, so two that differ are in exact order. Where two are equal and
of different geometries, compiled code compares the exact ones. It compares primitives of one kind: a cell,
and a triangle or a plane across an axis, are boxes for that, flat ones, without end on the other axes.
Others, as those of instances, are compared in integers (`raybox.primitives.exact_table`).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from raybox.exact import definition
from raybox.geometry import BoxRows, GridRows, PlaneRows, TriangleRows
from raybox.primitives import exact_table
from raybox.primitives.pairs import write_orders
from raybox.queries.query import Request
from raybox.validation import Bools, Floats, Ints, freeze


class FlatHits(NamedTuple):
    """Hits one after the other, of any number of rays."""

    ray: Ints
    id: Ints
    t: Floats


def merge_hits(request: Request, parts: Sequence[FlatHits]) -> FlatHits:
    """Return the hits with each geometry, ids counted within it, in exact order along each ray."""
    starts = zip(parts, request.starts, strict=True)
    columns = zip(*((part.ray, part.id + start, part.t) for part, start in starts), strict=True)
    ray, number, t = (np.concatenate(column) for column in columns)
    order = np.lexsort((t, ray))  # hits with one geometry stay in their order
    ray, number, t = ray[order], number[order], t[order]
    same = (ray[1:] == ray[:-1]) & (t[1:] == t[:-1])
    _sort_ties(request, ray, number, np.concatenate([[0], np.cumsum(~same, dtype=np.int64)]))
    return FlatHits(ray, number, t)


def _sort_ties(request: Request, ray: Ints, number: Ints, runs: Ints) -> None:
    """Sort hits of equal reported times by the exact ones, then by id. runs: equal where the times are.

    Neighbours of even and odd places change places by turns, those of all rays at once, until none does:
    after the first turns where hits tie exactly, as on shared faces. Hits with one geometry are in order.
    """
    left = np.ones(runs[-1] + 1, np.bool_)  # runs that may not be in order
    ties = np.flatnonzero(runs[1:] == runs[:-1])  # places of hits whose time is that of the next one, too
    while left.any():
        changed = np.zeros_like(left)
        for turn in range(2):
            places = ties[left[runs[ties]] & (ties % 2 == turn)]
            first, second = number[places], number[places + 1]
            geometry, other = (np.searchsorted(request.starts, ids, side="right") for ids in (first, second))
            places, first, second = (ids[geometry != other] for ids in (places, first, second))
            order = exact_order(request, ray[places], first, second)
            later = (order > 0) | ((order == 0) & (first > second))
            number[places[later]], number[places[later] + 1] = second[later], first[later]
            changed[runs[places[later]]] = True
        left = changed


def exact_order(request: Request, rays: Ints, ones: Ints, others: Ints) -> Ints:
    """Return the orders, -1, 0 or 1, of the exact times of pairs of hits, given by their rays and ids."""
    ids = np.stack([ones, others], axis=1)
    geometry = np.searchsorted(request.starts, ids, side="right") - 1
    index = ids - np.array(request.starts)[geometry]
    orders, left = np.empty(len(rays), np.int64), np.ones(len(rays), np.bool_)
    for form in (_as_boxes, _as_triangles):
        if not left.any():
            break
        known = np.zeros(ids.shape, np.bool_)
        rows = form(request, rays, geometry, index, known)
        some = np.flatnonzero(left & known.all(axis=1))
        found = np.empty(some.size, np.int64)
        write_orders(request.rays, rows, rays[some], 2 * some, 2 * some + 1, found)
        orders[some], left[some] = found, False
    for k in np.flatnonzero(left).tolist():
        primitives = zip(geometry[k].tolist(), index[k].tolist(), strict=True)
        orders[k] = np.sign(
            definition.order(*(_exact_time(request, int(rays[k]), *one) for one in primitives))
        )
    return orders


def _as_boxes(request: Request, rays: Ints, geometry: Ints, index: Ints, known: Bools) -> BoxRows:
    """Return hits as boxes with the same first contacts, and write which are known to be."""
    shape = (*index.shape, 3)
    lower, upper = np.zeros(shape), np.zeros(shape)
    directions = np.broadcast_to(request.rays.directions[rays][:, None], shape)
    for k, job in enumerate(request.jobs):
        here = geometry == k
        boxes_of = _BOXES.get(type(job.rows))
        if boxes_of and here.any():
            lower[here], upper[here], known[here] = boxes_of(job.rows, index[here], directions[here])
    freeze(lower, upper)
    return BoxRows(lower.reshape(-1, 3), upper.reshape(-1, 3))


class _Boxes(NamedTuple):
    """Boxes in place of hits, where they are known."""

    lower: Floats
    upper: Floats
    known: Bools


def _of_boxes(boxes: BoxRows, index: Ints, _directions: Floats) -> _Boxes:
    return _Boxes(boxes.lower[index], boxes.upper[index], np.ones(len(index), np.bool_))


def _of_cells(grid: GridRows, index: Ints, _directions: Floats) -> _Boxes:
    edges = grid.x_edges, grid.y_edges, grid.z_edges
    places = list(zip(edges, np.unravel_index(index, tuple(grid.shape)), strict=True))
    lower, upper = (np.stack([one[k + side] for one, k in places], axis=1) for side in range(2))
    return _Boxes(lower, upper, np.ones(len(index), np.bool_))


def _flat(axes: Bools, heights: Floats) -> _Boxes:
    """Return boxes that are flat at a height on an axis, the first of those marked, and endless on others."""
    known = np.asarray(axes.any(axis=1))
    first = np.zeros(axes.shape, np.bool_)
    first[np.arange(len(axes)), axes.argmax(axis=1)] = known
    return _Boxes(np.where(first, heights, -np.inf), np.where(first, heights, np.inf), known)


def _of_triangles(mesh: TriangleRows, index: Ints, directions: Floats) -> _Boxes:
    corners = mesh.corners[index]
    across = (corners == corners[:, :1]).all(axis=1) & (directions != 0.0)
    return _flat(across, corners[:, 0])


def _of_planes(planes: PlaneRows, index: Ints, _directions: Floats) -> _Boxes:
    normals = planes.normals[index]
    across = (np.abs(normals) == 1.0) & (np.count_nonzero(normals, axis=1) == 1)[:, None]
    return _flat(across, normals * planes.offsets[index][:, None])


_BOXES: dict[type, Callable[[Any, Ints, Floats], _Boxes]] = {
    BoxRows: _of_boxes,
    GridRows: _of_cells,
    TriangleRows: _of_triangles,
    PlaneRows: _of_planes,
}


def _as_triangles(request: Request, _rays: Ints, geometry: Ints, index: Ints, known: Bools) -> TriangleRows:
    """Return hits of meshes as triangles of one mesh, and write which are."""
    corners = np.zeros((*index.shape, 3, 3))
    for k, job in enumerate(request.jobs):
        if isinstance(job.rows, TriangleRows):
            here = geometry == k
            corners[here], known[here] = job.rows.corners[index[here]], True
    freeze(corners)
    return TriangleRows(corners.reshape(-1, 3, 3), False)


def _exact_time(request: Request, ray: int, geometry: int, index: int) -> Any:
    """Return the exact time of a hit."""
    return exact_table.exact_time(request.jobs[geometry].rows, exact_table.ray_at(request.rays, ray), index)
