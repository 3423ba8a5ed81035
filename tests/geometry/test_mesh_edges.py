"""Edges that a picture draws: those of what was made by hand, and none of what was scanned."""

import numpy as np

import raybox as rb
from raybox.geometry.mesh_edges import drawn_edges, sharp_edges


def surface(heights):
    """Return a mesh over a square of cells, two triangles each."""
    rows, columns = heights.shape
    i, j = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    a = (i * columns + j)[:-1, :-1].ravel()
    faces = np.stack([a, a + 1, a + columns, a + 1, a + columns + 1, a + columns], axis=-1).reshape(-1, 3)
    return rb.Mesh(np.stack([i.ravel(), j.ravel(), heights.ravel()], axis=-1).astype(np.float64), faces)


def test_a_roof_has_its_ridge_and_its_border():
    heights = np.tile(np.abs(np.arange(9.0) - 4.0), (7, 1))
    edges = {tuple(sorted(edge)) for edge in drawn_edges(surface(heights)).tolist()}
    border = 2 * (8 + 6)
    assert len(edges) == border + 6
    assert all((9 * row + 4, 9 * row + 13) in edges for row in range(6))


def test_the_noise_of_a_scan_is_not_drawn():
    scan = surface(np.random.default_rng(1).normal(size=(80, 80)) * 0.06)  # a few edges bend by 20 degrees
    border = 4 * 79
    assert border + 200 < len(sharp_edges(scan)) < len(scan) / 4
    assert drawn_edges(scan).shape == (0, 2)


def test_a_dam_that_ends_is_drawn():
    heights = np.zeros((40, 40))
    heights[20, :20] = np.minimum(1.0, (20 - np.arange(20)) / 4)  # a dam that ends in the middle
    dam = surface(heights)
    assert len(drawn_edges(dam)) == len(sharp_edges(dam)) > 4 * 39


def test_no_triangles_have_no_edges():
    assert drawn_edges(rb.Mesh(np.zeros((0, 3)), np.zeros((0, 3), np.int64))).shape == (0, 2)
