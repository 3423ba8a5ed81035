"""Queries of one class, each added by one call: all geometries and traversals, held to Fractions."""

import itertools
from collections import Counter
from typing import NamedTuple

import numpy as np
import pytest

import exact_instances
import raybox as rb
from exact import INF, rounded
from last import QUERY
from raybox.casting import cast
from raybox.compiler.buffer_pool import SizedPool
from raybox.compiler.struct_ref import struct
from raybox.queries import batches, per_ray, table
from raybox.queries.number_query import N, number_query
from raybox.traversal import packet_batches
from raybox.traversal.workspace import make_workspace, work_counts
from raybox.validation import Ints
from sorting import sort_more_than
from test_scene_mesh import CUBE

pytestmark = [pytest.mark.long, pytest.mark.jit]


@struct
class Parity(NamedTuple):
    """Whether the number of primitives that each ray hits is odd."""

    numbers: Ints

    def merge(self, one: N, other: N) -> N:
        """Return the parity of both together."""
        return one ^ other


PARITY = number_query("parity", Parity, np.int8)


@pytest.fixture(autouse=True)
def added():
    """Add the queries for the tests of this module alone."""
    for query in (QUERY, PARITY):
        table.add(query)
    yield
    for query in (QUERY, PARITY):
        del table.QUERIES[query.name]


@pytest.fixture
def work(monkeypatch):
    """Count tests of rays and nodes, and candidates resolved, of streams and of packets; sort few rays."""
    sort_more_than(monkeypatch, 64)
    monkeypatch.setattr(batches, "_WORKSPACES", SizedPool(make_workspace))
    monkeypatch.setattr(batches, "_PACKETS", SizedPool(packet_batches.make_packets))

    def counted() -> tuple[Counter, Counter]:
        streams = itertools.chain.from_iterable(batches._WORKSPACES._free.values())
        packets = (workspace for _, workspace in itertools.chain(*batches._PACKETS._free.values()))
        return tuple(_total(workspaces) for workspaces in (streams, packets))

    return counted


def _total(workspaces) -> Counter:
    total = Counter()
    for workspace in workspaces:
        counts = work_counts(workspace)
        total["nodes"] += int(counts.list_tests + counts.single_tests)
        total["candidates"] += int(counts.candidates)
    return total


def last_of(hits):
    """Return the hit with the largest t; of several, the first: hits are sorted by t, geometry, index."""
    return max(hits, key=lambda hit: hit.t, default=None)


def check(scene, rays, *geometries, where=None, **options) -> Counter:
    """Compare the query's results with Fractions, bit for bit; count hits, misses, touches and ties."""
    truth = exact_instances.along(rays, *geometries, where=None if where is None else [where])
    expected = [last_of(hits) for hits in truth]
    hits = scene._run(QUERY, rays, where=where, **options)
    for name, miss in (("index", -1), ("primitive", -1), ("geometry", -1)):
        column = [miss if hit is None else getattr(hit, name) for hit in expected]
        np.testing.assert_array_equal(getattr(hits, name), column, err_msg=name)
    np.testing.assert_array_equal(hits.t, [INF if hit is None else rounded(hit.t) for hit in expected])
    counts = Counter(hit=0, miss=0, touch=0, tie=0, crossed=0, unlike=0)
    for last, row in zip(expected, truth, strict=True):
        counts["miss" if last is None else "hit"] += 1
        others = [hit for hit in row if hit is not last]
        counts["touch"] += bool(last and last.touch)
        counts["tie"] += any(hit.t == last.t for hit in others)
        counts["crossed"] += any(hit.t == last.t and hit.geometry != last.geometry for hit in others)
        counts["unlike"] += any(hit.t != last.t and rounded(hit.t) == rounded(last.t) for hit in others)
    return counts


