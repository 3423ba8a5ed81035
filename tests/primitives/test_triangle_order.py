"""The order of the crossings of a ray with two triangles against Fractions, and how often it is left open."""

from collections import Counter
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exact_surfaces
from loops import loop
from raybox.geometry import TriangleRows
from raybox.primitives.status import UNKNOWN_ORDER
from raybox.primitives.triangle_order import certain_order

NUMBER = 160  # of pairs in a family


@loop
def write_orders(mesh, rays64, orders):
    for r in range(len(orders)):
        orders[r] = certain_order(mesh, rays64, r, 2 * r, 2 * r + 1)


class Crossed(NamedTuple):
    """Rays, and two triangles for each: (n, 3), (n, 3) and (n, 2, 3, 3)."""

    origins: np.ndarray
    directions: np.ndarray
    corners: np.ndarray


def rows(corners) -> TriangleRows:
    return TriangleRows(np.ascontiguousarray(corners.reshape(-1, 3, 3)))


def fractions(point) -> list[Fraction]:
    return [Fraction(x) for x in point]


def time(o, d, corners) -> Fraction | None:
    """Return when a ray crosses the plane of a triangle; None if it is parallel to it."""
    normal = exact_surfaces.normal(*map(fractions, corners))
    slope = exact_surfaces.dot(normal, fractions(d))
    apart = exact_surfaces.minus(fractions(corners[0]), fractions(o))
    return exact_surfaces.dot(normal, apart) / slope if slope else None


def check_orders(pairs: Crossed) -> Counter:
    """Check the orders of pairs against the truth, both ways around; return counts."""
    counts, rays64 = Counter(), np.column_stack([*pairs[:2], np.zeros((len(pairs.origins), 2))])
    for corners in (pairs.corners, pairs.corners[:, ::-1]):
        orders = np.empty(len(corners), np.int64)
        write_orders(rows(corners), rays64, orders)
        for k, order in enumerate(orders.tolist()):
            one, other = (time(pairs.origins[k], pairs.directions[k], x) for x in corners[k])
            if one is None or other is None:
                counts["parallel"] += 1
                continue
            want = (one > other) - (one < other)
            assert order in (want, UNKNOWN_ORDER), (k, order, want)
            kind = "ties" if want == 0 else "near ties" if abs(one - other) < abs(one) * 2.0**-40 else "apart"
            counts[kind] += 1
            counts["unknown"] += order == UNKNOWN_ORDER
            counts["unknown ties"] += order == UNKNOWN_ORDER and want == 0
    return counts


def at(corners, rng, from_afar=5.0) -> Crossed:
    """Return rays from around the triangles to points of the first of each pair."""
    share = rng.dirichlet(np.ones(3), (len(corners), 1))
    goals, size = (share @ corners[:, 0])[:, 0], np.abs(np.diff(corners[:, 0], axis=1)).max(axis=(1, 2))
    origins = goals + from_afar * size[:, None] * rng.normal(size=goals.shape)
    return Crossed(origins, (goals - origins) * rng.uniform(0.1, 3, (len(corners), 1)), corners)


def walls(rng, size=1.0, middle=0.0, power=0) -> np.ndarray:
    """Return pairs in one upright plane: their corners are above two points; any heights.

    Each number is multiplied by a power of two, down to 2^-power. Upright is along any axis.
    """

    def numbers(*shape):
        shape = NUMBER, *shape
        return (middle + size * rng.uniform(-1, 1, shape)) * 2.0 ** -rng.integers(0, power + 1, shape)

    feet, heights = numbers(2, 2), numbers(2, 3, 1)
    feet = np.stack([feet[:, [0, 1, 1]], feet[:, [1, 0, 0]]], axis=1)
    corners = np.concatenate([feet, heights], axis=-1)
    corners[1::3], corners[2::3] = np.roll(corners[1::3], 1, axis=-1), np.roll(corners[2::3], 2, axis=-1)
    return corners


def sums(rng) -> np.ndarray:
    """Return pairs in the plane z = x + 2 y, whose numbers are exact."""
    corners = rng.integers(-(2**50), 2**50, (NUMBER, 2, 3, 3)).astype(float)
    corners[..., 2] = corners[..., 0] + 2 * corners[..., 1]
    return corners * 2.0**-50


def turned(rng) -> np.ndarray:
    """Return pairs of one plane, turned by a matrix: each corner is rounded."""
    flat = np.concatenate([rng.uniform(-1, 1, (NUMBER, 2, 3, 2)), np.full((NUMBER, 2, 3, 1), 0.3)], axis=-1)
    return flat @ np.linalg.qr(rng.normal(size=(NUMBER, 1, 3, 3)))[0]


def nudged(rng, corners) -> np.ndarray:
    """Return triangles of which one number is its neighbour."""
    corners, row, axis = corners.copy(), np.arange(len(corners)), rng.integers(0, 3, len(corners))
    at = row, rng.integers(0, 2, len(row)), rng.integers(0, 3, len(row)), axis
    corners[at] = np.nextafter(corners[at], rng.choice([-np.inf, np.inf], len(row)))
    return corners


