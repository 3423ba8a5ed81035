"""Spatial queries of a scene, each held to the truth of tests/helpers/box_truth.py, and boxes to find."""

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import numpy as np

import raybox as rb
from box_truth import INF, BoxArrays, Gaps, gaps, nearest, order, root
from raybox.hits import Rows

MAX, TINY = 1.7976931348623157e308, 5e-324
Numbers = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
FAMILIES: dict[str, Numbers] = {
    "lattice": lambda rng, shape: rng.integers(-3, 4, shape).astype(float),
    "full mantissas": lambda rng, shape: rng.uniform(-4, 4, shape),
    "an ulp off": lambda rng, shape: np.nextafter(
        rng.integers(-2, 3, shape), rng.choice([-9.0, 0, 9], shape)
    ),
    "map": lambda rng, shape: np.array([4e5, 5e6, 300.0])[: shape[-1]] + rng.integers(0, 4000, shape) / 1000,
    "huge": lambda rng, shape: rng.choice([-MAX, -1e300, 0.0, 1e300, 1.5e308, MAX], shape),
    "tiny": lambda rng, shape: rng.integers(-4, 5, shape) * 1e-300,
    "denormal": lambda rng, shape: rng.integers(-4, 5, shape) * TINY,
    "mixed": lambda rng, shape: rng.choice([-1.0, 0.0, 1.0], shape) * 10.0 ** rng.integers(-320, 308, shape),
    "unbounded": lambda rng, shape: rng.choice([-INF, -2.0, -1.0, 0.0, 1.0, 2.0, INF], shape),
}


def make_boxes(rng, numbers: Numbers, count: int, dim: int) -> BoxArrays:
    """Return boxes over numbers of a family: of all shapes, some flat, some twice."""
    one, other = numbers(rng, (2, count, dim))
    other = np.where(rng.random((count, dim)) < 0.2, one, other)
    again = np.where(rng.random(count) < 0.2, rng.integers(0, count, count), np.arange(count))
    return BoxArrays(np.minimum(one, other)[again], np.maximum(one, other)[again])


def _related(rng, numbers: Numbers, boxes: BoxArrays, count: int) -> np.ndarray:
    """Return rows of numbers of a family, half of them bounds of boxes."""
    made = numbers(rng, (count, boxes.lower.shape[1]))
    box, side = rng.integers(0, len(boxes.lower), (2, count))
    bounds = np.where(side[:, None] % 2, boxes.lower[box], boxes.upper[box])
    return np.where(rng.random(made.shape) < 0.5, bounds, made)


def make_points(rng, numbers: Numbers, boxes: BoxArrays, count: int) -> np.ndarray:
    """Return finite points, many of them level with faces of boxes."""
    made = _related(rng, numbers, boxes, count)
    return np.where(np.isfinite(made), made, 0.0)


def make_others(rng, numbers: Numbers, boxes: BoxArrays, count: int) -> BoxArrays:
    """Return boxes, many of them with faces level with those of others."""
    one, other = _related(rng, numbers, boxes, count), _related(rng, numbers, boxes, count)
    return BoxArrays(np.minimum(one, other), np.maximum(one, other))


class World(NamedTuple):
    """The boxes of a scene, those of geometries one after the other, as the truth reads them."""

    boxes: BoxArrays
    sizes: tuple[int, ...]
    """of the geometries"""
    allowed: np.ndarray
    """which may be found: (M,), or (Q, M) if it depends on the query"""


def world_of(boxes: BoxArrays, allowed: np.ndarray | bool = True) -> World:
    """Return the world of a scene of boxes alone."""
    count = len(boxes.lower)
    return World(boxes, (count,), np.broadcast_to(allowed, count) if np.ndim(allowed) < 2 else allowed)


def cells_of(edges, occupied=True) -> World:
    """Return the world of a grid."""
    lower, upper = (np.array([*product(*(e[side] for e in edges))]) for side in (slice(-1), slice(1, None)))
    return world_of(BoxArrays(lower, upper), np.broadcast_to(np.ravel(occupied), len(lower)))


