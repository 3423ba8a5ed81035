"""The SIMD kernels of rb.intersect, for runs of pairs and for all pairs, against the truth."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings

import exact
import families
import raybox as rb
import strategies
from aim import Pairs
from compare import assert_hits
from core_marks import with_core
from raybox.primitives import box_pairs
from raybox.primitives.pairs import Pairing
from raybox.primitives.status import MISS_INDEX
from raybox.scene import all_pairs, pairwise

INF = np.inf
PATHS = ("runs", "all pairs")


@pytest.fixture(params=PATHS)
def path(request, monkeypatch) -> str:
    choose_path(monkeypatch, request.param)
    return request.param


def choose_path(monkeypatch, path: str) -> None:
    """Compute all pairs by one of the two kernels."""
    for name in ("_MIN_ALL_PAIRS", "_MIN_ALL_PAIRS_SHORT"):
        monkeypatch.setattr(pairwise, name, 0 if path == "all pairs" else 1 << 60)


def assert_same_on_all_paths(monkeypatch, pairs):
    """Return what all paths return, with the same bits."""
    results = []
    for path in PATHS:
        choose_path(monkeypatch, path)
        results.append(intersect_all(pairs))
        np.testing.assert_array_equal(results[0].index, results[-1].index)
        np.testing.assert_array_equal(results[0].t, results[-1].t)
    return results[0]


def as_rays(pairs, **options) -> rb.Rays:
    return rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3], **options)


def intersect_all(pairs: Pairs, **options):
    return rb.intersect(as_rays(pairs, **options)[:, None], rb.Boxes(*pairs[4:]))


def truth(pairs: Pairs) -> exact.Answers:
    n, m = len(pairs.origins), len(pairs.lower)
    each = (*(np.repeat(x, m, axis=0) for x in pairs[:4]), *(np.tile(x, (n, 1)) for x in pairs[4:]))
    return exact.box_rows(*each)


def assert_index_and_t(hits, want: exact.Answers, m: int) -> None:
    index = np.where(want.hit.reshape(hits.shape), np.arange(m), -1)
    np.testing.assert_array_equal(hits.index, index)
    np.testing.assert_array_equal(hits.t.ravel(), want.t)


# Families


@pytest.mark.parametrize("name", with_core(families.FAMILIES, "voxel_grid"))
def test_all_pairs_of_a_family_are_exact(name, monkeypatch):
    pairs = families.scene(name, 11, n_boxes=37, n_rays=60)
    want = truth(pairs)
    for path in PATHS:
        choose_path(monkeypatch, path)
        hits = intersect_all(pairs)
        assert_index_and_t(hits, want, 37)
        assert name == "denormal_directions" or not np.signbit(hits.t[hits.t == 0.0]).any()
    hits, touches = int(want.hit.sum()), int(want.touch.sum())
    assert 20 < hits < want.hit.size - 20, hits
    assert touches > 1 or name == "generic", touches


@pytest.mark.parametrize("which", ["one ray", "one box"])
@pytest.mark.parametrize("name", families.FAMILIES)
def test_one_against_many_is_exact(name, which):
    pairs = families.scene(name, 12, n_boxes=40, n_rays=40)
    for k in range(0, 40, 8):
        rays, boxes = (slice(k, k + 1), slice(None)) if which == "one ray" else (slice(None), slice(k, k + 1))
        part = Pairs(*(x[rays] for x in pairs[:4]), *(x[boxes] for x in pairs[4:]))
        hits = rb.intersect(as_rays(part), rb.Boxes(*part[4:]))
        assert_index_and_t(hits, truth(part), len(part.lower))


# Sizes: full and partial vectors, blocks and tiles


def cloud(seed: int, n: int, m: int, size: float = 0.3, center=(0.0, 0.0, 0.0)) -> Pairs:
    """Return rays through and past a cloud of boxes; all numbers have full mantissas."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1, 1, (m, 3)) + center
    half = rng.uniform(0, size, (m, 3)) * (rng.random((m, 3)) < 0.95)
    origins, directions = rng.uniform(-1.5, 1.5, (n, 3)) + center, rng.standard_normal((n, 3))
    aims = (corners + half * rng.uniform(-1, 1, (m, 3)))[np.arange(n) % m] - origins
    directions = np.where(rng.random((n, 1)) < 0.5, aims, directions)
    directions[:, 1:] *= rng.random((n, 2)) < 0.9
    low, high = np.sort(rng.uniform(-2, 2, (2, n)), axis=0)
    ends = np.where(rng.random(n) < 0.5, 0.0, low), np.where(rng.random(n) < 0.5, INF, np.abs(high))
    return Pairs(origins, directions, *ends, corners - half, corners + half)


@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 15, 16, 17, 63, 64, 65, 80, 200])
def test_any_number_of_boxes(m, path):
    pairs = cloud(m, 40, m)
    want = truth(pairs)
    assert want.hit.any()
    assert_index_and_t(intersect_all(pairs), want, m)


