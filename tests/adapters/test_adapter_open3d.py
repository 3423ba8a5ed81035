"""raybox.adapters.open3d: its documented shapes, dtypes and sentinels, `Scene`, and Open3D itself.

Tests against Open3D run where it is installed.
"""

from threading import Thread
from types import SimpleNamespace

import numpy as np
import pytest

import raybox as rb
from needs import package
from processes import output_of
from raybox.adapters.open3d import RaycastingScene

INVALID, INF = 4294967295, np.inf
SQUARE = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], np.float32)
FACES = np.array([[0, 1, 2], [0, 2, 3]], np.uint32)
CUBE = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], np.float32)
CUBE_FACES = np.array(
    [
        *([0, 1, 3], [0, 3, 2], [4, 6, 7], [4, 7, 5], [0, 4, 5], [0, 5, 1]),
        *([2, 3, 7], [2, 7, 6], [0, 2, 6], [0, 6, 4], [1, 5, 7], [1, 7, 3]),
    ],
    np.uint32,
)
RAYS = np.array([[[0.75, 0.25, -1, 0, 0, 2], [5, 5, -1, 0, 0, 2]]], np.float32)


class Tensor:
    """What the adapter uses of a tensor of Open3D."""

    def __init__(self, values):
        self.values = values

    @staticmethod
    def from_numpy(values):
        assert values.flags.c_contiguous
        return Tensor(values)

    def numpy(self):
        return self.values


def two_squares():
    scene = RaycastingScene()
    assert scene.add_triangles(SQUARE, FACES) == 0
    assert scene.add_triangles(np.zeros((0, 3), np.float32), np.zeros((0, 3), np.uint32)) == 1
    assert scene.add_triangles(SQUARE + np.float32([0, 0, 2]), FACES) == 2
    return scene


def assert_arrays(found, want):
    assert {*found} == {*want}
    for name, (values, dtype) in want.items():
        np.testing.assert_array_equal(found[name], values, err_msg=name)
        assert found[name].dtype == dtype, name


def test_cast_rays():
    want = {
        "t_hit": ([[0.5, INF]], np.float32),
        "geometry_ids": ([[0, INVALID]], np.uint32),
        "primitive_ids": ([[0, INVALID]], np.uint32),
        "primitive_uvs": ([[[0.5, 0.25], [0, 0]]], np.float32),
        "primitive_normals": ([[[0, 0, 1], [0, 0, 0]]], np.float32),
    }
    assert_arrays(two_squares().cast_rays(RAYS), want)
    behind = two_squares().cast_rays(RAYS + np.float32([0, 0, 2, 0, 0, 0]))
    assert behind["geometry_ids"].tolist() == [[2, INVALID]]
    assert RaycastingScene.INVALID_ID == two_squares().INVALID_ID == INVALID


def test_list_intersections():
    want = {
        "ray_splits": ([0, 2, 2], np.uint32),
        "ray_ids": ([0, 0], np.uint32),
        "t_hit": ([0.5, 1.5], np.float32),
        "geometry_ids": ([0, 2], np.uint32),
        "primitive_ids": ([0, 0], np.uint32),
        "primitive_uvs": ([[0.5, 0.25]] * 2, np.float32),
    }
    assert_arrays(two_squares().list_intersections(RAYS), want)


@pytest.mark.parametrize("scene", [two_squares(), RaycastingScene()], ids=["squares", "nothing"])
@pytest.mark.parametrize("shape", [(0,), (3,), (2, 0, 4), (2, 1, 4)])
def test_shapes(scene, shape):
    rays = np.broadcast_to(np.float32([9, 9, 9, 0, 0, 1]), (*shape, 6))
    cast, listed = scene.cast_rays(rays), scene.list_intersections(rays)
    ends = {"primitive_uvs": (2,), "primitive_normals": (3,)}
    assert {name: values.shape for name, values in cast.items()} == {n: shape + ends.get(n, ()) for n in cast}
    assert (cast["primitive_ids"] == INVALID).all()
    assert scene.test_occlusions(rays).shape == scene.count_intersections(rays).shape == shape
    assert listed["ray_splits"].shape == (np.prod(shape) + 1,)
    assert listed["primitive_uvs"].shape == (0, 2)