def grid_rays(seed, count) -> rb.Rays:
    """Return rays between points of a grid, some without direction or past their range, and any rays."""
    rng = np.random.default_rng(seed)
    origins = rng.integers(-6, 7, (count, 3)) / 2
    ways = rng.integers(-2, 3, (count, 3)) * np.where(rng.random((count, 1)) < 0.1, 0.0, 1.0)
    free = rng.random((count, 1)) < 0.4
    origins = np.where(free, rng.uniform(-4, 4, (count, 3)), origins)
    ways = np.where(free, rng.uniform(-2, 2, (count, 3)) - origins, ways)
    low = rng.choice([0.0, 0.0, 1.0, -INF, -1.0], count)
    high = np.maximum(low, rng.choice([INF, INF, 1.0, 2.0], count))
    return rb.Rays(origins, ways, t_min=low, t_max=high)


def cube_rays(seed, count) -> rb.Rays:
    """Return rays through points of a grid in and around the unit cube; some end soon."""
    rng = np.random.default_rng(seed)
    origins = rng.integers(-4, 9, (count, 3)) / 2
    ends = np.where(rng.random(count) < 0.3, 0.01, INF)
    return rb.Rays(origins, rng.integers(-1, 6, (count, 3)) / 4 - origins, t_max=ends)


def picture() -> rb.Rays:
    """Return rays from one point through pixels, row by row: some run through corners of a grid."""
    x, y = (a.ravel() for a in np.meshgrid(np.arange(32.0), np.arange(8.0)))
    goals = np.stack([x / 16 - 1.0, y / 8 - 0.5, np.zeros(x.size)], axis=1)
    eyes = np.array([[-2.0, -1.75, -6.0], [-1.75, -1.75, -5.5]])
    origins = np.repeat(eyes, x.size, axis=0)
    return rb.Rays(origins, np.concatenate([goals, goals]) - origins)


