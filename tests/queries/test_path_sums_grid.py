"""Sums along rays through the cells of grids, against rational arithmetic."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact_grid
import raybox as rb
from core_marks import with_core
from grids import KINDS, random_grid, random_rays
from raybox.queries.path_sums.arguments import is_finite
from raybox.queries.path_sums.fixed_point import fixed_point, limits_of
from raybox.traversal.job import Job
from raybox.validation import NO_MASK

UNIT = Fraction(2) ** -52


def norm(direction) -> Fraction:
    """Return the length of a vector with a relative error below 2^-200."""
    square = sum(Fraction(float(x)) ** 2 for x in direction)
    scale = 4 ** (300 + max(0, square.denominator.bit_length() - square.numerator.bit_length()))
    return Fraction(math.isqrt(square.numerator * scale // square.denominator), math.isqrt(scale))


def true_paths(grid, rays, allowed):
    """Return (ray, cell, length, a + b) of every stretch in an allowed cell; see `Scene.integrate`."""
    paths, counts = [], Counter()
    for ray, cut in enumerate(exact_grid.cut_all(grid.edges, rays)):
        speed = norm(rays.directions[ray])
        counts["corners"] += cut.corners
        counts["in planes"] += cut.in_planes
        counts["misses"] += not cut.stretches
        for one in cut.stretches:
            cell = np.ravel_multi_index(one.cell, grid.shape)
            counts["cells" if allowed[cell] else "masked"] += 1
            if allowed[cell]:
                paths.append(
                    (ray, cell, (one.end - one.begin) * speed, (abs(one.begin) + abs(one.end)) * speed)
                )
    return paths, counts


def assert_close(found, terms):
    """Assert sums within the documented bound; terms: of each sum, (factor, length, a + b)."""
    for number, some in zip(found.tolist(), terms, strict=True):
        total = sum((Fraction(float(factor)) * length for factor, length, _ in some), Fraction(0))
        size = sum((abs(Fraction(float(factor))) * ends for factor, _, ends in some), Fraction(0))
        assert abs(Fraction(number) - total) <= UNIT * (len(some) + 8) * size


@pytest.mark.parametrize("kind", with_core(KINDS, "integers"))
def test_sums_are_within_their_bounds(kind):
    rng, counts = np.random.default_rng(len(kind)), Counter()
    for shape, share in (((5, 6, 7), None), ((9, 1, 20), 0.6), ((6, 5), 0.5), ((16, 17, 3), None)):
        grid = random_grid(kind, rng, shape, share)
        rays = random_rays(rng, grid, 120)
        where = None if share is None and shape[1] == 6 else rng.random(shape) < 0.8
        allowed = grid.occupied.ravel() & (True if where is None else where.ravel())
        values, weights = rng.normal(size=shape), rng.normal(size=120)
        paths, some = true_paths(grid, rays, allowed)
        counts += some
        scene = rb.Scene(grid)
        of_rays, of_cells = [[] for _ in range(120)], [[] for _ in range(len(grid))]
        for ray, cell, length, ends in paths:
            of_rays[ray].append((values.ravel()[cell], length, ends))
            of_cells[cell].append((weights[ray], length, ends))
        assert_close(scene.integrate(rays, values, where=where), of_rays)
        assert_close(scene.deposit(rays, weights, where=where), of_cells)
        lengths = [[(1.0, length, ends) for _, length, ends in row] for row in of_rays]
        assert_close(scene.integrate(rays, where=where), lengths)
        hits = np.bincount([cell for _, cell, *_ in paths], minlength=len(grid))
        np.testing.assert_array_equal(scene.deposit(rays, per="hit", where=where), hits)
        both = scene.integrate(rays, np.stack([values, values], -1), where=where)
        assert_close(both[:, 0], of_rays)
        np.testing.assert_array_equal(both[:, 1], both[:, 0])
    assert min(counts[name] for name in ("cells", "masked", "corners", "in planes", "misses")) > 20, counts


@pytest.mark.core
def test_lengths_add_up_to_the_length_inside():
    grid = rb.Grid.uniform([-1, -1, -1], 0.125, (16, 16, 16))
    rng = np.random.default_rng(8)
    rays = rb.Rays(rng.normal(size=(50, 40, 3)), rng.normal(size=(50, 40, 3)))
    box = rb.Scene(rb.Boxes([-1, -1, -1], [1, 1, 1]))
    found = rb.Scene(grid).integrate(rays)
    assert found.shape == (50, 40)
    assert (found > 0).sum() > 500
    np.testing.assert_allclose(found, box.integrate(rays), rtol=1e-12, atol=1e-12)
    segments = rb.Scene(grid).segments(rays)
    sums = np.bincount(segments.ray, segments.lengths, minlength=2000)
    np.testing.assert_allclose(found.ravel(), sums, rtol=1e-12, atol=1e-12)


@pytest.mark.long
def test_deposits_of_one_channel_and_of_two_have_the_same_bits():
    """Two channels are added cell by cell, one four cells at a time where a ray's times are certain."""
    rng, counts = np.random.default_rng(12), Counter()
    for kind in KINDS:
        for shape in ((1, 1, 1), (5, 6, 7), (40, 3), (16, 27, 38)):
            grid = random_grid(kind, rng, shape)
            rays = random_rays(rng, grid, 300)
            weights = rng.normal(size=300) * rng.choice([0.0, -0.0, 5e-324, 1.0, 1e300], 300)
            scene = rb.Scene(grid)
            for per in ("length", "hit"):
                found = scene.deposit(rays, weights, per=per, workers=1)
                one_by_one = scene.deposit(rays, np.stack([weights] * 2, -1), per=per, workers=1)
                assert found.tobytes() == one_by_one[:, 0].tobytes()
                np.testing.assert_array_equal(found.reshape(-1), one_by_one[:, 1])
            lengths = np.diff(scene.segments(rays).offsets)
            counts.update(f"{n % 4} of four" for n in lengths[lengths > 0].tolist())
            counts["misses"] += int((lengths == 0).sum())
            counts["zero weights"] += int((weights[lengths > 0] == 0.0).sum())
    assert min(counts.values()) > 50, counts
    assert len(counts) == 6