COUNTED = {  # rays: counts of contacts and first times, with one square and with two
    "through the squares": ([[0.75, 0.25, -1, 0, 0, 2]], [1], [2], [0.5]),
    "beside them": ([[5, 5, -1, 0, 0, 2]], [0], [0], [INF]),
    "a shared edge": ([[0.5, 0.5, -1, 0, 0, 1]], [2], [4], [1.0]),
    "in the plane": ([[-1, 0.5, 0, 1, 0, 0]], [0], [0], [INF]),
    "no direction": ([[0.75, 0.25, 0, 0, 0, 0]], [0], [0], [INF]),
    "from the plane": ([[0.75, 0.25, 0, 0, 0, 1]], [1], [2], [0.0]),
}


@pytest.mark.parametrize("name", COUNTED)
def test_counts_and_first_times(name):
    rays, once, twice, first = COUNTED[name]
    one, two = RaycastingScene(), two_squares()
    one.add_triangles(SQUARE, FACES)
    for scene, wanted in ((one, once), (two, twice)):
        counts = scene.count_intersections(np.float32(rays))
        assert (counts.tolist(), counts.dtype) == (wanted, np.int32)
        assert len(scene.list_intersections(np.float32(rays))["t_hit"]) == wanted[0]
        assert scene.cast_rays(np.float32(rays))["t_hit"].tolist() == first


def test_occlusions():
    scene = two_squares()
    occluded = scene.test_occlusions(RAYS)
    assert (occluded.tolist(), occluded.dtype) == ([[True, False]], np.bool_)
    assert scene.test_occlusions(RAYS, 0.0, 0.5).tolist() == [[True, False]]
    for how, is_hit in (((0.5, 0.5), True), ((0.75, 1.25), False), ((0.0, 0.25), False)):
        found = scene.test_occlusions(RAYS, tnear=how[0], tfar=how[1], nthreads=1)
        assert found.tolist() == [[is_hit, False]]


def test_results_are_those_of_a_scene_of_several_meshes():
    rng = np.random.default_rng(4)
    meshes = [(rng.normal(size=(n, 3)), rng.integers(0, n, (size, 3))) for n, size in ((9, 20), (5, 7))]
    ours, scene = RaycastingScene(nthreads=1), rb.Scene([rb.Mesh(*mesh) for mesh in meshes])
    for mesh in meshes:
        ours.add_triangles(*mesh)
    numbers = rng.normal(size=(200, 6))
    rays = rb.Rays(numbers[:, :3], numbers[:, 3:])
    want, every = scene.nearest(rays), scene.all(rays)
    found, listed = ours.cast_rays(numbers), ours.list_intersections(numbers)
    hit = want.hit
    assert 20 < hit.sum() < 180
    first = listed["ray_splits"][:-1][hit]
    for ours_has, scene_has in (
        (found["t_hit"], want.t),
        (found["geometry_ids"][hit], want.geometry[hit]),
        (found["primitive_ids"][hit], want.index[hit]),
        (found["primitive_uvs"][hit], want.uv[hit]),
        (found["primitive_normals"][hit], want.normals[hit]),
        (listed["ray_splits"], every.offsets),
        (listed["ray_ids"], every.ray),
        (listed["t_hit"], every.t),
        (listed["geometry_ids"], every.geometry),
        (listed["primitive_ids"], every.index),
        (listed["primitive_uvs"][first], want.uv[hit]),
        (ours.count_intersections(numbers), np.diff(every.offsets)),
    ):
        np.testing.assert_array_equal(ours_has, scene_has)
    assert found["t_hit"].dtype == np.float64


def test_tensors_go_in_and_come_out():
    scene = RaycastingScene()
    assert scene.add_triangles(Tensor(SQUARE), Tensor(FACES)) == 0
    mesh = SimpleNamespace(vertex={"positions": Tensor(SQUARE)}, triangle={"indices": Tensor(FACES)})
    assert scene.add_triangles(mesh) == 1
    assert scene.add_triangles(mesh=SimpleNamespace(vertices=SQUARE.tolist(), triangles=FACES)) == 2
    results = [*scene.cast_rays(Tensor(RAYS)).values(), *scene.list_intersections(Tensor(RAYS)).values()]
    results += [scene.test_occlusions(Tensor(RAYS)), scene.count_intersections(Tensor(RAYS))]
    assert {type(result) for result in results} == {Tensor}
    assert results[-1].numpy().tolist() == [[3, 0]]
    assert all(result.numpy().flags.writeable for result in results)


