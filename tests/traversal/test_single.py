"""The single-ray traversal: no hit is lost, slabs are rounded outward, and its work is counted."""

from fractions import Fraction

import numpy as np
import pytest

import exact
import families
import raybox as rb
from aim import INF, Pairs
from loops import loop
from ray_cases import outward
from raybox.bvh.build import build
from raybox.bvh.node import FAR
from raybox.primitives.ray import get_ray
from raybox.queries.count import Count
from raybox.queries.first import ExactFirst
from raybox.queries.hit_query import HitOfRay
from raybox.queries.nearest.stream import Nearest
from raybox.queries.number_query import NumberOfRay
from raybox.queries.occluded import Occluded
from raybox.traversal.job import Job
from raybox.traversal.single import RaySpan, make_scratch, traverse_rays
from raybox.traversal.single_ray_setup import SHARP, latest, make_ray_slabs
from raybox.traversal.tree import visits
from scenes import as_rays, random_scene

BASE = np.array([512345.678, 4123456.789, 17.3])  # map coordinates
LARGEST, LEAST, MARGIN = Fraction(1.7976931348623157e308), Fraction(5e-324), Fraction(2) ** -101


@loop
def latest_of(t, exponent, shift, out):
    for k in range(t.size):
        out[k] = latest(t[k], exponent[k], shift[k])


@loop
def write_slabs(tree, rays, out):
    """Write the slabs of each ray: near, far and inverse of three axes, range, exponent, shift, hits root."""
    for k in range(out.shape[0]):
        meets, slabs = make_ray_slabs(tree, get_ray(rays, k), SHARP)
        for i in range(3):
            out[k, i], out[k, 3 + i], out[k, 6 + i] = slabs.near[i], slabs.far[i], slabs.inverse[i]
        out[k, 9], out[k, 10], out[k, 11], out[k, 12] = slabs.start, slabs.stop, slabs.exponent, slabs.shift
        out[k, 13] = meets


# Rounding outward


def test_outward_is_outward_and_not_by_much():
    rng = np.random.default_rng(1)
    x = rng.uniform(1, 2, 4000) * np.ldexp(rng.choice([-1.0, 1.0], 4000), rng.integers(-160, 60, 4000))
    ones = 1 + rng.integers(0, 4, 1000) * 2.0**-24  # float32 numbers, and midpoints of two
    x = np.concatenate([x, ones, -ones, [0.0, -0.0, 5e-324, -5e-324, 2.0**-149, 2.0**60, -(2.0**60)]])
    down, up = np.empty(x.size, np.float32), np.empty(x.size, np.float32)
    outward(x, down, up)
    for value, low, high in zip(x, down.tolist(), up.tolist(), strict=True):
        for room in (Fraction(value) - Fraction(low), Fraction(high) - Fraction(value)):
            assert MARGIN + Fraction(abs(value)) / 2**25 < room < 4 * MARGIN + Fraction(abs(value)) / 2**22


def test_far_planes_move_outward():
    far, (down, up) = np.array([np.nextafter(2.0**60, INF), 1e300, INF]), np.empty((2, 3), np.float32)
    outward(far, down, up)
    assert (down.tolist(), up.tolist()) == ([FAR] * 3, [INF] * 3)
    outward(-far, down, up)
    assert (down.tolist(), up.tolist()) == ([-INF] * 3, [-FAR] * 3)


def test_the_latest_time_is_late():
    rng = np.random.default_rng(2)
    n = 3000
    t = rng.uniform(1, 2, n) * np.ldexp(rng.choice([-1.0, 1.0], n), rng.integers(-60, 60, n))
    exponent = rng.integers(-40, 40, n)
    near = np.ldexp(t, exponent) * (1 + rng.choice([0.0, 2.0**-52, -(2.0**-40), 1.0], n))
    shift = np.where((rng.random(n) < 0.5) | (abs(near) > 2.0**59) | (np.arange(n) < 400), 0.0, near)
    t[:400] *= np.ldexp(1.0, rng.integers(-900, 900, 400))
    t[:9] = [INF, 1e308, -1e308, 5e-324, -5e-324, 0.0, -INF, -INF, -INF]
    exponent[:9] = [0, 900, 900, -900, -900, 0, 1500, -1040, -1020]
    out = np.empty(n, np.float32)
    latest_of(t, exponent, shift, out)
    for when, e, moved, got in zip(t.tolist(), exponent.tolist(), shift.tolist(), out.tolist(), strict=True):
        # The exact time is at most half the least float later.
        exactly = (Fraction(when) if abs(when) < INF else -LARGEST) + LEAST / 2
        want = exactly * Fraction(2) ** e - Fraction(moved)
        loose = (abs(want) + abs(Fraction(moved)) / 2**24) / 2**20 + LEAST * Fraction(2) ** e + 8 * MARGIN
        if got == INF:
            assert when == INF or max(want, want + Fraction(moved)) > FAR * (1 - 2**-20)
        else:
            assert want + MARGIN <= Fraction(got) <= want + loose or got == -FAR > want


