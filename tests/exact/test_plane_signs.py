"""Signs of turns and areas in the plane, against rational arithmetic."""

from collections import Counter
from fractions import Fraction

import numpy as np

import polygon_truth
from raybox.exact.plane_signs import area_signs, largest_axes, turn_signs


def test_signs_are_those_of_rational_arithmetic():
    rng = np.random.default_rng(5)
    n = 400
    a, b = rng.normal(size=(2, n, 2)) * 10.0 ** rng.integers(-3, 6, (n, 1))
    c = a + (b - a) * rng.uniform(-2, 2, (n, 1))  # all but on the line
    third = n // 3
    c[:third] = a[:third]
    b[third : 2 * third] = np.round(b[third : 2 * third])
    a[third : 2 * third], c[third : 2 * third] = 0, 3 * b[third : 2 * third]
    small = rng.integers(-6, 7, (3, n, 2)) * 2.0**-538  # products are quarters of the smallest number
    for points in (
        small,
        *(np.stack([a, b, c]) * scale for scale in (1.0, 2.0**-540, 2.0**-1040, 2.0**1000)),
    ):
        expected = []
        for p, q, r in points.transpose(1, 0, 2).tolist():
            area = polygon_truth.cross(*(tuple(map(Fraction, point)) for point in (p, q, r)))
            expected.append((area > 0) - (area < 0))
        counts = Counter(expected)
        assert min(counts[sign] for sign in (-1, 0, 1)) > 10, counts
        assert turn_signs(*points).tolist() == expected
        assert area_signs(points.transpose(1, 0, 2).reshape(-1, 2), np.full(n, 3)).tolist() == expected


def test_the_axis_is_that_of_the_largest_component():
    rng = np.random.default_rng(6)
    rings = rng.integers(-3, 4, (3_000, 4, 3)).astype(float)
    rings[:300] *= 2.0**-1060
    rings[300:600] *= 2.0**1000
    rings[600:900, :, 0] += 2.0**52
    axes = largest_axes(rings.reshape(-1, 3), np.full(len(rings), 4))
    none = 0
    for ring, axis in zip(rings, axes.tolist(), strict=True):
        normal = [abs(x) for x in polygon_truth.newell(polygon_truth.exact(ring))]
        none += axis == -1
        assert (axis == -1) == (not any(normal))
        assert axis == -1 or normal[axis] == max(normal)
    assert 5 < none < 1_000
