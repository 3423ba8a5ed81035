"""Pairs with triangles eight at a time, and many rays in a mesh: against Fractions."""

from collections import Counter

import numpy as np
import pytest

import exact
import exact_surfaces
import families_surfaces
import raybox as rb
from compare import assert_scene
from exact import rounded
from families_surfaces import TrianglePairs
from pair_checks import classified, halfway
from raybox.primitives.status import HIT, MISS

INF = np.inf


def as_mesh(corners) -> rb.Mesh:
    return rb.Mesh(np.reshape(corners, (-1, 3)), np.arange(3 * len(corners)).reshape(-1, 3))


def check_pairs(pairs: TrianglePairs, cull: bool = False) -> Counter:
    """Check status, bounds and times against the truth; return counts."""
    found = classified(as_mesh(pairs.corners)._rows()._replace(cull_back=cull), pairs)
    status, low, high, hits, timed, t = found
    truth = [
        exact_surfaces.triangle(o, d, span, *corners, cull_back=cull)
        for o, d, *span, corners in zip(*(x.tolist() for x in pairs), strict=True)
    ]
    assert not [k for k, want in enumerate(truth) if status[k] == (MISS if want else HIT)]
    for k, known, time in zip(hits.tolist(), timed.tolist(), t.tolist(), strict=True):
        when = truth[k][0].t
        assert low[k] < when < high[k], k
        assert pairs.t_min[k] < low[k] < high[k] < pairs.t_max[k], k
        assert known != HIT or time == rounded(when), k
    on_edge = sum(want is not None and min(want[1:]) * (1 - sum(want[1:])) == 0 for want in truth)
    return found.counts() + Counter({"on edge": on_edge})


@pytest.mark.parametrize("cull", [False, True])
def test_status_of_hard_pairs(cull):
    counts = check_pairs(families_surfaces.triangles(5, 3000), cull)
    assert counts["hits"] > 150
    assert counts["misses"] > 300
    assert counts["on edge"] > 300
    assert counts["undecided"] < 2300
    assert counts["untimed"] <= 2


