"""Rays and geometries at both ends of float64's range, with times beyond it, and exact lengths and points."""

from fractions import Fraction

import numpy as np

import exact_instances
import raybox as rb
from exact import INF
from path_truth import root

LARGEST = Fraction(np.finfo(float).max)
EXPONENTS = (-1073, -1000, -600, -300, -60, 0, 0, 60, 300, 600, 1000, 1021)


def sizes(rng, shape):
    """Return powers of two from denormal numbers to the largest."""
    return np.ldexp(1.0, rng.choice(EXPONENTS, shape) + rng.integers(-3, 3, shape))


def mantissas(rng, shape):
    return rng.choice([-1.0, 1.0], shape) * rng.uniform(0.5, 1.0, shape)


def edges_of(rng, dims, count):
    """Return increasing edges of each axis: of one size or several, some from end to end of float64."""
    axes = []
    for _ in range(dims):
        scale = sizes(rng, 1 if rng.random() < 0.7 else count)
        values = np.unique(np.clip(mantissas(rng, count) * scale, -1.79e308, 1.79e308))
        axes.append(values if values.size > 1 else np.array([0.0, max(scale[0], 5e-324)]))
    return axes


def rays_at(rng, targets, count):
    """Return rays towards points of boxes, with directions and ranges of all sizes."""
    lower, upper = targets
    goal = rng.integers(len(lower), size=count)
    share = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], lower[goal].shape)
    point = lower[goal] * (1.0 - share) + upper[goal] * share
    dims = point.shape[1]
    ways = np.where(rng.random((count, dims)) < 0.3, 0.0, mantissas(rng, (count, dims)))
    ways[~ways.any(axis=1), 0] = 1.0
    reach = sizes(rng, (count, 1))
    # powers of two keep most rays exactly on their goals
    with np.errstate(over="ignore", under="ignore", invalid="ignore"):
        origins = np.clip(point - ways * reach, -1.79e308, 1.79e308)
        ways = np.where(rng.random((count, 1)) < 0.4, np.clip(point / 2 - origins / 2, -1e308, 1e308), ways)
        ways = ways * sizes(rng, (count, 1))
        uneven = ways * np.where(rng.random((count, dims)) < 0.3, sizes(rng, (count, dims)), 1.0)
    fits = np.isfinite(uneven).all(axis=1) & uneven.any(axis=1)
    ways = np.where(fits[:, None], uneven, mantissas(rng, (count, dims)))
    first = np.where(rng.random(count) < 0.8, 0.0, mantissas(rng, count) * sizes(rng, count))
    first = np.where(rng.random(count) < 0.1, -INF, first)
    last = np.where(rng.random(count) < 0.7, INF, mantissas(rng, count) * sizes(rng, count))
    return rb.Rays(origins, ways, t_min=np.minimum(first, last), t_max=np.maximum(first, last))


def exact_length(hit, d, span):
    """Return the length of a contact within a range, in Fractions; infinite without end."""
    begin, end = max(hit.t_enter, span[0]), min(hit.t_exit, span[1])
    if not any(d) or begin == end:
        return Fraction(0)
    if INF in (abs(begin), abs(end)):
        return INF
    return (Fraction(end) - Fraction(begin)) * root(sum(Fraction(x) ** 2 for x in d))


def exact_point(hit, o, d):
    """Return the point of first contact in Fractions."""
    return [Fraction(p) + hit.t * Fraction(q) if q else Fraction(p) for p, q in zip(o, d, strict=True)]


def contacts(rays, geometry):
    """Return for each ray its origin, direction, range and contacts."""
    parts = list(exact_instances.parts_of(rays))
    return list(zip(parts, exact_instances.along(rays, geometry), strict=True))
