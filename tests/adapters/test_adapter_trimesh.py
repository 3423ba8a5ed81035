"""raybox.adapters.trimesh against trimesh's own intersector, and against Fractions where that rounds."""

import copy
import pickle
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
import trimesh
from trimesh.ray.ray_triangle import RayMeshIntersector as Own

import exact_surfaces
import raybox as rb
from needs import package
from processes import output_of
from raybox.adapters.trimesh import RayMeshIntersector, install, uninstall

INF = np.inf


def shapes() -> dict[str, trimesh.Trimesh]:
    torus = trimesh.creation.torus(1.0, 0.4, major_sections=24, minor_sections=12)
    return {"sphere": trimesh.creation.icosphere(2), "box": trimesh.creation.box(), "torus": torus}


def random_rays(mesh, n, seed=1):
    rng = np.random.default_rng(seed)
    low, high = mesh.bounds
    origins = rng.uniform(low - 0.3, high + 0.3, (n, 3))
    return origins, (rng.uniform(low - 0.3, high + 0.3, (n, 3)) - origins) * rng.uniform(0.1, 5, (n, 1))


def rows(ray, triangle) -> list[tuple[int, int]]:
    return sorted(zip(ray.tolist(), triangle.tolist(), strict=True))


@pytest.mark.parametrize("name", shapes())
def test_random_rays_hit_what_trimesh_finds(name):
    mesh = shapes()[name]
    ours, own = RayMeshIntersector(mesh), Own(mesh)
    rays = random_rays(mesh, 400)
    np.testing.assert_array_equal(ours.intersects_any(*rays), own.intersects_any(*rays))
    np.testing.assert_array_equal(ours.intersects_first(*rays), own.intersects_first(*rays))
    for multiple in (True, False):
        triangle, ray = ours.intersects_id(*rays, multiple_hits=multiple)
        want_triangle, want_ray = own.intersects_id(*rays, multiple_hits=multiple)
        assert rows(ray, triangle) == rows(want_ray, want_triangle)
        places = ours.intersects_location(*rays, multiple_hits=multiple)
        want = own.intersects_location(*rays, multiple_hits=multiple)
        order, want_order = (np.lexsort((x[2], x[1])) for x in (places, want))
        np.testing.assert_allclose(places[0][order], want[0][want_order], rtol=0, atol=1e-9)
        assert rows(*places[1:]) == rows(*want[1:])
    assert 100 < ours.intersects_any(*rays).sum() < 400


METHODS = [("any", {}), ("first", {}), ("id", {}), ("id", {"return_locations": True}), ("location", {})]
METHODS += [
    ("id", {"return_locations": True, "multiple_hits": False}),
    ("location", {"multiple_hits": False}),
]


def test_types_and_shapes_of_results_are_trimeshs():
    mesh = trimesh.creation.icosphere(1)
    ours, own = RayMeshIntersector(mesh), Own(mesh)
    for rays in (random_rays(mesh, 30), (np.full((4, 3), 9.0), np.ones((4, 3)))):
        for name, how in METHODS:
            got, want = (getattr(x, f"intersects_{name}")(*rays, **how) for x in (ours, own))
            assert type(got) in (tuple, np.ndarray)
            for a, b in zip(*((x,) if isinstance(x, np.ndarray) else x for x in (got, want)), strict=True):
                assert a.dtype == b.dtype
                assert a.shape == b.shape or (a.shape, b.shape) == ((0, 3), (0,))
                assert a.flags.writeable


def exact_hit_points(mesh, origins, directions) -> list[list[tuple[Fraction, int]]]:
    """Return t and lowest triangle of each hit point, by ray."""
    corners = np.asarray(mesh.vertices)[np.asarray(mesh.faces)]
    found = exact_surfaces.triangles_along(rb.Rays(origins, directions), corners)
    return [sorted({hit.t: hit.index for hit in reversed(row)}.items()) for row in found]