# Candidates


def stray(seed, far):
    """Return boxes near zero, two far out, and rays from far away nearly along an axis."""
    pairs = random_scene(seed, 60, 150, size=0.5)
    rng = np.random.default_rng(seed)
    lower, upper = pairs.lower + 0.1, pairs.upper + 0.1
    lower[:2], upper[:2] = -far, [[-far * 0.5, far, far], [far, -far * 0.5, far]]
    k = rng.integers(0, 3, (150, 1)) == np.arange(3)
    slow = rng.uniform(-1, 1, (150, 3)) * np.ldexp(1.0, rng.integers(-66, -56, (150, 1)))
    way = np.where(k, rng.choice([-1.0, 1.0], (150, 1)), slow)
    goal = np.concatenate([lower[2:52], upper[2:52], pairs.origins[100:]])
    reach = far * rng.choice([0.25, 1.0, 8.0, 1e6], (150, 1))
    scale = np.ldexp(1.0, rng.integers(-30, 30, (150, 1)))
    return Pairs(goal - way * reach, way * scale, np.full(150, -INF), pairs.t_max, lower, upper)


def survey(seed, far):
    """Return boxes at map coordinates, and rays from far away through their corners, to within rounding."""
    pairs = random_scene(seed, 60, 150, size=0.5)
    goal = np.concatenate([pairs.lower, pairs.upper, pairs.origins])[:150] + BASE
    low, high = np.zeros(150), np.full(150, INF)
    low[::3], high[1::3] = far, far
    boxes = pairs.lower + BASE, pairs.upper + BASE
    return Pairs(goal - pairs.directions * far, pairs.directions, low, high, *boxes)


def corners(seed, far):
    """Return boxes of one node in a cube, and rays that touch the cube between two floats."""
    rng = np.random.default_rng(seed)
    lower, upper = np.sort(rng.uniform(-3, 3, (2, 8, 3)), axis=0)
    lower[0], upper[0] = np.array([-4.0, 4.0])[:, None] - rng.integers(0, 2**40) * 2.0**-42
    goal, way = rng.choice([-4.0, 4.0], (150, 3)), rng.integers(0, 2, (150, 3)) * 1.0
    return Pairs(way * (goal - far), way, np.zeros(150), np.full(150, INF), lower, upper)


def tiny(seed):
    """Return boxes so small that ranges and origins of rays are infinite in tree units."""
    o, _, _, _, lower, upper = random_scene(seed, 8, 150, size=4.0)
    way = np.array([1.0, 0.0, 0.0])
    far, ends = np.arange(150) % 3 == 0, np.where(np.arange(150) % 2, 1e300, -1e300)
    origins, directions = np.where(far[:, None] & (way > 0), -1e300, o * 1e-300), far[:, None] * way
    ranges = np.where(far, -INF, ends), np.where(far, INF, ends)
    return Pairs(origins, directions, *ranges, lower * 1e-300, upper * 1e-300)


SCENES = {
    "tiny": lambda: tiny(35),
    **{name: lambda name=name: families.scene(name, 31, n_boxes=70, n_rays=60) for name in families.FAMILIES},
    **{f"stray {far:.0e}": lambda far=far: stray(32, far) for far in (1e3, 1e12, 2.0**54, 1e19)},
    **{f"survey {far:.0e}": lambda far=far: survey(33, far) for far in (1.0, 1e9, 1e14)},
    **{f"corners {far:.0e}": lambda far=far: corners(34, far) for far in (5.0, 1e6, 1e13, 3e13)},
}


@pytest.mark.parametrize("name", SCENES)
def test_no_hit_is_lost(name):
    pairs = pad_to_3d(SCENES[name]())
    tree, rays = build(*pairs[4:]), as_rays(pairs)._rows()
    found = list(exact.along(*pairs))
    counts, nearest = cast("count", pairs)[1].numbers, cast("nearest", pairs)[1].index
    assert counts.tolist() == [len(row) for row in found]
    assert nearest.tolist() == [row[0].index if row else -1 for row in found]
    assert counts.sum() > 20
    assert_slabs(tree, pairs, rays, found)


def pad_to_3d(pairs):
    """Return pairs padded to three dimensions."""
    room = 3 - pairs.origins.shape[1]
    return Pairs(*(np.pad(x, ((0, 0), (0, room))) if x.ndim == 2 else x for x in pairs))


