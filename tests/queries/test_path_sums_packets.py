"""`integrate` in packets: sums of neighbouring rays against Fractions, within the bound that it states."""

from collections import Counter

import numpy as np
import pytest

import raybox as rb
from aim import INF, Pairs
from core_marks import with_core
from path_truth import assert_sums, count_cases, integrals, paths
from ray_cases import as_rays_or_miss
from raybox.compiler.buffer_pool import SizedPool
from raybox.queries.path_sums import stream
from raybox.traversal.ray_setup import LANES
from raybox.traversal.workspace import MAX_UNDECIDED
from scenes import random_scene
from sorting import sort_more_than
from test_many_rays import ties
from test_packet import (  # noqa: F401  # fixtures
    cells,
    last_workspace,
    packet_calls,
    packets_with_undecided,
    picture,
    plates,
    select,
    stack,
    undecided_counts,
)

MIXED = [0.0, 1.0, -1.0, 3.5, -0.1]


def values_of(pairs, seed=0):
    """Return numbers of full mantissas for the boxes, and some special ones."""
    rng, size = np.random.default_rng(seed), len(pairs.lower)
    return np.where(rng.random(size) < 0.3, rng.choice(MIXED, size), rng.normal(size=size))


def check(pairs, rows=None, where=None, **options) -> Counter:
    """Compare sums of values, and lengths, with Fractions; return what was seen."""
    boxes, rays, values = rb.Boxes(*pairs[4:]), as_rays_or_miss(pairs), values_of(pairs)
    scene, counts = rb.Scene(boxes), Counter()
    if rows is None:
        rows = paths(rays, boxes, where=None if where is None else [where])
    count_cases(rows, counts)
    how = {"where": where, **options}
    assert_sums(scene.integrate(rays, values, **how), integrals(rows, [values]), counts)
    lengths = scene.integrate(rays, **how)
    assert_sums(lengths, integrals(rows, [None]), counts)
    assert not (lengths < 0.0).any()
    return counts


@pytest.fixture(scope="module")
def pictures():
    """Return two scenes, one full of ties, and their paths."""
    rays = picture(92)
    some = [x[340:] for x in rays]
    both = [Pairs(*rays, *cells(93)), Pairs(*some, *ties(97))]
    return [(pairs, paths(as_rays_or_miss(pairs), rb.Boxes(*pairs[4:]))) for pairs in both]


@pytest.mark.long
def test_pictures_of_scenes_full_of_ties(pictures, packet_calls):  # noqa: F811
    counts, undecided = Counter(), 0
    for pairs, rows in pictures:
        counts += check(pairs, rows)
        undecided += packets_with_undecided()
    assert packet_calls[0][0] == 0
    assert undecided > 5
    assert min(counts[case] for case in ("hit", "miss", "touch", "tie", "inside", "exact", "near")) > 10, (
        counts
    )


@pytest.mark.parametrize("length", [0, 11, 32])
def test_tiles_of_pictures(length, pictures, packet_calls, monkeypatch):  # noqa: F811
    """Pictures of 32 columns, whose width may also be taken for another one."""
    monkeypatch.setattr("raybox.queries.batches.row_length", lambda *_: length)
    for pairs, rows in pictures:
        check(pairs, rows)
    left, number = packet_calls[0]
    assert left < number


@pytest.mark.parametrize("n", [65, 79, 80, 81, 127, 640])
@pytest.mark.parametrize("group", [16, 48, 4096])
def test_any_number_of_rays_and_packets(n, group, pictures, packet_calls, monkeypatch):  # noqa: F811
    monkeypatch.setattr("raybox.queries.batches.GROUP", group)
    pairs, rows = select(*pictures[0], np.arange(n))
    check(pairs, rows)
    assert packet_calls[0][0] < n


def test_rays_of_both_kinds_in_one_batch(pictures, packet_calls):  # noqa: F811
    rng = np.random.default_rng(95)
    order = np.arange(640).reshape(-1, LANES)
    order[1::3] = rng.integers(0, 640, order[1::3].shape)
    check(*select(*pictures[0], order.ravel()))
    left, number = packet_calls[0]
    assert number // 4 < left < number


def test_where_applies_to_packets(pictures, packet_calls):  # noqa: F811
    pairs, _ = select(*pictures[0], np.arange(320))
    counts = check(pairs, where=np.random.default_rng(94).random(len(pairs.lower)) < 0.4)
    assert counts["hit"] > 50
    assert packet_calls[0][0] < packet_calls[0][1]


