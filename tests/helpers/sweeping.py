"""The definition of a sweep in Fractions: the t at which two boxes have a point in common."""

from collections import Counter
from fractions import Fraction

import numpy as np

import raybox as rb
from exact import rounded

INF = np.inf


def contact(low, high, way, lower, upper):
    """Return first contact, start and end of contact on the whole line, and axis; None: no contact."""
    begin, end, face = -INF, INF, {}
    for k, (a, b, d, p, q) in enumerate(zip(low, high, way, lower, upper, strict=True)):
        if p == INF or q == -INF:
            return None
        if d == 0:
            if b < p or q < a:
                return None
            continue
        first = p if abs(p) == INF else (Fraction(p) - Fraction(b)) / Fraction(d)
        last = q if abs(q) == INF else (Fraction(q) - Fraction(a)) / Fraction(d)
        if d < 0:
            first, last = (x * (-1 if abs(x) == INF else 1) for x in (last, first))
        face[k], begin, end = first, max(begin, first), min(end, last)
    if begin > end or begin > 1 or end < 0:
        return None
    axis = min((k for k, first in face.items() if first == begin), default=None) if begin >= 0 else None
    return max(begin, 0), begin, end, axis


def truth(low, high, way, lower, upper, where=None):
    """Yield each box's first contact (t, index, begin, end, axis) or None, and the delays of others."""
    for a, b, d in zip(low.tolist(), high.tolist(), way.tolist(), strict=True):
        met = []
        for i, (p, q) in enumerate(zip(lower.tolist(), upper.tolist(), strict=True)):
            found = contact(a, b, d, p, q) if where is None or where[i] else None
            if found is not None:
                met.append((found[0], i, *found[1:]))
        best = min(met, key=lambda x: x[:2], default=None)
        yield best, [x[0] - best[0] for x in met if x is not best]


def check_sweep(low, high, way, lower, upper, where=None, **how) -> Counter:
    """Assert the hits of a sweep against the truth; return counts of the kinds of contacts."""
    scene, counts = rb.Scene(rb.Boxes(lower, upper)), Counter()
    hits = rb.sweep(rb.Boxes(low, high), way, scene, where=where, **how)
    way = np.broadcast_to(way, low.shape)
    assert hits.shape == (len(low),)
    for k, (met, later) in enumerate(truth(low, high, way, lower, upper, where)):
        if met is None:
            assert (hits.index[k], hits.t[k]) == (-1, INF), k
            assert np.isnan([hits.t_enter[k], hits.t_exit[k], *hits.normals[k]]).all()
            counts["miss"] += 1
            continue
        t, i, begin, end, axis = met
        normal = np.zeros(low.shape[1])
        if axis is not None:
            normal[axis] = -np.sign(way[k, axis])
        assert (hits.index[k], hits.t[k]) == (i, rounded(t) + 0.0), k
        assert not np.signbit(hits.t[k]), k
        assert (hits.t_enter[k], hits.t_exit[k]) == (rounded(begin), rounded(end)), k
        assert hits.normals[k].tolist() == normal.tolist(), k
        with np.errstate(all="ignore"):
            center = low[k] / 2 + high[k] / 2 + hits.t[k] * way[k]
        np.testing.assert_allclose(hits.points[k], center, rtol=1e-12, atol=1e-12)
        counts["hit"] += 1
        counts["tied"] += 0 in later
        counts["nearly tied"] += any(0 < x < Fraction(2) ** -50 for x in later)
        counts["overlaps"] += axis is None
        counts["touches"] += begin == end
        counts["at an end"] += t in (0, 1)
    return counts


def corners(rng, n, dim, grid):
    one, other = (rng.integers(-8, 9, (2, n, dim)) / 2 if grid else rng.uniform(-4, 4, (2, n, dim))).astype(
        float
    )
    return np.minimum(one, other), np.maximum(one, other)


def small(low, high, share):
    return low, low + (high - low) * share