def check_all_methods(mesh, origins, directions) -> list[list[tuple[Fraction, int]]]:
    """Compare all methods with exact hit points; return these."""
    ours, found = RayMeshIntersector(mesh), exact_hit_points(mesh, origins, directions)

    def pairs(result):
        return list(zip(result[1].tolist(), result[0].tolist(), strict=True))

    for most in (None, 1, 2):
        want = [(ray, i) for ray, row in enumerate(found) for _, i in row[:most]]
        triangle, ray, points = ours.intersects_id(origins, directions, True, most, True)
        assert pairs((triangle, ray)) == want
        t = np.array([float(time) for row in found for time, _ in row[:most]]).reshape(-1, 1)
        np.testing.assert_allclose(points, origins[ray] + t * directions[ray], rtol=0, atol=1e-12)
        locations = ours.intersects_location(origins, directions, max_hits=most)
        for a, b in zip(locations, (points, ray, triangle), strict=True):
            np.testing.assert_array_equal(a, b)
    first = [row[0][1] if row else -1 for row in found]
    assert ours.intersects_first(origins, directions).tolist() == first
    assert ours.intersects_any(origins, directions).tolist() == [i >= 0 for i in first]
    nearest = ours.intersects_id(origins, directions, multiple_hits=False)
    assert pairs(nearest) == [(k, i) for k, i in enumerate(first) if i >= 0]
    assert ours.intersects_id(origins, directions, max_hits=0)[0].size == 0 < len(nearest[0])
    return found


def grid_rays(seed, n=150):
    """Return rays between multiples of 1/4: through vertices and edges, and along faces."""
    rng = np.random.default_rng(seed)
    origins, goals = (rng.integers(-6, 7, (n, 3)) / 4 for _ in "od")
    return origins, np.where((goals == origins).all(axis=1, keepdims=True), 1.0, goals - origins)


def test_a_hit_on_an_edge_or_a_vertex_is_one_row():
    mesh = trimesh.creation.box(extents=[2, 2, 2])
    rays = grid_rays(2, 300)
    found = check_all_methods(mesh, *rays)
    corners = np.asarray(mesh.vertices)[np.asarray(mesh.faces)]
    touched = 0
    for o, d in zip(*(x.tolist() for x in rays), strict=True):
        hits = [exact_surfaces.triangle(o, d, (0.0, INF), *triangle) for triangle in corners.tolist()]
        times = [x[0].t for x in hits if x is not None]
        touched += len(times) > len(set(times))
    assert touched > 40
    assert sum(map(len, found)) > 100
    ours, own = RayMeshIntersector(mesh), Own(mesh)
    through = -np.asarray(mesh.vertices) * 3, np.asarray(mesh.vertices)
    assert len(ours.intersects_location(*through)[1]) == len(own.intersects_location(*through)[1]) == 16


def test_degenerate_meshes_and_repeated_faces():
    vertices = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 0], [2, 2, 2]]
    faces = [[0, 1, 1], [0, 1, 4], [1, 2, 4], [0, 2, 1], [0, 1, 2], [5, 5, 5], [0, 1, 3], [1, 2, 3]]
    mesh = trimesh.Trimesh(vertices, faces, process=False)
    found = check_all_methods(mesh, *grid_rays(3, 200))
    assert {i for row in found for _, i in row} >= {1, 3, 6, 7}
    assert not {i for row in found for _, i in row} & {0, 2, 4, 5}


@pytest.mark.core
@pytest.mark.parametrize("faces", [np.empty((0, 3), int), [[0, 1, 2]]])
def test_empty_meshes_and_no_rays(faces):
    ours = RayMeshIntersector(trimesh.Trimesh(np.eye(3), faces, process=False))
    for none in (np.empty((0, 3)), []):
        assert ours.intersects_any(none, none).shape == ours.intersects_first(none, none).shape == (0,)
        assert [x.shape for x in ours.intersects_location(none, none)] == [(0, 3), (0,), (0,)]
        assert ours.contains_points(none).shape == (0,)
    hit = ours.intersects_any([[0.0, 0, 0]], [[1.0, 1, 1]])
    assert hit.tolist() == [len(faces) > 0]
    assert not ours.contains_points([[0.2, 0.2, 0.2]]).any()


# Contains


def test_contains_points_of_a_box_exactly():
    mesh = trimesh.creation.box(extents=[2, 2, 2])
    near = np.nextafter(mesh.vertices, 9), np.nextafter(mesh.vertices, 0)
    points = np.concatenate([grid_rays(4, 300)[0], *near])
    got = RayMeshIntersector(mesh).contains_points(points)
    np.testing.assert_array_equal(got, (np.abs(points) <= 1).all(axis=1))
    assert 80 < got.sum() < len(got) - 80
    assert (np.abs(points).max(axis=1) == 1).sum() > 40  # on the surface


