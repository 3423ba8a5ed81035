"""A tree of the cells of a grid: a node has 4 x 4 x 4 children, its occupied ones as bits of one integer.

Level 0 has the nodes whose children are cells; the root is alone on the top level. A node's children that are
occupied are neighbours in memory, so a node is two integers: 2 bits a cell where every node is full, and
nothing where there is nothing. Of a grid whose cells are all occupied no node is stored.

The planes between the children of each level are stored too, a quarter of the edges for each level: once
upward and once downward, as rays pass them. A *place* counts children of a level from the end where a ray
enters the cube of 4^levels cells: place p of those that go down is child (number of places) - 1 - p.

Source: Museth 2013, "VDB: High-Resolution Sparse Volumes with Dynamic Topology", for trees of few levels of
wide nodes with bit masks.
"""

from math import prod
from typing import NamedTuple, NoReturn, Protocol

import numpy as np

from raybox.compiler.decorators import device, inlined
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import lowest_bit, popcount
from raybox.compiler.struct_ref import struct
from raybox.errors import RayboxError
from raybox.validation import Floats, Ints, freeze

SIDE = 4  # children of a node on each axis; the number of a child has two bits for each
MAX_LEVELS = 32
_ALL_BUT_SIGN = 2**63 - 1
MASK, FIRST = 0, 1  # of a node (a block of cells): bits of occupied children (stored words), and the first


Edges = tuple[Floats, Floats, Floats]


class GridArrays(Protocol):
    """The arrays of `raybox.geometry.GridRows`."""

    @property
    def x_edges(self) -> Floats: ...  # noqa: D102
    @property
    def y_edges(self) -> Floats: ...  # noqa: D102
    @property
    def z_edges(self) -> Floats: ...  # noqa: D102
    @property
    def shape(self) -> Ints: ...  # noqa: D102
    @property
    def blocks(self) -> Ints: ...  # noqa: D102
    @property
    def words(self) -> Ints: ...  # noqa: D102


@struct
class CellTree(NamedTuple):
    """The tree of a grid's cells, as passed to kernels. All arrays are frozen."""

    planes: Floats  # those between children, level by level, axis by axis, upward and downward
    starts: Ints  # (levels, 3, 2): where those of place 0 are, or would be
    nodes: Ints  # (nodes, 2): `MASK` and `FIRST`, the root first; empty: all cells are occupied


def build(grid: GridArrays) -> CellTree:
    """Return the tree of the occupied cells of a grid."""
    shape = grid.shape
    levels = 1
    while (SIDE**levels < shape).any():
        levels += 1
    planes, starts = _planes(_edges(grid), levels)
    nodes = _nodes(grid, levels) if grid.blocks.size else np.empty((0, 2), np.int64)
    freeze(planes, starts, nodes)
    return CellTree(planes, starts, nodes)


def _edges(grid: GridArrays) -> Edges:
    return grid.x_edges, grid.y_edges, grid.z_edges