@pytest.mark.core
def test_one_plane_is_decided_without_integers_of_any_length():
    rng, counts = np.random.default_rng(61), Counter()
    for corners in (walls(rng), walls(rng, 5.0, 84321.7), sums(rng)):
        counts += check_orders(at(corners, rng))
    assert counts == Counter(ties=6 * NUMBER), counts


def test_numbers_of_any_size_on_one_axis():
    """Up to 2^60 of each other, these have two limbs."""
    rng, counts = np.random.default_rng(62), Counter()
    for power in (6, 9, 30, 54, 60):
        counts += check_orders(at(walls(rng, power=power), rng))
    assert counts["ties"] == 10 * NUMBER, counts
    assert counts["unknown"] == 0, counts


@pytest.mark.core
def test_near_planes_are_decided_in_double_double():
    rng, counts = np.random.default_rng(63), Counter()
    for corners in (turned(rng), nudged(rng, walls(rng)), nudged(rng, walls(rng, 5.0, 84321.7))):
        counts += check_orders(at(corners, rng))
    assert counts["near ties"] > 600, counts
    assert counts["unknown"] <= 2, counts


def through(rng, power=0) -> Crossed:
    """Return pairs of planes that cross at a point of the ray, whose numbers are exact.

    That point is at t = 1, and the ray shorter than the triangles by 2^-power.
    """
    point, steps = rng.integers(-(2**50), 2**50, (2, NUMBER, 3)) * 2.0**-50
    directions = np.round(steps * 2.0 ** (50 - power)) * 2.0**-50
    corners = rng.uniform(-1, 1, (NUMBER, 2, 3, 3))
    row, pick = np.arange(NUMBER), rng.integers(0, 3, (2, NUMBER))
    for k in range(2):
        corners[row, k, pick[k]] = point
    return Crossed(point - directions, directions, corners)


@pytest.mark.parametrize("case", ["even", "short rays", "first corners beside the origin"])
def test_times_that_tie_in_two_planes_are_left_open(case):
    """The difference of products is roundings alone: any bound that is too small gives it a sign."""
    rng, counts = np.random.default_rng(68), Counter()
    for _ in range(4):
        pairs = through(rng, 16 if case == "short rays" else 0)
        if case == "first corners beside the origin":
            corners = pairs.corners
            corners[:, :, 2] = pairs.origins[:, None] + 2.0**-16 * rng.uniform(-1, 1, (NUMBER, 2, 3))
            corners[:, :, 1] = (pairs.origins + pairs.directions)[:, None]
            pairs = pairs._replace(corners=corners[:, :, [2, 0, 1]])
        counts += check_orders(pairs)
    assert counts["unknown ties"] > 500, counts


@pytest.mark.parametrize("scaled", ["origin", "direction"])
def test_numbers_that_underflow_are_left_open(scaled):
    rng = np.random.default_rng(69)
    corners, tiny = rng.uniform(-1, 1, (NUMBER, 2, 3, 3)), 2.0**-1000
    directions = rng.uniform(-1, 1, (NUMBER, 3))
    corners[:, :, 0] = (directions * (tiny if scaled == "origin" else 1.0))[:, None]
    pairs = Crossed(0 * directions, directions * (tiny if scaled == "direction" else 1.0), corners)
    counts = check_orders(pairs)
    assert counts["unknown ties"] == 2 * NUMBER, counts


def test_rays_nearly_along_a_plane_are_left_open():
    """The sign of the denominator is unknown."""
    rng = np.random.default_rng(70)
    corners = rng.integers(-(2**50), 2**50, (NUMBER, 2, 3, 3)) * 2.0**-50
    corners[:, 0, 1, 2] = corners[:, 0, 0, 2]
    directions = corners[:, 0, 1] - corners[:, 0, 0]
    directions[:, 2] = 2.0**-108 * rng.choice([-1, 1], NUMBER)
    counts = check_orders(Crossed(rng.uniform(-1, 1, (NUMBER, 3)), directions, corners))
    assert counts["unknown"] > 300, counts


def test_planes_that_cross_beside_a_ray():
    """Two planes through 0, which the ray passes by 2^-power at t = 1."""
    rng, unknown = np.random.default_rng(64), {}
    for power in (50, 80, 88, 92, 96, 100, 110, 130, 1060):
        corners = rng.integers(-64, 65, (NUMBER, 2, 3, 3)) / 8
        corners[:, :, 0] = 0.0
        directions = rng.integers(1, 9, (NUMBER, 3)) * rng.choice([-1.0, 0.0], (3,)) + [0.0, 1, 1]
        origins = -directions
        origins[:, 0], directions[:, 0] = 2.0**-power * rng.integers(-2, 3, NUMBER), 0.0
        counts = check_orders(Crossed(origins, directions, corners))
        unknown[power] = counts["unknown"] - counts["unknown ties"]
        assert counts["near ties"] > 120, counts
    assert unknown[50] == 0, unknown
    assert unknown[80] < 5, unknown
    assert unknown[110] > 120, unknown


