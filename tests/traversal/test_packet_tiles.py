"""Tiles of pictures: every ray is in one, and results are those of Fractions, whatever the stride is."""

from collections import Counter
from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import exact
import raybox as rb
from aim import INF, Pairs
from raybox.bvh.build import build
from raybox.compiler.buffer_pool import SizedPool
from raybox.queries import batches, scheduler
from raybox.threads import chunks
from raybox.traversal import packet_batches, packet_tiles
from raybox.traversal.packet_batches import seem_coherent
from raybox.traversal.packet_tiles import LONGEST_ROW, PacketForm, row_length, stride_of
from raybox.traversal.ray_setup import CENTER, GRAIN, SCALE, frame_of
from raybox.traversal.workspace import work_counts
from scenes import random_scene
from test_many_rays import run_query, truth
from test_packet import cells, last_workspace, packet_calls  # noqa: F401  # a fixture

QUERIES = ["nearest", "occluded", "count", "all"]
NUMBERS = frame_of(build(*cells(93))).numbers


# The width of a picture


def picture(width, height, eye=(0.1, -6.0, 2.0), seed=0, **noise):
    """Return origins and directions of a camera that looks at the scene, row after row."""
    rng = np.random.default_rng(seed)
    x, y = (a.ravel() for a in np.meshgrid(np.arange(width) - 0.3 * width, np.arange(height) - 0.9 * height))
    step = noise.get("step", 3.6 / max(width, height))
    goals = np.stack([x * step, 0.0 * x, -y * step], axis=1)
    if "jitter" in noise:
        goals += rng.uniform(-0.5, 0.5, goals.shape) * noise["jitter"] * step
    eyes = np.tile(eye, (len(x), 1))
    if "parallel" in noise:
        return goals + np.array(eye), np.tile([0.01, 1.0, -0.2], (len(x), 1))
    return eyes, goals - eyes


@pytest.mark.parametrize("width", [33, 40, 64, 100, 255, 256, 1000, 2047])
@pytest.mark.parametrize("noise", [{}, {"jitter": 0.8}, {"parallel": True}])
def test_the_width_of_pictures_is_found(width, noise):
    rays = rb.Rays(*picture(width, 60, **noise))._rows()
    for begin in (0, 1, 7, width - 1, width, 2 * width + 5):
        assert row_length(rays, NUMBERS, begin, 60 * width, 5.0) == width, begin


def test_rays_in_no_picture_have_no_width():
    rng = np.random.default_rng(3)
    eyes, ways = picture(64, 64)
    sweep = np.stack([np.cos(np.arange(4096) / 700), np.sin(np.arange(4096) / 700), np.full(4096, 0.1)], 1)
    tall = ways.copy()
    tall[:, 2] *= 30.0  # rows are farther apart than tiles may be high
    for o, d in (
        (eyes, rng.standard_normal(ways.shape)),
        (rng.random(eyes.shape), ways[rng.permutation(len(ways))]),
        (eyes, np.tile(ways[:1], (len(ways), 1))),
        (eyes, 0.0 * ways),
        (eyes, sweep),
        (eyes, tall),
        (eyes[:64], ways[:64]),
        (eyes[:130], ways[:130]),
    ):
        assert row_length(rb.Rays(o, d)._rows(), NUMBERS, 0, len(o), 5.0) == 0
    wide = rb.Rays(*picture(LONGEST_ROW + 1, 5))._rows()
    assert row_length(wide, NUMBERS, 0, len(wide.origins), 5.0) == 0
    lost = ways.copy()
    lost[::5] = np.nan
    assert row_length(rb.Rays(eyes, lost, invalid="miss")._rows(), NUMBERS, 0, len(eyes), 5.0) == 0


@pytest.mark.parametrize(("length", "stride"), [(0, 4), (1, 4), (5, 4), (6, 8), (64, 64), (65, 64), (67, 68)])
def test_strides_are_widths_rounded_to_fours(length, stride):
    assert stride_of(length) == stride


