"""Grids in parts: every result is that of the whole grid, bit for bit."""

import math

import numpy as np
import pytest

import raybox as rb
from compare import assert_same
from grids import KINDS, random_grid, random_rays
from raybox.split.grid_blocks import blocks_of

FULL = ("offsets", "ray", "index", "t", "t_enter", "t_exit", "lengths")
SINGLE = ("index", "t", "t_enter", "t_exit", "points", "normals", "hit", "distances")


def split(grid, **how):
    scene = rb.SplitScene(grid, **({} if "max_boxes" in how else {"parts": 6}) | how)
    scene.check()
    return scene


def check(grid, scene, rays, **how):
    whole = rb.Scene(grid)
    assert_same(scene.nearest(rays, **how), whole.nearest(rays, **how), SINGLE)
    assert_same(scene.first(rays, 3, **how), whole.first(rays, 3, **how), SINGLE)
    for query in ("all", "segments"):
        assert_same(getattr(scene, query)(rays, **how), getattr(whole, query)(rays, **how), FULL)
    for query in ("occluded", "count"):
        np.testing.assert_array_equal(getattr(scene, query)(rays, **how), getattr(whole, query)(rays, **how))
    sums = scene.deposit(rays, reproducible=True, **how)
    np.testing.assert_array_equal(sums, whole.deposit(rays, reproducible=True, **how))
    np.testing.assert_allclose(scene.integrate(rays, **how), whole.integrate(rays, **how), 1e-12, 1e-12)
    return whole.segments(rays, **how)


@pytest.mark.core
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(7, 6, 9), (17, 13)])
@pytest.mark.parametrize("share", [None, 0.5])
def test_cells_of_every_kind(kind, shape, share):
    rng = np.random.default_rng(KINDS.index(kind))
    grid = random_grid(kind, rng, shape, share)
    rays = random_rays(rng, grid, 250)
    scene = split(grid)
    segments = check(grid, scene, rays)
    assert len(segments.index) > 250
    check(grid, scene, rays, where=rng.random(shape) < 0.5)


def test_rays_in_the_faces_between_parts():
    """A ray in a face runs in the higher cell, which is in the other part; corners touch eight parts."""
    grid = rb.Grid(*[np.arange(5.0)] * 3)
    scene = split(grid, parts=8)
    assert scene.parts == 8
    middle = 2.0
    origins = [[-1, middle, middle], [middle, -1, 0.5], [5, middle, 1.5], [middle] * 3, [0, 0, 0], [4, 4, 4]]
    ways = [[1, 0, 0], [0, 1, 0], [-1, 0, 0], [0, 0, 1], [1, 1, 1], [-1, -1, -1]]
    rays = rb.Rays(origins, ways)
    check(grid, scene, rays)
    assert scene.segments(rays[:1]).index.tolist() == rb.Scene(grid).segments(rays[:1]).index.tolist()
    assert scene.visits(rays, "all").max() == 8


@pytest.mark.parametrize("limit", [1, 2, 7, 30, 99, 1000])
@pytest.mark.parametrize("shape", [(5, 4, 6), (1, 1, 40), (9, 2), (1, 1)])
def test_blocks_part_the_cells(shape, limit):
    blocks = blocks_of(shape, limit)
    found = np.zeros(shape, int)
    for block in blocks:
        found[block] += 1
        assert found[block].size <= limit
    assert (found == 1).all()
    assert len(blocks) >= -(-math.prod(shape) // limit)


def test_a_folder_is_opened_again(tmp_path):
    rng = np.random.default_rng(5)
    shape = (6, 7, 8)
    edges = [np.arange(n + 1.0) for n in shape]
    ids, labels = [f"cell {k}" for k in range(336)], {"kind": list("ab" * 168)}
    grid = rb.Grid(*edges, occupied=rng.random(shape) < 0.6, ids=ids, labels=labels)
    rays = random_rays(rng, grid, 300)
    made = split(grid, max_boxes=100, folder=tmp_path / "parts")
    again = rb.SplitScene.open(tmp_path / "parts", memory=1500)
    whole = rb.Scene(grid)
    for scene in (made, again):
        assert (len(scene), scene.kind, scene.ndim_space) == (336, "grid", 3)
        np.testing.assert_array_equal(scene.bounds, grid.bounds)
        check(grid, scene, rays)
        hits, wanted = scene.nearest(rays, where="kind == 'a'"), whole.nearest(rays, where="kind == 'a'")
        assert hits.ids.tolist() == wanted.ids.tolist()
        assert hits.labels("kind").tolist() == wanted.labels("kind").tolist()
    assert again.digest == made.digest
    assert again._open_parts.opened > again.parts
    assert repr(made) == f"SplitScene(336 cells, D=3, {made.parts} parts)"
    with pytest.raises(rb.InvalidInput, match='cull="back" is for Planes and Mesh; got Grid'):
        made.count(rays, cull="back")


def test_values_in_the_shape_of_the_grid():
    rng = np.random.default_rng(6)
    grid = random_grid("steps", rng, (5, 6, 7), 0.8)
    rays, values = random_rays(rng, grid, 200), rng.normal(size=(5, 6, 7))
    scene, whole = split(grid), rb.Scene(grid)
    for given in (values, values.reshape(-1), rng.normal(size=(210, 3))):
        np.testing.assert_allclose(scene.integrate(rays, given), whole.integrate(rays, given), 1e-12, 1e-12)


def test_a_grid_with_nothing_in_it():
    grid = rb.Grid([0, 1, 2], [0, 1, 2], occupied=np.zeros((2, 2), bool))
    scene = split(grid, parts=4)
    assert not scene.count(rb.Rays([-1, 0.5], [1, 0])).any()


def test_parts_of_another_grid_are_refused(tmp_path):
    for name, last in (("one", 4.5), ("other", 5.0)):
        split(rb.Grid([0, 1, 2, 3, last], [0, 1]), parts=2, folder=tmp_path / name)
    for path in (tmp_path / "other" / "part-00001").iterdir():
        path.rename(tmp_path / "one" / "part-00001" / path.name)
    with pytest.raises(rb.FileFormatError, match="belongs to another scene"):
        rb.SplitScene.open(tmp_path / "one")


def test_segments_need_a_grid():
    boxes = rb.SplitScene(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), parts=1)
    with pytest.raises(rb.InvalidInput, match="segments needs a Scene of one Grid"):
        boxes.segments(rb.Rays([0, 0, 0], [1, 0, 0]))
