"""rb.Scene of instances against Fractions: rotated, sheared, mirrored, touching, flat; masks and updates."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import exact_instances
import raybox as rb
import strategies
from compare import EPS
from exact import INF
from raybox.queries.hit_query import HitOfRay
from raybox.queries.nearest.stream import Nearest
from raybox.queries.number_query import NumberOfRay
from raybox.queries.occluded import Occluded
from raybox.queries.per_ray import select_rays
from raybox.scene import geometry_parts
from raybox.traversal.single import RaySpan, make_scratch, traverse_rays
from test_scene_mesh import CUBE, TETRAHEDRON

UNIT = rb.Boxes([-0.5] * 3, [0.5] * 3)
GEOMETRIES = {
    "boxes": rb.Boxes(
        [[0.0, 0, 0], [1, 0, 0], [0, 2, 0], [-1, -1, -1]], [[1, 1, 1], [2, 1, 0], [0, 2, 1], [0, 0, 2]]
    ),
    "mesh": rb.Mesh(*CUBE),
}


def check_scene(instances, rays, **options) -> dict[str, int]:
    scene = rb.Scene(instances)
    scene.check()
    return exact_instances.assert_queries(scene, rays, exact_instances.along(rays, instances), **options)


def regular(rng, count, pool) -> np.ndarray:
    """Return invertible maps [A b] with entries of the pool."""
    maps = rng.choice(pool, (8 * count, 3, 4))
    return maps[np.abs(np.linalg.det(maps[:, :, :3])) > 1e-6][:count]


def turns(rng, count, size=1.0) -> np.ndarray:
    q = rng.normal(size=(count, 4))
    poses = rb.Instances.from_poses(UNIT, rng.uniform(-3, 3, (count, 3)), quaternions=q, scales=size)
    return poses.transforms


def aimed(rng, count, reach=4.0) -> rb.Rays:
    origins = rng.uniform(-reach, reach, (count, 3))
    return rb.Rays(origins, rng.uniform(-2, 2, (count, 3)) - origins)


def on_grid(rng, count) -> rb.Rays:
    """Return rays between grid points, a tenth of zero direction, with ranges that end on grid points."""
    origins = rng.integers(-6, 7, (count, 3)) / 2
    directions = rng.integers(-2, 3, (count, 3)) * np.where(rng.random((count, 1)) < 0.1, 0.0, 1.0)
    low = rng.choice([0.0, 0.0, 1.0, -INF, -1.0], count)
    high = np.maximum(low, rng.choice([INF, INF, 1.0, 2.0], count))
    return rb.Rays(origins, directions, t_min=low, t_max=high)


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_rotated_and_scaled_instances(kind):
    rng = np.random.default_rng(1)
    instances = rb.Instances(GEOMETRIES[kind], turns(rng, 12, rng.uniform(0.3, 2, (12, 3))))
    counts = check_scene(instances, aimed(rng, 120))
    assert counts["hits"] > 60, counts
    assert counts["several"] > 40, counts


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_shears_and_mirrors_of_grid_numbers_touch_and_tie(kind):
    rng = np.random.default_rng(2)
    maps = regular(rng, 10, [-2.0, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 2.0])
    assert (np.linalg.det(maps[:, :, :3]) < 0).sum() > 2
    counts = check_scene(rb.Instances(GEOMETRIES[kind], maps), on_grid(rng, 200))
    assert counts["hits"] > 60, counts
    assert counts["ties"] > 50, counts
    assert kind == "mesh" or (counts["touches"] > 20 and counts["inside"] > 20), counts


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_normals_do_not_depend_on_size(kind):
    """Mirrored ones too; numbers too large for error bounds are transformed in integers."""
    rng = np.random.default_rng(21)
    maps, rays = turns(rng, 8).copy(), aimed(rng, 150)
    maps[::2, :, 0] *= -1
    hits = rb.Scene(rb.Instances(GEOMETRIES[kind], maps)).nearest(rays)
    huge = rb.Scene(rb.Instances(GEOMETRIES[kind], maps * 2.0**465))
    found = huge.nearest(rb.Rays(rays.origins * 2.0**465, rays.directions * 2.0**465))
    assert found.index.tolist() == hits.index.tolist()
    assert hits.hit.sum() > 20
    assert (hits.index[hits.hit] % 2 == 0).sum() > 5
    np.testing.assert_allclose(found.normals, hits.normals, rtol=0, atol=1e-12)


def test_instances_far_out_and_long_and_thin():
    rng = np.random.default_rng(5)
    maps = turns(rng, 10, np.array([1e3, 1.0, 1e-3])).copy()
    maps[:, :, 3] += 5e6
    eyes = 5e6 + rng.uniform(-50, 50, (150, 3))
    goals = maps[rng.integers(0, 10, 150), :, 3] + rng.normal(0, 1e-3, (150, 3))
    counts = check_scene(rb.Instances(UNIT, maps), rb.Rays(eyes, goals - eyes))
    assert counts["hits"] > 100, counts


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_rays_within_rounding_of_edges(kind):
    """Rays pass through corners and edges of rotated instances, to within rounding, or close by."""
    rng = np.random.default_rng(6)
    geometry, count = GEOMETRIES[kind], 240
    instances = rb.Instances(geometry, turns(rng, 8))
    copy = rng.integers(0, 8, count)
    if kind == "mesh":
        corners = geometry.triangles[rng.integers(0, len(geometry), count)]
    else:
        ends = np.stack([geometry.lower, geometry.upper])[:, rng.integers(0, len(geometry), count)]
        corners = np.stack([np.choose(rng.integers(0, 2, (count, 3)), ends) for _ in range(3)], axis=1)
    share = rng.dirichlet([1, 1], count) * (rng.random((count, 1)) < 0.5)
    point = corners[:, 0] + share[:, :1] * (corners[:, 1] - corners[:, 0])
    maps = instances.transforms[copy]
    goal = (maps[:, :, :3] @ point[:, :, None])[:, :, 0] + maps[:, :, 3]
    goal += rng.normal(size=(count, 3)) * rng.choice([0.0, 1e-17, 1e-16, 1e-15, 1e-14, 1e-12], (count, 1))
    origins = rng.uniform(-6, 6, (count, 3))
    counts = check_scene(instances, rb.Rays(origins, goal - origins))
    assert 0.2 < counts["hits"] / count < 1, counts
    assert kind == "boxes" or counts["unlike"] > 0, counts


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_edges_far_from_the_origins_of_ray_and_instance(kind):
    """Rays start a millimetre from the instance's origin: only their directions have rounding errors."""
    rng = np.random.default_rng(16)
    count = 150
    lower, upper = np.array([1000.0, -1, -1]), np.array([1002.0, 1, 1])
    corners, faces = CUBE
    meshed = rb.Mesh(np.asarray(corners, float) * (upper - lower) + lower, faces)
    geometry = rb.Boxes(lower, upper) if kind == "boxes" else meshed
    maps = turns(rng, 5)
    maps = np.concatenate([maps[:, :, :3], np.zeros((5, 3, 1))], axis=2)
    goals = np.choose(rng.integers(0, 2, (count, 3)), [lower, upper])
    goals[:, 2] -= rng.random(count) * np.sign(goals[:, 2]) * (rng.random(count) < 0.5)
    goals += rng.normal(size=(count, 3)) * rng.choice([0.0, 1e-14, 1e-13, 1e-12], (count, 1))
    turned = maps[rng.integers(0, 5, count), :, :3]
    origins = (turned @ rng.uniform(-1e-3, 1e-3, (count, 3, 1)))[:, :, 0]
    ways = (turned @ goals[:, :, None])[:, :, 0] - origins
    counts = check_scene(rb.Instances(geometry, maps), rb.Rays(origins, ways))
    assert 0.2 < counts["hits"] / count < 1, counts