def _planes(edges: Edges, levels: int) -> tuple[Floats, Ints]:
    """Return the planes of every level and axis, and where they begin; past the last edge it is repeated."""
    starts, parts, at = np.empty((levels, 3, 2), np.int64), [], 0
    for level in range(levels):
        for axis, one in enumerate(edges):
            last = len(one) - 1
            children = SIDE * -(-last // SIDE ** (level + 1))
            upward = one[np.minimum(np.arange(children + 1) * SIDE**level, last)]
            starts[level, axis] = at, at + 2 * children + 1 - SIDE ** (levels - level)
            parts += [upward, upward[::-1]]
            at += 2 * len(upward)
    return np.concatenate(parts), starts


def _nodes(grid: GridArrays, levels: int) -> Ints:
    """Return all nodes that are not empty, from the root down."""
    dense: list[Ints] = []
    shape = sizes = grid.shape
    for _ in range(levels):
        sizes, below = -(-sizes // SIDE), sizes
        masks = np.zeros(max(1, int(sizes.prod())), np.int64)
        if dense:
            set_bits(dense[-1], below, sizes, masks)
        else:
            set_cell_bits(grid.blocks, grid.words, (below, sizes), masks)
        dense.append(masks)
    places = np.zeros(1, np.int64)  # of the nodes of one level, in C order of the whole level
    found, first, at = [], [], 0
    for level in range(levels - 1, -1, -1):
        masks = dense[level][places]
        found.append(masks)
        counts = np.empty(len(masks), np.int64)
        count_bits(masks, counts)
        at += len(masks)
        first.append(at + np.cumsum(counts) - counts)
        if level:
            sizes = -(-shape // SIDE**level)
            below = np.empty(counts.sum(), np.int64)
            list_children(places, masks, sizes, below)
            places = below
    return np.stack([np.concatenate(found), np.concatenate(first)], axis=1)


@inlined
def _set_bit(masks: Ints, sizes: Ints, a: int, b: int, c: int) -> None:
    """Set the bit of a child at a place among those of its level; `sizes`: of the nodes' level."""
    node = ((a >> 2) * sizes[1] + (b >> 2)) * sizes[2] + (c >> 2)
    masks[node] |= 1 << ((a & 3) << 4 | (b & 3) << 2 | (c & 3))


@entry
def set_bits(below: Ints, shape: Ints, sizes: Ints, masks: Ints) -> None:
    """Set a bit for each child that is not 0; `shape`: of the children, `sizes`: of their nodes."""
    at = 0
    for a in range(shape[0]):
        for b in range(shape[1]):
            for c in range(shape[2]):
                if below[at] != 0:
                    _set_bit(masks, sizes, a, b, c)
                at += 1


@device
def _set_word_bits(word: int, cell: int, shape: Ints, sizes: Ints, masks: Ints) -> None:
    """Set the bits of the occupied ones of 64 cells that follow each other."""
    a, rest = cell // (shape[1] * shape[2]), cell % (shape[1] * shape[2])
    b, c = rest // shape[2], rest % shape[2]
    while word != 0:
        if word & 1:
            _set_bit(masks, sizes, a, b, c)
        word = word >> 1 & _ALL_BUT_SIGN
        c += 1
        if c == shape[2]:
            b, c = b + 1, 0
            if b == shape[1]:
                a, b = a + 1, 0


@entry
def set_cell_bits(blocks: Ints, words: Ints, shapes: tuple[Ints, Ints], masks: Ints) -> None:
    """Set a bit for each occupied cell; `shapes`: of the cells, and of their nodes."""
    at = 0
    for k in range(blocks.shape[0]):
        stored = blocks[k, MASK]
        while stored != 0:
            cell = (64 * k + lowest_bit(stored)) * 64
            _set_word_bits(words[at], cell, shapes[0], shapes[1], masks)
            stored &= stored - 1
            at += 1


@entry
def list_cells(blocks: Ints, words: Ints, cells: Ints) -> None:
    """Write the number of each occupied cell, in order."""
    at, row = 0, 0
    for k in range(blocks.shape[0]):
        stored = blocks[k, MASK]
        while stored != 0:
            word = words[row]
            while word != 0:
                cells[at] = (64 * k + lowest_bit(stored)) * 64 + lowest_bit(word)
                word &= word - 1
                at += 1
            stored &= stored - 1
            row += 1


@entry
def count_bits(masks: Ints, counts: Ints) -> None:
    """Write how many bits of each mask are set."""
    for k in range(masks.size):
        counts[k] = popcount(masks[k])


@entry
def list_children(places: Ints, masks: Ints, sizes: Ints, below: Ints) -> None:
    """Write the place of each child among those of its level, in the order of nodes and bits.

    places: of the nodes; sizes: of the children's level.
    """
    at = 0
    rows, columns = -(-sizes[1] // 4), -(-sizes[2] // 4)
    for k in range(masks.size):
        a, rest = places[k] // (rows * columns), places[k] % (rows * columns)
        b, c = rest // columns, rest % columns
        for bit in range(64):
            if masks[k] >> bit & 1:
                row = (4 * a + (bit >> 4)) * sizes[1] + 4 * b + (bit >> 2 & 3)
                below[at] = row * sizes[2] + 4 * c + (bit & 3)
                at += 1


def _places(tree: CellTree, shape: Ints) -> list[Ints]:
    """Return the places of the nodes of each level, the root first, and of the cells; the tree has nodes."""
    places, begin = [np.zeros(1, np.int64)], 0
    for level in range(len(tree.starts) - 1, -1, -1):
        masks = np.ascontiguousarray(tree.nodes[begin : begin + len(places[-1]), MASK])
        begin += len(masks)
        counts = np.empty(len(masks), np.int64)
        count_bits(masks, counts)
        below = np.empty(counts.sum(), np.int64)
        list_children(places[-1], masks, -(-shape // SIDE**level), below)
        places.append(below)
    return places


def _count(masks: Ints) -> int:
    """Return how many bits are set in all masks together."""
    counts = np.empty(len(masks), np.int64)
    count_bits(masks, counts)
    return int(counts.sum())


def check(tree: CellTree, grid: GridArrays) -> None:
    """Raise `RayboxError` unless the tree has the planes of the grid, and each occupied cell once."""
    if not all(map(np.array_equal, tree[:2], _planes(_edges(grid), len(tree.starts)))):
        _refuse("its planes are not those of the grid")
    cells = np.empty(_count(grid.words), np.int64)
    list_cells(grid.blocks, grid.words, cells)
    if grid.blocks.size and not np.array_equal(np.sort(_places(tree, grid.shape)[-1]), cells):
        _refuse("its cells are not the occupied ones")


def _refuse(problem: str) -> NoReturn:
    raise RayboxError(f"the tree is not sound: {problem}. Please report this; a fresh Scene repairs it.")


def stats(tree: CellTree, grid: GridArrays) -> dict[str, float]:
    """Return the statistics of the tree; see `Scene.stats`. Full grids have no nodes that are stored."""
    stored = sum(array.nbytes for array in tree)
    counts = np.empty(len(tree.nodes), np.int64)
    count_bits(np.ascontiguousarray(tree.nodes[:, MASK]), counts)
    boxes = _count(grid.words) if grid.blocks.size else prod(grid.shape.tolist())
    return {
        "boxes": boxes,
        "nodes": len(tree.nodes),
        "depth": len(tree.starts),
        "bytes": stored,
        "bytes_per_box": stored / max(1, boxes),
        "fill": float(counts.sum() / (SIDE**3 * len(counts))) if len(counts) else 1.0,
        "cost": _cost(tree, grid),
    }


def _cost(tree: CellTree, grid: GridArrays) -> float:
    """Return the surface area of all nodes over that of the root."""
    levels = len(tree.starts)
    places = _places(tree, grid.shape)[:-1] if len(tree.nodes) else [None] * levels
    total = 0.0
    for level, which in zip(range(levels - 1, -1, -1), places, strict=True):
        sizes = -(-grid.shape // SIDE ** (level + 1))
        ends = [tree.planes[tree.starts[level, k, 0] :][: SIDE * n + 1 : SIDE] for k, n in enumerate(sizes)]
        x, y, z = (np.diff(one) for one in ends)
        if which is None:
            total += x.sum() * y.sum() * len(z) + y.sum() * z.sum() * len(x) + z.sum() * x.sum() * len(y)
        else:
            a, b, c = np.unravel_index(which, tuple(sizes.tolist()))
            total += (x[a] * y[b] + y[b] * z[c] + z[c] * x[a]).sum()
    x, y, z = (one[-1] - one[0] for one in _edges(grid))
    return float(total / (x * y + y * z + z * x))
