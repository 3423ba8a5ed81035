"""A pickled or copied scene has the same trees, which are not built again, and gives the same bits."""

import copy
import pickle

import numpy as np
import pytest

import raybox as rb
from raybox.bvh.node import ROOT_ALONE
from raybox.geometry import Instances
from raybox.scene import geometry_parts
from raybox.scene import scene as scene_module
from raybox.scene.scene import PartState, restore, state_of

RNG = np.random.default_rng(12)
LOWER = RNG.uniform(-9, 9, (3000, 3))
BOXES = rb.Boxes(LOWER, LOWER + RNG.uniform(0, 1, (3000, 3)), ids=list(range(3000)))
MESH = rb.Mesh(RNG.uniform(-9, 9, (900, 3)), np.arange(900).reshape(-1, 3), objects=np.arange(300) // 3)
GRID = rb.Grid.uniform([-9, -9, -9], 1.0, (18, 18, 18), RNG.random((18, 18, 18)) < 0.1)
COPIES = rb.Instances(MESH, np.array([np.eye(4)[:3], np.eye(4)[:3] + np.eye(4)[:3, [1, 0, 2, 3]] / 3]))
GEOMETRIES = {
    "boxes": BOXES,
    "flat boxes": rb.Boxes(LOWER[:, :2], LOWER[:, :2] + 1),
    "mesh": MESH,
    "grid": GRID,
    "full grid": rb.Grid.uniform([0, 0], 1.0, (7, 7)),
    "planes": rb.Planes(np.eye(3), [1, 2, 3]),
    "copies": COPIES,
    "nothing": BOXES[:0],
    "list": [BOXES[:50], MESH, COPIES],
    "list of one": [MESH],
}
WAYS = [
    lambda x: pickle.loads(pickle.dumps(x)),
    lambda x: pickle.loads(pickle.dumps(x, 2)),
    copy.copy,
    copy.deepcopy,
]


def rays_for(scene):
    rng, shape = np.random.default_rng(4), (500, geometries(scene)[0].ndim_space)
    return rb.Rays(rng.uniform(-12, 12, shape), rng.normal(size=shape))


def geometries(scene):
    return scene.geometry if isinstance(scene.geometry, tuple) else (scene.geometry,)


def arrays_of(part):
    """Return the arrays of a part's trees."""
    inner = arrays_of(part.inner) if part.inner else []
    return [item for item in part.tree if isinstance(item, np.ndarray)] + inner


def assert_same(found, wanted):
    """Compare trees bit for bit, and results."""
    for one, other in zip(found._parts, wanted._parts, strict=True):
        assert type(one.tree) is type(other.tree)
        for array, expected in zip(arrays_of(one), arrays_of(other), strict=True):
            assert array.dtype == expected.dtype
            assert array.tobytes() == expected.tobytes()
            assert not array.flags.writeable
            assert array is ROOT_ALONE or not np.shares_memory(array, expected)
    assert found.stats() == wanted.stats()
    found.check()
    rays = rays_for(wanted)
    assert found.nearest(rays).equals(wanted.nearest(rays))


def refuse_builds(monkeypatch):
    """Fail where a tree is built from now on."""

    def refuse(*_args, **_options):
        raise AssertionError("a tree is built")

    monkeypatch.setattr(geometry_parts.RefitPolicy, "build", refuse)
    monkeypatch.setattr(geometry_parts, "make", refuse)


@pytest.mark.core
@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_scene_comes_back_with_its_trees(name, monkeypatch):
    scene = rb.Scene(GEOMETRIES[name], quality="fast")
    refuse_builds(monkeypatch)
    for way in WAYS:
        again = way(scene)
        assert_same(again, scene)
        assert_same(way(again), scene)
        assert all(one.ctypes.data % 64 == 0 for one in arrays_of(again._parts[0]) if one.size)
        assert repr(again) == repr(scene)
        assert all(map(lambda a, b: a.equals(b), geometries(again), geometries(scene)))
        assert isinstance(again.geometry, tuple) == isinstance(GEOMETRIES[name], list)


@pytest.mark.parametrize("name", ["boxes", "mesh", "copies", "list"])
def test_a_scene_that_was_updated_goes_on_alike(name):
    """Also where the tree was refitted until it is poor: its costs as built come with it."""
    scene, given = rb.Scene(GEOMETRIES[name]), GEOMETRIES[name]

    def moved(one, step):
        if isinstance(one, list):
            return [moved(each, step) for each in one]
        if isinstance(one, Instances):
            return rb.Instances(one.geometry, one.transforms + np.eye(4)[:3] * step / 9)
        shift = np.random.default_rng(step).normal(size=(len(one), 3)) * step
        if isinstance(one, rb.Boxes):
            return one.translated(shift)
        return rb.Mesh(one.vertices + np.repeat(shift, 3, axis=0), one.faces, objects=one.objects)

    scene.update(moved(given, 1))
    for step in (2, 3, 9):
        again = pickle.loads(pickle.dumps(scene))
        assert_same(again, scene)
        earlier, before = again.nearest(rays_for(scene)), scene.nearest(rays_for(scene))
        for one in (scene, again):
            one.update(moved(given, step) if name != "copies" else moved(one.geometry, step))
        assert_same(again, scene)
        assert earlier.equals(before)


def test_a_mapped_scene_is_pickled_with_its_tree(monkeypatch):
    scene = rb.Scene(BOXES)
    refuse_builds(monkeypatch)
    state = PartState(BOXES, geometry_parts.TreeState(state_of(scene).part.tree))
    mapped = restore(is_list=False, quality="best", parts=[state])
    assert_same(pickle.loads(pickle.dumps(mapped)), scene)


def test_copies_share_what_their_geometry_shares():
    scene = copy.copy(rb.Scene(COPIES))
    assert scene.geometry is COPIES
    assert scene._parts[0].inner.geometry is MESH
    again = pickle.loads(pickle.dumps([scene, scene.geometry]))
    assert again[0].geometry is again[1]
    scene.update(rb.Instances(MESH, COPIES.transforms * 2))


def test_a_scene_of_another_version_is_built_again(monkeypatch):
    for geometry in (BOXES, [MESH, BOXES]):
        scene = rb.Scene(geometry)
        stored = pickle.dumps(scene)
        monkeypatch.setattr(scene_module, "__version__", "another")
        with monkeypatch.context() as changed:
            changed.setattr(geometry_parts, "restored", None)
            again = pickle.loads(stored)
        monkeypatch.undo()
        assert again.nearest(rays_for(scene)).equals(scene.nearest(rays_for(scene)))