@pytest.mark.parametrize("n", [*range(17, 34), 1023])
def test_any_number_of_rows(n):
    pairs = cloud(n, n, n, size=1.0)
    want = exact.box_rows(*pairs)
    hits = rb.intersect(as_rays(pairs), rb.Boxes(*pairs[4:]))
    assert_hits(hits, want, np.arange(n))
    assert n / 25 < want.hit.sum() < n


def test_more_boxes_than_a_tile_and_more_rays_than_a_group(monkeypatch):
    pairs = cloud(1, 1100, 1100, size=0.1)
    hits = assert_same_on_all_paths(monkeypatch, pairs)
    some = Pairs(*(x[1060:1070] for x in pairs[:4]), *pairs[4:])
    assert_index_and_t(intersect_all(some), truth(some), 1100)
    assert 1000 < hits.hit.sum() < 500_000


def test_more_candidates_than_the_workspace_holds(monkeypatch):
    pairs = cloud(2, 300, 1500, size=30.0)
    pairs = pairs._replace(directions=np.abs(pairs.directions) + 0.01)  # one group, all of it
    hits = assert_same_on_all_paths(monkeypatch, pairs)
    assert hits.hit.mean() > 0.6
    some = Pairs(*(x[::60] for x in pairs[:4]), *pairs[4:])
    assert_index_and_t(intersect_all(some), truth(some), 1500)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("shape", [(3000, 1), (60, 50), (50,)])