def test_contains_points_of_a_sphere_exactly():
    mesh = trimesh.creation.icosphere(1)
    rng = np.random.default_rng(5)
    points = rng.normal(size=(300, 3))
    points *= rng.uniform(0.8, 1.0, (300, 1)) / np.linalg.norm(points, axis=1, keepdims=True)
    scales = rng.choice([0.5, 0.999, 1, 1.001], (40, 1))
    points[:40] = mesh.vertices[rng.integers(0, len(mesh.vertices), 40)] * scales
    got = RayMeshIntersector(mesh).contains_points(points)
    corners = [[[Fraction(x) for x in p] for p in c] for c in np.asarray(mesh.vertices)[mesh.faces].tolist()]
    normals = [exact_surfaces.normal(*c) for c in corners]
    for p, contained in zip(points.tolist(), got.tolist(), strict=True):  # the sphere is convex
        sides = (
            sum(n * (Fraction(x) - y) for n, x, y in zip(normal, p, c[0], strict=True))
            for normal, c in zip(normals, corners, strict=True)
        )
        assert contained == all(side <= 0 for side in sides)
    assert 80 < got.sum() < 270


def test_contains_agrees_with_trimesh_round_a_torus_and_a_cavity():
    cavity = trimesh.creation.box(extents=[0.5] * 3)
    cavity.invert()
    for mesh in (shapes()["torus"], trimesh.util.concatenate([trimesh.creation.box(), cavity])):
        points = random_rays(mesh, 500, seed=6)[0]
        got = RayMeshIntersector(mesh).contains_points(points)
        np.testing.assert_array_equal(got, Own(mesh).contains_points(points))
        assert 60 < got.sum() < 440
        mesh.ray = RayMeshIntersector(mesh)
        np.testing.assert_array_equal(mesh.contains(points), got)
    inner = RayMeshIntersector(mesh).contains_points([[0, 0, 0], [0.4, 0, 0], [0, 0.25, 0]])
    assert inner.tolist() == [False, True, True]


def test_an_open_mesh_contains_only_points_between_faces():
    box = trimesh.creation.box()
    lid = trimesh.Trimesh(box.vertices, box.faces[(box.face_normals != [0, 0, 1]).any(axis=1)], process=False)
    points = random_rays(box, 300, seed=7)[0]
    got, whole = (RayMeshIntersector(x).contains_points(points) for x in (lid, box))
    assert not (got & ~whole).any()
    assert got.sum() < whole.sum()
    twice = trimesh.Trimesh(box.vertices, np.tile(box.faces, (2, 1)), process=False)
    np.testing.assert_array_equal(RayMeshIntersector(twice).contains_points(points), whole)


# The mesh, as an object


def test_a_changed_mesh_is_rebuilt():
    mesh = trimesh.creation.box()
    ours = RayMeshIntersector(mesh)
    ray = [[0.0, 0, -9]], [[0.0, 0, 1]]
    first = ours.scene
    assert ours.scene is first
    assert ours.intersects_any(*ray).all()
    mesh.apply_translation([3, 0, 0])
    assert not ours.intersects_any(*ray).any()
    mesh.vertices[:, 0] -= 3
    assert ours.intersects_location(*ray)[0].tolist() == [[0, 0, -0.5], [0, 0, 0.5]]
    mesh.update_faces(mesh.face_normals[:, 2] > -0.5)
    assert ours.intersects_location(*ray)[0].tolist() == [[0, 0, 0.5]]


def test_a_mesh_without_a_hash_is_rebuilt_each_time():
    class Plain:
        vertices, faces = np.eye(3), np.array([[0, 1, 2]])

    plain = Plain()
    ours = RayMeshIntersector(plain)
    assert ours.intersects_any([[0.0] * 3], [[1.0] * 3]).all()
    plain.vertices = -np.eye(3)
    assert not ours.intersects_any([[0.0] * 3], [[1.0] * 3]).any()


def test_copies_and_pickles_return_the_same():
    mesh = trimesh.creation.icosphere(1)
    ours = RayMeshIntersector(mesh, scale_to_box=False, workers=1)
    rays = random_rays(mesh, 50)
    want = ours.intersects_first(*rays)
    for other in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        np.testing.assert_array_equal(other.intersects_first(*rays), want)
        assert other.workers == 1