@pytest.mark.long
@pytest.mark.parametrize("kind", GEOMETRIES)
@pytest.mark.parametrize("way", [None, (0, 0, 1), (0.5, 0, 1)])
def test_edges_of_steep_shears(kind, way):
    """Large terms cancel when the ray is transformed, in its origin or in its direction alone."""
    rng = np.random.default_rng(18)
    count = 200
    # No integers: the cancelled terms leave integers, around which every sign would be right.
    lower, upper = rng.uniform([3, 1, 2], [3.1, 1.1, 2.1]), rng.uniform([5, 2, 4], [5.1, 2.1, 4.1])
    corners, faces = CUBE
    meshed = rb.Mesh(np.asarray(corners, float) * (upper - lower) + lower, faces)
    geometry = rb.Boxes(lower, upper) if kind == "boxes" else meshed
    maps = np.tile(np.eye(3, 4), (5, 1, 1))
    maps[:, 0, 1] = rng.uniform(1e6, 2e6, 5)
    goals = np.choose(rng.integers(0, 2, (count, 3)), [lower, upper])
    goals[:, 1] = rng.uniform(lower[1], upper[1], count)
    goals[:, 0] += rng.normal(size=count) * rng.choice([0.0, 1e-11, 1e-10, 1e-9], count)
    placed = (maps[rng.integers(0, 5, count), :, :3] @ goals[:, :, None])[:, :, 0]
    origins = np.zeros(3) if way is None else placed - 8 * np.array(way)
    rays = rb.Rays(origins, placed if way is None else way)
    counts = check_scene(rb.Instances(geometry, maps), rays)
    assert 0.2 < counts["hits"] / count < 1, counts


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_ranges_that_start_or_end_at_a_hit(kind):
    """At the rounded time of a hit, and one float before and after."""
    rng = np.random.default_rng(19)
    instances = rb.Instances(GEOMETRIES[kind], turns(rng, 6))
    rays = aimed(rng, 120)
    hits = rb.Scene(instances).nearest(rays)
    rays, t = rays[hits.hit], hits.t[hits.hit]
    hit_counts = []
    for limit in (np.nextafter(t, 0.0), t, np.nextafter(t, np.inf)):
        cut = [rb.Rays(rays.origins, rays.directions, t_max=limit)]
        cut += [rb.Rays(rays.origins, rays.directions, t_min=limit, t_max=2 * limit)]
        hit_counts += [check_scene(instances, some)["hits"] for some in cut]
    assert hit_counts[0] < hit_counts[2] < hit_counts[4] == len(rays), hit_counts
    assert kind == "boxes" or hit_counts[1] > hit_counts[3], hit_counts


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_walls_closer_together_than_double_double_resolves(kind):
    """The walls are at 1 and (1 + e) (1 - e): only integers decide which is first."""
    e = 2.0**-52
    lower, upper = np.array([[1.0, 0, 0], [1 - e, 2, 0]]), np.array([[1.5, 1, 1], [1.5, 3, 1]])
    walls = [[[x, y, -1], [x, y + 4, -1], [x, y, 9]] for x, y in ((1.0, 0), (1 - e, 6))]
    geometry = (
        rb.Boxes(lower, upper)
        if kind == "boxes"
        else rb.Mesh(np.reshape(walls, (6, 3)), [[0, 1, 2], [3, 4, 5]])
    )
    one = np.eye(3, 4)
    other = np.array([[1 + e, 0, 0, 0], [0, 1, 0, -2 if kind == "boxes" else -6], [0, 0, 1, 0]])
    origins = np.c_[[-1.0, -3, -0.25], [0.5, 0.25, 0.75], [0.5, 0.25, 0.5]]
    for maps in ([one, other], [other, one]):
        counts = check_scene(rb.Instances(geometry, np.array(maps)), rb.Rays(origins, [1, 0, 0]))
        assert counts["unlike"] == counts["hits"] == 3, counts