@pytest.mark.parametrize("power", [-1060, -1000, -320, -60, 60, 320, 1015])
def test_huge_and_tiny_numbers(power):
    """In one plane: exact. Near planes: open beyond 2^100, until all is rounded to one plane."""
    rng = np.random.default_rng(65)
    with np.errstate(all="ignore"):
        for corners, near in ((walls(rng), False), (nudged(rng, walls(rng)), True)):
            pairs = at(corners, rng)
            scaled = Crossed(pairs.origins * 2.0**power, pairs.directions, pairs.corners * 2.0**power)
            counts = check_orders(scaled)
            assert counts["ties"] + counts["near ties"] + counts["apart"] > 300, counts
            if not near:
                assert counts["unknown"] == 0, counts
            else:
                assert (counts["unknown"] == 0) == (abs(power) == 60 or power == -1060), counts


def test_lattices():
    """Small integers: planes in common, common edges and corners under the ray, and parallel rays."""
    rng = np.random.default_rng(66)
    corners = rng.integers(0, 3, (8 * NUMBER, 2, 3, 3)).astype(float)
    corners[::2, 1, :2] = corners[::2, 0, 1:]
    origins, goals = rng.integers(-2, 5, (2, 8 * NUMBER, 3)).astype(float)
    goals[::4] = corners[::4, 1, 0]
    counts = check_orders(Crossed(origins, goals - origins, corners))
    assert min(counts["ties"], counts["apart"], counts["parallel"]) > 300, counts
    assert counts["unknown ties"] > 100, counts
    assert counts["unknown"] < counts["unknown ties"] + 20, counts


def check_planes(corners, rng) -> Counter:
    """Check orders of pairs in one plane, or beside it by one number, by rays that are not along them."""
    origins, directions = rng.uniform(-4, 4, (2, len(corners), 3))
    return check_orders(Crossed(origins, directions, corners))


def test_the_last_bit_of_two_limbs():
    """Numbers at the limits of their limbs; one that differs by the last bit of the second is beside."""
    rng, counts = np.random.default_rng(67), Counter()
    ends = np.array([0, 1, -1, 2 - 2.0**-52, 2.0**-52 - 2, 2.0**-7, 2.0**-60, (2 - 2.0**-52) * 2.0**-66])
    for _ in range(4):
        corners = rng.choice(ends, (NUMBER, 2, 3, 3))
        corners[:, 0, 0] = 2 - 2.0**-52
        corners[::2, :, :, 0] = 2 - 2.0**-52  # in one plane
        counts += check_planes(corners, rng)
        corners[::2, :, :, 0] = 0.0
        corners[1::2, :, :, 0] = 1.0
        corners[1::2, 1, rng.integers(0, 3), 0] = 1.0 + 2.0**-52
        counts += check_planes(corners, rng)
        corners[::2, 1, rng.integers(0, 3), 0] = 2.0**-1060
        counts += check_planes(corners, rng)
    assert min(counts["ties"], counts["near ties"] + counts["apart"]) > 400, counts
    assert counts["unknown ties"] == 0, counts


@pytest.mark.parametrize("tiny", [2.0**-1074, 2.0**-1060, 2.0**-900])
def test_a_tiny_number_is_not_taken_for_0(tiny):
    """Multiplied by the power of two of its axis, it would underflow."""
    huge = 2.0**1000
    one, other = [[0, 0, 0], [huge, huge, 0], [0, 0, 1]], [[0, 0, 0], [huge, huge, 5], [tiny, 0, 3]]
    turns = [np.roll([one, other], k, axis=-1) for k in range(3)]
    assert check_planes(np.array(turns), np.random.default_rng(71))["ties"] == 0


def test_a_volume_of_low_limbs_is_not_taken_for_0():
    low = 2.0**-70
    one = [[0, 0, 0], [low, 0, low], [0, low, 0]]  # in the plane x = z
    corners = np.array([[one, [[1, 1, 1], [x, 0, low], [1, 0, 1]]] for x in (0, low, 2 * low)])
    counts = check_planes(corners, np.random.default_rng(72))
    assert (counts["ties"], counts["unknown ties"]) == (2, 0), counts


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
COLUMN = st.tuples(FLOATS, FLOATS)


@given(st.lists(st.tuples(COLUMN, COLUMN, st.lists(FLOATS, min_size=6, max_size=6)), min_size=1, max_size=8))
def test_walls_of_any_numbers(drawn):
    """Upright walls of any floats are in one plane: found, or open; never beside it found in it."""
    corners = np.empty((len(drawn), 2, 3, 3))
    for k, (foot, other, heights) in enumerate(drawn):
        columns = [foot, other, other, other, foot, foot]
        corners[k] = np.array([[*c, z] for c, z in zip(columns, heights, strict=True)]).reshape(2, 3, 3)
    rng = np.random.default_rng(len(drawn))
    counts = check_planes(corners, rng)
    assert counts["near ties"] == counts["apart"] == 0
    corners[:, 1, 2, 0] = np.nextafter(corners[:, 1, 2, 0], 1e300)
    check_planes(corners, rng)
