"""The textbook against rational arithmetic, on random input that float64 decides correctly.

Most are multiples of 1/4 with powers of two as directions: there float64 does not round, so the algorithms
must equal the exact result even where a ray only touches.
"""

import random
from math import inf, isnan

from raybox import textbook
from raybox.exact import definition
from raybox.exact.definition import Ray1


def quarter(rng, low, high):
    return rng.randint(4 * low, 4 * high) / 4


def exact_pair(rng):
    """Return a ray and a box for which float64 does not round."""
    size = rng.choice([2, 3])
    spans = [sorted([quarter(rng, -2, 2), quarter(rng, -2, 2)]) for _ in range(size)]
    origin = [rng.choice([quarter(rng, -4, 4), *span]) for span in spans]
    direction = [rng.choice([0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 2.0, -4.0]) for _ in range(size)]
    return tuple(origin), tuple(direction), *zip(*spans, strict=True)


def compare(o, d, lower, upper, end):
    """Compare all four with exact results in their own ranges; return that for [0, inf)."""
    endless = definition.box(Ray1(o, d), lower, upper)
    bounded = definition.box(Ray1(o, d, 0.0, end), lower, upper)
    start = tuple(o)

    slab = textbook.slab(o, d, lower, upper, t_max=end)
    planes = textbook.candidate_planes(o, d, lower, upper, length=end)
    assert slab.t == planes.t == (bounded.t if bounded else inf)
    assert slab.point == (along(o, d, bounded.t) if bounded else None)
    assert (planes.hit and planes.plane is None) == contains(lower, upper, start)
    assert not (planes.moving_away and bounded)
    if bounded and planes.plane:
        assert planes.plane.t == bounded.t
        assert planes.plane.axis == bounded.axis

    clipped = textbook.cyrus_beck(o, d, lower, upper)
    signed = textbook.near_far(o, d, lower, upper)
    if endless:
        leaves_first = endless.t_enter < 0.0
        assert clipped.t == (endless.t_exit if leaves_first else endless.t_enter)
        assert clipped.point == (None if clipped.t == inf else along(o, d, clipped.t))
        assert signed.distance == endless.t_enter
        assert signed.inside == leaves_first
    else:
        assert (clipped.t, clipped.point, signed.distance, signed.inside) == (-1.0, None, inf, False)
    assert clipped.hit == signed.hit == (endless is not None)
    assert slab.hit == planes.hit == (bounded is not None)
    return endless


def along(o, d, t):
    return tuple(p + t * q for p, q in zip(o, d, strict=True))


def contains(lower, upper, p):
    return all(a <= x <= b for a, x, b in zip(lower, p, upper, strict=True))


def test_where_nothing_rounds_every_algorithm_is_exact():
    rng = random.Random(1)
    counts = dict.fromkeys(["hit", "miss", "inside", "touch", "parallel", "flat", "point"], 0)
    for _ in range(6000):
        o, d, lower, upper = exact_pair(rng)
        found = compare(o, d, lower, upper, rng.choice([inf, 0.0, 0.25, 1.0, 2.0, 5.0]))
        counts["hit" if found else "miss"] += 1
        if found:
            counts["inside"] += found.t > found.t_enter
            counts["touch"] += found.t_enter == found.t_exit
            counts["parallel"] += 0.0 in d
            counts["flat"] += any(a == b for a, b in zip(lower, upper, strict=True))
            counts["point"] += not any(d)
    assert min(counts.values()) > 40, counts


def test_every_algorithm_is_right_away_from_edges():
    """Random numbers of all digits; slightly larger and smaller boxes have the same exact result."""
    rng = random.Random(2)
    hits = misses = 0
    for _ in range(2000):
        size = rng.choice([2, 3])
        o, d, a, b = (tuple(rng.uniform(-2, 2) for _ in range(size)) for _ in "odab")
        lower, upper = tuple(map(min, a, b)), tuple(map(max, a, b))
        end = rng.choice([inf, rng.uniform(0, 4)])
        verdicts = set()
        for margin in (-1e-6, 0.0, 1e-6):
            low, high = tuple(x - margin for x in lower), tuple(x + margin for x in upper)
            if all(map(lambda p, q: p < q, low, high)):
                verdicts |= {
                    definition.box(Ray1(o, d, 0.0, t_max), low, high) is not None
                    for t_max in (end, end + margin)
                }
        if len(verdicts) > 1:
            continue
        (hit,) = verdicts
        assert textbook.slab(o, d, lower, upper, t_max=end).hit is hit
        assert textbook.candidate_planes(o, d, lower, upper, length=end).hit is hit
        if end == inf:
            assert textbook.cyrus_beck(o, d, lower, upper).hit is hit
            assert textbook.near_far(o, d, lower, upper).hit is hit
        hits, misses = hits + hit, misses + (not hit)
    assert hits > 300
    assert misses > 300


def test_planes_where_nothing_rounds():
    rng = random.Random(3)
    counts = dict.fromkeys(["hit", "miss", "start", "end"], 0)
    for _ in range(2000):
        size = rng.choice([2, 3])
        o, n = (tuple(quarter(rng, -2, 2) for _ in range(size)) for _ in "on")
        d = tuple(rng.choice([0.0, 1.0, -1.0, 0.5]) for _ in range(size))
        length = rng.choice([0.0, 0.5, 1.0, 2.0, 4.0])
        ends = [sum(x * y for x, y in zip(n, along(o, d, t), strict=True)) for t in (0.0, length)]
        offset = rng.choice([quarter(rng, -3, 3), *ends])
        found = textbook.bounded_plane(o, d, n, offset, length=length)
        expected = definition.plane(
            Ray1(o, tuple(length * x for x in d), 0.0, 1.0), n, offset, cull_back=True
        )
        assert found.hit == bool(found) == (expected is not None)
        assert found.t == (expected.t if expected else inf)
        counts["hit" if expected else "miss"] += 1
        counts["start"] += found.t == 0.0
        counts["end"] += found.t == 1.0
    assert min(counts.values()) > 30, counts


def test_triangles_where_nothing_rounds():
    """Sheared right triangles whose determinant is a power of two, hit at multiples of 1/4."""
    rng = random.Random(4)
    counts = dict.fromkeys(["hit", "miss", "edge", "behind", "parallel"], 0)
    for _ in range(3000):
        a = tuple(quarter(rng, -1, 1) for _ in range(3))
        size, shear, side = rng.choice([1.0, 2.0]), rng.choice([0.0, 1.0]), rng.choice([1.0, -1.0])
        b = (a[0] + size, a[1] + shear * size, a[2])
        c = (a[0], a[1] + side * size, a[2] + shear * size)
        o = tuple(quarter(rng, -2, 2) for _ in range(3))
        d = rng.choice([(0.0, 0.0, 1.0), (0.0, 0.0, -2.0), (0.0, 1.0, 0.0), (1.0, shear, 0.0)])
        found, expected = textbook.moller_trumbore(o, d, a, b, c), definition.triangle(Ray1(o, d), a, b, c)
        assert found.hit == bool(found) == (expected is not None)
        if expected:
            assert found[1:4] == (expected[0].t, *expected[1:])
        else:
            assert found.t == inf
            assert isnan(found.u)
            assert isnan(found.v)
            whole = definition.triangle(Ray1(o, d, -inf, inf), a, b, c)
            counts["behind"] += whole is not None
            counts["parallel"] += "no area" in found.steps[-1]
        counts["hit" if expected else "miss"] += 1
        counts["edge"] += bool(expected) and (0.0 in expected[1:] or sum(expected[1:]) == 1.0)
    assert min(counts.values()) > 40, counts