def test_the_distance_between_origins_counts_as_often_as_the_form_says():
    """Sixteen rays are four boxes apart: by their origins, or by their directions."""
    box = NUMBERS[GRAIN] / NUMBERS[SCALE]
    along = np.linspace(0.0, 4.0 * box, 16)[:, None] * [1.0, 0.0, 0.0]
    eye, ways = NUMBERS[CENTER : CENTER + 3] - [0.0, 0.0, 2.0], np.tile([0.0, 0.0, 1.0], (16, 1))
    origins_apart = rb.Rays(eye + along, ways)._rows()
    directions_apart = rb.Rays(np.tile(eye, (16, 1)), ways + along / 2.0)._rows()
    for times, one, other in ((0.5, True, True), (1.0, True, True), (1.5, False, True), (3.0, False, True)):
        form = PacketForm(4, 5.0, times)
        assert seem_coherent(origins_apart, NUMBERS, 0, 16, form) == one, times
        assert seem_coherent(directions_apart, NUMBERS, 0, 16, form) == other, times
    assert not seem_coherent(origins_apart, NUMBERS, 0, 16, PacketForm(4, 3.9, 1.0))
    assert not seem_coherent(directions_apart, NUMBERS, 0, 16, PacketForm(4, 3.9, 1.0))


def test_only_at_triangles_and_in_no_picture_origins_count_more(monkeypatch):
    """Wider packets take less time in pictures, and at boxes."""
    forms, call = [], packet_batches.seem_coherent

    def spy(rays, numbers, begin, end, form):
        forms.append(form)
        return call(rays, numbers, begin, end, form)

    monkeypatch.setattr(packet_batches, "seem_coherent", spy)
    lower, upper = cells(93)
    corners = np.stack([lower, upper, np.where([True, False, False], lower, upper)], axis=1)
    mesh = rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(lower)).reshape(-1, 3))
    for geometry, origins in ((rb.Boxes(lower, upper), {1.0}), (mesh, {1.0, 3.0})):
        forms.clear()
        scene, whole = rb.Scene(geometry), rb.Rays(*picture(100, 100))
        for rays in (whole, whole[np.random.default_rng(3).random(10_000) < 0.6]):
            scene.occluded(rays)
        assert {form.origins for form in forms} == origins
        assert all((form.stride == 4) == (form.origins == 3.0) for form in forms if geometry is mesh)


# Results


def view(width, count, seed):
    """Return the first `count` rays of a picture: mixed signs, ends of ranges, zero directions."""
    rng = np.random.default_rng([seed, width])
    eye = rng.integers(-1, 2, 3) * 0.25 - [0.0, 5.0, 0.0]
    origins, ways = picture(width, -(-count // width), eye=eye, step=2.0**-5)
    origins, ways = origins[:count], ways[:count].copy()
    low, high = np.zeros(count), np.full(count, INF)
    some = rng.integers(0, count, 6)
    high[some[:2]], low[some[2:4]] = 4.0 / 5.0, -1.0
    low[some[4]], high[some[4]] = INF, -INF
    ways[some[5]] = 0.0
    ways[rng.integers(0, count, 3), rng.integers(0, 3, 3)] *= -1.0
    return Pairs(origins, ways, low, high, *(np.concatenate([x, x[::3]]) for x in cells(93)))  # some twice


@pytest.fixture
def strides(monkeypatch):
    """Set the length of rows that is found, and record strides of the tiles that are looked at."""
    lengths, used = [0], Counter()
    monkeypatch.setattr(batches, "row_length", lambda *_: lengths[0])
    call = packet_tiles.stride_of

    def spy(length):
        used[call(length)] += 1
        return call(length)

    monkeypatch.setattr(batches, "stride_of", spy)
    return lengths


@pytest.mark.parametrize("widths", [range(1, 7), range(7, 13), range(13, 18), (20, 31, 32, 50)])
def test_pictures_of_any_width(widths, packet_calls, strides):  # noqa: F811
    """The rows' length may also be taken for another one."""
    counts = Counter()
    for width in widths:
        for count in (96, 211):
            pairs = view(width, count, 11)
            found = list(exact.along(*pairs))
            for length in (width, 0, 4, 9, 21):
                strides[0] = length
                before = len(packet_calls)
                for query in QUERIES:
                    assert run_query(query, pairs) == truth(query, found), (query, count, length)
                in_packets = sum(number - left for left, number in packet_calls[before:])
                counts["tiles" if length == width else "others"] += in_packets
            counts.update("hit" if row else "miss" for row in found)
            counts["tie"] += sum(exact.ties(row) > 0 for row in found if row)
    assert min(counts.values()) > 20, counts
    assert counts["tiles"] > 1000, counts


@cache
def viewed(width, count) -> tuple[Pairs, list[list[exact.Found]]]:
    """Return a picture, and the exact hits of each ray."""
    pairs = view(width, count, 12)
    return pairs, list(exact.along(*pairs))


@pytest.mark.long
@pytest.mark.parametrize("group", [16, 48, 128, 4096])
@pytest.mark.parametrize("first", [9, 40, 100])
def test_chunks_groups_and_threads_cut_bands(group, first, packet_calls, strides, monkeypatch):  # noqa: F811
    """Bands do not fit into groups, or chunks end inside of them."""
    monkeypatch.setattr(batches, "GROUP", group)
    monkeypatch.setattr(scheduler, "chunk_runner", chunks.chunk_runner)
    monkeypatch.setattr(chunks, "_FIRST", first)
    monkeypatch.setattr(batches, "_PACKET_CHUNK", first)
    for width, count in ((12, 640), (30, 531), (31, 530)):
        pairs, found = viewed(width, count)
        for strides[0], query, workers in product((0, width), QUERIES, (1, 3)):
            assert run_query(query, pairs, workers=workers) == truth(query, found), (query, width)
    assert sum(left for left, _ in packet_calls) < sum(number for _, number in packet_calls)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 40), st.integers(65, 200), st.integers(0, 40), st.integers(0, 2**32))
