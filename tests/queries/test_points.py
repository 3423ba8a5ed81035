"""Rays of zero direction: which primitives hold a point, by the same traversals as other rays."""

import numpy as np
import pytest

import exact_instances
import raybox as rb
from aim import INF, Pairs
from raybox.queries import scheduler
from scenes import random_scene
from test_single import run_query

RNG = np.random.default_rng(111)
UNIQUE = 90


def on_lattice(count, dim=3) -> rb.Boxes:
    """Return boxes between lattice points, some flat, that share faces and corners."""
    lower = RNG.integers(-2, 2, (count, dim)) / 2
    return rb.Boxes(lower, lower + RNG.integers(0, 3, (count, dim)) / 2)


def mesh() -> rb.Mesh:
    """Return triangles in planes of the lattice."""
    corners = RNG.integers(-2, 3, (60, 3, 3)) / 2
    corners[np.arange(60), :, RNG.integers(0, 3, 60)] = RNG.integers(-2, 3, (60, 1)) / 2
    return rb.Mesh(corners.reshape(-1, 3), np.arange(180).reshape(-1, 3))


def copies(geometry) -> rb.Instances:
    """Return turned, mirrored and sheared copies whose matrices have small numbers."""
    maps = RNG.choice([-1.0, 0.0, 0.0, 0.5, 1.0], (90, 3, 4))
    return rb.Instances(geometry, maps[np.abs(np.linalg.det(maps[:, :, :3])) > 0][:20])


GEOMETRIES = {
    "boxes": [on_lattice(70)],
    "boxes in the plane": [on_lattice(40, dim=2)],
    "mesh": [mesh()],
    "instances of boxes": [copies(on_lattice(10))],
    "instances of a mesh": [copies(mesh())],
    "several": [on_lattice(40), mesh(), rb.Planes([[1, 0, 0], [1, 1, 0]], [0.5, 1.0])],
}


def points_in(dim) -> rb.Rays:
    """Return lattice points and others, the first of them with t_min = 0 and t_max = inf."""
    origins = np.where(RNG.random((UNIQUE, 1)) < 0.7, RNG.integers(-2, 4, (UNIQUE, dim)) / 2, 0.0)
    origins = np.where(origins.any(axis=1)[:, None], origins, RNG.uniform(-1.2, 1.2, (UNIQUE, dim)))
    low = np.where(
        np.arange(UNIQUE) < 30, 0.0, RNG.choice([0.0, -1.0, 3.0, -INF, 1e300, -1e300, 5e-324], UNIQUE)
    )
    high = np.where(np.arange(UNIQUE) < 30, INF, RNG.choice([INF, 0.0, 1e300], UNIQUE))
    directions = RNG.choice([0.0, -0.0], (UNIQUE, dim))
    return rb.Rays(origins, directions, t_min=low, t_max=np.maximum(low, high))


@pytest.mark.long
@pytest.mark.parametrize("repeats", [1, 12, 30])
@pytest.mark.parametrize("kind", GEOMETRIES)
def test_points_hit_what_holds_them(kind, repeats):
    """In small batches, and in large ones, where they are sorted into streams."""
    geometries = GEOMETRIES[kind]
    once = points_in(geometries[0].ndim_space)
    want = exact_instances.along(once, *geometries)
    rows = np.tile(np.arange(UNIQUE), repeats)
    scene = rb.Scene(geometries if len(geometries) > 1 else geometries[0])
    counts = exact_instances.assert_queries(scene, once[rows], [want[row] for row in rows])
    if "mesh" in kind:  # no point crosses the plane of a triangle
        assert counts["hits"] == 0
        return
    misses = counts["rays"] - counts["hits"]
    assert min(counts["hits"], counts["ties"], counts["touches"], misses) > 10 * repeats, counts


def test_points_among_others_do_not_change_them():
    """Directions of 2^-300 are zero in float32, and still have their octant."""
    pairs = random_scene(112, 900, 1600, size=1.0)
    directions = pairs.directions * np.where(np.arange(1600) % 3 == 1, 2.0**-300, 1.0)[:, None]
    directions[::3] = 0.0
    scene = rb.Scene(rb.Boxes(*pairs[4:]))
    together = scene.all(rb.Rays(pairs.origins, directions))
    for part in range(3):
        apart = scene.all(rb.Rays(pairs.origins[part::3], directions[part::3]))
        assert len(apart.index) > 500
        found = np.flatnonzero(together.ray % 3 == part)
        for name in ("index", "t", "t_enter", "t_exit"):
            np.testing.assert_array_equal(getattr(together, name)[found], getattr(apart, name))
    same = scene.count(rb.Rays(pairs.origins[1::3], pairs.directions[1::3]))
    np.testing.assert_array_equal(scene.count(rb.Rays(pairs.origins[1::3], directions[1::3])), same)


@pytest.mark.parametrize("query", ["nearest", "occluded", "count", "first"])
def test_points_stay_in_streams(query, monkeypatch):
    """Of 3,000 points only those next to a face are decided one by one."""
    exactly = []
    write_exact = scheduler.write_exact
    monkeypatch.setattr(scheduler, "write_exact", lambda *a: exactly.append(len(a[-1])) or write_exact(*a))
    pairs = random_scene(113, 2000, 3000, size=1.0)
    scene = rb.Scene(rb.Boxes(*pairs[4:]))
    options = {"k": 2} if query == "first" else {}
    getattr(scene, query)(rb.Rays(pairs.origins, np.zeros((3000, 3))), **options)
    assert sum(exactly) < 10
    assert scene.count(rb.Rays(pairs.origins, np.zeros((3000, 3)))).sum() > 1000


@pytest.mark.parametrize("query", ["nearest", "occluded", "count", "first"])
@pytest.mark.parametrize("scale", [2.0**-900, 1.0, 2.0**900])
def test_single_points_visit_the_nodes_that_hold_them(query, scale):
    """As many nodes and boxes as a ray that ends where it begins."""
    pairs = random_scene(114, 2000, 500, size=1.0)
    pairs = Pairs(pairs.origins * scale, *pairs[1:4], pairs.lower * scale, pairs.upper * scale)
    points = pairs._replace(directions=0 * pairs.directions)
    ended = pairs._replace(directions=pairs.directions * scale, t_max=np.zeros(500))
    nodes, boxes = run_query(query, points)
    assert boxes == run_query(query, ended)[1] > 100
    assert nodes <= run_query(query, ended)[0] < 500 * 40
