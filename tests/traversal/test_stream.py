"""Margins of packed rays lose no box, and are seldom loose, against Fractions."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact
import raybox as rb
from aim import INF
from ray_cases import (
    BETWEEN,
    BOX_SETS,
    EARLY,
    FUSED,
    LATE,
    TreeRay,
    U,
    f32,
    make_case,
    outward,
    set_up,
    time_at,
    times_at,
    write_slabs,
)
from raybox.bvh.build import build
from raybox.bvh.node import CHILD, ROW, Tree
from raybox.primitives.status import MISS_INDEX, UNDECIDED_INDEX
from raybox.traversal.ray_setup import NOT_PACKED, PASSES, RESULT, STOP, TIMED, frame_of, margins
from raybox.traversal.slab_coefficients import MARGIN


def slabs_of(workspace, number) -> list[list[float]]:
    """Return the slab coefficients and margins of packed rays."""
    rows = np.zeros((number, 16), np.float32)
    write_slabs(workspace, rows)
    return rows.tolist()


@pytest.mark.parametrize("name", BOX_SETS)
def test_packed_rays_lose_no_box_and_are_seldom_loose(name):
    tree, rays, tree_rays, pairs = make_case(name)
    ids = [k for k, ray in enumerate(tree_rays) if ray.hit and ray.tame and k]
    packed_rays, words, exactly, _, power, shifts, *_ = workspace = set_up(frame_of(tree), rays, ids)
    planes = np.unique(tree.nodes.view(np.float32)[:, :CHILD])
    planes = planes[np.abs(planes) < 2.0**50]
    rng, counts = np.random.default_rng(62), Counter()
    for k, packed_ray, slab, word, row, n, shift in zip(
        ids,
        packed_rays.tolist(),
        slabs_of(workspace, len(ids)),
        words.tolist(),
        exactly,
        power.tolist(),
        map(Fraction, shifts.tolist()),
        strict=False,
    ):
        ray, o, d = tree_rays[k], *(x[k] for x in pairs[:2])
        want = [*o, *d, pairs.t_min[k] + 0.0, pairs.t_max[k]]
        np.testing.assert_array_equal(row, want)
        assert not np.signbit(row[6]) or row[6] < 0
        assert (word[RESULT], word[TIMED], n) == (MISS_INDEX, MISS_INDEX, ray.power)

        # Times count from shortly before the ray's entry, if it begins before, and end after its exit.
        stop = packed_ray[STOP]
        size = abs(ray.hit.t) + max(map(abs, ray.v)) / min((abs(w) for w in ray.w if w), default=1)
        early = min(Fraction(2) ** -12, max(ray.hit.t - ray.low, 0))
        assert 0 < ray.hit.t - early - shift <= size / 2**20 + Fraction(2) ** -98, k
        last = ray.hit.t_exit
        assert stop >= last - shift
        if last < INF:
            reach = abs(last - shift) / 2 + abs(last) + size
            assert stop - (last - shift) <= reach / 2**20 + Fraction(2) ** -98

        # The margin covers the errors of the ends of the range.
        margin = exact.real(slab[MARGIN])
        assert ray.low - shift <= margin
        assert exact.real(stop) * (1 - 8 * U) - margin <= ray.high - shift
        stands = any(w == 0 for w in ray.w)
        assert (margin > 2**62) == stands
        x = [v + shift * w for v, w in zip(ray.v, ray.w, strict=True)]
        off = [
            (10 if FUSED else 16) * U * abs(a) + max(map(abs, ray.v)) / 2**48 + Fraction(2) ** -36 for a in x
        ]
        wide = ray.low < ray.hit.t - early - size / 2**19 and ray.high > last + size / 2**19
        if wide and not stands:
            assert margin <= max(far / abs(w) for far, w in zip(off, ray.w, strict=True))
            counts["tight"] += 1
        counts["marginless" if stands else "margin"] += 1

        for axis in range(3):
            c_near, c_far, near, far = map(exact.real, slab[axis:12:3])
            v, w, x_k = ray.v[axis], ray.w[axis], x[axis]
            if w == 0:
                counts["standing"] += 1
                assert_zero_direction(slab, axis, v, f32(last - shift))
                continue
            assert (near > 0) == (far > 0) == (w > 0)
            own = np.float32(float(x_k)) + np.float32([-1e-3, -1e-7, 0, 1e-7, 1e-3])
            for b in map(Fraction, [*rng.choice(planes, 12).tolist(), *own.tolist()]):
                t = (b - v) / w - shift
                first, final = time_at(b, near, c_near), time_at(b, far, c_far)
                rough = min(margin, off[axis] / abs(w))
                assert first <= max(t, 0) * (1 + BETWEEN), (k, axis)
                assert final >= t * (1 + BETWEEN) or t < 0, (k, axis)
                assert t - first <= EARLY * abs(t) + rough, (k, axis)
                assert final - t <= LATE * abs(t) + rough, (k, axis)
                counts["ahead" if t > 0 else "behind"] += 1
    assert min(counts["standing"] - 20, counts["ahead"] - 300, counts["behind"] - 300) > 0, counts
    assert name == "open" or min(counts["margin"], counts["tight"] + 5) > 20, counts


def assert_zero_direction(slab, axis, v, stop):
    """Assert that an axis of zero direction excludes exactly the slabs without the origin."""
    c_near, c_far, near, far = slab[axis:12:3]
    away = 2.0**-20 * max(1.0, abs(float(v)))
    below, above = np.empty(3, np.float32), np.empty(3, np.float32)
    outward(float(v) + np.array([0.0, away, -away]), below, above)
    with np.errstate(over="ignore"):
        first, last = times_at(below, near, c_near), times_at(above, far, c_far)
    assert first[0] <= 0
    assert last[0] >= min(stop, 2.0**61)
    assert stop == INF or (first[1] > stop and last[2] < 0), (first, last, stop)


@pytest.mark.jit
def test_the_growth_exceeds_all_relative_errors():
    """Those of near and far times together, beside margins."""
    assert EARLY + LATE < margins().growth - 1 <= 2 * (EARLY + LATE)


def test_slabs_of_distant_rays_lose_no_box():
    """The float64 rounding error of their entry exceeds all float32 errors."""
    rng, counts = np.random.default_rng(66), Counter()
    lower = rng.uniform(-1, 1, (50, 3))
    tree = build(lower, lower + 0.1)
    origins = rng.normal(size=(80, 3)) * 2.0 ** rng.integers(28, 44, 80)[:, None]
    ways = rng.uniform(-1, 1, (80, 3)) - origins
    rays = rb.Rays(origins, ways)._rows()
    workspace = set_up(frame_of(tree), rays, range(80))
    planes = [Fraction(float(x)) for x in np.unique(tree.nodes.view(np.float32)[:, :CHILD]) if abs(x) < 4]
    for k, slab in enumerate(slabs_of(workspace, 80)):
        ray, shift = (
            TreeRay(tree, origins[k].tolist(), ways[k].tolist(), 0.0, INF),
            Fraction(float(workspace.shift[k])),
        )
        if workspace.packed_rays[k, STOP] < 0:
            counts["passes"] += 1
            continue
        for axis in range(3):
            c_near, c_far, near, far = map(Fraction, slab[axis:12:3])
            v, w = ray.v[axis], ray.w[axis]
            for b in planes[::5]:
                t = (b - v) / w - shift
                assert time_at(b, near, c_near) <= max(t, 0) * (1 + BETWEEN), (k, axis)
                assert time_at(b, far, c_far) >= t * (1 + BETWEEN) or t < 0, (k, axis)
                counts["ahead" if t > 0 else "behind"] += 1
    assert counts["ahead"] > 5000, counts


@pytest.mark.parametrize("place", ["at the centre", "by the plane", "anywhere"])
def test_roundings_that_add_up_stay_within_margins(place):
    """Of many rays and planes some have nearly all roundings in one direction."""
    rng, number = np.random.default_rng(68), 40_000
    signs = rng.choice([-1.0, 1.0], (number, 3))
    origins = signs * rng.uniform(0.5, 1, (number, 3)) * (2.0**-12 if place == "at the centre" else 1.0)
    ways = rng.uniform(0.5, 1, (number, 3)) * rng.choice([-1.0, 1.0], (number, 3))
    ways[:, 0] = 1.0 - 2.0**-53  # times are counted in units of the longest part
    nodes, root = np.empty((0, ROW), np.int32), np.array([[-2.0] * 3, [2.0] * 3])
    frame = frame_of(Tree(nodes, np.zeros(3), root, 1.0, 0, np.empty(0, np.int64)))
    workspace = set_up(frame, rb.Rays(origins, ways)._rows(), range(number))
    assert np.abs(workspace.shift[:number]).max() < 2.0**-90
    slabs = np.zeros((number, 16), np.float32)
    write_slabs(workspace, slabs)
    counts = Counter()
    for axis in (1, 2):
        x, w = origins[:, axis], ways[:, axis]
        near_offset, far_offset, near, far = slabs[:, axis:12:3].T.astype(float)
        for _ in range(8):
            planes = np.float32(rng.uniform(0.5, 1, number) * np.sign(w))
            if place == "by the plane":
                planes = np.float32(x) * (1 + np.float32(2.0**-23) * rng.integers(-9, 10, number)).astype("f")
            t = (planes - x) / w  # in float64: errors are far below 2^-24
            first = times_at(planes, near, near_offset).astype(float)
            last = times_at(planes, far, far_offset).astype(float)
            rough = 2.0**-50
            assert (first <= np.maximum(t, 0) * (1 + float(BETWEEN)) + rough).all(), axis
            assert ((last >= t * (1 + float(BETWEEN)) - rough) | (t < 0)).all(), axis
            counts["ahead"] += int((t > 0).sum())
            counts["close"] += int((np.abs(t) < 2.0**-18).sum())
    assert counts["ahead"] > number, counts
    assert (counts["close"] > 100_000) == (place == "by the plane"), counts


def test_zero_directions_far_from_the_bulk_are_not_packed():
    """One stray box is as far away as float32 can resolve, another is farther."""
    lower = np.concatenate(
        [np.random.default_rng(67).uniform(-1, 1, (60, 3)), [[2.0**24] * 3, [2.0**28] * 3]]
    )
    upper = lower + np.array([[0.2]] * 60 + [[2.0], [16.0]])
    origins = np.array([[2.0**24 + 1, 2.0**24 + 1, -9.0], [2.0**28 + 3, 2.0**28 + 1, -9.0]])
    tree, ways = build(lower, upper), np.array([[0.0, 0.0, 1.0]] * 2)
    workspace = set_up(frame_of(tree), rb.Rays(origins, ways)._rows(), range(2))
    assert workspace.packed_rays[0, STOP] > 2.0**24
    assert (workspace.packed_rays[1, STOP], workspace.state[1, RESULT]) == (NOT_PACKED, UNDECIDED_INDEX)
    hits = rb.Scene(rb.Boxes(lower, upper)).nearest(
        rb.Rays(np.tile(origins, (900, 1)), np.tile(ways, (900, 1)))
    )
    assert hits.index.tolist() == [60, 61] * 900


def test_zero_directions_beside_all_boxes_miss_at_once():
    """Also where boxes are unbounded along the ray, so that no time excludes them."""
    lower, upper = (
        np.array([[0.0, 0.0, -INF], [2.0, 0.5, -1.0]]),
        np.array([[1.0, 1.0, INF], [3.0, 0.7, 4.0]]),
    )
    origins = np.array([[-5.0, 0.5, 0.0], [1.5, 9.0, 2.0], [0.5, 1.0, 7.0], [2.5, 1.5, 0.0]])
    rays = rb.Rays(origins, np.tile([0.0, -0.0, 1.0], (4, 1)))._rows()
    packed_rays = set_up(frame_of(build(lower, upper)), rays, range(4)).packed_rays
    assert packed_rays[:2, STOP].tolist() == [PASSES] * 2
    assert packed_rays[2, STOP] >= 0
    assert packed_rays[3, STOP] == PASSES


def test_invalid_rays_miss_at_once():
    """They are not traversed one by one: sensor data may be full of them."""
    origins, ways = np.array([[-5.0, 0.5, 0.5], [np.nan, 0.5, 0.5], [-5.0, 0.5, 0.5]]), np.eye(3)[[0, 0, 0]]
    ways[2, 1] = np.nan
    rays = rb.Rays(origins, ways, t_min=[0.0, 0.0, 0.0], t_max=[9.0, 9.0, 9.0], invalid="miss")._rows()
    packed_rays = set_up(frame_of(build(np.zeros((1, 3)), np.ones((1, 3)))), rays, range(3)).packed_rays
    assert packed_rays[0, STOP] >= 0
    assert packed_rays[1:3, STOP].tolist() == [PASSES] * 2
