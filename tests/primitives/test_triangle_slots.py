"""Volumes and times of rays at triangles in float32: within their proven bounds of those in Fractions."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

import exact_surfaces
from loops import loop
from raybox.bvh.node import WIDTH
from raybox.compiler.intrinsics import vector_code, void
from raybox.compiler.simd import F32, F64, I64, constant
from raybox.compiler.simd_arrays import loop as vector_loop
from raybox.geometry import TriangleRows
from raybox.primitives.triangle_simd import load_corners
from raybox.primitives.triangle_slots import RayWays, measure, reach_of, slot_words, times

COLUMNS = 9  # U/2, V, W, bound, times: low, high, known; D, unit
U = Fraction(2) ** -24


class Given(NamedTuple):
    rows: TriangleRows
    origins: np.ndarray  # (n, 3)
    directions: np.ndarray


@vector_code(void)
def write_measured(b, given, out, number):
    """Write the columns of eight pairs of ray k and triangle k at a time."""
    with vector_loop(b, number, WIDTH) as at:
        numbers = [b.add(at, I64(k)) for k in range(WIDTH)]
        corners = load_corners(b, given.rows, numbers)
        one, none = constant(b, F64, WIDTH, 1.0), constant(b, F64, WIDTH, 0.0)
        words = slot_words(corners, [none] * 3, one)
        o, d = (
            [x.gather([b.add(b.mul(k, I64(3)), I64(axis)) for k in numbers]).to(F32) for axis in range(3)]
            for x in (given.origins, given.directions)
        )
        way = RayWays(o, d, reach_of(o, constant(b, F32, WIDTH, 0.0)))
        found = measure(words.__getitem__, way)
        crossed = times(found)
        known = crossed.known.choose(constant(b, F32, WIDTH, 1.0), 0.0)
        columns = [*found.volumes, found.bound, crossed.low, crossed.high, known, found.den, found.unit]
        for k, column in enumerate(columns):
            out.store(column, b.add(b.mul(at, I64(COLUMNS)), I64(k * WIDTH)))


@loop
def measured(given, out):
    write_measured(given, out, given.origins.shape[0])


def families(rng, kind: str, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return corners, origins and directions, whose longest part is in [1/2, 1)."""
    corners = rng.uniform(-1.0, 1.0, (n, 3, 3))
    if kind == "small":
        corners = corners[:, :1] + np.ldexp(corners, -rng.integers(4, 14, (n, 1, 1)))
    if kind == "slivers":
        corners[:, 2] = corners[:, 0] + rng.uniform(0, 1, (n, 1)) * (corners[:, 1] - corners[:, 0])
        corners[:, 2] += np.ldexp(rng.uniform(-1.0, 1.0, (n, 3)), -rng.integers(3, 30, (n, 1)))
    if kind == "even":  # all parts of all vectors are nearly as large as the largest: most roundings are
        o, d, p, q = rng.choice([-1.0, 1.0], (4, n, 3)) * (1.0 + np.ldexp(rng.random((4, n, 3)), -6))
        a = -o * (1.0 + np.ldexp(rng.random((n, 3)), -6))
        return np.stack([a, a + p, a + q], axis=1), o, np.sign(d) * (2.0 - np.abs(d))
    goals = (rng.dirichlet([1, 1, 1], (n, 1)) @ corners)[:, 0]
    if kind == "edges":  # through an edge, or a corner
        share = rng.choice([0.0, 0.5, rng.random()], (n, 1))
        goals = corners[:, 0] + share * (corners[:, 1] - corners[:, 0])
    origins = rng.uniform(-1.0, 1.0, (n, 3))
    if kind == "far":
        origins *= np.ldexp(1.0, rng.integers(3, 30, (n, 1)))
    if kind == "near":
        origins = goals + np.ldexp(rng.uniform(-1.0, 1.0, (n, 3)), -rng.integers(5, 20, (n, 1)))
    if kind == "wide":  # triangles are larger than all else
        corners[:, 0], origins = (np.ldexp(rng.uniform(-1.0, 1.0, (n, 3)), -12) for _ in range(2))
    if kind == "along":  # rays nearly along the planes of triangles
        p, q = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        tilt = np.ldexp(rng.uniform(-1.0, 1.0, (n, 1)), -rng.integers(12, 40, (n, 1)))
        goals = origins + p * rng.uniform(-1.0, 1.0, (n, 1)) + q * rng.uniform(-1.0, 1.0, (n, 1))
        goals += tilt * np.cross(p, q)
    ways = goals - origins
    ways *= rng.uniform(0.5, 1.0, (n, 1)) / np.abs(ways).max(axis=1, keepdims=True)
    return corners, origins, ways


KINDS = ["any", "even", "small", "slivers", "edges", "far", "near", "wide", "along"]


@pytest.mark.jit
@pytest.mark.parametrize("kind", KINDS)
def test_errors_are_within_their_bounds(kind):
    """Of volumes, of D and of times; the largest are not far below, or the bounds would prove nothing."""
    rng, n = np.random.default_rng([404, KINDS.index(kind)]), 4000
    corners, origins, ways = families(rng, kind, n)
    out = np.empty((n // WIDTH, COLUMNS, WIDTH), np.float32)
    measured(Given(TriangleRows(corners), origins, ways), out.reshape(-1))
    columns = out.transpose(0, 2, 1).reshape(n, COLUMNS)
    volume_share = time_share = known_times = 0.0
    for k in range(n):
        *volumes, bound, low, high, known, den, unit = map(Fraction, columns[k].tolist())
        a, b, c = ([Fraction(x) - Fraction(o) for x, o in zip(p, origins[k].tolist(), strict=True)]
                   for p in corners[k].tolist())  # fmt: skip
        d = [Fraction(x) for x in ways[k].tolist()]
        cross, dot = exact_surfaces.cross, exact_surfaces.dot
        truth = dot(d, cross(c, b)), dot(d, cross(a, c)), dot(d, cross(b, a))
        errors = [abs(x - y) for x, y in zip(volumes, (truth[0] / 2, *truth[1:]), strict=True)]
        assert max(errors) < bound, (k, float(max(errors) / bound))
        volume_share = max(volume_share, max(errors) / bound)
        assert abs(den - sum(truth)) * 80 <= unit * 46
        if known:
            normal = exact_surfaces.normal(a, b, c)
            time = dot(normal, a) / dot(normal, d)
            assert low < time < high, k
            time_share = max(time_share, abs(time * 2 - low - high) / (high - low))
            known_times += 1
    assert volume_share > (0.1 if kind == "even" else 0.02), float(volume_share)
    assert time_share > (0.1 if kind == "even" else 0.005), float(time_share)
    assert known_times > n / 20
