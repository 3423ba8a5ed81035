"""Adversarial families: rays and boxes where rounding makes tests fail.

A family is a function of (random generator, number of pairs); row i of its arrays is one ray and one box.
Most are built backwards (aim.py): from a point on a feature of the box to a ray through it.
"""

import zlib
from collections.abc import Callable

import numpy as np

from aim import (
    FINE,
    FULL,
    GRID,
    INF,
    TINY,
    Pairs,
    aimed,
    axis,
    boxes,
    coin,
    column,
    entry,
    feature,
    grown,
    met_at_once,
    nudged,
    numbers,
    spans,
)

FAMILIES: dict[str, Callable[[np.random.Generator, int], Pairs]] = {}


def family(function):
    FAMILIES[function.__name__] = function
    return function


def make(name: str, seed: int, n: int) -> Pairs:
    """Return n pairs of a family, the same for the same seed."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
    with np.errstate(all="ignore"):
        return Pairs(*(np.ascontiguousarray(x, dtype=np.float64) for x in FAMILIES[name](rng, n)))


def scene(name: str, seed: int, n_boxes: int = 64, n_rays: int = 64) -> Pairs:
    """Return a scene of a family's boxes with rivals: twins, neighbours by an ulp, ties."""
    rng = np.random.default_rng([seed, zlib.crc32(name.encode()), 1])
    pairs = make(name, seed, max(n_rays, n_boxes))
    cast = rng.permutation(len(pairs.origins))[:n_rays]
    twins = rng.choice(cast[: max(1, n_boxes // 3)], n_boxes)
    rows = Pairs(*(x[twins] for x in pairs))
    with np.errstate(all="ignore"):
        nudge = nudged(rng, rows, boxes_only=True)
        rivals = [rows[4:], nudge[4:], grown(rng, rows), met_at_once(rng, rows)]
    which = rng.integers(0, 4, (n_boxes, 1))
    lower, upper = (np.choose(which, side) for side in zip(*rivals, strict=True))
    return Pairs(*(x[cast] for x in pairs[:4]), lower, upper)


def _forward(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(n), np.full(n, INF)


@family
def generic(rng, n):
    kind = np.full((n, 1), FULL)
    return Pairs(numbers(rng, kind), numbers(rng, kind), *_forward(n), *boxes(rng, kind))


@family
def touching_faces(rng, n):
    return aimed(rng, n, 1, slide=0.6)


@family
def touching_edges(rng, n):
    return aimed(rng, n, 2)


@family
def touching_corners(rng, n):
    return aimed(rng, n, 3, slide=0.15)


@family
def ulp_off_faces(rng, n):
    return nudged(rng, aimed(rng, n, 1, slide=0.8))


@family
def ulp_off_edges(rng, n):
    return nudged(rng, aimed(rng, n, 2))


@family
def ulp_off_corners(rng, n):
    return nudged(rng, aimed(rng, n, 3, slide=0.15))


@family
def signed_zeros(rng, n):
    """Zero and minus zero for every number; a tenth of the rays have a zero direction."""
    directions = np.where(coin(rng, (n, 1), 0.9), rng.choice([-1.0, -0.0, 0.0, 1.0], (n, 3)), -0.0)
    origins = rng.choice([-2.0, -1.0, -1.0, -0.0, -0.0, 0.0, 0.0, 0.5, 1.0, 1.0, 2.0], (n, 3))
    lower, upper = rng.choice([-1.0, -0.0, 0.0], (n, 3)), rng.choice([-0.0, 0.0, 1.0], (n, 3))
    return Pairs(origins, directions, *spans(rng, rng.choice([-1.0, -0.0, 0.0, 1.0], n)), lower, upper)


@family
def denormal_directions(rng, n):
    pairs = aimed(rng, n, column(rng, n, 0, 1, 2), slide=0.5)
    small = rng.choice([1.0, 2.0, 3.0, 2.0**30 + 1, 2.0**51 - 1], (n, 3)) * TINY
    small *= rng.choice([-1.0, 1.0], (n, 3))
    directions = np.where(coin(rng, (n, 3), 0.4) | coin(rng, (n, 1), 0.1), small, pairs.directions)
    bound = np.where(coin(rng, (n, 3)), pairs.lower, pairs.upper)
    origins = np.where(coin(rng, (n, 3), 0.4), bound, pairs.origins)
    high = np.where(coin(rng, n, 0.2), rng.choice([1.0, 2.0**1000, 1.7e308], n), INF)
    low = np.where(coin(rng, n, 0.2), -INF, 0.0)
    return Pairs(origins, directions, low, high, *pairs[4:])


@family
def flat_boxes(rng, n):
    """Boxes without thickness on one, two or all axes: plates, rods and points."""
    pairs = aimed(rng, n, column(rng, n, 1, 2, 3))
    flat = np.argsort(rng.random((n, 3)), axis=1) < rng.integers(1, 4, (n, 1))
    reached = pairs.origins + pairs.directions * column(rng, n, 1.0, 2.0, 0.5)
    point = np.where(coin(rng, (n, 1), 0.2), pairs.lower, reached)
    room = rng.choice([0.0, 0.25, 1.0, 2.0], (2, n, 3)) * ~flat
    return nudged(rng, Pairs(*pairs[:4], point - room[0], point + room[1]), p=0.25)


@family
def origins_inside(rng, n):
    """Origins inside and on faces, edges and corners, half of the pairs one ulp off."""
    kind = column(rng, n, GRID, FINE, FULL)
    lower, upper = boxes(rng, kind)
    origins, _ = feature(rng, kind, lower, upper, rng.integers(0, 4, (n, 1)))
    directions = np.where(coin(rng, (n, 3), 0.2), 0.0, numbers(rng, kind))
    return nudged(rng, Pairs(origins, directions, *spans(rng, np.zeros(n)), lower, upper), p=0.5)


@family
def half_spaces(rng, n):
    """Boxes without some of their bounds, or without any; one in twenty has no real point."""
    pairs = nudged(rng, aimed(rng, n, column(rng, n, 1, 2, 3)), p=0.3)
    lower = np.where(coin(rng, (n, 3), 0.4), -INF, pairs.lower)
    upper = np.where(coin(rng, (n, 3), 0.4), INF, pairs.upper)
    empty, end = coin(rng, (n, 1), 0.05) & axis(rng, n, 3), column(rng, n, -INF, INF)
    return Pairs(*pairs[:4], np.where(empty, end, lower), np.where(empty, end, upper))


def _scaled(pairs, places, ways) -> Pairs:
    """Return pairs scaled by ``places`` (positions) and ``ways`` (directions), of rays and lines."""
    low = np.where(np.isinf(pairs.t_min), -INF, 0.0)
    origins, lower, upper = (x * places for x in (pairs.origins, pairs.lower, pairs.upper))
    return Pairs(origins, pairs.directions * ways, low, np.full(len(low), INF), lower, upper)


@family
def scales(rng, n):
    """Whole pairs from 1e-300 to 1e300: half by powers of two (exact), half by powers of ten (rounded)."""
    pairs = nudged(rng, aimed(rng, n, column(rng, n, 1, 2, 3)), p=0.3)
    two = np.ldexp(1.0, rng.integers(-1000, 990, (2, n, 1)))
    places, ways = np.where(coin(rng, (n, 1)), two, 10.0 ** rng.uniform(-300, 297, (2, n, 1)))
    return _scaled(pairs, places, ways)


@family
def mixed_scales(rng, n):
    """Each axis has its own magnitude between 1e-270 and 1e270, or each number from 1e-300 to 1e300."""
    pairs = nudged(rng, aimed(rng, n, column(rng, n, 1, 2, 3)), p=0.3)
    axes = np.ldexp(1.0, rng.integers(-900, 900, (n, 3)))
    tame = _scaled(pairs, axes, axes * np.ldexp(1.0, rng.integers(-80, 80, (n, 1))))

    size = rng.uniform(1, 2, (4, n, 3)) * np.ldexp(1.0, rng.integers(-996, 996, (4, n, 3)))
    sign = rng.choice([-1.0, 1.0], (3, n, 3))
    a, b = size[0] * np.where(coin(rng, (n, 3), 0.7), -1.0, sign[0]), size[1]
    lower, upper = np.minimum(a, b), np.maximum(a, b)
    near = np.where(coin(rng, (n, 3)), 2.0**-20, 1.0)
    origins = np.where(coin(rng, (n, 3), 0.1), lower, size[2] * sign[1] * near)
    wild = Pairs(origins, size[3] * sign[2] * coin(rng, (n, 3), 0.9), *tame[2:4], lower, upper)

    rows = coin(rng, n)
    return Pairs(
        *(np.where(rows if x.ndim == 1 else rows[:, None], x, y) for x, y in zip(wild, tame, strict=True))
    )


@family
def map_coordinates(rng, n):
    """Millimetre boxes at (5e5, 4e6), from up to 200 m away: every number is a rounded decimal."""
    base = np.array([5e5, 4e6, 50.0])
    lower = np.round(base + rng.uniform(-100, 100, (n, 3)), 3)
    upper = np.round(lower + rng.integers(0, 20, (n, 3)) / 1000, 3)
    point, fixed = feature(rng, np.full((n, 1), FULL), lower, upper, rng.integers(1, 4, (n, 1)))
    origins = np.round(base + rng.uniform(-100, 100, (n, 3)), 3)
    origins = np.where(fixed & coin(rng, (n, 3), 0.3), point, origins)
    length = np.linalg.norm(point - origins, axis=1, keepdims=True)
    times = np.where(coin(rng, (n, 1), 0.2) & (length > 0), 1 / length, column(rng, n, 1.0, 2.0, 4.0))
    pairs = Pairs(origins, (point - origins) * times, *spans(rng, 1 / times[:, 0]), lower, upper)
    return nudged(rng, pairs, p=0.2)


@family
def range_ends(rng, n):
    """Ranges that end where the line enters the box, or start where it leaves, exactly or within an ulp."""
    pairs = aimed(rng, n, column(rng, n, 0, 1, 2), slide=0.1)
    ends = [np.where(np.isfinite(t), t, 0.0) for t in (entry(pairs), entry(pairs, leave=True))]
    goal = np.where(coin(rng, n), INF, -INF)
    near, far = (np.where(coin(rng, n), t, np.nextafter(t, goal)) for t in ends)
    which = rng.integers(0, 4, n)
    low = np.choose(which, [np.minimum(0.0, near), far, near, np.full(n, -INF)])
    return Pairs(*pairs[:2], low, np.choose(which, [near, np.full(n, INF), near, near]), *pairs[4:])


@family
def segments(rng, n):
    """Segments that end on the surface of the box, half of the pairs one ulp off: direction = end - start."""
    kind = column(rng, n, GRID, FINE, FULL)
    lower, upper = boxes(rng, kind)
    point, _ = feature(rng, kind, lower, upper, rng.integers(1, 4, (n, 1)))
    starts = numbers(rng, kind)
    return nudged(rng, Pairs(starts, point - starts, np.zeros(n), np.ones(n), lower, upper), p=0.5)


@family
def voxel_grid(rng, n):
    """Cells of a grid, and rays along its faces, its edges and the diagonals through its corners."""
    pitch = column(rng, n, 1.0, 0.125, 0.1, 1 / 3)
    start = rng.integers(0, 5, (n, 3)) + rng.choice([0.0, 0.0, 0.0, 0.5], (n, 3))
    step = rng.integers(-1, 2, (n, 3))
    cell = np.floor(start + step * rng.integers(0, 5, (n, 1))) - rng.integers(0, 2, (n, 3))
    way = step * column(rng, n, 1.0, 0.1, 7.0)
    return Pairs(start * pitch, way, *_forward(n), cell * pitch, (cell + 1) * pitch)


def _shared(rng, n, *kinds) -> Pairs:
    """Return rays that hit eight boxes at one point each: on a face, an edge or a corner."""
    pairs = aimed(rng, -(-n // 8), 1, kinds=kinds, slide=0.1)
    pairs = Pairs(*(np.repeat(x, 8, axis=0)[:n] for x in pairs))
    own = coin(rng, (n, 1), 0.2)
    return Pairs(
        *pairs[:4], *(np.where(own, x, y) for x, y in zip(pairs[4:], met_at_once(rng, pairs), strict=True))
    )


@family
def exact_ties(rng, n):
    return _shared(rng, n, GRID)


@family
def near_ties(rng, n):
    return _shared(rng, n, FINE, FULL)


@family
def far_origins(rng, n):
    """Origins up to 1e30 away, on a line that runs exactly through zero, where the box has a corner."""
    kind = column(rng, n, GRID, FINE, FULL)
    directions = np.where(coin(rng, (n, 3), 0.15), 0.0, numbers(rng, kind))
    size = rng.choice([0.0, 1e-3, 1.0, 1.0, 5.0], (n, 3))
    shift = rng.choice([0.0, 0.0, 1.0, 1.0, 0.5], (n, 3))
    origins = -directions * np.ldexp(1.0, rng.integers(20, 100, (n, 1)))
    return nudged(rng, Pairs(origins, directions, *_forward(n), -size * shift, size * (1 - shift)), p=0.4)


@family
def denormal_boxes(rng, n):
    """Positions that are whole multiples of the least denormal."""
    pairs = aimed(rng, n, column(rng, n, 1, 2, 3), kinds=(GRID,))
    unit = column(rng, n, 4.0, 4.0 * (2**20 + 1), 2.0**45) * TINY
    return nudged(rng, _scaled(pairs, unit, np.where(coin(rng, (n, 1)), unit, 1.0)), p=0.4)


@family
def float32_values(rng, n):
    """Numbers that are float32: a scene read from a file, and rays that just touch it."""
    pairs = [x.astype(np.float32) for x in aimed(rng, n, column(rng, n, 1, 2, 3))]
    origins = np.where(coin(rng, (n, 3), 0.1), np.nextafter(pairs[0], np.float32(9)), pairs[0])
    return Pairs(origins, *pairs[1:])


@family
def planar(rng, n):
    """Two dimensions: touching edges and corners of rectangles, half of the pairs one ulp off."""
    return nudged(rng, aimed(rng, n, column(rng, n, 1, 2), dim=2), p=0.5)
