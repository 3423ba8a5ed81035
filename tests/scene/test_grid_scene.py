"""Scenes of grids: what they are made of, and beside other geometries."""

from fractions import Fraction

import numpy as np
import pytest

import raybox as rb
from compare import assert_same
from grids import random_grid, random_rays
from raybox.bvh import cell_tree


@pytest.fixture
def grid():
    return random_grid("steps", np.random.default_rng(290), (20, 7, 5), 0.4)


def test_bounds_and_length_are_those_of_the_whole_grid(grid):
    scene = rb.Scene(grid)
    np.testing.assert_array_equal(scene.bounds, grid.bounds)
    assert len(scene) == 20 * 7 * 5
    assert scene.geometry is grid


@pytest.mark.parametrize("occupied", [True, False])
def test_statistics(grid, occupied):
    if not occupied:
        grid = rb.Grid(*grid.edges)
    stats = rb.Scene(grid).stats()
    tree = cell_tree.build(grid._rows())
    assert stats["boxes"] == grid.occupied.sum()
    assert stats["depth"] == 3  # 4, 16 and 64 cells
    assert stats["bytes"] == sum(array.nbytes for array in tree)
    blocks = _occupied_blocks(grid) if occupied else None
    if occupied:
        assert stats["nodes"] == sum(len(level) for level in blocks)
        inner = sum(len(level) for level in blocks[:-1])
        assert stats["fill"] == (grid.occupied.sum() + inner) / (64 * stats["nodes"])
    assert stats["cost"] == pytest.approx(float(_cost(grid)), rel=1e-12)


def _occupied_blocks(grid) -> list[set]:
    """Return the nodes of each level, from the cells' parents up: the root is alone on the last."""
    cells = np.argwhere(grid.occupied)
    return [{tuple(cell) for cell in (cells // side).tolist()} for side in (4, 16, 64)]


def _cost(grid) -> Fraction:
    """Return the area of all blocks of 4, 16 and 64 cells a side that are not empty, over the grid's."""
    edges, total = [[Fraction(x) for x in axis] for axis in grid.edges], Fraction(0)
    for side, blocks in zip((4, 16, 64), _occupied_blocks(grid), strict=True):
        for block in blocks:
            total += _area(
                [
                    one[min(side * (k + 1), len(one) - 1)] - one[side * k]
                    for one, k in zip(edges, block, strict=True)
                ]
            )
    return total / _area([one[-1] - one[0] for one in edges])


def _area(sizes) -> Fraction:
    x, y, z = sizes
    return x * y + y * z + z * x


def test_check_finds_a_tree_of_other_cells(grid):
    scene = rb.Scene(grid)
    scene.check()
    (part,) = scene._parts
    nodes = part.tree.nodes.copy()
    nodes[-1, cell_tree.MASK] ^= 1
    scene._parts = (part._replace(tree=part.tree._replace(nodes=nodes)),)
    with pytest.raises(rb.RayboxError, match="its cells are not the occupied ones"):
        scene.check()


def test_a_grid_beside_other_geometries(grid):
    rng = np.random.default_rng(291)
    rays = random_rays(rng, grid, 400)
    low = rng.uniform(*grid.bounds, (30, 3))
    others = rb.Boxes(low, low + 2.0), rb.Planes([[1.0, 0.0, 0.0]], [grid.edges[0][3]])
    scene, boxes = rb.Scene([others[0], grid, others[1]]), rb.Scene([others[0], grid.boxes(), others[1]])
    assert len(scene) == len(boxes)
    where = [None, rng.random(grid.shape) < 0.8, None]
    allowed = [None, (where[1] & grid.occupied).ravel(), None]
    fields = ("index", "geometry", "t", "t_enter", "t_exit", "hit", "normals")
    nearest = scene.nearest(rays, where=where)
    assert_same(nearest, boxes.nearest(rays, where=allowed), fields)
    assert_same(scene.first(rays, 4, where=where), boxes.first(rays, 4, where=allowed), fields)
    assert_same(scene.all(rays, where=where), boxes.all(rays, where=allowed), ("offsets", *fields[:5]))
    np.testing.assert_array_equal(scene.count(rays, where=where), boxes.count(rays, where=allowed))
    np.testing.assert_array_equal(scene.occluded(rays, where=where), boxes.occluded(rays, where=allowed))
    assert min(np.bincount(nearest.geometry + 1, minlength=4)) > 20


def test_answers_do_not_depend_on_threads(grid):
    rays = random_rays(np.random.default_rng(292), grid, 40_000)
    scene = rb.Scene(grid)
    for query in (scene.nearest, scene.all, scene.segments):
        one, two = query(rays, workers=1), query(rays, workers=2)
        assert_same(one, two, ("index", "t"))
    some = rays[:700]  # so few are cast without a thread pool
    assert_same(scene.nearest(some), rb.Scene(grid.boxes()).nearest(some, where=grid.occupied.ravel()))


def test_a_grid_stays_where_others_are_updated(grid):
    boxes = rb.Boxes([0, 0, 0], [1, 1, 1])
    scene = rb.Scene([grid, boxes])
    scene.update([grid, rb.Boxes([100, 100, 100], [101, 101, 101])])  # the same object is not moved
    assert scene.nearest(rb.Rays([100.5, 100.5, 90], [0, 0, 1])).geometry == 1


def test_more_cells_than_a_tree_of_boxes_holds():
    edges = np.arange(2.0**12 + 1)
    scene = rb.Scene(rb.Grid(edges, edges, edges))
    assert len(scene) == 2**36
    hits = scene.nearest(rb.Rays([4095.5, 4095.5, 5000.0], [0, 0, -1]))
    assert hits.index == 2**36 - 1
    assert hits.t == 904.0
    assert scene.count(rb.Rays([0.5, 0.5, -1.0], [0, 0, 1])) == 2**12


def test_more_ids_than_hits_can_have_are_refused():
    grid = rb.Grid(np.arange(2.0**21 + 1), np.arange(2.0**20 + 1), np.arange(2.0**20 + 1))
    assert rb.Scene(grid).count(rb.Rays([0.5, 0.5, -1.0], [1.0, 1.0, 1.0], t_max=1.75)) == 4
    with pytest.raises(rb.InvalidInput, match=r"up to 2\*\*62 rows in all; got 6917529027641081856"):
        rb.Scene([grid] * 3)
