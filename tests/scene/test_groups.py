"""Groups: each ray meets its own world and what is common, held to Fractions and to one scene a world."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import families
import raybox as rb
import strategies
from compare import assert_same, assert_scene
from raybox.compiler.buffer_pool import SizedPool
from raybox.queries import batches
from raybox.traversal.workspace import make_workspace, work_counts
from scenes import as_rays, random_scene, truth
from sorting import sort_more_than
from test_uninitialised_memory import PATTERNS, fresh_memory

NOBODY = 10**15  # a group without primitives


def met(found, groups, ray_groups, excluded=None):
    """Return the exact hits of each ray that are in its group, or common, and not what it excludes."""
    excluded = np.full(len(found), -1) if excluded is None else excluded
    rows = zip(found, ray_groups, excluded, strict=True)
    return [[f for f in row if groups[f.index] in (-1, own) and f.index != out] for row, own, out in rows]


def numbered(rng, sizes, common) -> np.ndarray:
    """Return the groups of boxes in any order: so many of each, with gaps between their numbers."""
    numbers = np.repeat([-1, *(7 + 3 * np.arange(len(sizes)))], [common, *sizes])
    return rng.permutation(numbers)


def ray_groups(rng, groups, count) -> np.ndarray:
    return rng.choice([*np.unique(groups), -1, NOBODY], count)


SIZES = {
    "small worlds": ([3, 8, 9, 0, 1, 30], 5),
    "a span of every length": ([128, 64, 17], 20),
    "worlds with trees of their own": ([300, 129, 2], 1),
    "a common tree": ([4, 4, 4], 200),
    "nothing common": ([20, 20], 0),
    "common boxes alone": ([], 12),
}


@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("together", [True, False], ids=["sorted", "one by one"])
def test_rays_meet_their_own_world(sizes, together, monkeypatch):
    rng = np.random.default_rng(57)
    groups = numbered(rng, *SIZES[sizes])
    pairs = random_scene(57, len(groups), 300, size=1.0)
    if together:
        sort_more_than(monkeypatch, 64)
    scene, rays, own = (
        rb.Scene(rb.Boxes(*pairs[4:]), groups=groups),
        as_rays(pairs),
        ray_groups(rng, groups, 300),
    )
    scene.check()
    want = met(truth(pairs), groups, own)
    assert_scene(scene, rays, want, groups=own)
    assert any(want)
    assert not all(want)
    for number in (own[0], -1, NOBODY):  # one for all: sorted as rays of a scene without groups
        assert_scene(scene, rays, met(truth(pairs), groups, [number] * 300), groups=number)


@pytest.mark.parametrize(
    "family",
    [
        "exact_ties",
        "touching_edges",
        "flat_boxes",
        "half_spaces",
        "voxel_grid",
        "map_coordinates",
        "denormal_boxes",
    ],
)
def test_worlds_that_touch_and_tie(family, monkeypatch):
    sort_more_than(monkeypatch, 16)
    rng = np.random.default_rng(58)
    pairs = families.scene(family, 58, 120, 200)
    groups = rng.integers(-1, 4, 120)
    own = rng.integers(-1, 4, 200)
    found = truth(pairs)
    want = met(found, groups, own)
    tied = sum(len(row) > 1 and row[0].plain[1] == row[1].plain[1] for row in want)
    assert tied > 0 or family not in ("exact_ties", "voxel_grid")
    assert sum(map(len, want)) < sum(map(len, found))
    assert_scene(rb.Scene(rb.Boxes(*pairs[4:]), groups=groups), as_rays(pairs), want, groups=own)


@settings(max_examples=60)
@given(strategies.scenes(max_boxes=20, max_rays=6), st.data())
def test_groups_masks_exclusion_and_updates(pairs, data):
    """All at once, as one scene a group would return."""
    boxes, rays = len(pairs.lower), len(pairs.origins)
    numbers = st.integers(-1, 2)
    groups, own = (np.array(data.draw(st.lists(numbers, min_size=n, max_size=n))) for n in (boxes, rays))
    out = np.array(data.draw(st.lists(st.integers(-1, boxes - 1), min_size=rays, max_size=rays)))
    where = np.array(data.draw(st.lists(st.booleans(), min_size=boxes, max_size=boxes)))
    scene = rb.Scene(rb.Boxes(pairs.lower[::-1], pairs.upper[::-1]), groups=groups[::-1])
    scene.update(rb.Boxes(*pairs[4:]), groups=groups)
    scene.check()
    want = met(truth(pairs, where), groups, own, out)
    assert_scene(scene, as_rays(pairs), want, groups=own, where=where, exclude=out)


def test_many_rays_of_many_worlds_as_one_scene_a_world(monkeypatch):
    """The same bits as scenes without groups, of all queries, in no order; float32 decides nearly all."""
    monkeypatch.setattr(batches, "_WORKSPACES", SizedPool(make_workspace))
    rng = np.random.default_rng(59)
    groups = numbered(rng, [30] * 40, 10)
    lower = rng.random((len(groups), 3))
    boxes = rb.Boxes(lower, lower + rng.random((len(groups), 3)) ** 3)
    rays = rb.Rays(rng.uniform(-0.2, 1.2, (20_000, 3)), rng.normal(size=(20_000, 3)), t_max=2.0)
    own = ray_groups(rng, groups, 20_000)
    scene = rb.Scene(boxes, groups=groups)
    values, weights = rng.random(len(groups)), rng.random(20_000)
    near = scene.nearest(rays, groups=own)
    work = [work_counts(one) for free in batches._WORKSPACES._free.values() for one in free]
    assert sum(one.candidates for one in work) < 0.2 * len(rays)
    assert sum(one.list_tests for one in work) > 3 * len(rays)
    number = scene.count(rays, groups=own)
    hit, sums = scene.occluded(rays, groups=own), scene.integrate(rays, values, groups=own, reproducible=True)
    deposit = scene.deposit(rays, weights, groups=own, reproducible=True)
    total = np.zeros(len(groups))
    for world in np.unique(own):
        some, rows = np.flatnonzero(own == world), np.flatnonzero((groups == world) | (groups == -1))
        alone, part = rb.Scene(boxes[rows]), rays[some]
        one = alone.nearest(part)
        np.testing.assert_array_equal(near.t[some], one.t)
        np.testing.assert_array_equal(near.index[some], np.where(one.hit, rows[one.index], -1))
        np.testing.assert_array_equal(number[some], alone.count(part))
        np.testing.assert_array_equal(hit[some], alone.occluded(part))
        np.testing.assert_array_equal(sums[some], alone.integrate(part, values[rows], reproducible=True))
        total[rows] += alone.deposit(part, weights[some], reproducible=True)
    np.testing.assert_allclose(deposit, total, rtol=1e-13)
    assert 0.3 < hit.mean() < 0.9


def test_a_camera_in_one_world():
    """Its rays form packets, which start where the world does."""
    rng = np.random.default_rng(64)
    groups = numbered(rng, [400, 30], 5)
    lower = rng.uniform(-1, 1, (len(groups), 3))
    boxes = rb.Boxes(lower, lower + 0.1)
    camera = rb.Rays.pinhole([4, 0, 0], [0, 0, 0], up=[0, 0, 1], width=96, height=96, fov=40)
    scene = rb.Scene(boxes, groups=groups)
    for world in (7, 10, -1):
        rows = np.flatnonzero((groups == world) | (groups == -1))
        got, want = scene.nearest(camera, groups=world), rb.Scene(boxes[rows]).nearest(camera)
        np.testing.assert_array_equal(got.t, want.t)
        np.testing.assert_array_equal(got.index, np.where(want.hit, rows[want.index], -1))
        np.testing.assert_array_equal(scene.count(camera, groups=world), rb.Scene(boxes[rows]).count(camera))
    assert want.hit.any()


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_result_depends_on_memory_that_is_not_written(pattern):
    rng = np.random.default_rng(65)
    groups = numbered(rng, [30, 130, 5], 20)
    pairs = random_scene(65, len(groups), 500, size=0.5)
    scene, rays, own = (
        rb.Scene(rb.Boxes(*pairs[4:]), groups=groups),
        as_rays(pairs),
        ray_groups(rng, groups, 500),
    )
    queries = scene.nearest, scene.count, scene.occluded, scene.all
    for limits in ({"groups": own}, {"groups": own, "exclude": scene.nearest(rays, groups=own)}):
        want = [query(rays, **limits) for query in queries]
        with fresh_memory(PATTERNS[pattern]) as calls:
            got = [query(rays, **limits) for query in queries]
        for one, other in zip(got, want, strict=True):
            assert one.equals(other) if hasattr(one, "equals") else np.array_equal(one, other)
        assert calls["raybox.compiler.huge_pages"] > 10


def test_other_geometries_and_lists():
    """Of meshes, instances, planes and lists, as one scene a world; a grid in a list is common to all."""
    rng = np.random.default_rng(60)
    corners = rng.uniform(-1, 1, (60, 3, 3)) * 0.5 + rng.uniform(-1, 1, (60, 1, 3))
    mesh = rb.Mesh(corners.reshape(-1, 3), np.arange(180).reshape(60, 3))
    unit = rb.Boxes([-0.2] * 3, [0.2] * 3)
    copies = rb.Instances.from_poses(unit, rng.uniform(-1, 1, (30, 3)), quaternions=rng.normal(size=(30, 4)))
    planes = rb.Planes(rng.normal(size=(6, 3)), rng.normal(size=6))
    grid = rb.Grid([-3, -2.9], [-3, 3], [-3, 3])
    rays = rb.Rays(rng.uniform(-2, 2, (400, 3)), rng.normal(size=(400, 3)))
    own = rng.integers(-1, 4, 400)
    for geometry in (mesh, copies, planes, [mesh, copies, planes, grid]):
        given = geometry if isinstance(geometry, list) else [geometry]
        groups = [None if one is grid else rng.integers(-1, 4, len(one)) for one in given]
        scene = rb.Scene(geometry, groups=groups if isinstance(geometry, list) else groups[0])
        scene.check()
        plain = rb.Scene(geometry)
        for world in range(-1, 4):
            where = [None if one is None else (one == world) | (one == -1) for one in groups]
            where = where if isinstance(geometry, list) else where[0]
            some = own == world
            for name, more in (("nearest", ()), ("first", (3,)), ("all", ())):
                got = getattr(scene, name)(rays, *more, groups=own)[some]
                want = getattr(plain, name)(rays[some], *more, where=where)
                for field in ("index", "primitive", "geometry", "t"):
                    np.testing.assert_array_equal(getattr(got, field), getattr(want, field), err_msg=field)
            np.testing.assert_array_equal(
                scene.occluded(rays, groups=own)[some], plain.occluded(rays[some], where=where)
            )


def test_groups_stay_with_a_scene(tmp_path, monkeypatch):
    """Through pickles and folders; `update` without groups keeps them, with them it may change them."""
    rng = np.random.default_rng(61)
    groups = numbered(rng, [5, 200, 9], 4)
    pairs = random_scene(61, len(groups), 100, size=1.0)
    boxes, rays, own = rb.Boxes(*pairs[4:]), as_rays(pairs), ray_groups(rng, groups, 100)
    scene = rb.Scene(boxes, groups=groups)
    np.testing.assert_array_equal(scene.groups, groups)
    assert not scene.groups.flags.writeable
    assert rb.Scene(boxes).groups is None
    want = scene.nearest(rays, groups=own)
    scene.save(tmp_path / "worlds.scene")
    with monkeypatch.context() as patch:
        patch.setattr("raybox.scene.scene.__version__", "another")
        built_again = pickle.dumps(scene)
    folder = rb.Scene.open(tmp_path / "worlds.scene", check=True)
    for other in (pickle.loads(pickle.dumps(scene)), pickle.loads(built_again), folder):
        other.check()
        np.testing.assert_array_equal(other.groups, groups)
        assert_same(other.nearest(rays, groups=own), want)
        other.update(boxes.translated([0.5, 0, 0]))
        assert_same(
            other.nearest(rays, groups=own), rb.Scene(other.geometry, groups=groups).nearest(rays, groups=own)
        )
    changed = rng.permutation(groups)
    scene.update(boxes, groups=changed)
    np.testing.assert_array_equal(scene.groups, changed)
    assert_same(scene.nearest(rays, groups=own), rb.Scene(boxes, groups=changed).nearest(rays, groups=own))
    two = rb.Scene([boxes, rb.Planes([0, 0, 1], 2.0)], groups=[groups, None])
    np.testing.assert_array_equal(two.groups[1], [-1])


BOXES = rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]])
RAYS = rb.Rays([[0, 0], [4, 0], [0, 9]], [1, 0])
MISTAKES = {
    "groups of another length": (
        lambda: rb.Scene(BOXES, groups=[0, 1, 2]),
        r"groups must have shape \(2,\).*shape \(3,\)",
    ),
    "a group below -1": (lambda: rb.Scene(BOXES, groups=[0, -2]), r"1 of 2 break this, first primitive 1"),
    "groups that are no integers": (
        lambda: rb.Scene(BOXES, groups=[0.0, 1.0]),
        "groups must be of an integer type",
    ),
    "groups that are missing": (
        lambda: rb.Scene(BOXES, groups=[0, np.nan]),
        "groups must be of an integer type",
    ),
    "a grid": (lambda: rb.Scene(rb.Grid([0, 1], [0, 1]), groups=[0]), "a Grid has no groups.*where="),
    "an array for a list": (lambda: rb.Scene([BOXES, BOXES], groups=[0, 1, 2]), "groups must be a list of 2"),
    "no groups of rays": (lambda: rb.Scene(BOXES, groups=[0, 1]).nearest(RAYS), "rays need groups"),
    "none of the scene": (
        lambda: rb.Scene(BOXES).count(RAYS, groups=0),
        "rays have groups, and the scene has none",
    ),
    "rays of another shape": (
        lambda: rb.Scene(BOXES, groups=[0, 1]).all(RAYS, groups=[0, 1]),
        r"groups must broadcast to the shape of the rays, \(3,\); got shape \(2,\)",
    ),
    "a ray below -1": (
        lambda: rb.Scene(BOXES, groups=[0, 1]).occluded(RAYS, groups=[0, -5, 1]),
        "first ray 1",
    ),
    "a sweep": (
        lambda: rb.sweep(BOXES, [1, 0], rb.Scene(BOXES, groups=[0, 1])),
        "sweep is for a scene without",
    ),
    "an update that makes some": (lambda: rb.Scene(BOXES).update(BOXES, groups=[0, 1]), "this one has none"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_are_errors(mistake):
    call, message = MISTAKES[mistake]
    with pytest.raises(rb.InvalidInput, match=message):
        call()


def test_no_rays_and_no_boxes():
    empty = rb.Scene(BOXES[:0], groups=[])
    assert not empty.occluded(RAYS, groups=[0, -1, 5]).any()
    scene = rb.Scene(BOXES, groups=[0, -1])
    assert scene.nearest(RAYS[:0], groups=[]).index.shape == (0,)
    assert [int(scene.count(rb.Rays([0, 0], [1, 0]), groups=world)) for world in (0, -1, 1, 9)] == [
        2,
        1,
        1,
        1,
    ]