def random_pairs(seed, n, spread=1.0, size=1.0) -> TrianglePairs:
    """Triangles of a size, counts from within a distance; half of the rays run through them."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(-1, 1, (n, 1, 3)) + size * rng.uniform(-1, 1, (n, 3, 3))
    weights = rng.dirichlet(np.ones(3), (n, 1)) + rng.choice([0, 0.6], (n, 1, 1)) * [[[1, 0.5, -1.5]]]
    origins = rng.uniform(-spread, spread, (n, 3))
    directions = ((weights @ corners)[:, 0] - origins) * rng.uniform(0.1, 3, (n, 1))
    return TrianglePairs(origins, directions, np.zeros(n), np.full(n, INF), corners)


@pytest.mark.parametrize(("spread", "size"), [(2.0, 1.0), (2.0, 1e-3), (100.0, 1e-2)])
def test_random_triangles_leave_nothing_undecided(spread, size):
    counts = check_pairs(random_pairs(6, 3000, spread, size))
    assert counts["undecided"] <= 1
    assert counts["untimed"] == 0
    assert min(counts["hits"], counts["misses"]) > 800


@pytest.mark.parametrize("number", [1, 7, 8, 9, 15, 16, 17])
def test_pairs_come_in_any_number(number):
    counts = check_pairs(TrianglePairs(*(x[:number] for x in random_pairs(7, 40))))
    assert counts["hits"] + counts["misses"] == number


def moved(pairs: TrianglePairs, space=1.0, way=1.0) -> TrianglePairs:
    return pairs._replace(
        origins=pairs.origins * space, corners=pairs.corners * space, directions=pairs.directions * way
    )


@pytest.mark.parametrize("power", [-1000, -330, -204, -195, -150, 150, 195, 204, 330, 1000])
def test_status_at_the_limits_of_tame_numbers(power):
    counts = Counter()
    for space, way in ((2.0**power, 1.0), (1.0, 2.0**power), (2.0**power, 2.0**power)):
        counts += check_pairs(moved(random_pairs(8, 400), space, way))
    assert (counts["undecided"] + counts["untimed"] == 0) == (abs(power) < 200)
    assert (counts["hits"] == 0) == (abs(power) > 200)


def ranged(rng, pairs: TrianglePairs) -> TrianglePairs:
    """Let ranges begin or end shortly before or after the first contact."""
    when = [exact_surfaces.triangle(*x) for x in plain(pairs)]
    t = np.array([1.0 if w is None else rounded(w[0].t) for w in when])
    edge = t * (1 + rng.choice([-1, 1], t.size) * 2.0 ** -rng.integers(1, 45, t.size))
    late = rng.random(t.size) < 0.5
    return pairs._replace(t_min=np.where(late, -INF, edge), t_max=np.where(late, edge, INF))


def around_zero(rng, n) -> TrianglePairs:
    """Return triangles around zero, through which rays run: each product has another sign than one other."""
    corners, directions = rng.uniform(-1, 1, (n, 3, 3)), rng.uniform(-1, 1, (n, 3))
    corners[:, 2] = -(corners[:, 0] + corners[:, 1]) * rng.uniform(0.5, 2, (n, 1))
    return TrianglePairs(-2 * directions, directions, np.zeros(n), np.full(n, INF), corners)


def around_origin(rng, n) -> TrianglePairs:
    """Return corners all around the origin of rays: one product is too large, of a sum of another sign."""
    corners = rng.choice([-1.0, 1.0], (n, 3, 3)) * (1 - rng.random((n, 3, 3)) ** 3)
    directions = (rng.dirichlet(np.ones(3), (n, 1)) @ corners)[:, 0]
    corners /= np.abs(corners).max(axis=(1, 2), keepdims=True)
    directions /= np.abs(directions).max(axis=1, keepdims=True)
    return TrianglePairs(np.zeros((n, 3)), directions, np.zeros(n), np.full(n, INF), corners)


SIZES = [
    *((random_pairs, power, 0) for power in (*range(-545, -525, 2), 509, 510, 511, 511.5)),
    *((random_pairs, -100, power) for power in range(-873, -850, 3)),
    *((random_pairs, 150, power) for power in range(718, 726, 2)),
    *((random_pairs, 0, power) for power in (*range(-1072, -1050, 3), 1014, 1016, 1018, 1019)),
    *((around_zero, power, 0) for power in range(-540, -524, 2)),
    *((around_origin, *powers) for powers in ((511.98, 0.0), (0.0, 1023.96), (200.5, 622.95))),
]


@pytest.mark.parametrize(("make", "space", "way"), SIZES)
def test_pairs_are_undecided_where_products_under_or_overflow(make, space, way):
    """Sizes of triangles alone, of directions, or of both bring products to either end of float64."""
    rng = np.random.default_rng(13)
    pairs = random_pairs(13, 300) if make is random_pairs else make(rng, 300)
    assert sum(exact_surfaces.triangle(*x) is not None for x in plain(pairs)) > 100
    with np.errstate(over="ignore", under="ignore"):
        pairs = moved(pairs, np.exp2(space), np.exp2(way))
    counts = check_pairs(pairs if make is around_origin else ranged(rng, pairs))
    assert counts["undecided"] == 300, counts


@pytest.mark.parametrize("tilt", [0.0, 2.0**-46, 2.0**-40, 2.0**-34])
def test_rays_that_graze_triangles(tilt):
    """Along a triangle's plane but for roundings, or a little more: a denominator that is hardly known."""
    rng = np.random.default_rng(16)
    corners, weights = rng.uniform(-1, 1, (900, 3, 3)), rng.dirichlet(np.ones(3), (2, 900, 1))
    start, end = (weights @ corners)[:, :, 0]
    directions = (end - start) * rng.uniform(1, 4, (900, 1)) + tilt * rng.uniform(-1, 1, (900, 3))
    origins = start - directions * rng.choice([0.25, 0.5, 1, 2], (900, 1))
    pairs = TrianglePairs(origins, directions, np.full(900, -INF), np.full(900, INF), corners)
    hits = sum(exact_surfaces.triangle(*x) is not None for x in plain(pairs))
    counts = check_pairs(pairs) + check_pairs(ranged(rng, pairs))
    assert hits > 200
    assert counts["undecided"] > 200, counts


def test_the_size_of_each_number_counts():
    """Single numbers, not whole triangles, are scaled: any part may be the one that under- or overflows."""
    rng = np.random.default_rng(9)
    counts = Counter()
    for power in (-1070, -600, -300, -100, 100, 300, 600, 1000):
        pairs = random_pairs(10, 200)
        arrays = [x.copy() for x in (pairs.origins, pairs.directions, pairs.corners)]
        for x in arrays:
            x[rng.random(x.shape) < 0.15] *= 2.0**power
        counts += check_pairs(TrianglePairs(arrays[0], arrays[1], pairs.t_min, pairs.t_max, arrays[2]))
    assert min(counts["hits"], counts["misses"], counts["undecided"]) > 50, counts