def test_boxes_entered_just_before_the_range_starts_tie():
    """Both are hit at t_min, whichever the line enters first."""
    e = 2.0**-52
    geometry = rb.Boxes([[1 - e, 0, 0], [1 - 2 * e, 0, 0], [1 + 4 * e, 0, 0]], [[2, 1, 1]] * 3)
    rays = rb.Rays([[0, 0.5, 0.5], [0, 0.25, 0.75]], [1, 0, 0], t_min=1)
    counts = check_scene(rb.Instances(geometry, np.eye(4)), rays)
    assert (counts["hits"], counts["ties"], counts["inside"]) == (2, 2, 4), counts


def test_rays_that_start_inside_several_instances_hit_the_first():
    instances = rb.Instances.from_poses(UNIT, np.zeros((4, 3)), yaw=[0.3, 0.2, 0.1, 0.4], scales=[2, 1, 3, 1])
    hits = rb.Scene(instances).nearest(
        rb.Rays(np.zeros((30, 3)), np.random.default_rng(7).normal(size=(30, 3)))
    )
    assert hits.index.tolist() == [0] * 30
    assert (hits.t == 0.0).all()
    assert (hits.normals == 0.0).all()
    assert (hits.t_enter < 0.0).all()


def test_invalid_rays_miss_and_points_hit():
    instances = rb.Instances.from_poses(UNIT, [[0, 0, 0], [2, 0, 0]], yaw=[0.5, 0.0])
    origins = [[np.nan, 0, 0], [0, 0, 0], [2.5, 0.5, 0.5], [9, 9, 9], [np.inf, 0, 0]]
    rays = rb.Rays(origins, [[1, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0], [0, 0, 1]], invalid="miss")
    scene = rb.Scene(instances)
    assert scene.nearest(rays).index.tolist() == [-1, 0, 1, -1, -1]
    assert scene.count(rays).tolist() == [0, 1, 1, 0, 0]


