"""Hits that were pickled or copied are what they were, and read-only."""

import copy
import pickle

import numpy as np
import pytest

import raybox as rb
from compare import assert_same
from scenes import as_rays, random_scene

FIELDS = ("index", "primitive", "geometry", "t", "t_enter", "t_exit")
PAIRS = random_scene(3, 40, 60, size=0.4)
RAYS, BOXES = as_rays(PAIRS), rb.Boxes(*PAIRS[4:])
MESH = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
COPIED = rb.Instances(MESH, np.tile(np.eye(4)[:3], (2, 1, 1)) + np.arange(2)[:, None, None] * 0.1)
SCENES = {"boxes": BOXES, "mesh": MESH, "instances": COPIED, "list": [BOXES, MESH]}
WAYS = {
    "pickle": lambda hits: pickle.loads(pickle.dumps(hits)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


def arrays(hits, names):
    return [getattr(hits, name) for name in names]


def are_frozen(values):
    """Return whether all arrays in nested tuples are read-only."""
    return all(
        are_frozen(value) if isinstance(value, tuple) else not getattr(value, "flags", value).writeable
        for value in values
        if isinstance(value, tuple | np.ndarray)
    )


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", SCENES)
@pytest.mark.parametrize("after", [False, True], ids=["new", "used"])
def test_copies_are_equal_and_read_only(name, way, after):
    scene = rb.Scene(SCENES[name])
    for hits, names in (
        (scene.nearest(RAYS), (*FIELDS, "hit", "points", "normals", "uv")),
        (scene.first(RAYS, 2), (*FIELDS, "hit", "points", "normals", "uv")),
        (scene.all(RAYS), ("offsets", "ray", *FIELDS, "lengths")),
    ):
        before = arrays(hits, names) if after else []
        copied = WAYS[way](hits)
        assert type(copied) is type(hits)
        assert_same(copied, hits, names)
        assert are_frozen((*arrays(copied, names), copied._source.parts, tuple(before)))
        with pytest.raises(ValueError, match="read-only"):
            copied.t[...] = 0.0
        assert len(copied) == len(hits)


def test_hits_of_moving_boxes():
    moving = rb.Boxes([[-1, 0, 0]], [[-0.5, 1, 1]])
    hits = rb.sweep(moving, [[5.0, 0, 0]], rb.Scene(BOXES))
    for way in WAYS.values():
        copied = way(hits)
        assert_same(copied, hits, ("index", "t", "normals"))
        assert are_frozen((copied.t, copied._source.rays.directions, copied._source.parts))


def test_equal_hits_of_one_ray():
    boxes = rb.Boxes([[2, -1], [5, -1], [2, -1]], [[3, 1], [6, 1], [3, 1]], ids=["a", "b", "c"])
    all_hits = rb.Scene(boxes).all(rb.Rays([[0, 0], [0, 0.5], [0, 0], [0, 9]], [1, 0]))
    one = all_hits[0]
    assert one.equals(all_hits[2])
    assert one.equals(pickle.loads(pickle.dumps(one)))
    assert not one.equals(all_hits[1])  # of another ray
    assert not one.equals(all_hits[3])
    assert not one.equals(one[:2])
    assert not one.equals(all_hits)
    renamed = rb.Scene(rb.Boxes(boxes.lower, boxes.upper, ids=["a", "b", "d"])).all(rb.Rays([[0, 0]], [1, 0]))
    assert not one.equals(renamed[0])
    assert one[:1].equals(renamed[0][:1])
    with pytest.raises(rb.InvalidInput, match=r"RayHits are several arrays, not one"):
        np.asarray(one)
