"""Triangles of polygons, against rational arithmetic from the definition."""

import numpy as np
import pytest

from raybox.io.formats.polygons import Polygons, triangulate, without_holes

L_SHAPE = [(0, 0, 0), (2, 0, 0), (2, 1, 0), (1, 1, 0), (1, 2, 0), (0, 2, 0)]


@pytest.mark.parametrize("turn", range(6))
def test_a_concave_polygon_covers_its_area_alone(turn):
    found = triangulate(np.array(L_SHAPE, float), without_holes(np.roll(np.arange(6), turn), np.array([6])))
    a, b, c = np.array(L_SHAPE)[found.faces].transpose(1, 0, 2)
    areas = np.cross(b - a, c - a)[:, 2]
    assert len(areas) == 4
    assert areas.min() >= 0
    assert areas.sum() == 2 * 3
    assert not found.failed.any()


def test_convex_polygons_are_fans_of_the_first_corner():
    angles = np.linspace(0, 6, 7)
    points = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=-1)
    found = triangulate(points, Polygons(np.arange(7), np.array([4, 3]), np.array([1, 1])))
    assert found.faces.tolist() == [[0, 1, 2], [0, 2, 3], [4, 5, 6]]
    assert found.polygon.tolist() == [0, 0, 1]
