"""`Mesh.contains` against parity in rational arithmetic, at points anywhere and on degenerate places."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from exact_surfaces import cross, dot, minus, normal
from raybox.geometry.polygons import triangulate, without_holes
from raybox.scene import containment

CUBE = np.array(list(product((0, 1), repeat=3)), dtype=float)
QUADS = [[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]]
CUBE_FACES = np.array([[q[0], q[k], q[k + 1]] for q in QUADS for k in (1, 2)])


def truth(triangles, points):
    """Return which points are in or on triangles: by the number of those that a slanted ray crosses."""
    direction = (Fraction(1, 7919), Fraction(1, 104729), Fraction(1))
    solids = [[tuple(map(Fraction, p)) for p in t] for t in np.asarray(triangles).tolist()]
    found = []
    for point in np.asarray(points, dtype=float).tolist():
        p = tuple(map(Fraction, point))
        crossed = sum(crosses(t, p, direction) for t in solids)
        found.append(crossed % 2 == 1 or any(contains(t, p) for t in solids))
    return found


def crosses(triangle, point, direction):
    """Return whether a ray crosses the inside of a triangle; fail if it touches an edge ahead."""
    a, b, c = (minus(corner, point) for corner in triangle)
    across = normal(a, b, c)
    slope = dot(across, direction)
    if not slope:
        assert not any(across)
        return False
    if dot(across, a) / slope <= 0:
        return False
    volumes = [dot(direction, cross(x, y)) for x, y in ((a, b), (b, c), (c, a))]
    assert all(volumes) or not (min(volumes) >= 0 or max(volumes) <= 0)
    return min(volumes) > 0 or max(volumes) < 0


def contains(triangle, point):
    """Return whether a closed triangle with an area has a point."""
    a, b, c = triangle
    across = normal(a, b, c)
    if not any(across) or dot(across, minus(point, a)):
        return False
    sides = [dot(across, cross(minus(y, x), minus(point, x))) for x, y in ((a, b), (b, c), (c, a))]
    return min(sides) >= 0


def joined(*meshes):
    vertices = np.concatenate([v for v, _ in meshes])
    starts = np.cumsum([0, *(len(v) for v, _ in meshes[:-1])])
    return vertices, np.concatenate([f + s for (_, f), s in zip(meshes, starts, strict=True)])


def block(lower, size):
    return CUBE * size + lower, CUBE_FACES


def octahedron(size):
    ends = np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]]) * size
    faces = [[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]
    return ends, np.array(faces)


def with_a_flat_triangle():
    """Return a cube with a corner on one edge, to which one side has a triangle without area."""
    vertices = np.concatenate([CUBE, [[0.5, 0, 0]]])
    faces = [face for face in CUBE_FACES.tolist() if face != [0, 4, 5]]
    return vertices, np.array([*faces, [0, 8, 5], [8, 4, 5], [0, 4, 8]])


def gable():
    """Return a house whose ridge runs along y."""
    vertices = [[0, 0, 0], [2, 0, 0], [2, 4, 0], [0, 4, 0], [1, 0, 2], [1, 4, 2]]
    faces = [[0, 3, 2], [0, 2, 1], [0, 1, 4], [2, 3, 5], [1, 2, 5], [1, 5, 4], [3, 0, 4], [3, 4, 5]]
    return np.array(vertices, dtype=float), np.array(faces)


CLOSED = {
    "ridge along y": gable(),
    "ridge along x": (gable()[0][:, [1, 0, 2]], gable()[1]),
    "cube": block([0, 0, 0], 2),
    "inside out": (block([0, 0, 0], 2)[0], CUBE_FACES[:, ::-1]),
    "octahedron": octahedron(2),
    "cavity": joined(block([-1, -1, -1], 4), (block([0, 0, 0], 2)[0], CUBE_FACES[:, ::-1])),
    "cubes that overlap": joined(block([0, 0, 0], 2), block([1, 1, 1], 2)),
    "cubes at one edge": joined(block([0, 0, 0], 1), block([1, 1, 0], 1)),
    "cubes at one corner": joined(block([0, 0, 0], 1), block([1, 1, 1], 1)),
    "cubes at one face": joined(block([0, 0, 0], 1), block([1, 0, 0], 1)),
    "a triangle without area": with_a_flat_triangle(),
    "corners of their own": (octahedron(2)[0][octahedron(2)[1]].reshape(-1, 3), np.arange(24).reshape(8, 3)),
}


@pytest.mark.core
@pytest.mark.parametrize("name", CLOSED)
def test_points_on_a_grid_through_all_corners(name):
    vertices, faces = CLOSED[name]
    grid = np.array(list(product(np.arange(-2, 4.5, 0.5), repeat=3)))
    rng = np.random.default_rng(5)
    points = np.concatenate(
        [
            vertices,
            [[1, 1, 1], [1, 1.5, 0.5]],
            rng.choice(grid, 90, replace=False),
            rng.uniform(-2, 4, (10, 3)),
        ]
    )
    mesh = rb.Mesh(vertices, faces)
    found = mesh.contains(points)
    assert found.tolist() == truth(mesh.triangles, points)
    assert found.dtype == np.bool_
    assert 0 < found.sum() < len(points)


def bent_sphere(rng, count=8):
    """Return a star of quads with corners of whole numbers, closed, and the triangles of its quads."""
    u, v = np.meshgrid(np.arange(count), np.arange(1, count // 2), indexing="ij")
    angle, height = u.ravel() * 2 * np.pi / count, v.ravel() * 2 * np.pi / count
    radius = rng.integers(3, 9, len(angle))
    ring = np.stack([np.sin(height) * np.cos(angle), np.sin(height) * np.sin(angle), np.cos(height)], axis=-1)
    vertices = np.concatenate([np.round(ring * radius[:, None]), [[0, 0, 8], [0, 0, -8.0]]])
    rows = count // 2 - 1
    north, south = len(angle), len(angle) + 1
    polygons = []
    for k in range(count):
        here, then = k * rows, (k + 1) % count * rows
        polygons += [[north, here, then], [here + rows - 1, south, then + rows - 1]]
        polygons += [[here + j, here + j + 1, then + j + 1, then + j] for j in range(rows - 1)]
    corners = np.concatenate(polygons)
    found = triangulate(vertices, without_holes(corners, np.array(list(map(len, polygons)))))
    return vertices, found.faces


@pytest.mark.parametrize("seed", range(2))
def test_stars_with_corners_of_whole_numbers(seed):
    rng = np.random.default_rng([7, seed])
    mesh = rb.Mesh(*bent_sphere(rng))
    points = np.concatenate([mesh.vertices, rng.integers(-8, 9, (60, 3)), mesh.triangles[::4].mean(axis=1)])
    found = mesh.contains(points)
    assert found.tolist() == truth(mesh.triangles, points)
    assert found[: len(mesh.vertices)].all()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(-3, 3)] * 3), min_size=4, max_size=4),
    st.lists(st.tuples(*[st.integers(-4, 4)] * 3), min_size=1, max_size=20),
    st.sampled_from([1.0, 2.0**-1060, 2.0**1000]),
)
def test_tetrahedra_of_any_size(corners, points, scale):
    mesh = rb.Mesh(np.array(corners) * scale, [[0, 1, 2], [0, 3, 1], [1, 3, 2], [2, 3, 0]])
    points = np.array(points) * scale
    assert mesh.contains(points).tolist() == truth(mesh.triangles, points)


def test_points_next_to_the_surface():
    """The nearest floats on both sides of faces and edges, far away from 0."""
    mesh = rb.Mesh(*block([1e6, 1e6, 1e6], 0.1))
    lower, upper = mesh.bounds
    for axis in range(3):
        for bound, outward in ((lower, -np.inf), (upper, np.inf)):
            point = (lower + upper) / 2
            point[axis] = bound[axis]
            out, into = point.copy(), point.copy()
            out[axis], into[axis] = np.nextafter(bound[axis], [outward, -outward])
            assert mesh.contains([point, out, into]).tolist() == [True, False, True]


def test_blocks_of_points_are_as_one(monkeypatch):
    mesh = rb.Mesh(*octahedron(2))
    points = np.random.default_rng(3).uniform(-2, 2, (100, 3))
    expected = mesh.contains(points)
    monkeypatch.setattr(containment, "_BLOCK", 7)
    assert (mesh.contains(points) == expected).all()
    assert 0 < expected.sum() < 100


def test_shapes():
    mesh = rb.Mesh(*block([0, 0, 0], 1))
    assert mesh.contains([0.5, 0.5, 0.5]).tolist() == [True]
    assert mesh.contains([]).shape == (0,)
    assert rb.Mesh(np.zeros((0, 3)), np.zeros((0, 3), int)).contains([[0, 0, 0]]).tolist() == [False]


@pytest.mark.parametrize(
    ("faces", "edges", "first"),
    [
        (CUBE_FACES[1:], 3, "from vertex 0 to vertex 3"),
        ([*CUBE_FACES[1:], CUBE_FACES[0][::-1]], 3, "from vertex 0 to vertex 3"),
        ([*CUBE_FACES, CUBE_FACES[0]], 3, "from vertex 0 to vertex 1"),
        ([[0, 1, 2]], 3, "from vertex 0 to vertex 1"),
    ],
)
def test_open_meshes_are_refused(faces, edges, first):
    with pytest.raises(rb.InvalidInput, match=f"needs a closed mesh.*; {edges} edges are not, .*{first}"):
        rb.Mesh(CUBE, faces).contains([[0, 0, 0]])


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_points_must_be_finite(value):
    with pytest.raises(rb.InvalidInput, match="points must be finite"):
        rb.Mesh(CUBE, CUBE_FACES).contains([[0, 0, value]])
    with pytest.raises(rb.InvalidInput, match=r"points must have shape"):
        rb.Mesh(CUBE, CUBE_FACES).contains([[0, 0]])
