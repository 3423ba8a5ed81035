"""What rays do not hit: the same as without that primitive, or that object, of all queries and geometries."""

import numpy as np
import pytest

import raybox as rb
from compare import assert_scene
from scenes import as_rays, random_scene, truth
from sorting import sort_more_than

RNG = np.random.default_rng(62)
UNIT = rb.Boxes([[-0.2] * 3, [0.1, -0.1, -0.1]], [[0.2] * 3, [0.4, 0.1, 0.1]])
CORNERS = RNG.uniform(-1, 1, (60, 3, 3)) * 0.5 + RNG.uniform(-1, 1, (60, 1, 3))
MESH = rb.Mesh(CORNERS.reshape(-1, 3), np.arange(180).reshape(60, 3), objects=np.arange(60) // 7)
COPIES = rb.Instances.from_poses(UNIT, RNG.uniform(-1, 1, (30, 3)), quaternions=RNG.normal(size=(30, 4)))
GRID = rb.Grid(*[np.linspace(-1, 1, 9)] * 3, occupied=RNG.random((8, 8, 8)) < 0.2)
FULL = rb.Grid(*[np.linspace(-1, 1, 9)] * 3)
PLANES = rb.Planes(RNG.normal(size=(6, 3)), RNG.normal(size=6) / 4)
BOXES = rb.Boxes(CORNERS.min(axis=1), CORNERS.max(axis=1))
GEOMETRIES = {
    "boxes": BOXES,
    "mesh": MESH,
    "planes": PLANES,
    "grid": GRID,
    "full grid": FULL,
    "instances": COPIES,
    "a list": [MESH, COPIES, PLANES, GRID],
}
RAYS = rb.Rays(RNG.uniform(-1.5, 1.5, (300, 3)), RNG.normal(size=(300, 3)))


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("least", [16, 4096], ids=["sorted", "one by one"])
def test_the_next_hit_comes_first(name, least, monkeypatch):
    """Without what they hit first, rays hit what was second; all hits tell what is left."""
    sort_more_than(monkeypatch, least)
    scene = rb.Scene(GEOMETRIES[name])
    two, first = scene.first(RAYS, 3), scene.nearest(RAYS)
    left, nearest = scene.first(RAYS, 2, exclude=first), scene.nearest(RAYS, exclude=first)
    for field in ("geometry", "index", "primitive", "t"):
        want = getattr(two, field)[:, 1:]
        np.testing.assert_array_equal(getattr(left, field), want, err_msg=field)
        np.testing.assert_array_equal(getattr(nearest, field), want[:, 0], err_msg=field)
    np.testing.assert_array_equal(scene.count(RAYS, exclude=first), scene.count(RAYS) - first.hit)
    np.testing.assert_array_equal(scene.occluded(RAYS, exclude=first), two.hit[:, 1])
    every, some = scene.all(RAYS), scene.all(RAYS, exclude=first)
    stays = np.ones(len(every.index), np.bool_)
    stays[every.offsets[:-1][first.hit]] = False
    np.testing.assert_array_equal(some.t, every.t[stays])
    np.testing.assert_array_equal(some.index, every.index[stays])
    assert first.hit.any()
    assert 0 < two.hit[:, 1].sum() < 300


@pytest.mark.parametrize("name", ["boxes", "mesh", "a list"])
def test_rays_of_a_camera(name):
    """They would form packets, which are tested as one."""
    scene = rb.Scene(GEOMETRIES[name])
    camera = rb.Rays.pinhole([4, 0, 0], [0, 0, 0], up=[0, 0, 1], width=96, height=96, fov=40)
    two = scene.first(camera, 2)
    first = scene.nearest(camera)
    nearest = scene.nearest(camera, exclude=first)
    for field in ("geometry", "index", "primitive", "t"):
        np.testing.assert_array_equal(getattr(nearest, field), getattr(two, field)[..., 1], err_msg=field)
    np.testing.assert_array_equal(scene.occluded(camera, exclude=first), two.hit[..., 1])
    np.testing.assert_array_equal(scene.count(camera, exclude=first), scene.count(camera) - first.hit)
    every = scene.all(camera, exclude=first)
    np.testing.assert_array_equal(np.diff(every.offsets), (scene.count(camera) - first.hit).ravel())
    assert two.hit[..., 1].sum() > 500


def test_one_for_all_and_none():
    """An exclusion of one number is that of every ray; -1 is none."""
    pairs = random_scene(63, 40, 200, size=1.0)
    scene, rays, found = rb.Scene(rb.Boxes(*pairs[4:])), as_rays(pairs), truth(pairs)
    assert_scene(scene, rays, found, exclude=-1)
    assert_scene(scene, rays, [[f for f in row if f.index != 7] for row in found], exclude=7)
    assert any(f.index == 7 for row in found for f in row)


def test_an_object_as_a_whole():
    """Of meshes with objects, all triangles of what a ray has hit, or of an object by its number."""
    scene = rb.Scene(MESH)
    first = scene.nearest(RAYS)
    got = scene.nearest(RAYS, exclude_object=first)
    for k in range(0, 300, 7):
        where = MESH.objects != first.object[k]
        one = scene.nearest(RAYS[k : k + 1], where=where)
        assert (got.index[k], got.t[k]) == (one.index[0], one.t[0])
    numbers = RNG.integers(-1, 9, 300)
    counts = scene.count(RAYS, exclude_object=numbers)
    every = scene.all(RAYS)
    other = MESH.objects[every.index] != numbers[every.ray]
    np.testing.assert_array_equal(counts, np.bincount(every.ray[other], minlength=300))
    two = rb.Scene([BOXES, MESH])
    hits, want = two.nearest(RAYS), two.all(RAYS)
    same = (want.geometry == hits.geometry[want.ray]) & (want.object == hits.object[want.ray])
    np.testing.assert_array_equal(
        two.count(RAYS, exclude_object=hits), np.bincount(want.ray[~same], minlength=300)
    )


def test_shadow_rays_leave_their_own_triangle():
    """Rounded points lie behind their triangle half of the time; no shadow falls on a convex body."""
    sphere = RNG.normal(size=(400, 3))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    hull = pytest.importorskip("scipy.spatial").ConvexHull(sphere)
    scene = rb.Scene(rb.Mesh(sphere, hull.simplices))
    hits = scene.nearest(rb.Rays(3 * sphere, -sphere + 0.1 * RNG.normal(size=sphere.shape)))
    shadows = rb.Rays(hits.points[hits.hit], sphere[hits.hit])
    assert scene.occluded(shadows).sum() > 100
    assert not scene.occluded(shadows, exclude=hits[hits.hit]).any()


SCENE, LIST = rb.Scene(BOXES), rb.Scene([MESH, COPIES])
MISTAKES = {
    "of no box": (lambda: SCENE.nearest(RAYS, exclude=60), r"exclude must be -1, or from 0 to 59"),
    "below -1": (lambda: SCENE.count(RAYS, exclude=-2), r"exclude must be -1, or from 0 to 59"),
    "floats": (lambda: SCENE.count(RAYS, exclude=1.0), "exclude must be of an integer type"),
    "of another shape": (
        lambda: SCENE.all(RAYS, exclude=[1, 2]),
        r"broadcast to the shape of the rays, \(300,\)",
    ),
    "a row of a list": (
        lambda: LIST.nearest(RAYS, exclude=1),
        "exclude must be Hits, or .geometry, index, primitive.",
    ),
    "a geometry of none": (lambda: LIST.nearest(RAYS, exclude=(2, 0, 0)), "geometry must be from 0 to 1"),
    "a primitive of none": (lambda: LIST.nearest(RAYS, exclude=(1, 0, 2)), "primitive must be from 0 to 1"),
    "an object of a list": (
        lambda: rb.Scene([MESH, BOXES]).count(RAYS, exclude_object=0),
        "must be Hits in a scene of a list",
    ),
    "an object of boxes": (lambda: SCENE.count(RAYS, exclude_object=0), "needs a Mesh with objects"),
    "an object of none": (
        lambda: rb.Scene(MESH).count(RAYS, exclude_object=9),
        "exclude_object must be -1, or from 0 to 8",
    ),
    "both": (lambda: rb.Scene(MESH).count(RAYS, exclude=0, exclude_object=0), "got both"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_errors(mistake):
    call, message = MISTAKES[mistake]
    with pytest.raises(rb.InvalidInput, match=message):
        call()
