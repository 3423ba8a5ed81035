"""Scales at the edges of float64, one class for each kind of fault, that scenes of ordinary numbers get.

A scene in units (numbers below 2^6, of tests/helpers/families.py) has many hits, touches and ties. Powers of
two keep them, as long as nothing over- or underflows. What does is rounded: truth is computed after it.
"""

from typing import NamedTuple

import numpy as np

INF = np.inf
LARGEST = np.finfo(float).max


class Scale(NamedTuple):
    """Exponents of positions (D,), and of directions (n, D) as steps of the positions' exponents."""

    place: np.ndarray
    speed: np.ndarray
    filled: float = 0.0  # share of the zero components of directions that become tiny
    stretched: float = 0.0  # share of rays of which one component becomes far larger
    ranged: float = 0.0  # share of ranges that end at any float
    pressed: int = 0  # exponent by which one axis of what is hit is pressed to a plane
    apart: float = 0.0  # distance of two groups from the middle, on the first axis


def huge(rng, n: int, dim: int) -> Scale:
    """Kind 1: coordinates to the largest float, whose differences overflow."""
    place = np.full(dim, int(rng.choice([1021, 1021, 1020, rng.integers(1010, 1021)])))
    if rng.random() < 0.3:
        place = np.where(rng.random(dim) < 0.5, place, rng.integers(-1000, 1021, dim))
    speed = -rng.integers(5, 20, (n, 1)) if rng.random() < 0.7 else -rng.integers(0, 1040, (n, 1))
    place = np.full(dim, 1020) if (apart := rng.choice([0.0, 6.0])) else place
    return Scale(place, np.minimum(np.broadcast_to(speed, (n, dim)), 1016 - place), apart=apart)


def close(rng, n: int, dim: int) -> Scale:
    """Kind 2: times that are different and round to the same float."""
    place = np.full(dim, int(rng.choice([0, 0, rng.integers(-900, 900)])))
    return Scale(place, np.zeros((n, dim), int), pressed=int(rng.integers(50, 120)))


def uneven(rng, n: int, dim: int) -> Scale:
    """Kind 3: directions, ranges and positions of magnitudes far apart."""
    place = np.full(dim, int(rng.choice([0, 0, rng.integers(-1060, 1000)])))
    if rng.random() < 0.2:
        place = rng.integers(-1000, 1000, dim)
    speed = rng.integers(-60, 60, (n, 1)) if rng.random() < 0.6 else rng.integers(-1000, 1000, (n, 1))
    shares = rng.choice([0.0, 0.5], 2)
    return Scale(place, np.broadcast_to(speed, (n, dim)), *shares, ranged=rng.choice([0.0, 0.6]))


def faint(rng, n: int, dim: int) -> Scale:
    """Kind 4: axes of magnitudes whose products underflow."""
    place = rng.choice([0, -1, 1]) * rng.integers(300, 1015) + rng.integers(-60, 5, dim)
    if rng.random() < 0.5:
        place = rng.integers(-1060, 1015, dim)
    speed = np.broadcast_to(rng.integers(-300, 300, (n, 1)), (n, dim))
    return Scale(place, speed, filled=rng.choice([0.0, 0.3]))


def late(rng, n: int, dim: int) -> Scale:
    """Kind 5: times beyond the largest float."""
    place = np.full(dim, int(rng.choice([0, rng.integers(-40, 900)])))
    speed = -rng.integers(1016, 1076, (n, 1))
    return Scale(place, np.broadcast_to(speed, (n, dim)), filled=rng.choice([0.0, 0.5]))


KINDS = {1: huge, 2: close, 3: uneven, 4: faint, 5: late}


def scaled(values, exponents) -> np.ndarray:
    """Return values times powers of two, within the range of float64."""
    with np.errstate(all="ignore"):
        found = np.ldexp(np.asarray(values, float), exponents)
    return np.where(np.isinf(values), values, np.clip(found, -LARGEST, LARGEST))


def groups(rng, scale: Scale, n: int, dim: int) -> np.ndarray:
    """Return the moves (n, D) of rows into two groups."""
    return np.where(np.arange(dim) == 0, rng.choice([-1.0, 1.0], (n, 1)) * scale.apart, 0.0)


def arranged(rng, scale: Scale, *corners) -> list[np.ndarray]:
    """Return corners (n, ..., D) in two groups, or pressed to nearly 0 on one axis and spread on others."""
    n, dim = corners[0].shape[0], corners[0].shape[-1]
    moves = groups(rng, scale, n, dim).reshape(n, *(1,) * (corners[0].ndim - 2), dim)
    if not scale.pressed:
        return [x + moves for x in corners]
    flat = np.arange(dim) == rng.integers(dim)
    return [np.where(flat, scaled(x, -scale.pressed), x * 4.0) for x in corners]


def scaled_rays(rng, scale: Scale, origins, directions, t_min, t_max) -> tuple[np.ndarray, ...]:
    """Return the origins, directions and ranges of rays in units, at a scale."""
    n, dim = origins.shape
    origins = origins + groups(rng, scale, n, dim)
    towards = np.clip(scale.place + scale.speed, -1074, 1016)
    ways = scaled(directions, towards)
    tiny = scaled(rng.choice([-1.0, 1.0], (n, dim)), rng.integers(-1074, np.maximum(towards - 40, -1073)))
    moving = directions.any(axis=1, keepdims=True)
    ways = np.where((directions == 0) & moving & (rng.random((n, dim)) < scale.filled), tiny, ways)
    steep = (rng.random((n, 1)) < scale.stretched) & (np.arange(dim) == rng.integers(0, dim, (n, 1)))
    ways = np.where(steep, scaled(ways, rng.integers(0, 1100, (n, 1))), ways)
    low, high = (np.where(np.isinf(t), t, scaled(t, -scale.speed[:, 0])) for t in (t_min, t_max))
    wild = rng.choice([-1.0, 1.0, 1.0], (2, n)) * scaled(1.0, rng.integers(-1074, 1023, (2, n)))
    low, high = (
        np.where(rng.random(n) < scale.ranged * share, w, t)
        for share, w, t in ((0.3, wild[0], low), (1.0, wild[1], high))
    )
    return scaled(origins, scale.place), ways, np.fmin(low, high), np.fmax(low, high)
