"""Instances whose images are primitives of floats: decided exactly in compiled code, even at touches."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_instances
import raybox as rb
from raybox.queries import exact_fallback
from test_instances_scene import GEOMETRIES, check_scene, on_grid, regular
from test_scene_mesh import TETRAHEDRON

CELL = rb.Boxes([0.0] * 3, [1.0] * 3)
SIGNED = [np.diag(signs)[list(order)] for order in itertools.permutations(range(3)) for signs in
          itertools.product([-1.0, 1.0], repeat=3)]  # fmt: skip


def plain(rng, count) -> np.ndarray:
    """Return translations, reflections, quarter turns, powers of two: axes map to axes exactly."""
    sizes = rng.choice([0.5, 1.0, 2.0], (count, 1, 3))
    turned = np.array(SIGNED)[rng.integers(0, len(SIGNED), count)] * sizes
    return np.concatenate([turned, rng.integers(-4, 5, (count, 3, 1)) / 2], axis=2)


@pytest.fixture
def fallback_rays(monkeypatch):
    """Return a list of the rays that go to the exact fallback."""
    rays, hits = [], exact_fallback._hits

    def record(job, k):
        rays.append(k)
        return hits(job, k)

    monkeypatch.setattr(exact_fallback, "_hits", record)
    return rays


@pytest.mark.long
@pytest.mark.parametrize("kind", GEOMETRIES)
def test_plain_instances_are_exact_without_fallback(kind, fallback_rays):
    rng = np.random.default_rng(40)
    maps = plain(rng, 14)
    assert 4 < (np.linalg.det(maps[:, :, :3]) < 0).sum() < 10
    counts = check_scene(rb.Instances(GEOMETRIES[kind], maps), on_grid(rng, 250))
    assert counts["hits"] > 60, counts
    assert counts["ties"] > 60, counts
    assert kind == "mesh" or (counts["touches"] > 100 and counts["inside"] > 40), counts
    assert not fallback_rays


def test_sheared_triangles_are_exact_in_world_coordinates_and_sheared_boxes_are_not(fallback_rays):
    rng = np.random.default_rng(41)
    maps = regular(rng, 8, [-1.0, 0.0, 0.5, 1.0, 2.0])
    turned = (maps[:, :, :3] != 0).sum(axis=(1, 2)) > 3
    rays = on_grid(rng, 70)
    assert check_scene(rb.Instances(GEOMETRIES["mesh"], maps[turned]), rays)["ties"] > 10
    assert not fallback_rays
    assert check_scene(rb.Instances(GEOMETRIES["boxes"], maps[turned]), rays)["touches"] > 5
    assert fallback_rays


def test_a_grid_of_cells_with_rays_in_its_walls_and_edges(fallback_rays):
    places = np.array([*itertools.product(range(4), repeat=3)], dtype=float)
    cells = rb.Instances.from_poses(CELL, places)
    rng = np.random.default_rng(42)
    origins, ways = rng.integers(-1, 6, (150, 3)) + rng.choice([0.0, 0.25], (150, 3)), np.zeros((150, 3))
    ways[np.arange(150), rng.integers(0, 3, 150)] = rng.choice([-1.0, 1.0, 3.0], 150)
    counts = check_scene(cells, rb.Rays(origins, ways))
    assert counts["ties"] > 80, counts
    assert counts["touches"] > 150, counts
    assert not fallback_rays


@pytest.mark.long
@pytest.mark.parametrize("mesh", [TETRAHEDRON, None])
def test_back_faces_of_reflected_instances_are_culled_by_their_own_normals(mesh, fallback_rays):
    rng = np.random.default_rng(43)
    geometry = rb.Mesh(*mesh) if mesh else GEOMETRIES["mesh"]
    instances = rb.Instances(geometry, plain(rng, 12))
    scene, rays = rb.Scene(instances), on_grid(rng, 200)
    want = exact_instances.along(rays, instances, cull=True)
    assert exact_instances.assert_queries(scene, rays, want, cull="back")["hits"] > 25
    assert scene.count(rays, cull="back").sum() < scene.count(rays).sum() - 25
    assert not fallback_rays


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_images_that_are_no_floats_go_to_the_fallback(kind, fallback_rays):
    """Steps of a tenth: images differ from their neighbours' by less than the bounds, and are not rounded."""
    rng = np.random.default_rng(44)
    maps = plain(rng, 10)
    maps[:, :, 3] *= 0.1
    maps[::2, :, :3] *= 0.1
    rays = on_grid(rng, 120)
    touching = rb.Rays(rays.origins * 0.1, rays.directions, t_min=rays.t_min, t_max=rays.t_max)
    assert check_scene(rb.Instances(GEOMETRIES[kind], maps), touching)["hits"] > 30
    assert len(fallback_rays) > 5