def joined(worlds: list[World]) -> World:
    """Return the world of a list of geometries."""
    boxes = BoxArrays(*(np.concatenate(side) for side in zip(*(one.boxes for one in worlds), strict=True)))
    sizes = tuple(size for one in worlds for size in one.sizes)
    return World(boxes, sizes, np.concatenate([one.allowed for one in worlds], axis=-1))


class _Places(NamedTuple):
    geometry: np.ndarray
    index: np.ndarray


def _places(world: World, numbers: np.ndarray) -> _Places:
    """Return where boxes are in their geometries; -1 of those that are not there."""
    starts = np.cumsum([0, *world.sizes])
    geometry = np.searchsorted(starts, numbers, side="right") - 1
    return _Places(geometry, np.where(numbers < 0, -1, numbers - starts[geometry]))


def _assert_rows(rows: Rows, counts: np.ndarray, want: np.ndarray, world: World) -> None:
    query, numbers = np.nonzero(want)
    np.testing.assert_array_equal(counts, want.sum(axis=1))
    np.testing.assert_array_equal(rows.offsets, np.cumsum([0, *want.sum(axis=1)]))
    np.testing.assert_array_equal(rows.row, query)
    for name, values in _places(world, numbers)._asdict().items():
        np.testing.assert_array_equal(getattr(rows, name), values, err_msg=name)


def check_overlapping(scene: rb.Scene, world: World, boxes: BoxArrays, **options) -> Counter:
    """Assert which boxes overlap others; return counts of pairs."""
    found = gaps(boxes, world.boxes)
    want = found.overlap & world.allowed
    given = rb.Boxes(*boxes)
    _assert_rows(
        scene.overlapping(given, **options), scene.overlapping(given, count=True, **options), want, world
    )
    return Counter(
        hits=int(want.sum()), misses=int((~found.overlap).sum()), touches=int((want & found.touch).sum())
    )


def _radii(rng, found: Gaps) -> np.ndarray:
    """Return a distance for each query: that of a box, one beside it, half of it, zero, infinity."""
    count, boxes = found.squares.shape
    picked = found.squares[np.arange(count), rng.integers(0, boxes, count)].tolist()
    exact = np.array([root(square, found.unit) for square in picked])
    with np.errstate(over="ignore"):
        beside = np.nextafter(exact, 0.0), np.nextafter(exact, INF)
    return np.choose(
        rng.integers(0, 8, count), [exact, exact, exact, *beside, exact / 2, np.zeros(count), INF]
    )


def check_points(scene: rb.Scene, world: World, points: np.ndarray, rng, **options) -> Counter:
    """Assert the queries of points; return counts of pairs, of boxes at just the distance, and of ties."""
    found = gaps(BoxArrays(points, points), world.boxes)
    allowed, radii = np.broadcast_to(world.allowed, found.overlap.shape), _radii(rng, found)
    inside, side = found.overlap & allowed, order(found, radii)
    near = (side <= 0) & allowed
    counts = scene.containing(points, count=True, **options)
    _assert_rows(scene.containing(points, **options), counts, inside, world)
    counts = scene.within_distance(points, radii, count=True, **options)
    _assert_rows(scene.within_distance(points, radii, **options), counts, near, world)
    ties = 0
    for k, limit, some in ((1, INF, allowed), (3, radii, near), (min(99, len(allowed.T) + 2), INF, allowed)):
        ranked = nearest(found, some, k)
        got = scene.closest(points, k, max_distance=limit, **options)
        for name, values in _places(world, ranked.numbers)._asdict().items():
            np.testing.assert_array_equal(getattr(got, name), values, err_msg=f"{k} closest: {name}")
        np.testing.assert_array_equal(got.distance, ranked.distances, err_msg=f"{k} closest")
        ties += ranked.ties
    return Counter(
        hits=int(inside.sum()),
        misses=int((~found.overlap).sum()),
        touches=int((inside & found.touch).sum()),
        near=int(near.sum()),
        far=int((~near).sum()),
        exactly=int(((side == 0) & near & (radii[:, None] > 0)).sum()),
        ties=ties,
    )