@pytest.mark.parametrize("seed", with_core(range(3), 0))
def test_full_mantissas(seed, packet_calls):  # noqa: F811
    """Pictures from outside and inside, at places of other sizes."""
    rng = np.random.default_rng([96, seed])
    scale, shift = rng.choice([1e-30, 1.0, 3e4]), rng.normal(size=3) * rng.choice([0.0, 1e3])
    lower, upper = random_scene(seed, 200, 1, size=0.6)[4:]
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-0.1, 0.1, 32), np.linspace(-0.2, 0.2, 4)))
    eye = np.array([0.1, -0.2, 0.3 if seed % 2 else -3.0]) + 0.1 * rng.normal(size=3)
    ways = np.stack([x, y, np.ones_like(x)], axis=1) * rng.uniform(1.0, 2.0, (8, 1)).repeat(LANES, axis=0)
    low, high = rng.choice([0.0, 1.0, -2.0], 128), rng.choice([2.5, 7.0, INF], 128)
    numbers = np.tile((eye + shift) * scale, (128, 1)), ways * scale, low, high
    counts = check(Pairs(*numbers, (lower + shift) * scale, (upper + shift) * scale))
    assert packet_calls[0][0] < 128
    assert counts["hit"] > 30, counts


@pytest.mark.parametrize("number", [1, MAX_UNDECIDED, MAX_UNDECIDED + 1, 3 * MAX_UNDECIDED])
@pytest.mark.parametrize("flat", [True, False])
def test_boxes_that_stay_undecided(number, flat, packet_calls):  # noqa: F811
    """Flat plates are undecided until the end; rays with too many of them are left to streams."""
    counts = check(plates(number, flat))
    assert counts["zero" if flat else "tie"] >= (0 if number == 1 and not flat else 100)
    assert (packet_calls[0][0] > 100) == (flat and number > MAX_UNDECIDED)


