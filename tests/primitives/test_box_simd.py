"""Pairs and spans of boxes eight at a time against Fractions, and counts of undecided pairs."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exact
import families
import raybox as rb
from aim import INF, Pairs
from pair_checks import Classified, call_entry_times, classified, halfway, near_planes
from raybox.primitives import box_spans
from raybox.primitives.box_simd import LANES, make_pairs
from raybox.primitives.status import HIT, MISS, UNDECIDED
from scenes import as_rays, random_scene


def tame_rows(pairs) -> Pairs:
    """Keep the rays that vectors may have: direction parts near each other, nothing huge or tiny."""
    if pairs.origins.shape[1] == 2:
        pairs = Pairs(*(np.pad(x, ((0, 0), (0, 1))) if x.ndim == 2 else x for x in pairs))
    part = np.abs(pairs.directions)
    longest = part.max(axis=1)
    good = ((part == 0) | (part > longest[:, None] * 2.0**-60)).all(axis=1) & (
        np.abs(pairs.origins) < 2.0**500
    ).all(axis=1)
    good &= (longest > 2.0**-500) & (longest < 2.0**500) & (pairs.t_min < INF) & (pairs.t_max > -INF)
    return Pairs(*(x[good] for x in pairs))


def classify(pairs) -> Classified:
    return classified(rb.Boxes(*pairs[4:])._rows(), pairs)


def check_pairs(pairs) -> Counter:
    """Check status, bounds and times against the truth; return counts."""
    found = classify(pairs)
    status, low, high, hits, timed, t = found
    truth = list(exact.met_rows(*pairs))
    assert not [k for k, want in enumerate(truth) if status[k] == (MISS if want else HIT)]
    for k in np.flatnonzero(status == HIT).tolist():
        when = exact._value(truth[k].t)
        assert low[k] <= when <= high[k], k
        assert low[k] < high[k] or when == pairs.t_min[k], k
        slack = abs(when) * Fraction(2) ** -48 + Fraction(1e-299) if abs(when) < INF else 0
        assert high[k] == low[k] or abs(when) == INF or (when - slack < low[k] and high[k] < when + slack), k
    for k, known, time in zip(hits.tolist(), timed.tolist(), t.tolist(), strict=True):
        want = exact.quotient(*truth[k].t)
        assert known != HIT or (time == want and math.copysign(1, time) == math.copysign(1, want + 0.0)), (
            k,
            time,
        )
    return found.counts()


# Of 400 pairs each: how many are undecided, and of how many hits the time is not known in float64.
UNDECIDED_PAIRS = {
    **{"generic": 0, "touching_faces": 18, "touching_edges": 104, "touching_corners": 208},
    **{"ulp_off_faces": 9, "ulp_off_edges": 90, "ulp_off_corners": 208, "signed_zeros": 43},
    **{"denormal_directions": 13, "flat_boxes": 193, "origins_inside": 143, "half_spaces": 67},
    **{"scales": 42, "mixed_scales": 4, "map_coordinates": 138, "range_ends": 400, "segments": 218},
    **{"voxel_grid": 106, "exact_ties": 149, "near_ties": 135, "far_origins": 322, "denormal_boxes": 178},
    **{"float32_values": 25, "planar": 89},
}
UNTIMED = {"ulp_off_faces": 1, "ulp_off_edges": 3, "half_spaces": 1, "scales": 59, "mixed_scales": 2}
UNTIMED |= {"voxel_grid": 2, "denormal_boxes": 3, "planar": 1}
UNTIMED_ENTRIES = {"half_spaces": 1, "scales": 79, "mixed_scales": 4, "voxel_grid": 5}
UNTIMED_ENTRIES |= {"denormal_boxes": 124, "planar": 2}


@pytest.mark.parametrize("name", families.FAMILIES)
def test_status_of_a_family(name):
    counts = check_pairs(tame_rows(families.make(name, 66, 400)))
    assert counts["undecided"] <= UNDECIDED_PAIRS[name]
    assert counts["untimed"] <= UNTIMED.get(name, 0)


def test_random_boxes_leave_nothing_undecided():
    pairs = random_scene(67, 4000, 4000, size=2.0)
    counts = check_pairs(pairs._replace(t_min=np.where(np.arange(4000) % 2, 0.0, 0.3)))
    assert counts["undecided"] == 0
    assert counts["untimed"] <= 1
    assert min(counts["hits"], counts["misses"]) > 500


def check_entry_times(pairs) -> Counter:
    """Check entry times by known planes, and of rays that begin within their boxes; return counts."""
    counts, known = Counter(), []
    for k, hit in enumerate(exact.met_rows(*pairs)):
        planes = hit and near_planes(*(pairs[i][k].tolist() for i in (0, 1, 4, 5)))
        if hit and (not planes or exact._value(hit.t) >= planes[0][0]):
            plane = planes[0][1] if planes and exact._value(hit.t) == planes[0][0] else 6
            known.append((k, plane, exact.quotient(*hit.t)))
            counts[plane] += 1
    n, jobs = len(known), make_pairs(len(known))
    rays64 = np.column_stack([pairs.origins, pairs.directions, pairs.t_min + 0.0, pairs.t_max])
    for at, (k, plane, _) in enumerate(known):
        jobs.ray[at], jobs.item[at], jobs.status[at] = k, k, plane
    if n:
        call_entry_times(rb.Boxes(*pairs[4:])._rows(), rays64, jobs, n)
    for at, (k, _, want) in enumerate(known):
        got = float(jobs.low[at])
        assert jobs.status[at] != HIT or (
            got == want and math.copysign(1, got) == math.copysign(1, want + 0.0)
        ), k
    return counts + Counter(entered=n, untimed=int((jobs.status[:n] != HIT).sum()))


@pytest.mark.parametrize("name", families.FAMILIES)
def test_times_by_known_planes_of_a_family(name):
    counts = check_entry_times(tame_rows(families.make(name, 71, 400)))
    assert counts["untimed"] <= UNTIMED_ENTRIES.get(name, 0)


def test_times_by_known_planes_of_any_side():
    counts = check_entry_times(random_scene(72, 2000, 2000, size=4.0))
    assert counts["untimed"] <= 1
    assert min(counts[plane] for plane in range(7)) > 30


def test_planes_too_far_for_floats_are_undecided():
    pairs = random_scene(69, 300, 300, size=4.0)
    far = np.where(np.arange(300) % 3 == 0, 2.0**501, np.where(np.arange(300) % 3 == 1, INF, 2.0**499))
    pairs.upper[np.arange(300), np.arange(300) % 3] = far
    status = classify(pairs).status
    counts = check_pairs(pairs)
    assert (status[far == 2.0**501] == UNDECIDED).all()
    assert (status[far != 2.0**501] != UNDECIDED).all()
    assert counts["hits"] > 20 < counts["misses"]


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**-299, 1e-310, 2.0**300, 2.0**301, 2.0**499])
def test_status_at_the_limits_of_tame_numbers(scale):
    pairs = random_scene(70, 500, 500, size=2.0)
    check_pairs(
        pairs._replace(origins=pairs.origins * scale, lower=pairs.lower * scale, upper=pairs.upper * scale)
    )
    ways = pairs.directions * np.clip(scale, 2.0**-490, 2.0**490)
    check_pairs(pairs._replace(directions=ways))
    ends = np.sort(np.random.default_rng(70).uniform(-2, 2, (2, 500)) * scale, axis=0)
    check_pairs(
        Pairs(pairs.origins * scale, pairs.directions, *ends, pairs.lower * scale, pairs.upper * scale)
    )


def along_axes(seed, n) -> Pairs:
    """Rays of full mantissas that enter boxes across an axis on which they go by a power of two."""
    rng = np.random.default_rng(seed)
    lower = rng.uniform(1.0, 9.0, (n, 3))
    upper, axis, rows = lower + rng.uniform(0.1, 3.0, (n, 3)), rng.integers(0, 3, n), np.arange(n)
    goals = rng.uniform(lower, upper)
    goals[rows, axis] = lower[rows, axis]
    directions = np.where(rng.random((n, 1)) < 0.5, 0.0, rng.uniform(-0.1, 0.1, (n, 3)))
    directions[rows, axis] = np.ldexp(1.0, rng.integers(-3, 4, n))
    origins = goals - rng.uniform(1.0, 40.0, (n, 1)) * directions
    return Pairs(origins, directions, np.zeros(n), np.full(n, INF), lower, upper)


def test_times_halfway_between_floats_are_known():
    """Of rays along axes many are so, which no bound of a rounding error decides."""
    pairs = along_axes(71, 1200)
    counts = check_pairs(pairs)
    assert (counts["untimed"], counts["hits"]) == (0, 1200 - counts["misses"] - counts["undecided"])
    times = [exact._value(met.t) for met in exact.met_rows(*pairs) if met]
    assert sum(map(halfway, times)) > 60
    assert counts["hits"] > 1000


# Spans of hits, eight at a time


def spans(pairs, order):
    """Return the true answers of hits in an order, and the compiled spans of the same."""
    want = exact.box_rows(*pairs)
    chosen = np.flatnonzero(want.hit)[order % max(1, want.hit.sum())] if want.hit.any() else order[:0]
    boxes, rays = rb.Boxes(pairs.lower, pairs.upper)._rows(), as_rays(pairs)._rows()
    enter, leave = np.empty(len(chosen)), np.empty(len(chosen))
    box_spans.write_spans(rays, boxes, chosen, chosen, enter, leave)
    return want, chosen, enter, leave


@pytest.mark.core
def test_spans_are_the_exact_ones_rounded_once():
    counts = Counter()
    for name in families.FAMILIES:
        pairs = families.make(name, 5, 3001)
        want, chosen, enter, leave = spans(pairs, np.random.default_rng(5).integers(0, 10**9, 4099))
        np.testing.assert_array_equal(enter, want.t_enter[chosen], name)
        np.testing.assert_array_equal(leave, want.t_exit[chosen], name)
        assert not (np.signbit(enter) & (enter == 0.0)).any()
        assert not (np.signbit(leave) & (leave == 0.0)).any()
        counts["hits"] += len(chosen)
        counts["touches"] += int(want.touch[chosen].sum())
        counts["endless"] += int(np.isinf(enter).sum())
    assert min(counts.values()) > 1000, counts


def test_differences_past_the_range_of_floats():
    """A plane and an origin may be further apart than the largest float, and the time a small one."""
    far = 1.5e308
    pairs = families.Pairs(
        *(np.tile(row, (8, 1)) for row in ([-far, 0.0, 0.0], [2.0**299, 0.0, 0.0])),
        np.full(8, -np.inf),
        np.full(8, np.inf),
        *(np.tile(row, (8, 1)) for row in ([-far, -1.0, -1.0], [far, 1.0, 1.0])),
    )
    for sign in (1.0, -1.0):
        turned = pairs._replace(origins=sign * pairs.origins, directions=sign * pairs.directions)
        want, chosen, enter, leave = spans(turned, np.arange(8))
        assert np.isfinite(want.t_enter).all()
        np.testing.assert_array_equal(enter, want.t_enter[chosen])
        np.testing.assert_array_equal(leave, want.t_exit[chosen])


@pytest.mark.parametrize("number", [0, 1, LANES - 1, LANES, LANES + 1, 3 * LANES + 5])
def test_misses_and_lists_of_any_length(number):
    boxes, rays = (
        rb.Boxes([[2, -1, -1]], [[3, 1, 1]])._rows(),
        rb.Rays([[0, 0, 0], [1, 0, 0]], [1, 0, 0])._rows(),
    )
    index, ray_of = np.arange(number) % 3 // 2 - 1, np.arange(number) % 2
    enter, leave = np.empty(number), np.empty(number)
    box_spans.write_spans(rays, boxes, ray_of, index, enter, leave)
    np.testing.assert_array_equal(enter, np.where(index < 0, np.nan, 2.0 - ray_of))
    np.testing.assert_array_equal(leave, np.where(index < 0, np.nan, 3.0 - ray_of))


def test_misses_without_any_box():
    none, rays = rb.Boxes(np.empty((0, 3)), np.empty((0, 3)))._rows(), rb.Rays([0, 0, 0], [1, 0, 0])._rows()
    enter, leave = np.empty(20), np.empty(20)
    box_spans.write_spans(rays, none, np.zeros(20, np.int64), np.full(20, -1), enter, leave)
    assert np.isnan([enter, leave]).all()


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(*[FLOATS] * 9), min_size=8, max_size=8), st.integers(0, 2))
def test_any_floats(numbers, axis):
    """Boxes around points of rays, so that they are hit; eight rays of any size at once."""
    rows = np.array(numbers)
    o, d, size = rows[:, :3], rows[:, 3:6], np.abs(rows[:, 6:])
    d[:, axis] = np.where(d[:, axis] == 0.0, 1.0, d[:, axis])
    with np.errstate(all="ignore"):
        middle = np.clip(o + d, -1e308, 1e308)
        lower, upper = np.clip(middle - size, -1.7e308, 1.7e308), np.clip(middle + size, -1.7e308, 1.7e308)
    pairs = families.Pairs(o, d, np.full(8, -np.inf), np.full(8, np.inf), lower, upper)
    want, chosen, enter, leave = spans(pairs, np.arange(24))
    np.testing.assert_array_equal(enter, want.t_enter[chosen])
    np.testing.assert_array_equal(leave, want.t_exit[chosen])
