"""Primitives of a user's own: disks and cubes, registered by one call, held to Fractions in every query."""

from collections import Counter
from fractions import Fraction
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cube
import disk
import exact
import raybox as rb
from aim import INF
from compare import assert_nearest, assert_scene
from cube import CubeRows, Cubes
from disk import DiskRows, Disks
from exact import Found, rounded
from raybox.compiler.buffer_pool import SizedPool
from raybox.primitives import table
from raybox.queries import batches, scheduler
from raybox.traversal import packet_batches
from raybox.traversal.workspace import make_workspace, work_counts
from strategies import related, spans
from test_many_rays import at_once

pytestmark = [pytest.mark.long, pytest.mark.jit]

table.add(DiskRows, disk)
table.add(CubeRows, cube)


def hits_of(rays: rb.Rays, disks: Disks, where=None) -> tuple[list[list[Found]], Counter]:
    """Return the hits of each ray, in order, and counts of hits, misses, touches of a rim, and ties.

    With all numbers scaled to whole ones, a hit is a comparison of products; no time is needed for it.
    """
    centers, axes, radii = ([*map(_fractions, disks._rows()[0])], disks._rows()[1].tolist(), disks._rows()[2])
    radii = [Fraction(r) for r in radii.tolist()]
    found, counts = [], Counter()
    for o, d, low, high in zip(rays.origins, rays.directions, rays.t_min, rays.t_max, strict=True):
        row, o, d = [], _fractions(o), _fractions(d)  # noqa: PLW2901
        for i, (c, k, r) in enumerate(zip(centers, axes, radii, strict=True)):
            if d[k] == 0 or (where is not None and not where[i]):
                continue
            t = (c[k] - o[k]) / d[k]
            e = [(o[j] - c[j]) * d[k] + (c[k] - o[k]) * d[j] for j in range(3) if j != k]
            gap = e[0] * e[0] + e[1] * e[1] - (r * d[k]) ** 2
            if gap <= 0 and low <= t <= high:
                plain = rounded(t)
                row.append(Found(i, t, (True, plain, plain, plain, -1, gap == 0)))
                counts["touches"] += gap == 0
                counts["ends"] += t in (low, high)
        row.sort(key=lambda hit: (hit.t, hit.index))
        counts["hits"] += len(row)
        counts["misses"] += len(centers) - len(row)
        counts["ties"] += bool(row) and exact.ties(row)
        found.append(row)
    return found, counts


def _fractions(vector) -> list[Fraction]:
    return [Fraction(x) for x in vector.tolist()]


def full_mantissas(rng, count) -> tuple[Disks, rb.Rays]:
    """Return disks and rays, half of which aim at a rim: the float next to it, inside or outside."""
    disks = Disks(rng.uniform(-2, 2, (40, 3)), rng.integers(0, 3, 40), rng.uniform(0.2, 1.0, 40))
    centers, axes, radii = disks._rows()
    origins, which = rng.uniform(-4, 4, (count, 3)), rng.integers(0, 40, count)
    angle, reach = rng.uniform(0, 2 * np.pi, count), radii[which] * np.where(rng.random(count) < 0.5, 1, 0.7)
    goals = centers[which].copy()
    rows, k = np.arange(count), axes[which]
    goals[rows, (k + 1) % 3] += reach * np.cos(angle)
    goals[rows, (k + 2) % 3] += reach * np.sin(angle)
    return disks, rb.Rays(origins, goals - origins, t_max=rng.choice([0.9, 1.0, INF], count))


def on_grid(rng, count) -> tuple[Disks, rb.Rays]:
    """Return disks and rays of small whole numbers: rims are touched, planes shared or crossed at once."""
    disks = Disks(rng.integers(-3, 4, (40, 3)), rng.integers(0, 3, 40), rng.choice([0, 1, 2, 5], 40))
    rims = np.array([[5, 0], [3, 4], [4, 3], [0, 5], [0, 0], [1, 0], [2, 0]])[rng.integers(0, 7, count)]
    centers, axes, _ = disks._rows()
    which, rows = rng.integers(0, 40, count), np.arange(count)
    goals, k = centers[which].copy(), axes[which]
    goals[rows, (k + 1) % 3] += rims[:, 0] * rng.choice([-1, 1], count)
    goals[rows, (k + 2) % 3] += rims[:, 1] * rng.choice([-1, 1], count)
    directions = rng.choice([-1.0, 0.0, 1.0, 2.0], (count, 3))
    origins = goals - directions * rng.choice([0.0, 1.0, 2.0, 4.0], (count, 1))
    low, high = rng.choice([0.0, -2.0], count), rng.choice([2.0, 4.0, INF], count)
    return disks, rb.Rays(origins, directions, t_min=low, t_max=high)