def cells(seed, share=0.1) -> rb.Boxes:
    """Return some cells of a grid, a few of them twice, and boxes here and there."""
    rng = np.random.default_rng(seed)
    lower = np.stack(np.meshgrid(*[np.arange(-2.0, 2.0, 0.5)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    lower = lower[rng.random(len(lower)) < share]
    lower = np.concatenate([lower, lower[::3]])
    loose = rng.uniform(-3, 3, (12, 3))
    return rb.Boxes(np.concatenate([lower, loose]), np.concatenate([lower + 0.5, loose + 0.4]))


def cubes() -> rb.Instances:
    """Return copies of a cube of triangles, where grid_rays goes: some share faces, one is there twice."""
    places = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [-2, -1, 0], [0, 0, 0]])
    maps = np.concatenate([np.tile(np.eye(3), (5, 1, 1)), places[:, :, None]], axis=2)
    return rb.Instances(rb.Mesh(*CUBE), maps)


def test_boxes_in_streams(work):
    boxes = cells(1)
    counts = check(rb.Scene(boxes), grid_rays(2, 400), boxes)
    assert min(counts["hit"], counts["miss"], 2 * counts["touch"], 2 * counts["tie"]) > 50, counts
    streams, _ = work()
    assert min(streams["nodes"], streams["candidates"]) > 100, streams


def test_boxes_in_packets(work):
    """Rays that may hit more boxes than a packet can leave undecided are deferred to streams."""
    boxes = cells(3, share=0.1)
    counts = check(rb.Scene(boxes), picture(), boxes, workers=1)
    assert min(counts["hit"], counts["miss"], 2 * counts["tie"]) > 50, counts
    streams, packets = work()
    assert min(streams["nodes"], streams["candidates"]) > 50, streams
    assert packets["nodes"] > 10, packets
    assert packets["candidates"] > 50, packets


def test_times_that_round_to_one_float64(work):
    """Plates so close to each other that only exact times differ."""
    low = np.stack([np.full(3, -9.0), np.full(3, -9.0), 2.0 + 2.0**-51 * np.array([0, 2, 1])], axis=1)
    plates = rb.Boxes(low, low + np.array([18.0, 18.0, 0.0]))
    rays = picture()
    origins = rays.origins - np.array([0.0, 0.0, 1000.0])
    rays = rb.Rays(origins, np.tile([2.0**-12, 2.0**-12, 1.0], (len(origins), 1)))
    counts = check(rb.Scene(plates), rays, plates)
    assert counts["unlike"] == counts["hit"] > 400, counts
    assert work()[1]["candidates"] > 400


def test_where():
    boxes = cells(4)
    counts = check(rb.Scene(boxes), grid_rays(5, 80), boxes, where=np.arange(len(boxes)) % 2 == 0)
    assert min(counts["hit"], counts["miss"]) > 10, counts


def test_a_mesh_in_streams(work):
    mesh = rb.Mesh(*CUBE)
    counts = check(rb.Scene(mesh), cube_rays(6, 600), mesh)
    assert min(counts["hit"], counts["miss"], 2 * counts["tie"]) > 50, counts
    streams, _ = work()
    assert min(streams["nodes"], streams["candidates"]) > 100, streams


def test_instances(monkeypatch):
    fallback, undecided = per_ray.undecided_hits, []

    def recorded(job):
        for hits in fallback(job):
            undecided.append(hits)
            yield hits

    monkeypatch.setattr(per_ray, "undecided_hits", recorded)
    quaternions = [[1, 1, 0, 0], [1, 0, 1, 0], [1, 1, 1, 1], [1, 2, 2, 0], [1, 0, 0, 0]]
    places = np.arange(15.0).reshape(5, 3) / 4
    turned = rb.Instances.from_poses(cells(8), places, quaternions=np.array(quaternions))
    for instances, count in ((cubes(), 120), (turned, 60)):
        counts = check(rb.Scene(instances), cube_rays(7, count), instances)
        assert min(counts["hit"], counts["miss"], counts["tie"]) > 5, counts
    assert sum(hits.index.size > 1 and hits.rank[-1] == hits.rank[-2] for hits in undecided) > 5
    assert sum(hits.index.size > 1 and hits.rank[-1] != hits.rank[-2] for hits in undecided) > 5


def test_several_geometries():
    """Faces of the mesh and of its copies share their times: the geometry that comes first has them."""
    geometries = cells(11), rb.Mesh(*CUBE), cubes()
    counts = check(rb.Scene(list(geometries)), cube_rays(12, 150), *geometries)
    assert min(counts["hit"], counts["miss"], counts["tie"], 2 * counts["crossed"]) > 15, counts


def test_a_file_has_its_columns(tmp_path):
    boxes, rays = cells(4), grid_rays(13, 50)
    scene, hits = rb.Scene(boxes), rb.Scene(boxes)._run(QUERY, rays)
    rb.save(tmp_path / "rays.npz", rays)
    cast(scene, tmp_path / "rays.npz", tmp_path / "hits.npz", query="last")
    with np.load(tmp_path / "hits.npz") as columns:
        np.testing.assert_array_equal(columns["index"], hits.index)
        np.testing.assert_array_equal(columns["t"], hits.t)
    assert 10 < np.count_nonzero(hits.hit) < 50
    cast(scene, tmp_path / "rays.npz", tmp_path / "numbers.npz", query="parity")
    with np.load(tmp_path / "numbers.npz") as columns:
        np.testing.assert_array_equal(columns["parity"], scene.count(rays) % 2)


@pytest.mark.parametrize("rays", [grid_rays(14, 400), picture()], ids=["streams", "packets"])
def test_a_number_of_its_own(work, rays):
    """Neither a sum, nor decided by one hit: what is merged twice, or not at all, shows."""
    mesh, odd = rb.Mesh(*CUBE), []
    for geometry in (cells(1), mesh, cubes(), [cells(3), mesh, cells(11)]):
        scene = rb.Scene(geometry)
        counts = scene.count(rays)
        np.testing.assert_array_equal(scene._run(PARITY, rays), counts % 2)
        odd.append(counts % 2)
    assert min(np.bincount(np.concatenate(odd))) > 100
    assert sum(work()[0].values()) > 100