def assert_slabs(tree, pairs, rays, found) -> None:
    """Assert the slabs of each ray: every hit is in range, origins are rounded outward."""
    out, unit = np.empty((len(pairs.origins), 14)), Fraction(2) ** tree.exponent
    write_slabs(tree, rays, out)
    for o, d, slabs, row in zip(pairs.origins, pairs.directions, out.tolist(), found, strict=True):
        start, stop, exponent, shift, meets = slabs[9:]
        turn = Fraction(2) ** int(exponent)
        times = [box.t * turn - Fraction(shift) for box in row if box.t != -INF]
        assert meets or not row
        assert all(start <= t <= stop for t in times)
        for i, (near, far, inverse) in enumerate(zip(slabs[:3], slabs[3:6], slabs[6:9], strict=True)):
            if not row or abs(near) == INF:
                continue
            w = Fraction(d[i]) * unit / turn
            place = (Fraction(o[i]) - Fraction(tree.center[i])) * unit + Fraction(shift) * w
            places = [place + t * w for t in times] if inverse == INF else [place]
            way = 1 if inverse > 0 else -1
            assert inverse == INF or way == np.sign(d[i])
            assert all(way * (near - x) >= MARGIN and way * (x - far) >= MARGIN for x in places)


# Golden counters: the work of tree and traversal


def run_query(query, pairs):
    """Return the numbers of nodes and boxes that a query of all rays tests."""
    return cast(query, pairs)[0]


def cast(query, pairs):
    """Return these numbers, and the recorder of a query of all rays."""
    boxes = rb.Boxes(*pairs[4:])
    job = Job(build(*boxes._rows()), boxes._rows(), as_rays(pairs)._rows(), np.empty(0, np.bool_))
    n, scratch = len(pairs.origins), make_scratch()
    recorder = {
        "nearest": HitOfRay(Nearest(np.full(n, -1), np.full(n, INF)), 0),
        "occluded": NumberOfRay(Occluded(np.zeros(n, np.bool_)), 0),
        "count": NumberOfRay(Count(np.zeros(n, np.int64)), 0),
        "first": ExactFirst(np.full((n, 3), -1), np.full((n, 3), INF), np.empty(1, np.int64)),
    }[query]
    assert traverse_rays(job, RaySpan(0, n), scratch, recorder) == n
    return visits(scratch), getattr(recorder, "fold", recorder)


def unbounded(seed):
    pairs = random_scene(seed, 2000, 1000, size=0.2)
    low, up = np.random.default_rng(seed).random((2, 2000, 3)) < 0.003
    return Pairs(*pairs[:4], np.where(low, -INF, pairs.lower), np.where(up, INF, pairs.upper))


def town(seed):
    """Return boxes at map coordinates, and a stray one at the origin."""
    pairs = random_scene(seed, 2000, 1000, size=0.2)
    lower, upper = pairs.lower * 10 + BASE, pairs.upper * 10 + BASE
    lower[7], upper[7] = -1.0, 1.0
    return Pairs(pairs.origins * 10 + BASE, pairs.directions, *pairs[2:4], lower, upper)


def spread(seed):
    """Return boxes of sizes from 1e-6 to 1, denser towards a corner."""
    pairs = random_scene(seed, 2000, 1000)
    rng = np.random.default_rng(seed)
    # No powers of 10: NumPy's have other last bits on machines with AVX-512, and the tree other nodes.
    size = np.ldexp(rng.uniform(0.5, 1, (2000, 1)), rng.integers(-19, 1, (2000, 1)))
    lower = pairs.lower * size
    return Pairs(pairs.origins, lower[:1000] - pairs.origins, *pairs[2:4], lower, lower + 0.02 * size)


WORK = {
    ("nearest", "crowd"): (79_219, 18_127),
    ("occluded", "crowd"): (57_387, 9977),
    ("count", "crowd"): (581_166, 349_076),
    ("first", "crowd"): (106_580, 40_652),
    ("nearest", "unbounded"): (9049, 1434),
    ("nearest", "town"): (6445, 1290),
    ("nearest", "spread"): (27_150, 1284),
    ("nearest", "segments"): (2572, 465),
}
CAST = {
    "crowd": lambda: random_scene(41, 10_000, 10_000, size=0.2),
    "unbounded": lambda: unbounded(42),
    "town": lambda: town(43),
    "spread": lambda: spread(44),
    "segments": lambda: random_scene(46, 2000, 1000, size=0.3)._replace(t_max=np.full(1000, 0.25)),
}


@pytest.mark.parametrize(("query", "name"), WORK)
def test_nodes_and_boxes_tested(query, name):
    """Golden values; a change that lowers them puts its own here."""
    assert run_query(query, CAST[name]()) == WORK[query, name]


@pytest.mark.parametrize("scale", [2.0**-900, 2.0**-40, 2.0**900])
def test_work_does_not_depend_on_the_unit_of_length(scale):
    pairs = random_scene(47, 2000, 1000)
    sized = Pairs(*(x if x.ndim == 1 else x * scale for x in pairs))
    assert run_query("nearest", sized) == run_query("nearest", pairs)
    assert run_query("nearest", pairs._replace(directions=pairs.directions * scale)) == run_query(
        "nearest", pairs
    )