def test_threads_may_query_while_a_mesh_is_added():
    scene, found = two_squares(), []

    def query():
        found.append(int(scene.count_intersections(RAYS)[0, 0]))

    threads = [Thread(target=query) for _ in range(4)]
    for thread in threads:
        thread.start()
    scene.add_triangles(SQUARE + np.float32([0, 0, 3]), FACES)
    for thread in threads:
        thread.join()
    assert {*found} <= {2, 3}
    assert scene.count_intersections(RAYS)[0, 0] == 3


def test_occupancy():
    scene = RaycastingScene()
    scene.add_triangles(CUBE, CUBE_FACES)
    scene.add_triangles(CUBE + np.float32([2, 0, 0]), CUBE_FACES)
    points = np.float32([[[0.5, 0.5, 0.5], [1, 1, 1]], [[1.5, 0.5, 0.5], [2.5, 0, 0.25]]])
    for given in (points, points.astype(float)):
        found = scene.compute_occupancy(given, nthreads=1, nsamples=3)
        assert found.dtype == np.float32
        assert found.tolist() == [[1, 1], [0, 1]]
    assert isinstance(found := scene.compute_occupancy(Tensor(points)), Tensor)
    assert found.values.tolist() == [[1, 1], [0, 1]]
    scene.add_triangles(CUBE + np.float32([0, 0, 4]), CUBE_FACES)
    assert scene.compute_occupancy(points + np.float32([0, 0, 4])).tolist() == [[1, 1], [0, 0]]
    assert RaycastingScene().compute_occupancy(points).tolist() == [[0, 0], [0, 0]]


OUTSIDE = ("compute_closest_points", "compute_distance", "compute_signed_distance", "create_rays_pinhole")


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_outside_is_refused(name):
    with pytest.raises(AttributeError, match=f"RaycastingScene of raybox has no {name}: "):
        getattr(RaycastingScene(), name)
    with pytest.raises(AttributeError, match="has no attribute 'anything'"):
        RaycastingScene().anything  # noqa: B018


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.cast_rays([0, 0, 0, 0, 0, 1]), r"rays must have shape \(\.\.\., 6\).*rays\[None\]"),
        (lambda s: s.count_intersections(np.zeros((2, 5))), r"got shape \(2, 5\)"),
        (lambda s: s.cast_rays([[0, 0, 0, 0, 0, np.nan]]), "must be finite"),
        (lambda s: s.compute_occupancy([0, 0, 0]), r"query_points must have shape \(\.\.\., 3\)"),
        (lambda s: s.compute_occupancy([[0, 0, np.nan]]), "query_points must be finite"),
        (lambda s: s.compute_occupancy([[0, 0, 0]], nsamples=2), "nsamples must be odd; got 2"),
        (lambda s: two_squares().compute_occupancy([[0, 0, 0]]), "needs a closed mesh"),
        (lambda s: s.add_triangles(), "needs vertex_positions and triangle_indices, or a mesh"),
        (lambda s: s.add_triangles(SQUARE), "a mesh must have vertex and triangle"),
        (lambda s: s.add_triangles(SQUARE, [[0, 1, 9]]), "faces must be indices of vertices"),
        (lambda s: RaycastingScene(device="SYCL:0"), "device must be a CPU; got SYCL:0"),
    ],
)
def test_wrong_arguments_are_refused(call, words):
    with pytest.raises(rb.InvalidInput, match=words):
        call(RaycastingScene())


def test_open3d_is_not_imported():
    code = "import sys, raybox.adapters.open3d; print('open3d' in sys.modules)"
    assert output_of("-c", code) == "False\n"


@pytest.fixture(scope="module")
def open3d():
    return package("open3d")


def both(open3d, *meshes):
    """Return the scenes of raybox and of Open3D, of the same meshes."""
    ours, own = RaycastingScene(), open3d.t.geometry.RaycastingScene()
    for vertices, faces in meshes:
        tensors = open3d.core.Tensor(vertices), open3d.core.Tensor(faces)
        assert ours.add_triangles(*tensors) == own.add_triangles(*tensors)
    return ours, own


def sphere(open3d):
    mesh = open3d.t.geometry.TriangleMesh.create_sphere(1.0, 12)
    return mesh.vertex.positions.numpy(), mesh.triangle.indices.numpy().astype(np.uint32)


def random_rays(count, seed=2):
    rng = np.random.default_rng(seed)
    origins, targets = rng.uniform(-2, 2, (2, count, 3))
    scale = rng.uniform(0.2, 3, (count, 1))
    return np.hstack([origins, (targets - origins) * scale]).astype(np.float32)


