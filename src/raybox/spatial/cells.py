"""The occupied cells of a grid, as searches read them."""

from typing import NamedTuple

import numpy as np

from raybox.bvh.cell_tree import FIRST, MASK, CellTree
from raybox.compiler.decorators import device, inlined
from raybox.compiler.intrinsics import popcount
from raybox.compiler.struct_ref import struct
from raybox.geometry import GridRows
from raybox.spatial.query_boxes import Corners
from raybox.validation import Bools, Floats

_ALL = -1  # a word all of whose bits are set


@struct
class Cells(NamedTuple):
    """The cells of a grid, their tree, and which of them may be found."""

    tree: CellTree
    rows: GridRows
    allowed: Bools
    """(cells,), or empty: all"""
    first: int
    """the number of cell 0, among the rows of all geometries"""


class CellRange(NamedTuple):
    """The places of cells on one axis, begin <= place < end."""

    begin: int
    end: int


@device
def range_on(edges: Floats, low: float, up: float) -> CellRange:
    """Return the cells of one axis that overlap an interval; both are closed."""
    begin, end = np.searchsorted(edges[1:], low), np.searchsorted(edges[:-1], up, side="right")
    return CellRange(int(begin), int(end))


@inlined
def word_of(grid: GridRows, k: int) -> int:
    """Return the bits of the 64 cells from 64 k on."""
    if grid.blocks.shape[0] == 0:
        return _ALL
    block, bit = k >> 6, k & 63
    stored = grid.blocks[block, MASK]
    if stored >> bit & 1 == 0:
        return 0
    return int(grid.words[grid.blocks[block, FIRST] + popcount(stored & ((1 << bit) - 1))])


@inlined
def corners_of_cell(grid: GridRows, i: int) -> Corners:
    """Return the box of a cell."""
    row = i // grid.shape[2]
    a, b, c = row // grid.shape[1], row % grid.shape[1], i % grid.shape[2]
    lower = grid.x_edges[a], grid.y_edges[b], grid.z_edges[c]
    return Corners(lower, (grid.x_edges[a + 1], grid.y_edges[b + 1], grid.z_edges[c + 1]))