def test_any_picture_and_any_stride(packet_calls, strides, width, count, length, seed):  # noqa: F811
    pairs = view(width, count, seed)
    strides[0] = length
    found = list(exact.along(*pairs))
    for query in QUERIES:
        assert run_query(query, pairs) == truth(query, found)


@pytest.mark.core
def test_cameras_and_rays_with_nan(packet_calls):  # noqa: F811
    """Rays of a camera, with one origin and with one each, and some that are not valid."""
    scene = rb.Scene(rb.Boxes(*random_scene(5, 300, 1, size=0.3)[4:]))
    for width in (37, 64, 90):
        rays = rb.Rays.pinhole([0.5, -3, 1], [0.5, 0.5, 0.5], up=[0, 0, 1], fov=40, width=width, height=40)
        o, d = rays.origins.copy(), rays.directions.copy()
        lost = np.random.default_rng(width).integers(0, width, 9)
        some_rays = rb.Rays(o.reshape(-1, 3)[::7], d.reshape(-1, 3)[::7])
        small = [scene.nearest(rb.Rays(o[row], d[row])) for row in range(40)]
        want = [np.stack([getattr(hits, name) for hits in small]) for name in ("index", "t")]
        strange = d.copy()
        strange[11, lost] = np.nan
        for some in (rays, rb.Rays(o, d), rb.Rays(o[0, 0], d)):
            got = scene.nearest(some)
            np.testing.assert_array_equal(got.index, want[0])
            np.testing.assert_array_equal(got.t, want[1])
        for origins in (o, o[0, 0]):
            got = scene.nearest(rb.Rays(origins, strange, invalid="miss"))
            hit = np.ones(got.shape, bool)
            hit[11, lost] = False
            assert (got.index[~hit] == -1).all()
            np.testing.assert_array_equal(got.index[hit], want[0][hit])
        assert scene.nearest(some_rays).index.size
    assert packet_calls


WORK = {"nearest": (19_275, 53), "occluded": (19_236, 95), "count": (24_986, 43)}


@pytest.mark.parametrize("query", WORK)
def test_nodes_tested_by_tiles(query, packet_calls, strides, monkeypatch):  # noqa: F811
    """Golden: packets times nodes tested in lists, nodes tested for single packets, of tiles."""
    scene = random_scene(98, 10_000, 1, size=0.05)[4:]
    x, y = (a.ravel() for a in np.meshgrid(*[np.linspace(-0.075, 0.075, 128)] * 2))
    ways = np.stack([x, y, np.ones(len(x))], axis=1)
    eye = np.tile([0.013, 0.027, -3.0], (len(x), 1))
    work = {}
    for length in (0, 128):
        strides[0] = length
        monkeypatch.setattr(batches, "_PACKETS", SizedPool(packet_batches.make_packets))
        run_query(query, Pairs(eye, ways, np.zeros(len(x)), np.full(len(x), INF), *scene))
        counts = work_counts(last_workspace()[1])
        work[length] = counts.list_tests, counts.single_tests
    assert work[128] == WORK[query]
    assert work[128][0] < 0.9 * work[0][0], work
