"""Scenes of instances: masks, culling, updates, memory, and comparison with the expanded mesh."""

import pickle

import numpy as np

import exact_instances
import raybox as rb
from test_instances_scene import GEOMETRIES, UNIT, aimed, turns
from test_scene_mesh import CUBE, TETRAHEDRON


def test_where_workers_and_order_of_rays():
    rng = np.random.default_rng(13)
    instances = rb.Instances(GEOMETRIES["boxes"], turns(rng, 20))
    scene, rays = rb.Scene(instances), aimed(rng, 90)
    mask = rng.random(20) < 0.5
    exact_instances.assert_queries(
        scene, rays, exact_instances.along(rays, instances, where=[mask]), where=mask
    )
    many = aimed(rng, 5000)
    order = rng.permutation(5000)
    one, two = scene.nearest(many, workers=1), scene.nearest(many[order], workers=2)
    np.testing.assert_array_equal(one.index[order], two.index)
    np.testing.assert_array_equal(one.t[order], two.t)


def test_back_faces_are_culled_in_the_instance_s_orientation():
    rng = np.random.default_rng(14)
    instances = rb.Instances(rb.Mesh(*TETRAHEDRON), turns(rng, 8) * rng.choice([-1.0, 1.0], (8, 1, 1)))
    scene, rays = rb.Scene(instances), aimed(rng, 120)
    want = exact_instances.along(rays, instances, cull=True)
    assert exact_instances.assert_queries(scene, rays, want, cull="back")["hits"] > 20
    assert scene.count(rays, cull="back").sum() < scene.count(rays).sum() - 20


def test_update_moves_instances_and_keeps_the_shared_tree():
    rng = np.random.default_rng(15)
    mesh, before, after = rb.Mesh(*CUBE), turns(rng, 9), turns(rng, 9)
    scene = rb.Scene(rb.Instances(mesh, before))
    tree = scene._parts[0].rows.tree
    scene.update(rb.Instances(mesh, after))
    assert scene._parts[0].rows.tree is tree
    scene.check()
    rays, instances = aimed(rng, 60), rb.Instances(mesh, after)
    exact_instances.assert_queries(scene, rays, exact_instances.along(rays, instances))
    other = rb.Mesh(mesh.vertices * 2, mesh.faces)
    scene.update(rb.Instances(other, after))
    exact_instances.assert_queries(scene, rays, exact_instances.along(rays, rb.Instances(other, after)))


def test_no_instances_and_instances_of_nothing():
    rays = rb.Rays(np.zeros((3, 3)), np.ones((3, 3)))
    for instances in (
        rb.Instances(UNIT, np.zeros((0, 3, 4))),
        rb.Instances(rb.Boxes(np.zeros((0, 3)), np.zeros((0, 3))), np.eye(4)),
    ):
        scene = rb.Scene(instances)
        scene.check()
        assert not scene.nearest(rays).hit.any()
        assert scene.all(rays).index.size == scene.count(rays).sum() == 0


def test_memory_is_one_copys():
    rng = np.random.default_rng(16)
    mesh = rb.Mesh(rng.normal(size=(3000, 3)), rng.integers(0, 3000, (10_000, 3)))
    one, many = rb.Scene(mesh), rb.Scene(rb.Instances(mesh, turns(rng, 1000)))
    assert many.stats()["bytes"] < one.stats()["bytes"] + 1000 * 60


def test_a_scene_of_instances_can_be_pickled():
    rng = np.random.default_rng(17)
    scene = rb.Scene(rb.Instances(rb.Mesh(*CUBE), turns(rng, 4)))
    copy, rays = pickle.loads(pickle.dumps(scene)), aimed(rng, 50)
    np.testing.assert_array_equal(copy.nearest(rays).t, scene.nearest(rays).t)


def test_instances_of_a_mesh_equal_the_expanded_mesh():
    """Rotations round the vertices of the expanded mesh: times agree to within rounding."""
    rng = np.random.default_rng(12)
    u, v = np.meshgrid(np.linspace(0, 2 * np.pi, 24)[:-1], np.linspace(0.1, np.pi - 0.1, 12))
    ball = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)], axis=-1).reshape(-1, 3)
    k = (np.arange(11)[:, None] * 23 + np.arange(22)).reshape(-1, 1)
    faces = np.concatenate([k + np.array([0, 23, 1]), k + np.array([1, 23, 24])])
    instances = rb.Instances(rb.Mesh(ball, faces), turns(rng, 30, 0.6))
    maps = instances.transforms
    moved = np.einsum("mij,vj->mvi", maps[:, :, :3], ball) + maps[:, None, :, 3]
    many = np.concatenate([faces + i * len(ball) for i in range(30)])
    expanded, rays = rb.Scene(rb.Mesh(moved.reshape(-1, 3), many)), aimed(rng, 3000)
    hits, want = rb.Scene(instances).nearest(rays), expanded.nearest(rays)
    same = hits.index * len(faces) + hits.primitive == want.index
    assert (hits.hit == want.hit).all()
    assert same[hits.hit].all()
    assert hits.hit.sum() > 1000
    np.testing.assert_allclose(hits.t[hits.hit], want.t[hits.hit], rtol=1e-12)