def test_random_rays_hit_what_open3d_finds(open3d):
    ours, own = both(open3d, sphere(open3d), (CUBE + np.float32([0.1, 0.2, 0.3]), CUBE_FACES))
    rays = open3d.core.Tensor(random_rays(3000).reshape(3, 1000, 6))
    found, want = ours.cast_rays(rays), own.cast_rays(rays)
    assert {n: (t.shape, t.dtype) for n, t in found.items()} == {
        n: (t.shape, t.dtype) for n, t in want.items()
    }
    found, want = ({name: t.numpy() for name, t in d.items()} for d in (found, want))
    near_edge = (found["primitive_uvs"].min(-1) < 1e-4) | (found["primitive_uvs"].sum(-1) > 1 - 1e-4)
    hit = np.isfinite(found["t_hit"])
    inner = ~(hit & near_edge)
    assert inner.mean() > 0.99
    assert 500 < hit.sum() < 2900
    for name, values in want.items():
        close = 0 if "ids" in name else 1e-4
        np.testing.assert_allclose(found[name][inner], values[inner], rtol=close, atol=close)
    for tnear, tfar in ((0.0, INF), (0.3, 0.6)):
        ranged = [scene.test_occlusions(rays, tnear, tfar).numpy() for scene in (ours, own)]
        assert (ranged[0] == ranged[1]).mean() > 0.998


def test_random_rays_count_and_list_what_open3d_does(open3d):
    ours, own = both(open3d, sphere(open3d), (CUBE * 3 - 1, CUBE_FACES))
    rays = open3d.core.Tensor(random_rays(2000, 3))
    counts = [scene.count_intersections(rays) for scene in (ours, own)]
    assert counts[0].dtype == counts[1].dtype
    assert (counts[0].numpy() == counts[1].numpy()).mean() > 0.998
    found, want = ours.list_intersections(rays), own.list_intersections(rays)
    assert {name: t.dtype for name, t in found.items()} == {name: t.dtype for name, t in want.items()}
    names = ("ray_ids", "geometry_ids", "primitive_ids")
    rows = [{*zip(*(d[name].numpy().tolist() for name in names), strict=True)} for d in (found, want)]
    assert len(rows[0] ^ rows[1]) < 0.002 * len(rows[0])
    assert len(rows[0]) > 1000


def test_occupancy_is_that_of_open3d(open3d):
    ours, own = both(open3d, sphere(open3d), (CUBE + np.float32([0.1, 0.2, 0.3]), CUBE_FACES))
    points = open3d.core.Tensor(np.random.default_rng(4).uniform(-2, 2, (2, 500, 3)).astype(np.float32))
    found, want = ours.compute_occupancy(points), own.compute_occupancy(points, nsamples=5)
    assert (found.dtype, found.shape) == (want.dtype, want.shape)
    assert 50 < found.numpy().sum() < 900
    assert (found.numpy() == want.numpy()).mean() > 0.998


def test_rays_aimed_at_edges_hit_both_triangles_where_open3d_finds_one(open3d):
    ours, own = both(open3d, (CUBE, CUBE_FACES))
    rays = np.float32([[0.5, 0.5, -1, 0, 0, 1], [-1, 0.25, 0.25, 1, 0, 0], [0.75, 0.5, -1, 0, 0, 1]])
    assert ours.count_intersections(rays).tolist() == [4, 4, 2]
    assert own.count_intersections(open3d.core.Tensor(rays)).numpy().tolist() == [2, 2, 2]
    found = ours.list_intersections(rays)
    places = np.unique(np.stack([found["ray_ids"], found["t_hit"]]), axis=1)[0]
    assert np.bincount(places.astype(int)).tolist() == [2, 2, 2]
    want = own.cast_rays(open3d.core.Tensor(rays))["t_hit"].numpy()
    np.testing.assert_allclose(ours.cast_rays(rays)["t_hit"], want, atol=1e-6)


def test_meshes_of_open3d(open3d):
    scene = RaycastingScene()
    for number, kind in enumerate((open3d.t.geometry, open3d.geometry)):
        assert scene.add_triangles(kind.TriangleMesh.create_box()) == number
    assert scene.count_intersections([[0.7, 0.2, -1, 0, 0, 1]]).tolist() == [4]
    assert scene.cast_rays(np.float32([[0.7, 0.2, 3, 0, 0, -1]]))["t_hit"].tolist() == [2.0]
