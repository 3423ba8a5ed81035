"""Boxes found by points, boxes and distances, held to whole numbers: hits, misses, touches and ties."""

import pickle
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
import strategies
from box_queries import (
    FAMILIES,
    INF,
    BoxArrays,
    cells_of,
    check_overlapping,
    check_points,
    joined,
    make_boxes,
    make_others,
    make_points,
    world_of,
)
from raybox.spatial import closest_search, query_boxes, search

KINDS = ("hits", "misses", "touches", "near", "far", "ties")


@pytest.fixture(params=["in order", "along the curve"])
def searched(request, monkeypatch):
    """Search queries as they come, or along the curve in batches of 50."""
    if request.param == "along the curve":
        monkeypatch.setattr(query_boxes, "SORTED_FROM", 2)
        monkeypatch.setattr(search, "BATCH", 50)
        monkeypatch.setattr(closest_search, "BATCH", 50)


def check(scene, world, points, boxes, rng, **options) -> Counter:
    """Assert all queries; return the counts of those of points."""
    scene.check()
    counts = check_overlapping(scene, world, boxes, **options)
    assert min(counts.values()) > 0, counts
    return check_points(scene, world, points, rng, **options)


def made(family, seed, count=60, dim=3):
    """Return a random generator, boxes, and points and boxes to search with."""
    rng, numbers = np.random.default_rng(seed), FAMILIES[family]
    boxes = make_boxes(rng, numbers, count, dim)
    return rng, boxes, make_points(rng, numbers, boxes, 60), make_others(rng, numbers, boxes, 60)


@pytest.mark.core
@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_boxes_of_all_magnitudes(family, dim, searched):
    rng, boxes, points, others = made(family, 81, dim=dim)
    counts = check(rb.Scene(rb.Boxes(*boxes)), world_of(boxes), points, others, rng)
    assert min(counts[kind] for kind in KINDS) > 0, counts
    assert counts["exactly"] > 0, counts


EDGES = {
    "full": ([4, 4, 3], "lattice", None),
    "sparse": ([9, 8, 70], "lattice", 0.2),
    "one cell": ([1, 1, 1], "lattice", None),
    "none occupied": ([3, 3, 3], "lattice", 0.0),
    "map": ([6, 5, 4], "map", 0.5),
    "huge": ([4, 3, 2], "huge", 0.7),
    "denormal": ([6, 5, 4], "denormal", 0.7),
    "mixed": ([9, 8, 7], "mixed", 0.5),
    "flat": ([9, 20], "lattice", 0.4),
    "flat and full": ([70, 5], "full mantissas", None),
}


@pytest.mark.parametrize("kind", EDGES)
def test_cells_of_a_grid(kind, searched):
    cells, family, share = EDGES[kind]
    rng, numbers = np.random.default_rng(82), FAMILIES[family]
    edges = [np.unique(numbers(rng, (40 * n, 1)))[: n + 1] for n in cells]
    if family == "lattice":
        edges = [np.cumsum(rng.integers(1, 4, n + 1).astype(float)) - n for n in cells]
    shape = tuple(len(e) - 1 for e in edges)
    occupied = None if share is None else rng.random(shape) < share
    world = cells_of(edges, True if occupied is None else occupied)
    points, others = make_points(rng, numbers, world.boxes, 40), make_others(rng, numbers, world.boxes, 40)
    scene = rb.Scene(rb.Grid(*edges, occupied=occupied))
    if share == 0.0:
        counts = check_points(scene, world, points, rng) + check_overlapping(scene, world, others)
        assert counts["hits"] == counts["near"] == 0 < counts["misses"]
        return
    counts = check(scene, world, points, others, rng)
    assert min(counts[one] for one in KINDS if one != "ties" or len(scene) > 1) > 0, counts
    where = rng.random(shape) < 0.5
    masked = world._replace(allowed=world.allowed & where.ravel())
    check_points(scene, masked, points, rng, where=where)
    check_overlapping(scene, masked, others, where=where.ravel())


def listed(rng, boxes):
    """Return geometries, and their world: boxes twice, an empty geometry, two grids with shared cells."""
    edges = [np.arange(-3.0, 4)] * 3
    occupied = rng.random((6, 6, 6)) < 0.4
    none = rb.Boxes(np.empty((0, 3)), np.empty((0, 3)))
    geometries = [rb.Boxes(*boxes), none, rb.Grid(*edges, occupied=occupied), rb.Boxes(*boxes)]
    own, cells = world_of(boxes), cells_of(edges, occupied)
    nothing = world_of(BoxArrays(np.empty((0, 3)), np.empty((0, 3))))
    return [*geometries, rb.Grid(*edges)], joined([own, nothing, cells, own, cells_of(edges)])