@pytest.mark.parametrize(("scale", "count"), [(1.0, 1500), (2.0**-400, 500), (2.0**300, 500)])
@pytest.mark.parametrize("make", [full_mantissas, on_grid])
def test_every_query_of_a_scene_of_disks_is_exact(make, scale, count):
    disks, rays = make(np.random.default_rng(120), count)
    centers, axes, radii = disks._rows()
    disks = Disks(centers * scale, axes, radii * scale)
    rays = rb.Rays(rays.origins * scale, rays.directions * scale, t_min=rays.t_min, t_max=rays.t_max)
    scene, where = rb.Scene(disks), np.random.default_rng(121).random(40) < 0.7
    scene.check()
    for mask in (None, where):
        found, counts = hits_of(rays, disks, mask)
        assert_scene(scene, rays, found, where=mask)
        assert min(counts["hits"], counts["misses"]) > 2 * count / 3, counts
        some = min(counts["touches"], counts["ties"], counts["ends"])
        assert make is full_mantissas or some > count / 30, counts
    assert_scene(scene, rays[:30], found[:30], where=where)


def test_disks_are_traversed_in_streams(monkeypatch):
    monkeypatch.setattr(scheduler, "chunk_runner", at_once)
    monkeypatch.setattr(batches, "_WORKSPACES", SizedPool(make_workspace))
    disks, rays = full_mantissas(np.random.default_rng(122), 3000)
    found, _ = hits_of(rays, disks)
    np.testing.assert_array_equal(rb.Scene(disks).count(rays), [len(row) for row in found])
    ((workspace,),) = batches._WORKSPACES._free.values()
    tested = work_counts(workspace)
    assert min(tested.list_tests, tested.node_tests, tested.candidates) > 50


def test_normals_of_disks_are_their_axes():
    disks, rays = full_mantissas(np.random.default_rng(123), 200)
    found, _ = hits_of(rays, disks)
    want = [np.eye(3)[disks._rows().axes[row[0].index]] if row else [np.nan] * 3 for row in found]
    np.testing.assert_array_equal(rb.Scene(disks).nearest(rays).normals, want)
    np.testing.assert_array_equal(rb.Scene(disks).nearest(rays[:5]).normals, want[:5])


@pytest.mark.parametrize("count", [9, 400])
def test_intersect_decides_disks_row_by_row(count):
    disks, rays = on_grid(np.random.default_rng(124), count)
    index = np.random.default_rng(125).integers(0, 40, count)
    own = Disks(*(array[index] for array in disks._rows()))
    hits = rb.intersect(rays, own)
    found, _ = hits_of(rays, own)
    want = [next((hit.plain[1] for hit in row if hit.index == k), INF) for k, row in enumerate(found)]
    assert 0 < np.isfinite(want).sum() < count
    np.testing.assert_array_equal(hits.t, want)
    np.testing.assert_array_equal(hits.index, np.where(np.isfinite(want), np.arange(count), -1))


def test_disks_go_beside_boxes_into_one_scene():
    """Ties are decided exactly, and go to the geometry that comes first."""
    disks, rays = on_grid(np.random.default_rng(126), 300)
    centers, *_ = disks._rows()
    flat = np.where(np.arange(3) == disks._rows().axes[:, None], 0.0, disks._rows().radii[:, None])
    boxes = rb.Boxes(centers - flat, centers + flat)
    hits = rb.Scene([boxes, disks]).nearest(rays)
    one, other = rb.Scene(boxes).nearest(rays), rb.Scene(disks).nearest(rays)
    np.testing.assert_array_equal(hits.t, np.minimum(one.t, other.t))
    assert ((one.t == other.t) & one.hit).sum() > 30
    np.testing.assert_array_equal(hits.geometry, np.where(hits.hit, one.t > other.t, -1))


def test_a_scene_of_disks_is_updated():
    disks, rays = full_mantissas(np.random.default_rng(127), 100)
    centers, axes, radii = disks._rows()
    scene, moved = rb.Scene(disks), Disks(centers[::-1], axes, radii)
    scene.update(moved)
    assert_scene(scene, rays, hits_of(rays, moved)[0])


