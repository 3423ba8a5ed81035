"""Find the occupied cells of a grid that share a point with a convex region, by the tree of its cells."""

from typing import NamedTuple

import numpy as np

from raybox.bvh.cell_tree import FIRST, MASK, SIDE, CellTree
from raybox.geometry import GridRows
from raybox.spatial.region_boxes import BoxColumns, Chosen, RegionPlanes, share_a_point, sides_of
from raybox.spatial.target import TargetPart
from raybox.validation import Ints

_NODES = 2**10  # nodes at a time, of 64 children each
_BITS = np.arange(SIDE**3)
_PLACES = np.stack([_BITS >> 4, _BITS >> 2 & 3, _BITS & 3])  # of a child in its node


class CellNodes(NamedTuple):
    """Nodes of one level of a `CellTree`, or cells: those of level -1."""

    level: int
    places: Ints
    """(3, N): among the nodes of the level"""
    rows: Ints
    """(N,): of the tree; without meaning for cells, and where all cells are occupied"""
    are_inside: bool

    @property
    def size(self) -> int:
        """The number of nodes."""
        return len(self.rows)

    def of(self, rows: Chosen) -> "CellNodes":
        """Return some of the nodes."""
        return self._replace(places=self.places[:, rows], rows=self.rows[rows])


def cells_in(region: RegionPlanes, part: TargetPart) -> Ints:
    """Return the numbers of cells that share a point with a region, in any order."""
    grid, tree = part.rows, part.tree
    assert isinstance(grid, GridRows)
    assert isinstance(tree, CellTree)
    start = np.zeros(1, np.int64)
    waiting = [CellNodes(len(tree.starts) - 1, np.zeros((3, 1), np.int64), start, False)]
    found = [np.empty(0, np.int64)]
    while waiting:
        nodes = waiting.pop()
        if nodes.size > _NODES:
            waiting.append(nodes.of(slice(_NODES, None)))
            nodes = nodes.of(slice(0, _NODES))
        for children in _split(region, grid, _children(grid, tree, nodes)):
            if children.level >= 0:
                waiting.append(children)
            else:
                found.append(_decided(region, part, children))
    return np.concatenate(found)


def _children(grid: GridRows, tree: CellTree, nodes: CellNodes) -> CellNodes:
    """Return the children of nodes that have occupied cells."""
    sizes = -(-grid.shape // SIDE**nodes.level)
    places = (SIDE * nodes.places[:, :, None] + _PLACES[:, None]).reshape(3, -1)
    if len(tree.nodes):
        stored = tree.nodes[nodes.rows]
        occupied = (stored[:, MASK, None] >> _BITS & 1).astype(np.bool_)
        rows = (stored[:, FIRST, None] + np.cumsum(occupied, axis=1) - 1).ravel()
        there = occupied.ravel()
    else:
        rows, there = np.zeros(places.shape[1], np.int64), (places < sizes[:, None]).all(axis=0)
    return CellNodes(nodes.level - 1, places, rows, nodes.are_inside).of(there)


def _split(region: RegionPlanes, grid: GridRows, nodes: CellNodes) -> list[CellNodes]:
    """Return nodes that are certainly inside of a region, and undecided ones, if there are any."""
    if nodes.are_inside:
        return [nodes]
    sides = sides_of(region, _bounds(grid, nodes))
    rest = nodes.of(~(sides.outside | sides.inside))
    parts = [nodes.of(sides.inside)._replace(are_inside=True), rest]
    return [part for part in parts if part.size]


def _bounds(grid: GridRows, nodes: CellNodes) -> BoxColumns:
    """Return the bounds of nodes, exactly."""
    width = SIDE ** (nodes.level + 1)
    lower, upper = [], []
    for edges, place in zip(grid[:3], nodes.places, strict=True):
        lower.append(edges[place * width])
        upper.append(edges[np.minimum((place + 1) * width, len(edges) - 1)])
    return BoxColumns(lower, upper)


def _decided(region: RegionPlanes, part: TargetPart, cells: CellNodes) -> Ints:
    """Return the numbers of the allowed cells that share a point with a region."""
    assert isinstance(part.rows, GridRows)
    shape = tuple(part.rows.shape.tolist())
    numbers: Ints = np.ravel_multi_index(tuple(cells.places), shape).astype(np.int64)
    if part.allowed.size:
        allowed = part.allowed[numbers]
        cells, numbers = cells.of(allowed), numbers[allowed]
    if cells.are_inside:
        return numbers
    return numbers[share_a_point(region, _bounds(part.rows, cells))]