@pytest.mark.core
def test_ties_across_the_geometries_of_a_list(searched):
    rng, boxes, points, others = made("lattice", 83)
    geometries, world = listed(rng, boxes)
    counts = check(rb.Scene(geometries), world, points, others, rng)
    assert counts["ties"] > 500, counts
    masks = [rng.random(len(one)) < 0.5 for one in geometries]
    masks[3] = None
    allowed = world.allowed & np.concatenate([np.ones(60, bool) if m is None else m for m in masks])
    check(rb.Scene(geometries), world._replace(allowed=allowed), points, others, rng, where=masks)


NOBODY = 10**15  # a group without boxes


@pytest.mark.parametrize("sizes", [(60, [0, 3, 7]), (400, [5])], ids=["small groups", "groups with trees"])
def test_groups(sizes, searched):
    """Each query finds what is in its own group, and what is common; a grid is common."""
    count, groups = sizes
    rng, boxes, points, others = made("lattice", 84, count)
    of_boxes, of_queries = rng.choice([-1, *groups], count), rng.choice([-1, *groups, NOBODY], 60)
    scene, own = rb.Scene(rb.Boxes(*boxes), groups=of_boxes), world_of(boxes)
    edges = [np.arange(-1.0, 2)] * 3
    both = rb.Scene([rb.Grid(*edges), rb.Boxes(*boxes)], groups=[None, of_boxes])
    for own_groups in (of_queries, groups[0], -1, NOBODY):
        allowed = (of_boxes == -1) | (of_boxes == np.broadcast_to(own_groups, 60)[:, None])
        counts = check(scene, own._replace(allowed=allowed), points, others, rng, groups=own_groups)
        assert min(counts[kind] for kind in KINDS) > 0, counts
        world = joined([world_of(cells_of(edges).boxes, np.ones((60, 8), bool)), world_of(boxes, allowed)])
        check(both, world, points, others, rng, groups=own_groups)


def test_masks_and_expressions():
    rng, boxes, points, others = made("lattice", 85)
    where, world = rng.random(60) < 0.4, world_of(boxes)
    labels = {"kind": np.where(where, "wall", "door").tolist()}
    scene = rb.Scene(rb.Boxes(*boxes, labels=labels))
    for chosen, allowed in ((where, where), ("kind == 'door'", ~where), (np.zeros(60, bool), False)):
        masked = world._replace(allowed=world.allowed & allowed)
        found = check_points(scene, masked, points, rng, where=chosen)
        found += check_overlapping(scene, masked, others, where=chosen)
        assert (found["hits"] > 0) == np.any(allowed)


@pytest.mark.parametrize("change", ["moved", "saved", "pickled"])
def test_scenes_that_are_updated_saved_or_pickled(change, tmp_path):
    rng, boxes, points, others = made("full mantissas", 86, 300)
    geometries, world = listed(rng, boxes)
    scene = rb.Scene(geometries)
    if change == "moved":
        rng, new, points, others = made("full mantissas", 87, 300)
        scene, world = rb.Scene(geometries[::3]), joined([world_of(new)] * 2)
        scene.update([rb.Boxes(*new)] * 2)
    elif change == "saved":
        scene.save(tmp_path / "s.scene")
        scene = rb.Scene.open(tmp_path / "s.scene")
    else:
        scene = pickle.loads(pickle.dumps(scene))
    check(scene, world, points, others, rng)


def test_meshes_and_instances_overlap_with_their_boxes():
    rng, _, _, others = made("lattice", 88)
    vertices, faces = FAMILIES["lattice"](rng, (50, 3)), rng.integers(0, 50, (80, 3))
    corners = vertices[faces]
    triangles = BoxArrays(corners.min(axis=1), corners.max(axis=1))
    turns = np.array([[[0, -1, 0], [1, 0, 0], [0, 0, 1]], np.eye(3), np.diag([2, -1, 0.5])])
    poses = np.concatenate([turns, FAMILIES["lattice"](rng, (3, 3, 1))], axis=2)
    copies = rb.Instances(rb.Boxes([-1, -1, -1], [1, 2, 1]), poses)
    mesh, around = rb.Mesh(vertices, faces), copies.boxes()
    world = joined([world_of(triangles), world_of(BoxArrays(around.lower, around.upper))])
    counts = check_overlapping(rb.Scene([mesh, copies]), world, others)
    assert min(counts.values()) > 0, counts
    for one, bounds in ((mesh, triangles), (copies, BoxArrays(around.lower, around.upper))):
        check_overlapping(rb.Scene(one), world_of(bounds), others)


