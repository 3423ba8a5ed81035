"""rb.Scene of several geometries against Fractions: boxes, a mesh, instances and planes, with ties."""

import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_instances
import raybox as rb
import strategies
from exact import INF
from raybox.queries import merge
from test_instances_scene import UNIT, aimed, on_grid, turns
from test_scene_mesh import CUBE, TETRAHEDRON


def parts_of(rng) -> list:
    lower = rng.uniform(-3, 2, (20, 3))
    return [
        rb.Boxes(lower, lower + rng.uniform(0.1, 1, (20, 3))),
        rb.Mesh(rng.uniform(-3, 3, (12, 3)), rng.integers(0, 12, (15, 3))),
        rb.Instances(rb.Mesh(*TETRAHEDRON), turns(rng, 6, 0.3)),
        rb.Planes(rng.normal(size=(3, 3)), rng.normal(size=3)),
        rb.Instances(UNIT, turns(rng, 6)),
    ]


def on_common_grid(rng) -> list:
    """Return geometries of integers that share faces, with the same box three times."""
    return [
        rb.Boxes([[0.0, 0, 0], [1, 0, 0], [0, 0, 1]], [[1.0, 1, 1], [2, 1, 1], [1, 1, 1]]),
        rb.Mesh(*CUBE),
        rb.Planes([[0, 0, 2], [1, 0, 0], [1, 1, 0]], [2, 1, 1]),
        rb.Instances(rb.Boxes([0.0] * 3, [1.0] * 3), [np.eye(4)[:3], np.diag([2.0, 1, 1, 1])[:3]]),
        rb.Boxes([0.0, 0, 0], [1.0, 1, 1]),
    ]


def check_scene(geometries, rays, **options) -> dict[str, int]:
    scene = rb.Scene(geometries)
    scene.check()
    truth = exact_instances.along(rays, *geometries)
    counts = exact_instances.assert_queries(scene, rays, truth, **options)
    counts["crossed"] = sum(
        a.t == b.t and a.geometry != b.geometry for row in truth for a, b in itertools.pairwise(row)
    )
    return counts


def test_all_geometries_together():
    rng = np.random.default_rng(21)
    counts = check_scene(parts_of(rng), aimed(rng, 120))
    assert counts["several"] > 80, counts


def test_ties_go_to_the_geometry_that_comes_first():
    rng = np.random.default_rng(22)
    counts = check_scene(on_common_grid(rng), on_grid(rng, 200))
    assert counts["crossed"] > 40, counts
    assert counts["touches"] > 50, counts


def test_times_that_round_to_one_are_put_in_exact_order():
    """Planes less than one float apart at t, in geometries of another order."""
    rng = np.random.default_rng(23)
    count = 200
    normals = rng.uniform(0.5, 1, (count, 3))
    offsets = normals.sum(axis=1)
    normals[1::2], offsets[1::2] = 3 * normals[::2], 3 * offsets[::2]
    geometries = [rb.Planes(normals[k::8], offsets[k::8]) for k in range(8)]
    rays = rb.Rays(np.zeros((6, 3)), 1 + rng.uniform(-1e-16, 1e-16, (6, 3)) * [[1], [1], [1], [9], [9], [9]])
    counts = check_scene(geometries, rays)
    assert counts["unlike"] > 50, counts
    assert counts["crossed"] > 50, counts


