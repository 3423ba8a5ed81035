"""Compare queries of boxes without rays with whole numbers, on millions of pairs full of touches and ties.

    python benchmarks/adversarial_boxes.py [--pairs 10000000] [--seed 0]

Each round has boxes or cells of a grid, points, and other boxes over a small lattice, of which int64 decides
each pair: scaled by a power of two, from denormals to distances that overflow, far from the origin as maps
are, or without some of their bounds. It prints how many pairs each query compared, how many boxes it found,
how many of these are level (they touch, are at just the distance, or tie), and how many queries are wrong.
These must be 0; else the exit code is 1.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import raybox as rb

SIDE = 400  # boxes, and queries, of a round
NO_BOUND = 1 << 60
APART = 1 << 40  # a squared distance of those that are at none
SCALES = (-1073, -1050, -520, -10, 0, 0, 20, 500, 1000, 1020)  # of the lattice, as powers of two
NEIGHBORS = 4


class Corners(NamedTuple):
    """Boxes on the lattice, (N, D) each."""

    lower: np.ndarray
    upper: np.ndarray


def in_lattice(rng: np.random.Generator, origin: np.ndarray, thick: int, open_share: float) -> Corners:
    """Return boxes up to so thick, some of them twice, flat, without a bound, or at infinity on an axis."""
    low = rng.integers(-6, 5, (SIDE, len(origin)))
    up = low + rng.integers(0, thick + 1, low.shape)
    again = np.where(rng.random(SIDE) < 0.1, rng.integers(0, SIDE, SIDE), np.arange(SIDE))
    low, up, chance = (low + origin)[again], (up + origin)[again], rng.random((3, *low.shape))
    away = chance[2] < open_share / 8
    low = np.where(away, NO_BOUND, np.where(chance[0] < open_share, -NO_BOUND, low))
    return Corners(low, np.where(away | (chance[1] < open_share), NO_BOUND, up))


def as_floats(numbers: np.ndarray, scale: int) -> np.ndarray:
    made = np.ldexp(numbers.astype(float), scale)
    return np.where(abs(numbers) == NO_BOUND, np.copysign(np.inf, numbers), made)


class Pairs(NamedTuple):
    """What is between queries and boxes, (Q, M)."""

    squares: np.ndarray
    overlap: np.ndarray
    touch: np.ndarray


def compare(one: Corners, other: Corners) -> Pairs:
    """Return the pairs of all queries and boxes."""
    low, up = one.lower[:, None], one.upper[:, None]
    gaps = np.maximum(np.maximum(other.lower - up, low - other.upper), 0)
    squares = np.where(
        (gaps > NO_BOUND // 2).any(axis=-1), APART, (np.minimum(gaps, 1 << 19) ** 2).sum(axis=-1)
    )
    overlap = (gaps == 0).all(axis=-1)
    level = (other.lower == up) | (low == other.upper)
    return Pairs(squares, overlap, overlap & level.any(axis=-1))


class Searched(NamedTuple):
    """A scene, with its boxes, and which of them are there: of a grid, the occupied cells."""

    scene: rb.Scene
    boxes: Corners
    there: np.ndarray


def scene_of(rng: np.random.Generator, corners: Corners, scale: int) -> Searched:
    """Return a scene of boxes, or of a grid over their coordinates."""
    if rng.random() < 0.7 or (np.abs(corners) == NO_BOUND).any():
        boxes = rb.Boxes(*(as_floats(side, scale) for side in corners))
        return Searched(rb.Scene(boxes), corners, np.ones(SIDE, bool))
    edges = [np.unique(axis) for axis in corners.lower.T]
    occupied = rng.random([len(e) - 1 for e in edges]) < rng.choice([0.1, 0.6, 1.0])
    grid = rb.Grid(*(as_floats(e, scale) for e in edges), occupied=occupied)
    cells = (
        np.meshgrid(*part, indexing="ij") for part in zip(*((e[:-1], e[1:]) for e in edges), strict=True)
    )
    sides = (np.stack(part, axis=-1).reshape(-1, len(edges)) for part in cells)
    return Searched(rb.Scene(grid), Corners(*sides), occupied.ravel())


def tally(call: Callable[..., Any], want: np.ndarray, touch: np.ndarray) -> Counter[str]:
    """Return the counts of a query that finds boxes; want: which each should find, (Q, M)."""
    rows, (query, index) = call(), np.nonzero(want)
    wrong = call(count=True) != want.sum(axis=1)
    if not np.array_equal(rows.row, query) or not np.array_equal(rows.index, index):
        wrong |= [not np.array_equal(rows[q], np.flatnonzero(row)) for q, row in enumerate(want)]
    return Counter(pairs=want.size, found=want.sum(), level=(want & touch).sum(), wrong=wrong.sum())


def run_round(rng: np.random.Generator) -> dict[str, Counter[str]]:
    """Return counts of each query over one scene."""
    dim, scale, open_share = int(rng.integers(2, 4)), int(rng.choice(SCALES)), rng.choice([0.0, 0.0, 0.1])
    is_map = abs(scale) < 30 and rng.random() < 0.5
    origin = rng.integers(-(2**42), 2**42, dim) if is_map else np.zeros(dim, int)
    scene, boxes, there = scene_of(rng, in_lattice(rng, origin, int(rng.integers(0, 5)), open_share), scale)
    points, others = in_lattice(rng, origin, 0, 0.0).lower, in_lattice(rng, origin, 3, open_share)
    near, met = compare(Corners(points, points), boxes), compare(others, boxes)
    halves = rng.integers(0, 17, SIDE)  # a distance in halves: of even ones some boxes are just so far
    at, rest = as_floats(points, scale), 4 * near.squares - halves[:, None] ** 2
    within = partial(scene.within_distance, at, np.ldexp(halves / 2, scale))
    overlapping = partial(scene.overlapping, rb.Boxes(*(as_floats(side, scale) for side in others)))
    return {
        "containing": tally(partial(scene.containing, at), near.overlap & there, near.touch),
        "overlapping": tally(overlapping, met.overlap & there, met.touch),
        "within_distance": tally(within, (rest <= 0) & there, rest == 0),
        "closest": closest(scene, at, np.where(there, near.squares, APART), scale),
    }


def closest(scene: rb.Scene, points: np.ndarray, squares: np.ndarray, scale: int) -> Counter[str]:
    """Return the counts of the nearest boxes; those with equal distances tie."""
    count, squares = squares.size, np.pad(squares, ((0, 0), (0, NEIGHBORS + 1)), constant_values=APART)
    order = np.argsort(squares, axis=1, kind="stable")[:, : NEIGHBORS + 1]
    ranked = np.take_along_axis(squares, order, axis=1)
    is_there, ties = ranked < APART, (ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] < APART)
    with np.errstate(over="ignore"):
        length = np.where(is_there, np.ldexp(np.sqrt(ranked), scale), np.inf)[:, :-1]
    got = scene.closest(points, NEIGHBORS)
    wrong = (got.index != np.where(is_there, order, -1)[:, :-1]) | (got.distance != length)
    return Counter(pairs=count, found=(got.index >= 0).sum(), level=ties.sum(), wrong=wrong.any(axis=1).sum())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--seed", type=int, default=0)
    options, total = parser.parse_args(), {}
    rng = np.random.default_rng(options.seed)
    while sum(counts["pairs"] for counts in total.values()) < options.pairs:
        for name, counts in run_round(rng).items():
            total[name] = total.get(name, Counter()) + counts
    for name, counts in total.items():
        kinds = ", ".join(f"{counts[kind]:,} {kind}" for kind in ("pairs", "found", "level", "wrong"))
        print(f"{name:16}{kinds}")
    return int(any(counts["wrong"] for counts in total.values()))


if __name__ == "__main__":
    sys.exit(main())