def test_two_dimensions():
    rng = np.random.default_rng(8)
    maps = rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0], (60, 2, 3))
    maps = maps[maps[:, 0, 0] * maps[:, 1, 1] != maps[:, 0, 1] * maps[:, 1, 0]][:12]
    instances = rb.Instances(rb.Boxes([[0, 0], [-1, 1]], [[1, 2], [0, 1]]), maps)
    assert instances.transforms.tolist() == maps.tolist()
    origins = rng.integers(-6, 7, (150, 2)) / 2
    counts = check_scene(instances, rb.Rays(origins, rng.integers(-2, 3, (150, 2))))
    assert counts["ties"] > 20, counts
    assert counts["touches"] > 20, counts


numbers = st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.0, 3.0, 0.1, 1e-30, 6e-17, 1e9])


@given(st.data())
@settings(max_examples=60)
def test_any_instances(data):
    maps = data.draw(strategies.related((3, 3, 4), numbers))
    invertible = [m for m in maps.tolist() if _regular(m)]
    kind = data.draw(st.sampled_from(list(GEOMETRIES)))
    rays = data.draw(strategies.related((3, 2, 3), st.one_of(numbers, strategies.grid)))
    low, high = data.draw(strategies.spans(numbers))
    instances = rb.Instances(GEOMETRIES[kind], np.array(invertible).reshape(-1, 3, 4))
    check_scene(instances, rb.Rays(rays[:, 0], rays[:, 1], t_min=low, t_max=high))


def _regular(transform) -> bool:
    try:
        exact_instances.solved([row[:3] for row in transform])
    except StopIteration:
        return False
    return True