def quads(heights, slope=0.0) -> rb.Mesh:
    """Return two triangles at each height over z = slope * x."""
    corners = np.array([[-9.0, -9, 0], [9, -9, 0], [9, 9, 0], [-9, 9, 0]])
    corners[:, 2] = slope * corners[:, 0]
    vertices = (corners + np.array([0.0, 0, 1]) * np.reshape(heights, (-1, 1, 1))).reshape(-1, 3)
    faces = np.array([[0, 1, 2], [0, 2, 3]]) + 4 * np.arange(len(heights))[:, None, None]
    return rb.Mesh(vertices, faces.reshape(-1, 3))


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_compiled_code_orders_what_is_across_an_axis_and_triangles(monkeypatch, slope):
    """Surfaces less than one float apart at t, and at the same t, in geometries of each kind."""
    compared = []
    exactly = merge._exact_time
    monkeypatch.setattr(merge, "_exact_time", lambda *hit: compared.append(hit) or exactly(*hit))
    heights = 2.0 + 2.0**-51 * np.array([1, 0, 2, 3])
    geometries = [quads(heights[k:], slope) for k in range(3)]
    if slope == 0.0:
        low = np.stack([np.full(4, -9.0), np.full(4, -9.0), heights], axis=1)
        geometries += [
            rb.Planes([[0, 0, 1], [0, 0, -1]], [heights[1], -heights[2]]),
            rb.Boxes(low, low + np.array([18.0, 18.0, 0.0])),
            rb.Grid([-9.0, 0.0, 9.0], [-9.0, 9.0], np.sort(heights)),
        ]
    rng = np.random.default_rng(25)
    aims = np.concatenate([rng.integers(-2, 3, (40, 2)), rng.integers(2, 5, (40, 1))], axis=1) / 4
    rays = rb.Rays([1.0, 1.0, -1000.0], aims * [0.001, 0.001, 1.0])
    counts = check_scene(geometries, rays)
    assert min(counts["unlike"], counts["crossed"]) > 30, counts
    assert not compared


numbers = st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.0, 2.0, 0.1, 1e-300])


@given(st.data())
@settings(max_examples=60)
def test_any_geometries(data):
    lower, upper = data.draw(strategies.boxes(3, 3, numbers))
    corners = data.draw(strategies.related((3, 3, 3), numbers))
    normals, offsets = (
        data.draw(strategies.related((3, 3), numbers)),
        data.draw(strategies.related((3,), numbers)),
    )
    shifts = data.draw(strategies.related((2, 3), numbers))
    geometries = [
        rb.Boxes(lower, upper),
        rb.Planes(normals[normals.any(axis=1)], offsets[normals.any(axis=1)]),
        rb.Instances.from_poses(UNIT, shifts, scales=2.0),
        rb.Mesh(corners.reshape(-1, 3), np.arange(9).reshape(3, 3)),
    ]
    geometries = data.draw(st.permutations(geometries))[: data.draw(st.integers(1, 4))]
    rays = data.draw(strategies.related((3, 2, 3), st.one_of(numbers, strategies.grid)))
    low, high = data.draw(strategies.spans(numbers))
    check_scene(geometries, rb.Rays(rays[:, 0], rays[:, 1], t_min=low, t_max=high))


def test_planes_alone_and_along_an_axis():
    rng = np.random.default_rng(24)
    normals = np.concatenate([np.eye(3), -3 * np.eye(3), rng.normal(size=(4, 3)), [[0, 1e-300, 0]]])
    planes = rb.Planes(normals, rng.integers(-2, 3, len(normals)))
    rays = on_grid(rng, 150)
    scene = rb.Scene(planes)
    scene.check()
    counts = exact_instances.assert_queries(scene, rays, exact_instances.along(rays, planes))
    assert counts["ties"] > 8, counts
    assert rb.Scene(rb.Planes(np.zeros((0, 3)), [])).count(rays).sum() == 0


def test_two_dimensions():
    rng = np.random.default_rng(25)
    geometries = [rb.Boxes([[0, 0], [1, 1]], [[1, 1], [2, 2]]), rb.Planes([[1, 0], [1, -1]], [1, 0])]
    geometries.append(rb.Instances.from_poses(rb.Boxes([0, 0], [1, 1]), [[0, 0], [-1, 0]]))
    rays = rb.Rays(rng.integers(-4, 7, (120, 2)) / 2, rng.integers(-2, 3, (120, 2)))
    assert check_scene(geometries, rays)["crossed"] > 40


def test_a_list_of_one_equals_the_geometry_itself():
    rng = np.random.default_rng(26)
    for geometry in parts_of(rng):
        rays = aimed(rng, 40)
        one, listed = rb.Scene(geometry), rb.Scene([geometry])
        np.testing.assert_array_equal(one.nearest(rays).index, listed.nearest(rays).index)
        assert isinstance(listed.geometry, tuple)
        assert one.geometry is geometry