def test_transposes_of_each_other():
    rng = np.random.default_rng(9)
    grid = random_grid("random", rng, (8, 9, 10), 0.7)
    scene = rb.Scene([grid, rb.Boxes([[-1, -1, -1]], [[1, 1, 1]])])
    rays = rb.Rays(rng.normal(size=(500, 3)), rng.normal(size=(500, 3)))
    values, weights = [rng.random((720, 2)), rng.random((1, 2))], rng.random((500, 2))
    forward = (scene.integrate(rays, values) * weights).sum()
    back = sum((one * two).sum() for one, two in zip(scene.deposit(rays, weights), values, strict=True))
    assert forward > 10
    assert math.isclose(forward, back, rel_tol=1e-13)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_reproducible_bits(workers):
    rng = np.random.default_rng(10)
    grid = random_grid("random", rng, (12, 12, 12))
    scene, order = rb.Scene(grid), rng.permutation(20_000)
    rays = rb.Rays(rng.uniform(-2, 2, (20_000, 3)), rng.normal(size=(20_000, 3)))
    weights, values = rng.normal(size=20_000), rng.normal(size=len(grid))
    wanted = scene.deposit(rays, weights, reproducible=True, workers=1)
    found = scene.deposit(rays[order], weights[order], reproducible=True, workers=workers)
    assert np.count_nonzero(wanted) > 1000
    np.testing.assert_array_equal(found.view(np.int64), wanted.view(np.int64))
    np.testing.assert_allclose(scene.deposit(rays, weights, workers=workers), wanted, rtol=1e-9, atol=1e-9)
    sums = scene.integrate(rays, values, workers=1)
    again = scene.integrate(rays[order], values, workers=workers)
    np.testing.assert_array_equal(again.view(np.int64), sums[order].view(np.int64))


def test_fixed_point_of_a_grid_is_within_its_bound():
    """All cells share one scale: that of the largest, whose diagonal is in the bound."""
    rng, counts = np.random.default_rng(11), Counter()
    for kind in ("random", "contrast"):
        grid = random_grid(kind, rng, (7, 6, 5))
        rays, weights = random_rays(rng, grid, 150), rng.normal(size=150)
        paths, _ = true_paths(grid, rays, grid.occupied.ravel())
        found = rb.Scene(grid).deposit(rays, weights, reproducible=True)
        sides = (Fraction(float(np.diff(axis).max())) for axis in grid.edges)
        largest = Fraction(float(np.abs(weights).max())) * norm(sides)
        rest = Fraction(len(rays) ** 3, 1 << 120) * largest
        terms = [[] for _ in range(len(grid))]
        for ray, cell, length, ends in paths:
            terms[cell].append((Fraction(float(weights[ray])), length, ends))
        for number, some in zip(found.tolist(), terms, strict=True):
            total = sum((weight * length for weight, length, _ in some), Fraction(0))
            size = sum((abs(weight) * ends for weight, _, ends in some), Fraction(0))
            assert abs(Fraction(number) - total) <= size / (1 << 49) + rest
            counts["crossed" if some else "empty"] += 1
    assert min(counts["crossed"], counts["empty"]) > 10, counts