def test_threads_and_chunks_change_nothing(shape, workers):
    n = int(np.prod(shape))
    pairs = cloud(3, n, 50)
    rays, boxes = as_rays(pairs).reshape(*shape), rb.Boxes(*pairs[4:])
    hits = rb.intersect(rays, boxes, workers=workers)
    for k in range(0, n, max(1, n // 7)):
        where = np.unravel_index(k, shape)
        box = range(50) if shape[-1] == 1 else [where[-1]]
        single, place = rb.intersect(rays[where], boxes[box]), where[: len(shape) - (shape[-1] == 1)]
        np.testing.assert_array_equal(hits.t[place], single.t if shape[-1] == 1 else single.t[0])
        np.testing.assert_array_equal(
            hits.index[place], np.where(single.hit, box, -1).reshape(hits.t[place].shape)
        )


@pytest.mark.parametrize("m", [3, 5, 100])
def test_many_rows_of_rays_against_a_row_of_boxes(m):
    pairs = cloud(4, 40 * m, m, size=1.0)
    hits = rb.intersect(as_rays(pairs).reshape(40, m), rb.Boxes(*pairs[4:]))
    want = exact.box_rows(*pairs[:4], *(np.tile(x, (40, 1)) for x in pairs[4:]))
    assert_index_and_t(hits, want, m)
    assert want.hit.sum() > 10


# Limits of float32 and float64


def test_a_stray_box_costs_nothing_but_speed(path):
    pairs = cloud(6, 50, 50, size=0.2)
    lower, upper = pairs.lower.copy(), pairs.upper.copy()
    lower[:3], upper[:3] = [[1e300] * 3, [-1e25] * 3, [-INF] * 3], [[1.5e300] * 3, [-1e24] * 3, [INF] * 3]
    lower[3] = upper[3] = INF
    lower[4, 0] = upper[4, 0] = -INF
    pairs = pairs._replace(lower=lower, upper=upper)
    want = truth(pairs)
    assert_index_and_t(intersect_all(pairs), want, 50)
    assert want.hit.reshape(50, 50)[:, 2].all()
    assert not want.hit.reshape(50, 50)[:, 3:5].any()


@pytest.mark.parametrize("low", [-INF, -1e300, 0.0])
def test_rays_with_zero_direction_on_some_axes(low, path):
    """Minus zero as a direction, unbounded boxes: such an axis has no time, not even an infinite one."""
    signs = np.array(list(product([-1.0, -0.0, 0.0, 1.0], repeat=3)))
    sides = [(-INF, INF), (-INF, 0.0), (0.0, INF), (-0.0, 0.0), (-1.0, 1.0), (1.0, 2.0)]
    lower, upper = np.array(list(product(sides, repeat=3))).transpose(2, 0, 1)
    pairs = Pairs(np.zeros((64, 3)), signs, np.full(64, low), np.full(64, INF), lower, upper)
    want = truth(pairs)
    assert (want.t == -INF).any() == (low == -INF)
    assert_index_and_t(intersect_all(pairs), want, len(lower))


def test_invalid_rays_miss_in_every_kernel(path):
    pairs = Pairs(*(x.copy() for x in cloud(7, 70, 40, size=3.0)))
    bad = [np.nan, INF, -INF, np.nan]
    pairs.origins[:4, 1], pairs.directions[4:8, 2], pairs.t_min[8:10] = bad, bad, np.nan
    pairs.t_min[10], pairs.t_max[10] = 3.0, 2.0
    hits = intersect_all(pairs, invalid="miss")
    assert not hits.hit[:11].any()
    good = Pairs(*(x[11:] for x in pairs[:4]), *pairs[4:])
    assert_index_and_t(intersect_all(good), truth(good), 40)
    np.testing.assert_array_equal(hits.t[11:], intersect_all(good).t)
    for count in (6, 40):  # so few are decided without compiled code
        rows = rb.intersect(as_rays(pairs, invalid="miss")[:count], rb.Boxes(*pairs[4:])[:count])
        np.testing.assert_array_equal(rows.t, np.diag(hits.t)[:count])


def test_a_common_range_or_one_for_each(path):
    pairs = cloud(8, 30, 30)
    for low, high in ((0.25, pairs.t_max + 0.25), (np.minimum(pairs.t_min, 0.0), 0.5), (-1.0, 1.0)):
        given = pairs._replace(t_min=np.broadcast_to(low, 30), t_max=np.broadcast_to(high, 30))
        rays = rb.Rays(*pairs[:2], t_min=low, t_max=high)
        hits = rb.intersect(rays[:, None], rb.Boxes(*pairs[4:]))
        assert_index_and_t(hits, truth(given), 30)
        rows = rb.intersect(rays, rb.Boxes(*pairs[4:]))
        np.testing.assert_array_equal(rows.t, np.diag(hits.t))


def test_times_halfway_between_two_floats_are_rounded_to_even(path):
    rng = np.random.default_rng(0)
    steps = rng.integers(0, 1 << 40, (64, 1))
    origins = np.tile([-(2.0**-53), 0.5, 0.5], (64, 1))
    directions = np.ldexp([[1.0, 0.0, 0.0]], rng.integers(-9, 9, (64, 1)))
    lower = np.hstack([1.0 + steps * 2.0**-52, np.zeros((64, 2))])
    pairs = Pairs(origins, directions, np.zeros(64), np.full(64, INF), lower, lower + 1.0)
    want = truth(pairs)
    up = want.t.reshape(64, 64) * directions[:, :1] > lower[:, 0]
    assert up.any()
    assert not up.all()
    assert_index_and_t(intersect_all(pairs), want, 64)


@pytest.mark.parametrize("low", [-0.0, np.full(40, -0.0)])
def test_a_range_from_minus_zero_starts_at_zero(low, path):
    rays = rb.Rays(np.zeros((40, 3)), np.ones((40, 3)), t_min=low)
    boxes = rb.Boxes(np.full((40, 3), -1.0), np.full((40, 3), 1.0))
    for hits in (rb.intersect(rays, boxes), rb.intersect(rays[:, None], boxes), rb.intersect(rays[0], boxes)):
        assert (hits.t == 0.0).all()
        assert not np.signbit(hits.t).any()


@given(strategies.scenes(max_boxes=12, max_rays=4))
@settings(max_examples=150)
def test_any_scene_is_exact(pairs):
    times = -(-8 // len(pairs.lower))
    pairs = pairs._replace(lower=np.tile(pairs.lower, (times, 1)), upper=np.tile(pairs.upper, (times, 1)))
    want = truth(pairs)
    with pytest.MonkeyPatch.context() as patch:
        for path in PATHS:
            choose_path(patch, path)
            assert_index_and_t(intersect_all(pairs), want, len(pairs.lower))


# Undecided pairs


def undecided_share(pairs: Pairs) -> float:
    """Return the share of pairs, row by row, that float64 leaves undecided."""
    n = len(pairs.origins)
    rays, boxes = as_rays(pairs)._rows(), rb.Boxes(*pairs[4:])._rows()
    out = np.empty(n, np.int64), np.empty(n)
    return box_pairs.decide_runs(box_pairs.make_work(rays, boxes, Pairing(n, 0, 1, 1)), (0, n), *out) / n


def test_float64_decides_almost_all_pairs():
    for center in ((0.0, 0.0, 0.0), (5e5, 4e6, 50.0)):
        assert (
            undecided_share(cloud(9, 5000, 5000, center=center)) < 0.01
        )  # some rays are aimed at flat boxes
    assert undecided_share(families.make("touching_edges", 9, 5000)) > 0.1


def test_all_pairs_leave_hardly_any_undecided():
    pairs = cloud(10, 500, 500, size=0.1)
    rays, boxes = as_rays(pairs)._rows(), rb.Boxes(*pairs[4:])._rows()
    task, workspace = all_pairs.make_task(rays, boxes), all_pairs.make_workspace()
    index = np.full((500, 500), MISS_INDEX)
    out = all_pairs.make_results(500, index.reshape(-1), np.empty(index.size))
    all_pairs.intersect_all_pairs(task, (0, 500), workspace, out)
    assert out.undecided_count[0] < 30
    assert out.single_count[0] < 5
    packed = np.setdiff1d(np.arange(500), out.single_rays[: out.single_count[0]])
    counts = (index >= 0).sum(axis=1)
    lost = (intersect_all(pairs).hit.sum(axis=1) - counts)[packed]
    assert lost.min() == 0
    assert lost.sum() <= out.undecided_count[0]
    assert 100 < counts.sum() < 10_000
