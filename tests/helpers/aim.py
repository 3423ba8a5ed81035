"""Building blocks of the adversarial families: boxes, points on their features, rays through those points.

Three kinds of numbers are used. GRID: small whole numbers and quarters; crossings are exact and ties abound.
FINE: multiples of 2**-50 with up to 53 bits, chosen so that a crossing is exact though its time, say 1/7, is
no float. FULL: 53 random bits; rounding decides on which side of the feature the ray passes.
"""

from typing import NamedTuple

import numpy as np

INF = np.inf
TINY = 5e-324  # the least denormal
GRID, FINE, FULL = 0, 1, 2


class Pairs(NamedTuple):
    """Rays and boxes: row by row (``exact.box_rows``) or, as a scene, each with each (``exact.along``)."""

    origins: np.ndarray
    directions: np.ndarray
    t_min: np.ndarray
    t_max: np.ndarray
    lower: np.ndarray
    upper: np.ndarray


def coin(rng, shape, p=0.5) -> np.ndarray:
    return rng.random(shape) < p


def column(rng, n, *choices) -> np.ndarray:
    """Return n random choices as a column."""
    return rng.choice(choices, (n, 1))


def axis(rng, n, dim) -> np.ndarray:
    """Return a mask of one random axis in each row."""
    return np.arange(dim) == rng.integers(0, dim, (n, 1))


def numbers(rng, kind, dim=3) -> np.ndarray:
    shape = (len(kind), dim)
    fine = rng.integers(-(2**49), 2**49 + 1, shape) * 2.0**-50
    return np.choose(kind, [rng.integers(-4, 5, shape).astype(float), fine, rng.uniform(-8, 8, shape)])


def boxes(rng, kind, dim=3) -> tuple[np.ndarray, np.ndarray]:
    a, b = numbers(rng, kind, dim), numbers(rng, kind, dim)
    return np.minimum(a, b), np.where(a == b, a + 1, np.maximum(a, b))


def feature(rng, kind, lower, upper, pinned) -> tuple[np.ndarray, np.ndarray]:
    """Return a point of each box on ``pinned`` of its bounds, inside the others, and a mask of these."""
    shape = lower.shape
    fixed = np.argsort(rng.random(shape), axis=1) < pinned
    share = np.where(kind == GRID, rng.integers(1, 4, shape) / 4, rng.random(shape))
    between = lower + share * (upper - lower)
    between = np.where(kind == FINE, np.round(between * 2.0**50) * 2.0**-50, np.clip(between, lower, upper))
    return np.where(fixed, np.where(coin(rng, shape), upper, lower), between), fixed


def aimed(rng, n, pinned, *, dim=3, kinds=(GRID, FINE, FULL), slide=0.3) -> Pairs:
    """Return rays aimed at points on ``pinned`` bounds of boxes, along them with probability ``slide``."""
    kind = column(rng, n, *kinds)
    lower, upper = boxes(rng, kind, dim)
    point, fixed = feature(rng, kind, lower, upper, pinned)
    along = fixed & coin(rng, fixed.shape, slide)

    # Two points and a whole multiple of their difference are exact; a direction drawn freely is not.
    start = np.where(along, point, numbers(rng, kind, dim))
    many = column(rng, n, 1.0, 2.0, 3.0, 5.0, 7.0)
    free = numbers(rng, kind, dim)
    directions = np.where(kind == FULL, free, (point - start) * many)
    origins = np.where((kind == FULL) & ~along, point - free / many, start)
    directions = np.where(along, np.where(coin(rng, fixed.shape), 0.0, -0.0), directions)
    directions = np.where(coin(rng, (n, 1), 0.1), -directions, directions)
    return Pairs(origins, directions, *spans(rng, 1 / many[:, 0]), lower, upper)


def spans(rng, t) -> tuple[np.ndarray, np.ndarray]:
    """Return ranges: rays, lines, and ranges that end or start at t, or one ulp before it."""
    before, after = np.nextafter(t, -INF), np.nextafter(t, INF)
    lows, highs = zip((0.0, INF), (-INF, INF), (0.0, t), (t, INF), (0.0, before), (after, INF), strict=True)
    which = rng.choice(6, len(t), p=[0.6, 0.1, 0.1, 0.1, 0.05, 0.05])
    low, high = np.choose(which, lows), np.choose(which, highs)
    return np.minimum(low, high), high


def nudged(rng, pairs, *, p=1.0, boxes_only=False) -> Pairs:
    """Return pairs with one number of each row (of a share p) moved to a neighbouring float."""
    n, dim = pairs.origins.shape
    which = np.where(coin(rng, n, p), rng.choice([4, 5] if boxes_only else [0, 1, 4, 5], n), -1)[:, None]
    here, goal = axis(rng, n, dim), np.where(coin(rng, (n, 1)), INF, -INF)

    def move(k):
        moved = np.where(here & (which == k), np.nextafter(pairs[k], goal), pairs[k])
        return moved if k > 3 else np.where(np.isfinite(moved), moved, pairs[k])

    lower, upper = move(4), move(5)
    return Pairs(move(0), move(1), *pairs[2:4], np.minimum(lower, upper), np.maximum(lower, upper))


def grown(rng, pairs) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes extended on one side: a ray that enters elsewhere enters both at once."""
    size = pairs.upper - pairs.lower
    size = np.where(np.isfinite(size) & axis(rng, *size.shape), size, 0.0)
    up = coin(rng, (len(size), 1))
    return np.where(up, pairs.lower, pairs.lower - size), np.where(up, pairs.upper + size, pairs.upper)


def met_at_once(rng, pairs) -> tuple[np.ndarray, np.ndarray]:
    """Return boxes at the points of entry of the first ones: both are hit at nearly the same t."""
    t = entry(pairs)[:, None]
    point = pairs.origins + np.where(np.isfinite(t), t, 0.0) * pairs.directions
    size = pairs.upper - pairs.lower
    size = np.where(np.isfinite(size), size, 1.0)
    lower, upper = (
        point + sign * size * rng.choice([0.0, 0.5, 1, 2], size.shape, p=[0.4, 0.2, 0.2, 0.2])
        for sign in (-1, 1)
    )
    sound = np.isfinite(point).all(axis=1, keepdims=True)
    return np.where(sound, lower, pairs.lower), np.where(sound, upper, pairs.upper)


def entry(pairs, *, leave=False) -> np.ndarray:
    """Return t in floats at which the line enters (or leaves) its box, only for aiming."""
    forward = (pairs.directions > 0) != leave
    times = (np.where(forward, pairs.lower, pairs.upper) - pairs.origins) / pairs.directions
    times = np.where(pairs.directions == 0, np.nan, times)
    return np.fmin.reduce(times, axis=1) if leave else np.fmax.reduce(times, axis=1)
