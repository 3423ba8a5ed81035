"""rb.plot of grids: the cells drawn, tinted where hit, or the outline of many."""

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import raybox as rb
from grids import random_grid, random_rays
from raybox.geometry.grid_surface import exposed_cells
from raybox.plotting import scene_plot

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def drawn(monkeypatch):
    """Return a list of the boxes that `plot` draws, and which of them are hit."""
    calls = []
    draw = scene_plot.draw_boxes

    def logged(ax, boxes, hit_rows, view):
        calls.append((boxes, hit_rows))
        draw(ax, boxes, hit_rows, view)

    monkeypatch.setattr(scene_plot, "draw_boxes", logged)
    return calls


@pytest.mark.parametrize("shape", [(4, 3, 5), (6, 5)])
def test_cells_and_their_hits(monkeypatch, shape):
    grid = random_grid("integers", RNG, shape, share=0.8)
    rays, calls = random_rays(RNG, grid, 40), drawn(monkeypatch)
    hits = rb.Scene(grid).nearest(rays)
    cells = exposed_cells(grid) if len(shape) == 3 else np.flatnonzero(grid.occupied)
    met = np.unique(hits.index[hits.hit])
    for scene in (grid, rb.Scene(grid)):
        ax = rb.plot(scene, rays, hits)
        boxes, rows = calls.pop()
        wanted = grid.boxes(np.union1d(cells, met))
        for one, other in ((boxes, wanted), (boxes[rows], grid.boxes(met))):
            np.testing.assert_array_equal(one.lower, other.lower)
            np.testing.assert_array_equal(one.upper, other.upper)
        assert ax.get_legend() is not None
    assert len(met) > 5


@pytest.mark.core
def test_many_cells_are_an_outline(monkeypatch):
    calls = drawn(monkeypatch)
    full = rb.Grid.uniform([0, 0, 0], 0.5, (40, 40, 40))
    rays = rb.Rays([-1, 5.2, 5.2], [[1, 0, 0], [1, 0.3, 0], [-1, 0, 0]])
    for grid in (full, rb.Grid(*full.edges, occupied=RNG.random(full.shape) < 0.4)):
        hits = rb.Scene(grid).nearest(rays)
        rb.plot(grid, rays, hits)
        boxes, rows = calls.pop()
        np.testing.assert_array_equal([boxes.lower[0], boxes.upper[0]], grid.bounds)
        assert len(boxes) == len(rows) + 1 == 3
        rb.plot(grid)
        boxes, rows = calls.pop()
        assert (len(boxes), len(rows)) == (1, 0)


def test_refusals():
    grid = rb.Grid([0, 1], [0, 1, 2])
    with pytest.raises(rb.InvalidInput, match="rays must have the scene's dimensions"):
        rb.plot(grid, rb.Rays([0, 0, 0], [1, 0, 0]))
    ray = rb.Rays([0.5, 2.5], [1, 0])
    other = rb.Scene(rb.Grid([0, 1], [0, 1, 2, 3])).nearest(ray)
    with pytest.raises(rb.InvalidInput, match="hits must be of this scene"):
        rb.plot(grid, ray, other)