def test_ranges_that_end_at_the_triangle():
    """Where the range ends within a bound of the crossing, the pair is undecided."""
    pairs = random_pairs(11, 1200)
    when = [exact_surfaces.triangle(*x) for x in plain(pairs)]
    t = np.array([np.nan if w is None else rounded(w[0].t) for w in when])
    step = t * 2.0**-52 * np.random.default_rng(11).integers(-2, 3, t.size)
    late, early = np.arange(t.size) % 2 == 0, np.arange(t.size) % 4 == 1
    edge = np.where(np.isnan(t), 1.0, t + step)
    counts = check_pairs(pairs._replace(t_min=np.where(early, edge, -INF), t_max=np.where(late, edge, INF)))
    assert counts["undecided"] > 300


def plain(pairs: TrianglePairs):
    for o, d, low, high, corners in zip(*(x.tolist() for x in pairs), strict=True):
        yield o, d, (low, high), *corners


# Many rays in a mesh: streams


@pytest.mark.long
@pytest.mark.parametrize("cull", [False, True])
def test_many_rays_in_a_soup_with_ties(cull):
    """Some triangles are there twice, some share edges; some rays run exactly through their corners."""
    rng = np.random.default_rng(12)
    corners = rng.integers(-8, 9, (60, 3, 3)) / 4 + rng.choice([0.0, 1 / 3], (60, 1, 1))
    corners = np.concatenate([corners, corners[::4], corners[1::4][:, [1, 0, 2]]])
    origins = rng.uniform(-3, 3, (1600, 3))
    goals = np.where(
        rng.random((1600, 1)) < 0.5, corners[rng.integers(0, 90, 1600), 1], rng.uniform(-2, 2, (1600, 3))
    )
    origins[::3] = rng.integers(-12, 13, (534, 3)) / 4
    rays = rb.Rays(origins, goals - origins, t_max=rng.choice([1.0, 2.5, INF], 1600))
    found = exact_surfaces.triangles_along(rays, corners, cull_back=cull)
    counts = {"hits": sum(map(bool, found)), "tied": sum(exact.ties(f) > 0 for f in found if f)}
    assert counts["hits"] > 800
    assert counts["tied"] > 200
    where = rng.random(90) < 0.7
    scene = rb.Scene(as_mesh(corners))
    assert_scene(scene, rays, found, cull="back" if cull else None)
    some = [[f for f in row if where[f.index]] for row in found]
    assert_scene(scene, rays, some, cull="back" if cull else None, where=where)


def level_pairs(seed, n) -> TrianglePairs:
    """Triangles across an axis, as walls and floors, and rays that go along it by a power of two."""
    rng = np.random.default_rng(seed)
    pairs, axis, rows = random_pairs(seed, n), rng.integers(0, 3, n), np.arange(n)
    pairs.corners[rows, :, axis] = pairs.corners[rows, 0, axis][:, None]
    goals = (rng.dirichlet(np.ones(3), (n, 1)) @ pairs.corners)[:, 0]
    pairs.directions[...] = np.where(rng.random((n, 1)) < 0.5, 0.0, rng.uniform(-0.1, 0.1, (n, 3)))
    pairs.directions[rows, axis] = np.ldexp(rng.choice([-1.0, 1.0], n), rng.integers(-3, 4, n))
    pairs.origins[...] = goals - rng.uniform(1.0, 40.0, (n, 1)) * pairs.directions
    return pairs


def test_times_at_walls_and_floors_are_known():
    """Of rays along an axis many lie halfway between two floats, which no bound of an error decides."""
    pairs = level_pairs(72, 1200)
    counts = check_pairs(pairs)
    truth = [
        exact_surfaces.triangle(o, d, span, *corners)
        for o, d, *span, corners in zip(*(x.tolist() for x in pairs), strict=True)
    ]
    assert sum(halfway(met[0].t) for met in truth if met) > 60
    assert counts["hits"] > 1000
    assert counts["untimed"] == 0


@pytest.mark.parametrize("every", [2, 8])
def test_walls_among_sloping_triangles(every):
    """Of eight pairs, one or half are level: the times of all are known."""
    walls, others = level_pairs(73, 400), random_pairs(73, 400)
    level = np.arange(400) % every == 0
    mixed = (
        np.where(level.reshape(-1, *[1] * (x.ndim - 1)), x, y) for x, y in zip(walls, others, strict=True)
    )
    counts = check_pairs(TrianglePairs(*mixed))
    assert counts["hits"] > 200
    assert counts["untimed"] == 0