@pytest.mark.parametrize(
    ("method", "given", "text"),
    [
        ("any", ([[0, 0, 0]], [[1, 0, 0], [0, 1, 0]]), r"one shape, \(n, 3\); got \(1, 3\) and \(2, 3\)"),
        ("any", ([0, 0, 0], [1, 0, 0]), r"ray_origins must have shape \(n, 3\); got shape \(3,\)"),
        ("any", ([[0, 0, np.nan]], [[1, 0, 0]]), "must be finite"),
        ("id", ([[0, 0, 0]], [[1, 0, 0]], True, -1), "max_hits must be a whole number, at least 0; got -1"),
        ("points", ([[0, 0, np.inf]],), "points must be finite"),
    ],
)
def test_bad_input_is_refused(method, given, text):
    ours = RayMeshIntersector(trimesh.creation.box())
    call = ours.contains_points if method == "points" else getattr(ours, f"intersects_{method}")
    with pytest.raises(rb.InvalidInput, match=text):
        call(*given)


def test_the_adapter_needs_no_trimesh():
    code = """
import sys
from types import SimpleNamespace
import numpy as np
from raybox.adapters.trimesh import RayMeshIntersector, install, uninstall
mesh = SimpleNamespace(vertices=np.eye(3), faces=np.array([[0, 1, 2]]))
print(RayMeshIntersector(mesh).intersects_any([[0, 0, 0]], [[1, 1, 1]])[0], "trimesh" in sys.modules)
"""
    assert output_of("-c", code).split() == ["True", "False"]


@pytest.fixture
def installed():
    install()
    yield
    uninstall()


@pytest.mark.usefixtures("installed")
def test_installed_engine_survives_copies_and_parts():
    package("scipy")  # of trimesh's convex hulls
    mesh = trimesh.creation.box()
    parts = mesh.submesh([[0, 1, 2], [5, 6]])
    merged = trimesh.util.concatenate([mesh, mesh])
    made = [mesh, mesh.copy(), copy.deepcopy(mesh), *parts, merged, mesh.convex_hull, mesh.copy().subdivide()]
    for one in made:
        assert isinstance(one.ray, RayMeshIntersector)
        assert one.ray.mesh is one
        hit = one.ray.intersects_any(
            one.triangles_center - [[0, 0, 3.0]], np.tile([0, 0, 3.0], (len(one.faces), 1))
        )
        assert hit.all() or one in parts
    assert pickle.loads(pickle.dumps(mesh)).ray.intersects_first([[0.1, 0, -9]], [[0, 0, 1]])[0] >= 0
    assert mesh.contains([[0, 0, 0.5], [0, 0, 0.6]]).tolist() == [True, False]


@pytest.mark.usefixtures("installed")
def test_installed_engine_has_the_order_of_arguments_of_the_class_it_replaces():
    mesh = trimesh.creation.icosphere(2)
    rays = random_rays(mesh, 200)
    own, ours = Own(mesh), trimesh.ray.ray_triangle.RayMeshIntersector(mesh)
    for given in ((), (False,), (True,), (True, False), (False, False), (True, True)):
        found, want = ours.intersects_id(*rays, *given), own.intersects_id(*rays, *given)
        assert len(found) == len(want)
        assert rows(found[1], found[0]) == rows(want[1], want[0])
    assert type(copy.copy(ours)) is type(copy.deepcopy(ours)) is type(ours)
    assert len(pickle.loads(pickle.dumps(ours)).intersects_id(*rays, True)) == 3


@pytest.mark.parametrize("has_embree", [False, True])
def test_the_engines_are_replaced_once_and_restored(has_embree, monkeypatch):
    over_embree, before = SimpleNamespace(RayMeshIntersector=Own), type(trimesh.creation.box().ray)
    with monkeypatch.context() as patch:
        patch.setattr(trimesh.ray, "has_embree", has_embree)
        patch.setattr(trimesh.ray, "ray_pyembree", over_embree)
        for _ in range(2):
            install()
        assert over_embree.RayMeshIntersector is (RayMeshIntersector if has_embree else Own)
        mesh = trimesh.creation.box()
        for _ in range(2):
            uninstall()
    assert over_embree.RayMeshIntersector is Own
    assert isinstance(mesh.ray, RayMeshIntersector)
    assert type(trimesh.creation.box().ray) is type(mesh.copy().ray) is before
