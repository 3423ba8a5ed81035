"""Convex regions and boxes that almost share a point, or just do: families of a region and its boxes."""

from typing import NamedTuple

import numpy as np

import raybox as rb

INF = np.inf


class Case(NamedTuple):
    region: rb.Region
    lower: np.ndarray
    upper: np.ndarray


def ordered(a, b):
    return np.minimum(a, b), np.maximum(a, b)


def frustum(rng, scale=1.0):
    """Return a frustum of a random camera."""
    eye, target, up = rng.normal(size=(3, 3)) * scale
    near = rng.uniform(0.1, 1) * scale if rng.random() < 0.8 else 0.0
    far = near + rng.uniform(0.5, 4) * scale if rng.random() < 0.8 else INF
    size = {"width": int(rng.integers(1, 900)), "height": int(rng.integers(1, 700))}
    return rb.Frustum.pinhole(eye, target, up=up, fov=rng.uniform(20, 100), near=near, far=far, **size)


def corners_of(region):
    """Return points in which three planes of a frustum meet, rounded."""
    found = []
    for sides in ((0, 2), (0, 3), (1, 2), (1, 3)):
        for depth in range(4, len(region)):
            rows = [*sides, depth]
            found.append(np.linalg.solve(region.normals[rows], region.offsets[rows]))
    return np.array(found)


def at_edges(rng, count):
    """Boxes whose corner nearest to the region is next to an edge of a frustum: within, on, or just beside.

    Half of them are moved by a unit in the last place or several, half by up to a tenth of the frustum.
    """
    region = frustum(rng)
    while len(region) < 6:
        region = frustum(rng)
    corners = corners_of(region)  # each side near, then far
    pairs = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [0, 2], [1, 3], [4, 6], [5, 7], [0, 4], [2, 6], [3, 7]])
    ends = corners[pairs[rng.integers(len(pairs), size=count)]]
    share = rng.random((count, 1))
    points = ends[:, 0] * share + ends[:, 1] * (1 - share)
    outward = points - corners.mean(axis=0)
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    steps = np.where(
        rng.random(count) < 0.5, rng.choice([1e-16, 1e-15, 1e-12], count), 0.1 * rng.random(count)
    )
    points += outward * (steps * rng.normal(size=count))[:, None]
    sides = np.sign(outward) * rng.uniform(0, 1, (count, 3)) * (rng.random((count, 3)) < 0.9)
    thick = rng.random((count, 3)) * (rng.random((count, 1)) < 0.5) * np.sign(rng.normal(size=(count, 3)))
    return Case(region, *ordered(points, points + np.where(thick != 0, thick, sides)))


def around(rng, count):
    """Boxes of all sizes around a frustum."""
    region = frustum(rng)
    centers, sizes = rng.normal(size=(count, 3)) * 2, rng.exponential(0.3, (count, 3))
    return Case(region, centers - sizes, centers + sizes)


def lattice(rng, count, dim=3):
    """Integers: faces, edges and corners of both often touch."""
    planes = int(rng.integers(1, 7))
    normals = rng.integers(-2, 3, (planes, dim)).astype(float)
    normals[~normals.any(axis=1)] = 1.0
    region = rb.Region(normals, rng.integers(-3, 6, planes).astype(float))
    return Case(region, *ordered(*rng.integers(-4, 5, (2, count, dim)).astype(float)))


def next_to_lattice(rng, count, dim=3):
    """Numbers of a lattice over 3, and their neighbours among floats."""
    region, lower, upper = lattice(rng, count, dim)
    lower, upper = (x / 3 + rng.integers(-1, 2, x.shape) * 2.0**-53 for x in (lower, upper))
    return Case(rb.Region(region.normals, region.offsets / 3), *ordered(lower, upper))


def unbounded(rng, count, dim=3):
    """Boxes without some bounds, also those without a point."""
    region, lower, upper = (lattice if rng.random() < 0.5 else next_to_lattice)(rng, count, dim)
    lower = np.where(rng.random(lower.shape) < 0.3, -INF, lower)
    upper = np.where(rng.random(lower.shape) < 0.3, INF, upper)
    nothing = rng.random(lower.shape) < 0.02
    return Case(region, np.where(nothing, INF, lower), np.where(nothing, INF, upper))


def far_out(rng, count, dim=3):
    """Numbers of a lattice times powers of ten, down to 1e-300 and up to 1e300: of all, or of each."""
    region, lower, upper = lattice(rng, count, dim)
    powers = np.array([1e-320, 1e-300, 1e-160, 1.0, 1e150, 1e300])
    if rng.random() < 0.5:
        scale, other = rng.choice(powers, 2)
        scale = min(scale, 1e307 / max(other, 1.0))
        return Case(
            rb.Region(region.normals * other, region.offsets * other * scale), lower * scale, upper * scale
        )
    lower, upper = (x * rng.choice(powers, (count, dim)) for x in (lower, upper))
    normals = region.normals * rng.choice(powers, region.normals.shape)
    normals[~normals.any(axis=1)] = 1.0
    offsets = region.offsets * rng.choice(powers, len(region))
    return Case(rb.Region(normals, offsets), *ordered(lower, upper))


def empty(rng, count):
    """Regions without a point: of planes that contradict each other, by much or by one unit."""
    region, lower, upper = lattice(rng, count)
    normal = region.normals[0] / 3
    low = float(rng.integers(-2, 3))
    above = np.nextafter(low, INF) if rng.random() < 0.5 else low + 1.0
    normals = np.concatenate([region.normals, [normal, -normal]])
    return Case(rb.Region(normals, [*region.offsets, low, -above]), lower - 2.0, upper + 2.0)


def flat(rng, count):
    """Regions without a volume: between two planes of one offset."""
    region, lower, upper = lattice(rng, count)
    normals = np.concatenate([region.normals, -region.normals[:1]])
    return Case(rb.Region(normals, [*region.offsets, -region.offsets[0]]), lower, upper)
