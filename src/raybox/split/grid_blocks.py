"""Divide a grid among parts: blocks of cells.

A part stores the edges and the mask of its block. When it is opened, it becomes a grid with the edges of the
whole, in which the cells of other parts are empty. So cells have the numbers that they have in the whole, and
a ray in a face between two parts is in the cell that it is in there: what is true of a cell does not depend
on whether its neighbours are occupied.
"""

from math import prod

import numpy as np

from raybox.geometry import Grid
from raybox.geometry.cell_bits import CellBits, pack
from raybox.geometry.grid import of_bits
from raybox.geometry.grid_cells import part_of
from raybox.geometry.grid_edges import Edges
from raybox.validation import Bools

Block = tuple["slice[int, int, None]", ...]
"""The range of cells on each axis."""


def blocks_of(shape: tuple[int, ...], limit: int) -> list[Block]:
    """Return blocks of up to `limit` cells, into which a grid of this shape is divided."""
    return _divided(tuple(slice(0, count, None) for count in shape), limit)


def _divided(block: Block, limit: int) -> list[Block]:
    """Return the parts of a block: the longest axis is cut in two until all are small enough."""
    lengths = [cells.stop - cells.start for cells in block]
    parts = -(-prod(lengths) // limit)
    if parts <= 1:
        return [block]
    axis = lengths.index(max(lengths))
    begin, end = block[axis].start, block[axis].stop
    middle = begin + max(1, round(lengths[axis] * (parts // 2) / parts))
    ranges = slice(begin, middle, None), slice(middle, end, None)
    halves = [(*block[:axis], cells, *block[axis + 1 :]) for cells in ranges]
    return [part for half in halves for part in _divided(half, limit)]


def block_of(grid: Grid, block: Block) -> Grid:
    """Return the cells of a block as a grid, without ids and labels."""
    rows = grid._rows()
    axes = zip(grid.edges, block, strict=True)
    edges = tuple(one[cells.start : cells.stop + 1].copy() for one, cells in axes)
    return of_bits(edges, part_of(CellBits(rows.blocks, rows.words), grid.shape, block))


def find_block(part: Grid, edges: Edges) -> Block | None:
    """Return the block of a part in a grid of these edges; None if it is of another grid."""
    begins = [int(np.searchsorted(whole, own[0])) for whole, own in zip(edges, part.edges, strict=True)]
    block = tuple(slice(begin, begin + count, None) for begin, count in zip(begins, part.shape, strict=True))
    found = (whole[cells.start : cells.stop + 1] for whole, cells in zip(edges, block, strict=True))
    return block if all(map(np.array_equal, found, part.edges)) else None


def in_whole(part: Grid, edges: Edges, block: Block) -> Grid:
    """Return the grid of these edges, in which only the cells of a part may be occupied."""
    mask: Bools = np.zeros([len(one) - 1 for one in edges], np.bool_)  # pages that stay zero take no memory
    mask[block] = part.occupied
    return of_bits(edges, pack(mask))