@pytest.fixture
def without_exact_functions():
    """Register disks by kernels alone."""
    module = ModuleType("kernels")
    vars(module).update({name: item for name, item in vars(disk).items() if name != "EXACT"})
    table.add(DiskRows, module)
    yield
    table.add(DiskRows, disk)


@pytest.mark.usefixtures("without_exact_functions")
def test_kernels_are_enough_for_a_scene_of_one_geometry():
    disks, rays = on_grid(np.random.default_rng(128), 9)
    assert_scene(rb.Scene(disks), rays, hits_of(rays, disks)[0])
    hits = rb.intersect(rays[:, None], disks)
    np.testing.assert_array_equal(hits.hit.sum(axis=1), rb.Scene(disks).count(rays))
    assert hits.hit.any()
    with pytest.raises(
        rb.InvalidInput, match=r"needs exact times of each; Disks has kernels only\. Add EXACT"
    ):
        rb.Scene([disks, disks])


def test_containers_without_kernels_are_refused():
    class Spheres(Disks):
        def _rows(self):
            return (1, 2)

    spheres = Spheres([0.0, 0.0, 0.0], [0], [1.0])
    for wrong in (spheres, Spheres, Disks):
        with pytest.raises(rb.InvalidInput, match="a Scene is made of Boxes, a Grid, a Mesh, Pl"):
            rb.Scene(wrong)
    with pytest.raises(rb.InvalidInput, match=r"geometry must be Boxes, Planes or Mesh; got Spheres\."):
        rb.intersect(rb.Rays([0, 0, 0], [1, 0, 0]), spheres)


@settings(max_examples=60)
@given(data=st.data())
def test_any_disks_and_rays(data):
    """Numbers of every size that are related to each other."""
    count, rays = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    centers = data.draw(related((count, 3)))
    radii = np.abs(data.draw(related((count,))))
    axes = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    origins, directions = data.draw(related((rays, 3))), data.draw(related((rays, 3)))
    t_min, t_max = data.draw(spans())
    disks = Disks(centers, axes, radii)
    some = rb.Rays(origins, directions, t_min=np.full(rays, t_min), t_max=np.full(rays, t_max))
    assert_scene(rb.Scene(disks), some, hits_of(some, disks)[0])


# Cubes


def test_cubes_that_fill_their_boxes_are_traversed_in_packets(monkeypatch):
    monkeypatch.setattr(scheduler, "chunk_runner", at_once)
    monkeypatch.setattr(batches, "_PACKETS", SizedPool(packet_batches.make_packets))
    rng = np.random.default_rng(129)
    cubes = Cubes(rng.integers(-8, 9, (150, 3)) / 4.0, rng.choice([0.0, 0.25, 0.5], 150))
    x, y = (a.ravel() for a in np.meshgrid(np.arange(64) / 16 - 2, np.arange(32) / 8 - 2))
    rays = rb.Rays(np.tile([0.0, 0.0, -6.0], (x.size, 1)), np.stack([x, y, np.full(x.size, 6.0)], axis=1))
    scene = rb.Scene(cubes)
    scene.check()
    arrays = rays.origins, rays.directions, rays.t_min, rays.t_max
    found = list(exact.along(*arrays, *cubes._rows()))
    assert_nearest(scene, rays, found)
    np.testing.assert_array_equal(scene.count(rays), [len(row) for row in found])
    workspaces = [workspace for some in batches._PACKETS._free.values() for _, workspace in some]
    assert workspaces
    tested = work_counts(workspaces[0])
    assert min(tested.list_tests, tested.node_tests) > 10
    counts = Counter("hits" if row else "misses" for row in found)
    counts["ties"] = sum(exact.ties(row) > 0 for row in found if row)
    counts["touches"] = sum(hit.plain[-1] for row in found for hit in row)
    assert min(counts.values()) > 20, counts


def test_cubes_in_streams_and_one_by_one_are_exact():
    rng = np.random.default_rng(130)
    cubes = Cubes(rng.integers(-8, 9, (60, 3)) / 4.0, rng.choice([0.0, 0.25, 0.5], 60))
    origins = rng.integers(-12, 13, (1500, 3)) / 4.0
    rays = rb.Rays(origins, rng.integers(-8, 9, (1500, 3)) / 4.0 - origins)
    found = list(exact.along(rays.origins, rays.directions, rays.t_min, rays.t_max, *cubes._rows()))
    scene = rb.Scene(cubes)
    assert_scene(scene, rays, found)
    assert_scene(scene, rays[:20], found[:20])