@pytest.mark.parametrize("count", [3, 2047, 2600])
def test_numbers_of_queries_and_threads(count):
    """Fewer are searched as they come, more along a curve, in chunks on two threads."""
    rng, boxes, *_ = made("lattice", 89, 20)
    points = make_points(rng, FAMILIES["lattice"], boxes, count)
    others = make_others(rng, FAMILIES["unbounded"], boxes, count)
    scene, world = rb.Scene([rb.Boxes(*boxes), rb.Grid([-1, 0, 1], [0, 1], [0, 1])]), world_of(boxes)
    world = joined([world, cells_of([np.array([-1.0, 0, 1]), np.arange(2.0), np.arange(2.0)])])
    for workers in (1, 2):
        counts = check(scene, world, points, others, rng, workers=workers)
        assert count < 9 or min(counts.values()) > 0, counts


@pytest.mark.parametrize("workers", [1, 2])
def test_queries_that_find_more_than_there_is_room_for(workers):
    """A query's rows are found again in more room; each finds all, some, or none of many boxes."""
    rng = np.random.default_rng(90)
    lower = rng.integers(-500, 500, (9000, 3)).astype(float)
    boxes, far = rb.Boxes(lower, lower + 400), np.full((3, 3), 1e4)
    points = np.concatenate([far, rng.integers(-100, 500, (700, 3)), far])
    inside = (points[:, None] >= boxes.lower) & (points[:, None] <= boxes.upper)
    query, index = np.nonzero(inside.all(axis=-1))
    rows = rb.Scene(boxes).containing(points, workers=workers)
    np.testing.assert_array_equal(rows.row, query)
    np.testing.assert_array_equal(rows.index, index)
    everything = rb.Scene(boxes).within_distance(points[:5], INF, workers=workers)
    np.testing.assert_array_equal(everything.index, np.tile(np.arange(9000), 5))


@pytest.mark.parametrize("dim", [2, 3])
def test_empty_scenes_no_queries_and_shapes(dim):
    none = rb.Boxes(np.empty((0, dim)), np.empty((0, dim)))
    one, points = rb.Scene(rb.Boxes([0] * dim, [1] * dim)), np.full((2, 3, dim), 0.5)
    for geometry in (none, [none, none], rb.Grid(*[[0, 1]] * dim, occupied=np.zeros([1] * dim, bool))):
        scene = rb.Scene(geometry)
        assert scene.containing(points).shape == (2, 3)
        assert not scene.within_distance(points, INF, count=True).any()
        assert (scene.closest(points, 4).index == -1).all()
        assert (scene.closest(points, 4).distance == INF).all()
        assert len(scene.overlapping(rb.Boxes(points[0], points[0])).index) == 0
    assert one.closest(points[:0], 2).shape == (0, 3, 2)
    assert one.containing(points[:0]).offsets.tolist() == [0]
    assert one.overlapping(none).shape == one.overlapping(none, count=True).shape == (0,)
    assert one.containing(points, count=True).tolist() == [[1] * 3] * 2
    alone = one.closest(points[0, 0], max_distance=0)
    assert (alone.shape, alone.index.tolist(), alone.distance.tolist()) == ((1,), [0], [0.0])
    assert one.containing(points[0, 0]).shape == one.containing(points[0, 0], count=True).shape == ()
    radii = np.array([[0.0], [3.0]])
    apart = one.within_distance(points + np.array([[[0], [1], [9]]]), radii, count=True)
    assert apart.tolist() == [[1, 0, 0], [1, 1, 0]]
    assert one.closest(points + 1, max_distance=radii).index[..., 0].tolist() == [[-1] * 3, [0] * 3]


@settings(max_examples=150)
@given(strategies.scenes(max_boxes=20, max_rays=6), st.integers(0, 2**32 - 1), st.data())
def test_related_numbers(pairs, seed, data):
    """Boxes, points and groups over one pool of numbers, and their neighbours."""
    rng, boxes = np.random.default_rng(seed), BoxArrays(*pairs[4:])
    many, count = len(boxes.lower), len(pairs.origins)
    of_boxes, of_queries = rng.integers(-1, 2, many), rng.integers(-1, 2, count)
    grouped, masked = data.draw(st.booleans()), data.draw(st.booleans())
    where = rng.random(many) < 0.7 if masked else np.ones(many, bool)
    allowed = np.broadcast_to(where, (count, many))
    options = {"where": where} if masked else {}
    if grouped:
        allowed = where & ((of_boxes == -1) | (of_boxes == of_queries[:, None]))
        options["groups"] = of_queries
    scene = rb.Scene(rb.Boxes(*boxes), groups=of_boxes if grouped else None)
    check_points(scene, world_of(boxes, allowed), pairs.origins, rng, **options)
    ends = pairs.origins, pairs.directions
    others = BoxArrays(np.minimum(*ends), np.maximum(*ends))
    check_overlapping(scene, world_of(boxes, allowed), others, **options)
