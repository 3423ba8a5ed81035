"""Pairs judged eight at a time: verdicts, bounds and times held to Fractions, and how much is left open."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact
import families
import raybox as rb
from aim import INF, Pairs
from judging import enter_of, planes_entered, screen_of, settle_of
from raybox.primitives.box_simd import make_pairs
from scenes import random_scene


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


def judged(pairs):
    """Screen each ray with the box of its row; then settle what is met."""
    n = len(pairs.origins)
    boxes, jobs = rb.Boxes(*pairs[4:]).rows(), make_pairs(n)
    exactly = np.column_stack([pairs.origins, pairs.directions, pairs.t_min + 0.0, pairs.t_max])
    jobs.ray[:n] = jobs.item[:n] = jobs.source[:n] = np.arange(n)
    screen_of(boxes, exactly, jobs, n)
    verdict, low, high = (x[:n].copy() for x in jobs[2:5])
    (met,) = np.nonzero(verdict == 1)
    again = make_pairs(met.size)
    again.ray[: met.size] = again.item[: met.size] = again.source[: met.size] = met
    if met.size:
        settle_of(boxes, exactly, again, met.size)
    return verdict, low, high, met, again.status[: met.size], again.low[: met.size]


def hold_verdicts(pairs) -> Counter:
    """Hold verdicts, bounds and settled times to the truth; count what was seen."""
    verdict, low, high, met, settled, t = judged(pairs)
    truth = list(exact.met_rows(*pairs))
    assert not [k for k, want in enumerate(truth) if verdict[k] == (want is None)]
    for k in np.flatnonzero(verdict == 1).tolist():
        when = exact._value(truth[k].t)
        assert low[k] <= when <= high[k], k
        assert low[k] < high[k] or when == pairs.t_min[k], k
        slack = abs(when) * Fraction(2) ** -48 + Fraction(1e-299) if abs(when) < INF else 0
        assert high[k] == low[k] or abs(when) == INF or (when - slack < low[k] and high[k] < when + slack), k
    for k, sure, time in zip(met.tolist(), settled.tolist(), t.tolist(), strict=True):
        want = exact.quotient(*truth[k].t)
        assert not sure or (time == want and math.copysign(1, time) == math.copysign(1, want + 0.0)), (
            k,
            time,
        )
    return Counter(
        {
            "met": len(met),
            "missed": int((verdict == 0).sum()),
            "unsure": int((verdict < 0).sum()),
            "open": int((settled == 0).sum()),
        }
    )


# Of 400 pairs each: how many floats leave open, and of how many that are met they leave the time open.
UNSURE = {
    **{"generic": 0, "touching_faces": 18, "touching_edges": 104, "touching_corners": 208},
    **{"ulp_off_faces": 9, "ulp_off_edges": 90, "ulp_off_corners": 208, "signed_zeros": 43},
    **{"denormal_directions": 13, "flat_boxes": 193, "origins_inside": 143, "half_spaces": 67},
    **{"scales": 42, "mixed_scales": 4, "map_coordinates": 138, "range_ends": 400, "segments": 218},
    **{"voxel_grid": 106, "exact_ties": 149, "near_ties": 135, "far_origins": 322, "denormal_boxes": 178},
    **{"float32_values": 25, "planar": 89},
}
OPEN = {"ulp_off_faces": 1, "ulp_off_edges": 3, "half_spaces": 1, "scales": 59, "mixed_scales": 2}
OPEN |= {"voxel_grid": 2, "denormal_boxes": 3, "planar": 1}
ENTERED_OPEN = {"half_spaces": 1, "scales": 79, "mixed_scales": 4, "voxel_grid": 5}
ENTERED_OPEN |= {"denormal_boxes": 124, "planar": 2}


@pytest.mark.parametrize("name", families.FAMILIES)
def test_verdicts_of_a_family(name):
    counts = hold_verdicts(tame_rows(families.make(name, 66, 400)))
    assert counts["unsure"] <= UNSURE[name]
    assert counts["open"] <= OPEN.get(name, 0)


def test_verdicts_on_random_boxes_are_all_sure():
    pairs = random_scene(67, 4000, 4000, size=2.0)
    counts = hold_verdicts(pairs._replace(t_min=np.where(np.arange(4000) % 2, 0.0, 0.3)))
    assert counts["unsure"] == 0
    assert counts["open"] <= 1
    assert min(counts["met"], counts["missed"]) > 500


def hold_entered(pairs, most=None) -> Counter:
    """Hold times by planes that are known to the truth, and of rays that begin within their boxes."""
    counts, known = Counter(), []
    for k, met in enumerate(exact.met_rows(*pairs)):
        planes = met and planes_entered(*(pairs[i][k].tolist() for i in (0, 1, 4, 5)))
        if met and (not planes or exact._value(met.t) >= planes[0][0]):
            plane = planes[0][1] if planes and exact._value(met.t) == planes[0][0] else 6
            known.append((k, plane, exact.quotient(*met.t)))
            counts[plane] += 1
    known = known[:most]
    n, jobs = len(known), make_pairs(len(known))
    exactly = np.column_stack([pairs.origins, pairs.directions, pairs.t_min + 0.0, pairs.t_max])
    for at, (k, plane, _) in enumerate(known):
        jobs.ray[at], jobs.item[at], jobs.status[at] = k, k, plane
    if n:
        enter_of(rb.Boxes(*pairs[4:]).rows(), exactly, jobs, n)
    for at, (k, _, want) in enumerate(known):
        got = float(jobs.low[at])
        assert not jobs.status[at] or (
            got == want and math.copysign(1, got) == math.copysign(1, want + 0.0)
        ), k
    return counts + Counter(entered=n, open=int((jobs.status[:n] == 0).sum()))


@pytest.mark.parametrize("name", families.FAMILIES)
def test_times_by_known_planes_of_a_family(name):
    counts = hold_entered(tame_rows(families.make(name, 71, 400)))
    assert counts["open"] <= ENTERED_OPEN.get(name, 0)


def test_times_by_known_planes_of_any_side():
    counts = hold_entered(random_scene(72, 2000, 2000, size=4.0))
    assert counts["open"] <= 1
    assert min(counts[plane] for plane in range(7)) > 30


@pytest.mark.parametrize("number", [1, 7, 8, 9, 15, 16, 17, 60])
def test_known_planes_come_in_any_number(number):
    assert hold_entered(random_scene(68, 400, 400, size=3.0), number)["entered"] == number


@pytest.mark.parametrize("number", [1, 7, 8, 9, 15, 16, 17])
def test_pairs_come_in_any_number(number):
    counts = hold_verdicts(Pairs(*(x[:number] for x in random_scene(68, 40, 40, size=3.0))))
    assert counts["met"] + counts["missed"] == number


def test_planes_too_far_for_floats_leave_it_open():
    pairs = random_scene(69, 300, 300, size=4.0)
    far = np.where(np.arange(300) % 3 == 0, 2.0**501, np.where(np.arange(300) % 3 == 1, INF, 2.0**499))
    pairs.upper[np.arange(300), np.arange(300) % 3] = far
    verdict = judged(pairs)[0]
    counts = hold_verdicts(pairs)
    assert (verdict[far == 2.0**501] == -1).all()
    assert (verdict[far != 2.0**501] >= 0).all()
    assert counts["met"] > 20 < counts["missed"]


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**-299, 1e-310, 2.0**300, 2.0**301, 2.0**499])
def test_verdicts_at_the_ends_of_what_is_tame(scale):
    pairs = random_scene(70, 500, 500, size=2.0)
    hold_verdicts(
        pairs._replace(origins=pairs.origins * scale, lower=pairs.lower * scale, upper=pairs.upper * scale)
    )
    ways = pairs.directions * np.clip(scale, 2.0**-490, 2.0**490)
    hold_verdicts(pairs._replace(directions=ways))
    ends = np.sort(np.random.default_rng(70).uniform(-2, 2, (2, 500)) * scale, axis=0)
    hold_verdicts(
        Pairs(pairs.origins * scale, pairs.directions, *ends, pairs.lower * scale, pairs.upper * scale)
    )