@pytest.mark.parametrize("kind", GEOMETRIES)
@pytest.mark.parametrize("size", [2.0**-300, 2.0**-190, 2.0**190])
def test_numbers_too_small_or_too_large_for_products(kind, size):
    """Maps and points whose products could be lost on the way to the image."""
    rng = np.random.default_rng(45)
    geometry, maps = GEOMETRIES[kind], plain(rng, 6)
    if kind == "mesh":
        small = rb.Mesh(geometry.vertices * size, geometry.faces)
    else:
        small = rb.Boxes(geometry.lower * size, geometry.upper * size)
    maps[::2, :, 3] = 0.0
    maps[::3, :, :3] *= 1 + 2.0**-52
    rays = on_grid(rng, 80)
    scaled = rb.Rays(rays.origins * size, rays.directions, t_min=rays.t_min * size, t_max=rays.t_max * size)
    assert check_scene(rb.Instances(small, maps), scaled)["hits"] > 5


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_corners_too_small_for_exact_products(kind):
    """Rays exactly through corners of images that are no floats, though they look like some."""
    rng = np.random.default_rng(47)
    geometry, size = GEOMETRIES[kind], 2.0**-1030
    ways = 1 + rng.integers(1, 9, (6, 3)) * 2.0**-52
    maps = np.concatenate([ways[:, :, None] * np.eye(3), np.zeros((6, 3, 1))], axis=2)
    if kind == "mesh":
        small, points = rb.Mesh(geometry.vertices * size, geometry.faces), geometry.vertices
    else:
        small = rb.Boxes(geometry.lower * size, geometry.upper * size)
        points = np.concatenate([geometry.lower, geometry.upper])
    goals = points[rng.integers(0, len(points), 80)] * rng.choice([-1, 1, 1], (80, 1))
    rays = rb.Rays(np.zeros(3), goals * ways[rng.integers(0, 6, 80)])
    assert check_scene(rb.Instances(small, maps), rays)["hits"] > 20


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_normals_and_spans_at_edges_are_exact(kind):
    """Of many hits at once, which are compiled, and of each alone, which is not."""
    rng = np.random.default_rng(46)
    maps = plain(rng, 12)
    maps[:4, :, :3] = np.eye(3) * rng.choice([-1.0, 1.0, 2.0], (4, 1, 3))
    scene, rays = rb.Scene(rb.Instances(GEOMETRIES[kind], maps)), on_grid(rng, 300)
    many = scene.nearest(rays)
    assert many.hit.sum() > 100
    for k in np.flatnonzero(many.hit):
        one = scene.nearest(rays[k])
        np.testing.assert_array_equal(many.normals[k], one.normals)
        assert (many.t_enter[k], many.t_exit[k]) == (one.t_enter, one.t_exit)


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_first_contacts_with_one_rounded_time_are_in_exact_order(kind, fallback_rays):
    """Walls closer together than double-double resolves, the first of them with the largest number."""
    steps = [2.0**-118, 2.0**-119, 2.0**-120, 0.0]
    maps = np.tile(np.eye(3, 4), (4, 1, 1))
    maps[:, 2, 3] = steps
    wall = (
        rb.Boxes([0.0] * 3, [1.0, 1.0, 0.0])
        if kind == "boxes"
        else rb.Mesh([[0, 0, 0], [3, 0, 0], [0, 3, 0]], [[0, 1, 2]])
    )
    rng = np.random.default_rng(48)
    rays = rb.Rays(np.append(rng.uniform(0.1, 0.9, (30, 2)), np.full((30, 1), -1.0), axis=1), [0, 0, 1])
    assert check_scene(rb.Instances(wall, maps), rays)["unlike"] == 90
    assert not fallback_rays


def test_edges_with_one_rounded_time_are_in_exact_order(fallback_rays):
    maps = np.tile(np.eye(3, 4), (3, 1, 1))
    maps[:, :2, 3] = np.array([2.0**-39, 2.0**-40, 0.0])[:, None]
    heights = np.linspace(0.1, 0.9, 20)
    origins = np.stack([np.full(20, -(2.0**20)), np.full(20, -(2.0**20)), heights], axis=1)
    assert check_scene(rb.Instances(CELL, maps), rb.Rays(origins, [1, 1, 0]))["unlike"] == 40
    assert not fallback_rays


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_plain_instances(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    count = data.draw(st.integers(1, 4))
    maps = plain(rng, count)
    maps[:, :, 3] += rng.choice([0.0, 2.0**-53, 2.0**52, 1e16, 0.1], (count, 3))
    kind = data.draw(st.sampled_from(sorted(GEOMETRIES)))
    check_scene(rb.Instances(GEOMETRIES[kind], maps), on_grid(rng, 8))
