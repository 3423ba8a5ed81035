"""Areas, normals and random points of meshes, and geometries that are moved, against rational arithmetic."""

from fractions import Fraction
from math import inf, isqrt, nan, ulp

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import raybox as rb
import strategies
from exact import rounded
from exact_surfaces import normal
from raybox.geometry.mesh_edges import drawn_edges, sharp_edges

ROOF = rb.Mesh(
    [[0, 0, 5], [4, 0, 5], [0, 3, 5], [8, 0, 5]],
    [[0, 1, 2], [0, 1, 3], [1, 3, 2]],
    objects=[0, 0, 2],
    ids=["roof", "none", "eaves"],
    labels={"cost": [1.5, 2.5, nan]},
)


def separate(corners):
    """Return a mesh of triangles (F, 3, 3) that share no vertices."""
    corners = np.asarray(corners, float)
    return rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def true_area(corners):
    """Return the exact area, rounded to 200 bits."""
    n = normal(*([Fraction(x) for x in corner] for corner in corners.tolist()))
    square = sum(x * x for x in n) / 4
    shift = 2 * max(0, 200 - square.numerator.bit_length() // 2 + square.denominator.bit_length() // 2)
    return Fraction(isqrt((square.numerator << shift) // square.denominator), 1 << (shift // 2))


def assert_areas(corners):
    """Return the areas of triangles, compared with the exact ones."""
    found = separate(corners).face_areas
    assert not found.flags.writeable
    for area, corner in zip(found.tolist(), corners, strict=True):
        exact = true_area(corner)
        wanted = rounded(exact)
        assert (area == 0) == (exact == 0) or wanted == 0
        assert area == wanted or abs(area - wanted) <= 4 * ulp(wanted)
    return found


@settings(max_examples=50, deadline=None)
@given(strategies.related((4, 3, 3)))
@example(np.full((1, 3, 3), 1e300) + np.diag([1e300, -1e300, 3e299])[None])
@example(np.array([[[5e-324, 0, 0], [0, 5e-324, 0], [0, 0, 5e-324]]]))
@example(np.array([[[1.7e308, 0, 0], [-1.7e308, 0, 0], [0, 1e-308, 0]]]))
def test_areas_are_those_of_rational_arithmetic(corners):
    assert_areas(corners)


@pytest.mark.core
def test_areas_of_slivers_far_away_are_exact():
    rng = np.random.default_rng(3)
    corners = rng.integers(-9, 9, (2000, 3, 3)) * 0.1 + [84616.5, 447423.1, 3.7]
    corners[::3, 2] = corners[::3, 0] + (corners[::3, 1] - corners[::3, 0]) * 0.3  # thin, by roundings alone
    corners[1::3, 2] = corners[1::3, 0]  # without area
    found = assert_areas(corners)
    assert (found == 0).sum() > 600
    assert ((found > 0) & (found < 1e-9)).sum() > 100
    assert (found > 0.1).sum() > 500


@settings(max_examples=30, deadline=None)
@given(strategies.related((4, 3, 3)))
def test_normals_are_the_bits_of_hits(corners):
    mesh = separate(corners)
    found = mesh.face_normals
    areas = [true_area(corner) for corner in corners]
    assert np.isnan(found).all(axis=1).tolist() == [area == 0 for area in areas]
    with np.errstate(all="ignore"):
        towards = corners.mean(axis=1)
    if not np.isfinite(towards).all():
        return
    hits = rb.intersect(rb.Rays(towards - [0, 0, 1], [0, 0, 1]), mesh)
    assert found[hits.hit].tobytes() == hits.normals[hits.hit].tobytes()


@pytest.mark.core
def test_normals_are_those_of_the_right_hand():
    corners = np.array([84616.5, 447423.1, 3.7]) + np.random.default_rng(5).uniform(-5, 5, (500, 3, 3))
    mesh = separate(corners)
    for found, corner in zip(mesh.face_normals, corners, strict=True):
        n = normal(*([Fraction(x) for x in one] for one in corner.tolist()))
        length = 2 * true_area(corner)
        np.testing.assert_allclose(found, [float(x / length) for x in n], rtol=0, atol=1e-13)
    hits = rb.intersect(rb.Rays(corners.mean(axis=1) - [0, 0, 1], [0, 0, 1]), mesh)
    assert hits.hit.sum() > 400
    assert mesh.face_normals[hits.hit].tobytes() == hits.normals[hits.hit].tobytes()


@pytest.mark.core
def test_samples_are_uniform_by_area():
    points, faces = found = ROOF.sample(40_000, seed=7)
    assert found._fields == ("points", "faces")
    assert not points.flags.writeable
    assert np.bincount(faces).tolist() == pytest.approx([20_000, 0, 20_000], abs=600)  # of areas 6, 0, 6
    assert (points[:, 2] == 5).all()
    for face in (0, 2):  # the middle, and a share of its area
        inside, (a, b, c) = points[faces == face], ROOF.vertices[ROOF.faces[face]]
        np.testing.assert_allclose(inside.mean(axis=0), (a + b + c) / 3, atol=0.05)
        u, v = np.linalg.solve(np.stack([b - a, c - a], axis=1)[:2], (inside - a)[:, :2].T)
        assert u.min() >= -1e-15
        assert v.min() >= -1e-15
        assert (u + v).max() <= 1 + 1e-15
        assert (u < 0.5).mean() == pytest.approx(0.75, abs=0.02)
    assert (
        ROOF.sample(9, seed=7).points.tobytes()
        == ROOF.sample(9, seed=np.random.default_rng(7)).points.tobytes()
    )
    assert ROOF.sample(9).points.tobytes() != ROOF.sample(9).points.tobytes()


@pytest.mark.parametrize("scale", [5e-324, 1e-160, 1e160, 1e308])
def test_samples_of_any_magnitude(scale):
    corners = np.array([[[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[-1, 0, 0], [0, 1, 0], [0, 0, 1]]]) * scale
    found = separate(corners).sample(500, seed=1)
    assert set(found.faces.tolist()) == {0, 1}
    assert np.isfinite(found.points).all()
    assert (np.abs(found.points) <= scale).all()


def test_what_cannot_be_sampled_is_refused():
    empty, flat = separate(np.zeros((0, 3, 3))), ROOF[[1]]
    for mesh, count in ((empty, 0), (flat, 1)):
        with pytest.raises(rb.InvalidInput, match=f"must have area to be sampled; got {count} triangles"):
            mesh.sample(3)
        assert mesh.sample(0).points.shape == (0, 3)
        assert mesh.sample(0).faces.dtype == np.int64
        assert mesh.face_areas.tolist() == [0.0] * count
        assert mesh.face_normals.shape == (count, 3)
    for bad in (-1, 2.0, "3"):
        with pytest.raises(rb.InvalidInput, match="n must be a whole number of points"):
            ROOF.sample(bad)
    for bad in (-1, 0.5, "a"):
        with pytest.raises(rb.InvalidInput, match="seed must be None, an integer"):
            ROOF.sample(3, bad)


matrices = st.lists(st.floats(-9, 9), min_size=12, max_size=12).map(lambda x: np.reshape(x, (3, 4)))


@settings(max_examples=40, deadline=None)
@given(matrices, st.sampled_from([np.zeros((0, 4)), np.eye(4)[3:]]))
def test_a_moved_mesh_is_the_rounded_image(matrix, last):
    moved = ROOF.transformed(np.concatenate([matrix, last]))
    exact = [[Fraction(x) for x in row] for row in matrix.tolist()]
    for found, vertex in zip(moved.vertices.tolist(), ROOF.vertices.tolist(), strict=True):
        for x, row in zip(found, exact, strict=True):
            terms = [*(a * Fraction(b) for a, b in zip(row[:3], vertex, strict=True)), row[3]]
            assert abs(Fraction(x) - sum(terms)) <= sum(map(abs, terms)) * Fraction(1, 2**50)
    a, b, c = (row[:3] for row in exact)
    mirrors = sum(x * y for x, y in zip(a, normal([0, 0, 0], b, c), strict=True)) < 0
    assert moved.faces.tolist() == ROOF.faces[:, [0, 2, 1] if mirrors else [0, 1, 2]].tolist()
    for name in ("objects", "ids"):
        assert getattr(moved, name).tolist() == getattr(ROOF, name).tolist()
    assert moved.labels == ROOF.labels


@pytest.mark.parametrize("mirror", [1, -1])
def test_a_moved_mesh_is_hit_as_an_instance_is(mirror):
    """Matrices of powers of two round nothing."""
    rng = np.random.default_rng(2)
    mesh = separate(rng.integers(-8, 8, (60, 3, 3)))
    matrix = [[0, 2 * mirror, 0, 3], [-0.5, 0, 0, 1], [0, 0, 4, -2]]
    rays = rb.Rays(rng.uniform(-9, 9, (400, 3)), rng.normal(size=(400, 3)))
    one, other = rb.Scene(mesh.transformed(matrix)), rb.Scene(rb.Instances(mesh, [matrix]))
    for cull in (None, "back"):
        found, wanted = one.nearest(rays, cull=cull), other.nearest(rays, cull=cull)
        assert found.hit.sum() > 100
        assert found.t.tobytes() == wanted.t.tobytes()
        assert (found.index == wanted.primitive).all()
        np.testing.assert_allclose(found.normals, wanted.normals, atol=1e-14)


@settings(max_examples=30, deadline=None)
@given(strategies.boxes(3, 3), strategies.related((3,)))
def test_moved_boxes_have_bounds_rounded_once(bounds, offset):
    lower, upper = bounds
    boxes = rb.Boxes(lower, upper, ids=["a", "b", "c"], labels={"n": [1, 2, 3]})
    finite = np.isfinite(np.stack([lower, upper]))
    with np.errstate(over="ignore"):
        wanted = np.stack([lower, upper]) + offset
    if (np.isinf(wanted) & finite).any():
        with pytest.raises(rb.InvalidInput, match="moved bounds must be within float64"):
            boxes.translated(offset)
        return
    moved = boxes.translated(offset)
    assert np.stack([moved.lower, moved.upper]).tobytes() == wanted.tobytes()
    assert (moved.ids == boxes.ids).all()
    assert moved.labels == boxes.labels


def test_offsets_are_one_for_all_or_one_each():
    boxes = rb.Boxes([[0, 0], [5, -inf]], [[1, 1], [6, inf]])
    assert boxes.translated([[1, 2], [3, 4]]).lower.tolist() == [[1, 2], [8, -inf]]
    assert boxes.translated(1).upper.tolist() == [[2, 2], [7, inf]]
    for bad, words in (([1, 2, 3], "offset must be a scalar"), ([0, nan], "offset must be finite; 2 of 2")):
        with pytest.raises(rb.InvalidInput, match=words):
            boxes.translated(bad)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (np.eye(3), r"must have shape \(4, 4\) or \(3, 4\).*got shape \(3, 3\)\. For a rotation alone"),
        (np.eye(4)[None], "matrix must have shape"),
        (np.full((3, 4), nan), "matrix must be finite; 3 of 3 break this, first row 0"),
        (np.eye(4) + np.eye(4)[:, [3, 0, 1, 2]].T, r"last row of matrix must be \[0, 0, 0, 1\].*transpose"),
        (np.eye(4)[:3] * 1e308, "images of vertices must be within float64; 4 of 4 break this"),
    ],
)
def test_matrices_that_are_none_are_refused(matrix, words):
    with pytest.raises(rb.InvalidInput, match=words):
        ROOF.transformed(matrix)


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
