"""rb.Scene of a mesh against the oracle: a tetrahedron, a cube, a soup of triangles; uv and normals."""

import numpy as np
import pytest
from hypothesis import given, settings

import exact_surfaces
import families_surfaces
import raybox as rb
import strategies
from compare import EPS, assert_scene
from exact import Found, rounded

INF = np.inf
TETRAHEDRON = ([[0.0, 0, 0], [4, 0, 0], [0, 4, 0], [0, 0, 4]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
CUBE = (
    [[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)],
    [
        list(map(int, face))
        for face in ["013", "032", "467", "475", "045", "051", "237", "276", "026", "064", "157", "173"]
    ],
)


def truth(rays: rb.Rays, corners: np.ndarray, cull: str | None = None):
    """Return each ray's hits, sorted by (t, index), and the u, v of the first."""
    found, uv = [], []
    for o, d, low, high in zip(rays.origins, rays.directions, rays.t_min, rays.t_max, strict=True):
        row = []
        for i, (a, b, c) in enumerate(corners.tolist()):
            span = float(low), float(high)
            contact = exact_surfaces.triangle(o.tolist(), d.tolist(), span, a, b, c, cull_back=cull == "back")
            if contact is not None:
                t = rounded(contact[0].t)
                row.append((contact[0].t, i, Found(i, contact[0].t, (True, t, t, t, -1, True)), contact[1:]))
        row.sort(key=lambda x: x[:2])
        found.append([x[2] for x in row])
        uv.append([rounded(x) for x in row[0][3]] if row else [np.nan, np.nan])
    return found, np.array(uv).reshape(-1, 2)


def check_mesh(mesh: rb.Mesh, rays: rb.Rays):
    scene = rb.Scene(mesh)
    scene.check()
    corners = np.asarray(mesh.vertices)[np.asarray(mesh.faces)]
    found, uv = truth(rays, corners)
    assert_scene(scene, rays, found)
    front, _ = truth(rays, corners, "back")
    assert_scene(scene, rays, front, cull="back")
    assert 0.2 * sum(map(len, found)) < sum(map(len, front)) < 0.8 * sum(map(len, found))
    hits = scene.nearest(rays)
    np.testing.assert_allclose(hits.uv[hits.hit], uv[hits.hit], rtol=0, atol=4 * EPS)
    sides = corners[hits.index][hits.hit]
    normals = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    cosine = (hits.normals[hits.hit] * normals).sum(axis=1) / np.linalg.norm(normals, axis=1)
    np.testing.assert_allclose(cosine, 1, rtol=0, atol=1e-9)
    return found


@pytest.mark.parametrize("shape", [TETRAHEDRON, CUBE], ids=["tetrahedron", "cube"])
def test_solids(shape):
    rng = np.random.default_rng(1)
    origins = rng.integers(-4, 9, (300, 3)) / 2
    goals = rng.integers(0, 5, (300, 3)) / 4
    full = rng.uniform(-2, 2, (100, 3))
    rays = rb.Rays(
        np.concatenate([origins, full]), np.concatenate([goals - origins, rng.uniform(-1, 1, (100, 3))])
    )
    found = check_mesh(rb.Mesh(*shape), rays)
    assert sum(map(bool, found)) > 80
    assert sum(len(f) > 1 and f[0].t == f[1].t for f in found) > 20  # through edges and vertices


def test_a_soup_of_triangles():
    pairs = families_surfaces.triangles(2, 120)
    mesh = rb.Mesh(pairs.corners.reshape(-1, 3), np.arange(360).reshape(-1, 3))
    found = check_mesh(mesh, rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3]))
    assert sum(map(bool, found)) > 60


def test_triangles_without_area_are_never_hit():
    mesh = rb.Mesh([[0.0, 0, 0], [1, 1, 1], [2, 2, 2], [1, 0, 0]], [[0, 1, 2], [3, 3, 3], [0, 1, 0]])
    rays = rb.Rays([[1.0, 1, -1], [1, 0, -1], [0, 0, 0]], [[0.0, 0, 1], [0, 0, 1], [1, 1, 1]])
    assert not rb.Scene(mesh).nearest(rays).hit.any()


@given(strategies.triangles(count=10))
@settings(max_examples=60)
def test_any_triangles(case):
    o, d, span, corners = case
    mesh = rb.Mesh(corners.reshape(-1, 3), np.arange(30).reshape(-1, 3))
    rays = rb.Rays([o], [d], t_min=span[0], t_max=span[1])
    found, _ = truth(rays, corners)
    assert_scene(rb.Scene(mesh), rays, found)


def test_a_mesh_without_faces():
    scene = rb.Scene(rb.Mesh(np.zeros((3, 3)), np.empty((0, 3), dtype=int)))
    scene.check()
    assert_scene(scene, rb.Rays([[0.0] * 3], [[1.0] * 3]), [[]])


def test_update_of_a_mesh_equals_a_new_scene():
    before, after = families_surfaces.triangles(3, 60), families_surfaces.triangles(4, 60)
    faces = np.arange(180).reshape(-1, 3)
    scene = rb.Scene(rb.Mesh(before.corners.reshape(-1, 3), faces))
    scene.update(rb.Mesh(after.corners.reshape(-1, 3), faces))
    scene.check()
    rays = rb.Rays(*after[:2], t_min=after[2], t_max=after[3])
    assert_scene(scene, rays, truth(rays, after.corners)[0])