@pytest.mark.core
@pytest.mark.parametrize("group", [16, 4096])
def test_rays_that_run_along_faces(group, packet_calls, monkeypatch):  # noqa: F811
    """They are undecided in float32, beside certain hits, and their paths are long."""
    rng = np.random.default_rng(97)
    lower = np.array([[0.0, -9.0, 1.0], [0.0, -9.0, 3.0], [-0.5, -9.0, 5.0], [-9.0, -9.0, 90.0]])
    upper = lower + np.array([9.0, 18.0, 1.5])
    x = np.where(
        np.arange(256) % 3 == 0, rng.choice([-1e-9, 0.0, 1e-9, 2e-9], 256), np.linspace(-0.3, 0.4, 256)
    )
    origins = np.stack([x, 0.0 * x, -1.0 + 0.0 * x], axis=1)
    pairs = Pairs(origins, np.tile([0.0, 0.01, 1.0], (256, 1)), 0.0 * x, np.full(256, 7.0), lower, upper)
    monkeypatch.setattr("raybox.queries.batches.GROUP", group)
    counts = check(pairs)
    assert packet_calls[0][0] == 0
    (*_, undecided), _ = last_workspace()
    assert group == 16 or np.count_nonzero(undecided[: 256 // LANES]) > 10
    assert min(counts["hit"], counts["touch"]) > 15, counts


def test_rays_that_float64_cannot_decide(undecided_counts):  # noqa: F811
    """Through edges of boxes."""
    pairs = plates(3, flat=True)
    pairs.lower[:3, 2] = pairs.upper[:3, 2] = 1.0 + 2.0**-52 * np.array([2, 0, 1])
    pairs.origins[:, 0] = -2.0 * pairs.directions[:, 0]
    pairs.directions[:, 1] = np.linspace(0.001, 0.01, 256)
    pairs.lower[3:, 0] += 50.0
    pairs.upper[3:, 0] += 50.0
    check(pairs)
    assert undecided_counts[-1] > 100


@pytest.mark.parametrize("deferred", [True, False])
def test_rays_are_listed_once_for_the_exact_fallback(deferred, packet_calls, undecided_counts):  # noqa: F811
    """All directions are out of range; each ray hits a box for certain, and others are undecided."""
    pairs = plates(MAX_UNDECIDED + 1 if deferred else 3, flat=True)
    if not deferred:  # through edges
        pairs.origins[:, 0] = -2.0 * pairs.directions[:, 0]
        pairs.lower[:3, 2] = pairs.upper[:3, 2] = 1.0
        pairs.directions[:, 1] = np.linspace(0.001, 0.01, 256)
    pairs.lower[-1], pairs.upper[-1] = [-9.0, -9.0, 0.0], [9.0, 9.0, 0.5]  # all rays hit it, and hit it first
    pairs = pairs._replace(lower=pairs.lower[::-1].copy(), upper=pairs.upper[::-1].copy())
    counts = check(pairs._replace(directions=np.ldexp(pairs.directions, 62)))
    assert counts["miss"] == 0
    assert counts["zero"] > 100
    assert len(packet_calls) == 2
    for (left, rays), listed in zip(packet_calls, undecided_counts, strict=True):
        assert listed == rays - left
        assert (left > 100) == deferred


@pytest.mark.long
@pytest.mark.parametrize("each", [0, 2])
def test_lists_that_are_full(each, packet_calls, monkeypatch):  # noqa: F811
    """What has no room in the list is added at once, in the same order."""
    pairs = stack()
    rays, scene, values = as_rays_or_miss(pairs), rb.Scene(rb.Boxes(*pairs[4:])), values_of(pairs)
    listed = scene.integrate(rays, values)
    monkeypatch.setattr(stream, "_HITS_EACH", each)
    monkeypatch.setattr(stream, "_MEMORY", SizedPool(stream._make_memory))
    counts = check(pairs)
    assert counts["hit"] > 200
    if each == 0:
        np.testing.assert_array_equal(scene.integrate(rays, values), listed)
    assert {left for left, _ in packet_calls} == {0}


@pytest.mark.long
@pytest.mark.parametrize("exponent", [-470, -390, 55, 480])
def test_directions_of_any_size(exponent, pictures, packet_calls, undecided_counts):  # noqa: F811
    """Directions past 2^60 or 2^-400 are computed elsewhere."""
    pairs, _ = select(*pictures[0], np.arange(320))
    rb.Scene(rb.Boxes(*pairs[4:])).integrate(as_rays_or_miss(pairs))
    some = np.arange(320) // LANES % 3 == 0
    scaled = np.where(some[:, None], np.ldexp(pairs.directions, exponent), pairs.directions)
    with np.errstate(over="ignore"):
        low, high = (np.where(some, np.ldexp(x, -exponent), x) for x in (pairs.t_min, pairs.t_max))
    pairs = pairs._replace(directions=scaled, t_min=low, t_max=high)
    counts = check(pairs)
    assert min(counts["hit"], counts["miss"]) > 20
    assert packet_calls[0][0] < packet_calls[0][1]
    more = undecided_counts[1] - undecided_counts[0]
    assert more > some.sum() / 3 if exponent in (-470, 480) else more == 0


def test_boxes_without_end(packet_calls):  # noqa: F811
    """Rays in a half-space have sums without end, or none where signs differ; others have their own."""
    rows = [
        ([-INF, -INF, 5.0], [INF, INF, INF]),
        ([-INF, -9.0, 2.0], [INF, 0.2, 3.0]),
        ([0.2, -9, 1], [9, 9, 2]),
    ]
    lower, upper = (np.array(x, float) for x in zip(*rows, strict=True))
    x = np.linspace(-1.0, 1.0, 256)
    origins = np.stack([x, 0.1 + 0.0 * x, 0.0 * x], axis=1)
    high = np.where(np.arange(256) % 5 == 0, 4.0, INF)
    pairs = Pairs(origins, np.tile([0.01, 0.01, 1.0], (256, 1)), 0.0 * x, high, lower, upper)
    counts = check(pairs)
    assert counts["endless"] > 100
    assert counts["hit"] > 100


def test_reproducible_sums_and_channels_are_left_to_streams(pictures, packet_calls):  # noqa: F811
    pairs, rows = pictures[0]
    check(pairs, rows, reproducible=True)
    scene, rays, values = rb.Scene(rb.Boxes(*pairs[4:])), as_rays_or_miss(pairs), values_of(pairs)
    both = scene.integrate(rays, np.stack([values, -values], axis=1))
    assert not packet_calls
    counts = Counter()
    for c, sign in enumerate((1.0, -1.0)):
        assert_sums(both[:, c], integrals(rows, [sign * values]), counts)


def test_threads_share_packets(pictures, monkeypatch):
    """Lengths that threads add are each ray's own."""
    monkeypatch.setattr("raybox.threads.chunks._FIRST", 40)
    monkeypatch.setattr("raybox.threads.chunks._SMALLEST", 40)
    sort_more_than(monkeypatch, 64)
    for _ in range(4):
        check(*pictures[0], workers=3)
