"""Indexed hits hold the rows of all hits that NumPy's index gives, in every field."""

import copy
import pickle
from collections import Counter

import numpy as np
import pytest

import raybox as rb
from compare import assert_same
from indices import SHAPES, indices

RANDOM = np.random.default_rng(31)
FIELDS = ("index", "primitive", "geometry", "t", "t_enter", "t_exit")
ONE_FIELDS = (*FIELDS, "hit", "points", "normals", "uv")
ALL_FIELDS = (*FIELDS, "lengths", "points")


def boxes(count, dims):
    lower = RANDOM.uniform(-1, 1, (count, dims))
    return rb.Boxes(lower, lower + RANDOM.uniform(0, 0.6, (count, dims)))


def mesh(count):
    return rb.Mesh(RANDOM.uniform(-1, 1, (3 * count, 3)), np.arange(3 * count).reshape(-1, 3))


def rays(shape, dims):
    """Return rays that hit, miss, start inside, run along an axis, or are points."""
    origins, goals = RANDOM.uniform(-2, 2, (*shape, dims)), RANDOM.uniform(-1, 1, (*shape, dims))
    directions = goals - origins
    directions[..., 0] *= RANDOM.integers(0, 2, shape)
    directions[RANDOM.random(shape) < 0.1] = 0.0
    return rb.Rays(origins, directions, t_min=RANDOM.choice([-np.inf, 0.0, 0.5], shape))


BOXES, FLAT, MESH = boxes(30, 3), boxes(30, 2), mesh(20)
MIRRORS = np.tile(np.eye(4)[:3], (3, 1, 1)) * np.array([1, -1, 1])[:, None, None]
COPIES = rb.Instances(BOXES[:9], MIRRORS)
SCENES = {"boxes": BOXES, "2D": FLAT, "mesh": MESH, "instances": COPIES, "list": [BOXES, COPIES, MESH]}


def check_hits(hits, index, names=ONE_FIELDS):
    """Assert every field of indexed hits against that of all; return how many are hit and missed."""
    key = index if isinstance(index, tuple) else (index,)
    key = key if any(part is Ellipsis for part in key) else (*key, ...)
    part = hits[index]
    assert type(part) is rb.Hits
    for name in names:
        got, whole = getattr(part, name), getattr(hits, name)
        want = whole[(*key, slice(None))] if whole.ndim > hits.t.ndim else whole[key]
        assert got.shape[: got.ndim - whole.ndim + hits.t.ndim] == part.shape
        np.testing.assert_array_equal(got, want, err_msg=f"{name} of {index!r}")
        assert not got.flags.writeable
    assert part.shape == hits.t[index].shape
    return Counter(hits=int(part.hit.sum()), misses=int((~part.hit).sum()))


def check_all_hits(hits, index):
    """Assert indexed hits of rays against the hits of each ray; return how many hits there are."""
    part = hits[index]
    numbers = np.arange(len(hits.offsets) - 1).reshape(hits.shape)[index]
    rows = [np.arange(*hits.offsets[ray : ray + 2]) for ray in np.asarray(numbers).reshape(-1).tolist()]
    chosen = np.concatenate([np.empty(0, np.int64), *rows])
    for name in ALL_FIELDS:
        got = getattr(part, name)
        np.testing.assert_array_equal(got, getattr(hits, name)[chosen], err_msg=f"{name} of {index!r}")
        assert not got.flags.writeable
    if not isinstance(numbers, np.ndarray):
        assert len(part) == len(chosen)
        return Counter(one=1, hits=len(chosen))
    assert type(part) is rb.AllHits
    assert part.shape == numbers.shape
    assert part.offsets.tolist() == np.cumsum([0, *map(len, rows)]).tolist()
    np.testing.assert_array_equal(part.ray, np.repeat(np.arange(numbers.size), [len(row) for row in rows]))
    return Counter(several=1, hits=len(chosen), empty=sum(not len(row) for row in rows))


@pytest.mark.long
@pytest.mark.parametrize("name", SCENES)
def test_every_index_of_a_scene(name):
    scene, found, of_all = rb.Scene(SCENES[name]), Counter(), Counter()
    for shape in SHAPES:
        some = rays(shape, 2 if name == "2D" else 3)
        for hits in (scene.nearest(some), scene.first(some, 3)):
            for index in indices(hits.shape):
                found += check_hits(hits, index)
        all_hits = scene.all(some)
        for index in indices(all_hits.shape):
            of_all += check_all_hits(all_hits, index)
    assert min(found["hits"], found["misses"]) > 100, found
    assert min(of_all["hits"], of_all["several"]) > 40, of_all
    assert min(of_all["one"], of_all["empty"]) > 5, of_all


@pytest.mark.parametrize("shape", [(1,), (30,), (4, 1), (4, 30), (2, 1, 30)])
def test_pairs_of_rays_and_boxes(shape):
    hits, found = rb.intersect(rays(shape, 3), BOXES), Counter()
    assert hits.shape[-1] == 30
    for index in indices(hits.shape):
        found += check_hits(hits, index)
    assert min(found.values()) > 3, found