def test_one_ray_and_rays_of_any_shape():
    rng = np.random.default_rng(34)
    geometries, rays = parts_of(rng), aimed(rng, 12)
    for scene in (rb.Scene(geometries), rb.Scene(geometries[2])):
        flat, square = scene.nearest(rays), scene.nearest(rays.reshape(3, 4))
        for name in ("geometry", "index", "primitive", "t", "normals", "uv", "t_enter"):
            whole, one = getattr(flat, name), getattr(scene.nearest(rays[5]), name)
            assert isinstance(one, np.ndarray)
            np.testing.assert_array_equal(getattr(square, name).reshape(whole.shape), whole)
            np.testing.assert_array_equal(one, whole[5])
        assert scene.first(rays.reshape(3, 4), 2).primitive.shape == (3, 4, 2)


def test_where_takes_a_mask_for_each():
    rng = np.random.default_rng(27)
    geometries, rays = parts_of(rng), aimed(rng, 60)
    masks = [None, rng.random(15) < 0.5, rng.random(6) < 0.5, [True, False, True], None]
    exact_instances.assert_queries(
        rb.Scene(geometries), rays, exact_instances.along(rays, *geometries, where=masks), where=masks
    )


def test_cull_is_for_what_has_sides():
    rng = np.random.default_rng(28)
    geometries, rays = parts_of(rng), aimed(rng, 60)
    scene = rb.Scene(geometries)
    back = sum(rb.Scene(geometry).count(rays, cull="back") for geometry in geometries[1:4])
    want = back + sum(rb.Scene(geometry).count(rays) for geometry in (geometries[0], geometries[4]))
    np.testing.assert_array_equal(scene.count(rays, cull="back"), want)


def test_normals_weights_and_lengths_are_those_of_each_part():
    rng = np.random.default_rng(29)
    geometries, rays = parts_of(rng), aimed(rng, 3000)
    hits, every = rb.Scene(geometries).nearest(rays), rb.Scene(geometries).all(rays)
    for k, geometry in enumerate(geometries):
        own, single = hits.geometry == k, rb.Scene(geometry).nearest(rays)
        assert own.sum() > 20
        for name in ("index", "primitive", "t", "t_enter", "t_exit", "normals", "uv", "points"):
            np.testing.assert_array_equal(getattr(hits, name)[own], getattr(single, name)[own], err_msg=name)
        np.testing.assert_array_equal(
            every.lengths[every.geometry == k], rb.Scene(geometry).all(rays).lengths
        )
    assert np.isnan(hits.normals[~hits.hit]).all()
    assert every[7].geometry.tolist() == every.geometry[every.ray == 7].tolist()


def test_workers_and_the_order_of_rays_change_nothing():
    rng = np.random.default_rng(30)
    scene, rays, order = rb.Scene(parts_of(rng)), aimed(rng, 4000), rng.permutation(4000)
    one, two = scene.nearest(rays, workers=1), scene.nearest(rays[order], workers=2)
    for name in ("geometry", "index", "primitive", "t"):
        np.testing.assert_array_equal(getattr(one, name)[order], getattr(two, name))
    np.testing.assert_array_equal(scene.occluded(rays), one.hit)


def test_update_moves_new_geometries_and_keeps_the_rest():
    rng = np.random.default_rng(31)
    before, after = parts_of(rng), parts_of(rng)
    scene = rb.Scene(before)
    scene.update([after[0], before[1], after[2], after[3], before[4]])
    scene.check()
    assert scene._parts[1].tree is not None
    rays, now = aimed(rng, 60), [after[0], before[1], after[2], after[3], before[4]]
    exact_instances.assert_queries(scene, rays, exact_instances.along(rays, *now))


def test_len_bounds_repr_and_stats():
    geometries = parts_of(np.random.default_rng(32))
    scene = rb.Scene(geometries)
    assert len(scene) == 20 + 15 + 6 + 3 + 6
    assert scene.bounds.tolist() == [[-INF] * 3, [INF] * 3]
    bounded, (low, up) = (
        rb.Scene(geometries[:2]),
        zip(*(rb.Scene(x).bounds for x in geometries[:2]), strict=True),
    )
    assert bounded.bounds.tolist() == [np.minimum(*low).tolist(), np.maximum(*up).tolist()]
    assert repr(bounded) == "Scene([Boxes(20, D=3), Mesh(15, vertices=12)])"
    stats = scene.stats()
    assert stats["boxes"] == 50 + 4 + 1
    assert stats["bytes"] == sum(rb.Scene(x).stats()["bytes"] for x in geometries)
    copy = pickle.loads(pickle.dumps(scene))
    assert [type(x) for x in copy.geometry] == [type(x) for x in geometries]