def test_uv_and_normals_are_those_of_the_geometry():
    rng = np.random.default_rng(9)
    mesh = rb.Mesh(*TETRAHEDRON)
    maps = np.concatenate([turns(rng, 6, 0.5), regular(rng, 6, [-1.0, 0.0, 0.5, 1.0])])
    rays = aimed(rng, 150)
    scene, instances = rb.Scene(rb.Instances(mesh, maps)), rb.Instances(mesh, maps)
    hits = scene.nearest(rays)
    assert hits.hit.sum() > 60
    sides = mesh.triangles
    normals = np.cross(sides[:, 1] - sides[:, 0], sides[:, 2] - sides[:, 0])
    for k in np.flatnonzero(hits.hit):
        transform = instances.transforms[hits.index[k]].tolist()
        o, d = exact_instances.local(rays.origins[k].tolist(), rays.directions[k].tolist(), transform)
        t = exact_instances.along(rays[k : k + 1], instances)[0][0].t
        want = exact_instances.weights(o, d, t, *sides[hits.primitive[k]].tolist())
        np.testing.assert_allclose(hits.uv[k], want, rtol=0, atol=2 * EPS)
        world = np.linalg.inv(np.array(transform)[:, :3]).T @ normals[hits.primitive[k]]
        np.testing.assert_allclose(hits.normals[k], world / np.linalg.norm(world), rtol=0, atol=1e-12)
        single = scene.nearest(rays[k])  # nothing compiled
        np.testing.assert_allclose(single.normals, hits.normals[k], rtol=0, atol=1e-12)
        np.testing.assert_allclose(single.uv, want, rtol=0, atol=2 * EPS)


def test_normals_of_rotated_boxes_are_perpendicular_to_the_face():
    rng = np.random.default_rng(10)
    instances = rb.Instances(UNIT, turns(rng, 20, rng.uniform(0.5, 2, (20, 3))))
    rays = aimed(rng, 400, 8.0)
    hits = rb.Scene(instances).nearest(rays)
    maps = instances.transforms[hits.index[hits.hit]]
    inverse = np.linalg.inv(maps[:, :, :3])
    points = (inverse @ (hits.points[hits.hit] - maps[:, :, 3])[:, :, None])[:, :, 0]
    axis = np.abs(points).argmax(axis=1)
    world = inverse[np.arange(len(axis)), axis] * np.sign(points[np.arange(len(axis)), axis])[:, None]
    world /= np.linalg.norm(world, axis=1, keepdims=True)
    entered = np.abs(np.abs(points[np.arange(len(axis)), axis]) - 0.5) < 1e-9  # others start inside
    np.testing.assert_allclose(hits.normals[hits.hit][entered], world[entered], rtol=0, atol=1e-12)
    assert entered.sum() > 150


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_ordinary_rays_are_decided(kind):
    """Integers are not needed for rays that pass no edge closely."""
    rng = np.random.default_rng(11)
    instances = rb.Instances(GEOMETRIES[kind], turns(rng, 50))
    (part,) = rb.Scene(instances)._parts
    masks = geometry_parts.masks(None, (part,))
    job = select_rays(geometry_parts.job(part, aimed(rng, 2000)._rows(), *masks, None), slice(None))
    index, t = np.full(2000, -1), np.full(2000, np.inf)
    traverse_rays(job, RaySpan(0, 2000), make_scratch(), HitOfRay(Nearest(index, t), 0))
    assert (index >= 0).sum() > 1000
    assert job.rows.undecided_rays.sum() == 0


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_an_undecided_ray_does_not_affect_the_next(kind):
    """One ray has numbers beyond the error bounds, the others ordinary ones."""
    rng = np.random.default_rng(20)
    rays = aimed(rng, 9)
    origins, ways = rays.origins.copy(), rays.directions.copy()
    origins[4], ways[4] = [-1e70, 0, 0], [1, 0, 0]
    (part,) = rb.Scene(rb.Instances(GEOMETRIES[kind], turns(rng, 50)))._parts
    masks = geometry_parts.masks(None, (part,))
    job = select_rays(geometry_parts.job(part, rb.Rays(origins, ways)._rows(), *masks, None), slice(None))
    hit = NumberOfRay(Occluded(np.zeros(9, np.bool_)), 0)
    traverse_rays(job, RaySpan(0, 9), make_scratch(), hit)
    assert np.flatnonzero(job.rows.undecided_rays).tolist() == [4]


# Masks, culling, updates, memory


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