def test_cells_of_a_grid_share_one_scale():
    """A cell costs two words, whatever the grid."""
    grid, rays = rb.Grid(*[np.arange(9.0)] * 3), rb.Rays([0, 0, 0], [1, 2, 3])
    fixed = fixed_point(
        Job(None, grid._rows(), rays._rows(), NO_MASK),
        limits_of(rays._rows(), np.empty((0, 1)), False),
        False,
    )
    assert fixed.shifts.size == 1
    top = 1.7e308
    with pytest.raises(rb.InvalidInput, match="the largest cells of the grid break this"):
        rb.Scene(rb.Grid([-top, 0.0, top], [-top, top])).deposit(rb.Rays([0, 0], [1, 0]), reproducible=True)


@pytest.mark.parametrize("scale", [5e-324, 2.0**-1000, 2.0**1000])
def test_directions_of_any_size(scale):
    scene = rb.Scene(rb.Grid([0, 1, 3], [0, 1]))
    ray = rb.Rays([-1.0, 0.5], [scale, 0.0])
    np.testing.assert_array_equal(scene.integrate(ray, [1.0, 10.0]), 21.0)
    np.testing.assert_array_equal(scene.deposit(ray), [1.0, 2.0])


def test_values_of_another_shape_are_refused():
    scene, ray = rb.Scene(rb.Grid([0, 1, 3], [0, 1, 2, 3])), rb.Rays([-1, 0.5], [1, 0])
    assert scene.integrate(ray, np.ones((2, 3))) == 3.0
    assert scene.integrate(ray, np.ones((2, 3, 4))).tolist() == [3.0] * 4
    for shape in ((3, 2), (5,), (2, 3, 4, 1)):
        with pytest.raises(rb.InvalidInput, match=r"values must have shape \(6,\)"):
            scene.integrate(ray, np.ones(shape))


def test_directions_of_any_size_beside_each_other():
    rng = np.random.default_rng(11)
    grid = random_grid("random", rng, (6, 5, 7))
    rays = random_rays(rng, grid, 60)
    sizes = 2.0 ** rng.choice([-1000, -300, -21, -20, 0, 20, 21, 300], 60)
    rays = rb.Rays(
        rays.origins, rays.directions * sizes[:, None], t_min=rays.t_min / sizes, t_max=rays.t_max / sizes
    )
    values = rng.normal(size=grid.shape)
    found = rb.Scene(grid).integrate(rays, values)
    alone = [rb.Scene(grid).integrate(rays[k : k + 1], values)[0] for k in range(60)]
    np.testing.assert_array_equal(found.view(np.int64), np.array(alone).view(np.int64))
    paths, _ = true_paths(grid, rays, np.ones(len(grid), np.bool_))
    terms = [[] for _ in range(60)]
    for ray, cell, length, ends in paths:
        terms[ray].append((values.ravel()[cell], length, ends))
    assert_close(found, terms)
    assert np.count_nonzero(found) > 20


def test_very_large_grids():
    grid = rb.Grid(*(np.arange(4) * 2.0**600 for _ in range(2)))
    rays = rb.Rays([[-(2.0**600), 2.0**599]] * 2, [[1.0, 0.0], [2.0**-300, 0.0]])
    np.testing.assert_array_equal(rb.Scene(grid).integrate(rays, np.arange(9)), 9.0 * 2.0**600)


FINITE = np.array([0.0, 5e-324, 2.2e-308, 1.0, 1e300, 1.7976931348623157e308])


def test_values_that_are_not_finite_are_refused_wherever_they_are():
    ray = rb.Rays([-1, 0.5], [1, 0])
    for side in (200, 300, 1500):  # tested by NumPy, by one thread, by two
        scene, values = rb.Scene(rb.Grid.uniform([0, 0], 1.0, (side, side))), np.zeros(side * side)
        for place in {*range(0, side * side, 333_333), side * side - 1, min(1 << 20, side), 16_384}:
            for workers, bad in ((1, np.nan), (2, -np.inf)):
                values[place] = bad
                with pytest.raises(rb.InvalidInput, match=rf"must be finite; 1 .*values\[{place}\]"):
                    scene.integrate(ray, values, workers=workers)
            values[place] = 0.0
        assert scene.integrate(ray, values, workers=2) == 0.0


def test_all_bit_patterns_of_numbers_are_tested_as_numpy_does():
    rng = np.random.default_rng(7)
    numbers = np.concatenate([FINITE, -FINITE] * 20_000)
    assert is_finite(numbers, 1)
    assert is_finite(numbers, 2)
    for exponent in (0x7FE, 0x7FF, 0xFFE, 0xFFF) * 5:
        some = numbers.copy()
        some.view(np.uint64)[rng.integers(len(some))] = (exponent << 52) + int(rng.integers(1 << 52))
        assert is_finite(some, 1) == np.isfinite(some).all() == (exponent & 1 == 0)