def test_indices_of_indexed_hits():
    some, found = rays((4, 5), 3), Counter()
    for scene in (rb.Scene(SCENES["list"]), rb.Scene(BOXES)):
        for hits in (scene.nearest(some)[1:], scene.first(some, 2)[::-1], scene.first(some, 2)[2]):
            for index in indices(hits.shape):
                found += check_hits(hits, index)
        all_hits = scene.all(some)[[2, 0, 3], 1:]
        assert len(all_hits.index) > 5
        for index in indices(all_hits.shape):
            check_all_hits(all_hits, index)
    assert min(found.values()) > 100, found


def test_hits_of_moving_boxes():
    hits = rb.sweep(BOXES[:12], RANDOM.normal(size=(12, 3)), rb.Scene(boxes(40, 3)))
    assert hits.hit.sum() > 3
    for index in indices(hits.shape):
        check_hits(hits, index, ("index", "t", "t_enter", "t_exit", "points", "normals"))


def test_the_hits_of_one_ray_index_alike():
    all_hits = rb.Scene(BOXES).all(rays((50,), 3))
    ray = int(np.diff(all_hits.offsets).argmax())
    hits = all_hits[ray]
    assert len(hits) > 2
    for index in indices((len(hits),)):
        part, chosen = hits[index], np.arange(len(hits))[index]
        for name in ALL_FIELDS:
            np.testing.assert_array_equal(getattr(part, name), getattr(hits, name)[chosen])
    np.testing.assert_array_equal(hits[1:][0].t, hits.t[1])
    assert [float(hit.t) for hit in hits] == hits.t.tolist()
    assert [bool(row) for row in all_hits] == (np.diff(all_hits.offsets) > 0).tolist()
    with pytest.raises(TypeError, match="single hit"):
        len(hits[0])


def test_len_and_iteration():
    scene, some = rb.Scene(BOXES), rays((4, 5), 3)
    hits, all_hits = scene.nearest(some), scene.all(some)
    assert (len(hits), len(all_hits), len(scene.first(some[0, 0], 7))) == (4, 4, 7)
    assert [row.shape for row in hits] == [row.shape for row in all_hits] == [(5,)] * 4
    assert [[int(one.index) for one in row] for row in hits] == hits.index.tolist()
    assert [[len(one) for one in row] for row in all_hits] == scene.count(some).tolist()
    single = some[0, 0]
    for one in (scene.nearest(single), scene.all(single)):
        with pytest.raises(TypeError, match="single"):
            len(one)
        with pytest.raises(TypeError, match="single"):
            iter(one)
        with pytest.raises(IndexError):
            one[0]
    assert len(scene.all(single)[()]) == scene.count(single)
    for several in (hits, all_hits):
        for index in (4, -5, (0, 5), (0, 0, 0), [7]):
            with pytest.raises(IndexError):
                several[index]


def test_truth_of_several_hits_is_refused():
    scene, some = rb.Scene(BOXES), rays((60,), 3)
    hits, all_hits = scene.nearest(some), scene.all(some)
    assert [bool(one) for one in hits] == hits.hit.tolist()
    assert 0 < hits.hit.sum() < 60
    for several in (hits, hits[:1], hits[:0], all_hits, all_hits[:1], scene.all(some[0])):
        with pytest.raises(rb.InvalidInput, match=r"ambiguous.*\.hit\.any\(\)"):
            bool(several)


def is_frozen(values):
    """Return whether all arrays in nested tuples are read-only."""
    if isinstance(values, tuple):
        return all(map(is_frozen, values))
    return not (isinstance(values, np.ndarray) and values.flags.writeable)


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda hits: pickle.loads(pickle.dumps(hits))])
@pytest.mark.parametrize("name", SCENES)
def test_copies_of_indexed_hits(name, way):
    scene, some = rb.Scene(SCENES[name]), rays((4, 5), 2 if name == "2D" else 3)
    for part, names in (
        (scene.nearest(some)[1:, ::2], ONE_FIELDS),
        (scene.first(some, 2)[some.t_min == 0], ONE_FIELDS),
        (scene.all(some)[2], ("offsets", "ray", *ALL_FIELDS)),
        (scene.all(some)[2, 3], ALL_FIELDS),
        (scene.all(some[0, 0])[()], ALL_FIELDS),
    ):
        copied = way(part)
        assert type(copied) is type(part)
        assert_same(copied, part, names)
        assert not any(getattr(copied, field).flags.writeable for field in names)
    for hits in (scene.nearest(some), scene.all(some)):
        assert is_frozen(way(hits)._source.parts)


def test_pickled_hits_of_one_ray_leave_those_of_others():
    all_hits = rb.Scene(BOXES).all(rays((2000,), 3))
    assert len(pickle.dumps(all_hits[7])) < len(pickle.dumps(all_hits)) / 10


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
