"""`integrate` and `deposit` as transposes of each other: exact inner products, within the bounds."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import exact_grid
import path_truth
import raybox as rb
from grids import random_grid, random_rays
from path_truth import Path

CUBES = rb.Boxes([[-1, -1, -1], [0, 0, 0], [1, -1, 0]], [[0, 0, 0], [1, 1, 1], [1, 1, 2]])
RAYS = 150


def grid() -> rb.Grid:
    return random_grid("random", np.random.default_rng(1), (6, 5, 7), 0.7)


def boxes() -> rb.Boxes:
    rng = np.random.default_rng(2)
    lower = rng.uniform(-1, 1, (40, 3))
    return rb.Boxes(lower, lower + rng.uniform(0, 0.7, (40, 3)))


def copies() -> rb.Instances:
    rng = np.random.default_rng(3)
    matrices = np.zeros((5, 3, 4))
    matrices[:, :, :3] = np.eye(3) / 2 + rng.normal(size=(5, 3, 3)) / 8
    matrices[:, :, 3] = rng.uniform(-1, 1, (5, 3))
    return rb.Instances(CUBES, matrices)


MADE = {"grid": grid, "boxes": boxes, "copies": copies}


def cell_paths(cells: rb.Grid, rays, allowed) -> list[list[Path]]:
    """Return the paths of each ray in the allowed cells of a grid."""
    rows = []
    for cut, way in zip(exact_grid.cut_all(cells.edges, rays), rays.directions.tolist(), strict=True):
        speed, row = path_truth.root(sum(Fraction(x) ** 2 for x in way)) if any(way) else Fraction(0), []
        for place, begin, end in cut.stretches:
            cell = int(np.ravel_multi_index(place, cells.shape))
            if allowed[cell]:
                reach = (abs(begin) + abs(end)) * speed
                row.append(Path(0, cell, (end - begin) * speed, reach, False, False, begin))
        rows.append(row)
    return rows


def all_paths(geometries, rays, where) -> list[list[Path]]:
    """Return the paths of each ray in all geometries."""
    rows: list[list[Path]] = [[] for _ in range(len(rays))]
    for number, (one, mask) in enumerate(zip(geometries, where, strict=True)):
        is_grid = isinstance(one, rb.Grid)
        own = (
            cell_paths(one, rays, one.occupied.ravel() & mask)
            if is_grid
            else path_truth.paths(rays, one, where=[mask])
        )
        for row, found in zip(rows, own, strict=True):
            row += [path._replace(geometry=number) for path in found]
    return rows


def product(one, other) -> Fraction:
    """Return the exact inner product of two lists of numbers."""
    return sum((Fraction(a) * Fraction(b) for a, b in zip(one, other, strict=True)), Fraction(0))


def bound(factors, sums) -> Fraction:
    """Return how far off the inner product of factors and sums may be."""
    return sum((abs(Fraction(x)) * one.bound for x, one in zip(factors, sums, strict=True)), Fraction(0))


@pytest.mark.parametrize("reproducible", [False, True])
@pytest.mark.parametrize("kinds", [["grid"], ["boxes"], ["copies"], ["grid", "boxes", "copies"]])
def test_inner_products_are_equal_within_the_bounds(kinds, reproducible):
    """With channels, masks, and rays whose ranges begin and end anywhere."""
    geometries, rng = [MADE[kind]() for kind in kinds], np.random.default_rng(4)
    some = random_rays(rng, grid(), RAYS)
    low = np.where(np.isfinite(some.t_min), some.t_min, -9.0)
    rays = rb.Rays(some.origins, some.directions, t_min=low, t_max=np.minimum(some.t_max, low + 20.0))
    where = [rng.random(len(one)) < 0.8 for one in geometries]
    values, weights = [rng.normal(size=(len(one), 2)) for one in geometries], rng.normal(size=(RAYS, 2))
    is_list = len(kinds) > 1
    scene = rb.Scene(geometries if is_list else geometries[0])
    how = {"where": where if is_list else where[0], "reproducible": reproducible}
    integrals = scene.integrate(rays, values if is_list else values[0], **how)
    found = scene.deposit(rays, weights, **how)
    deposits = found if is_list else [found]

    rows = all_paths(geometries, rays, where)
    assert sum(map(len, rows)) > 100
    assert sum(not row for row in rows) > 10
    fixed = {"relative": lambda _count: Fraction(1, 1 << 49)} if reproducible else {}
    cut_off = RAYS**3 * Fraction(20 * 5, 1 << 120)  # no weight is 5, no path 20
    for c in range(2):
        ray_factors, item_factors = weights[:, c].tolist(), np.concatenate(values)[:, c].tolist()
        terms = (
            Fraction(ray_factors[k]) * Fraction(values[p.geometry][p.index, c]) * p.length
            for k, row in enumerate(rows)
            for p in row
        )
        true = sum(terms, Fraction(0))
        of_rays = path_truth.integrals(rows, values, c)
        of_items = itertools.chain(*path_truth.deposits(rows, ray_factors, map(len, values), **fixed))
        forward = product(integrals[:, c].tolist(), ray_factors)
        back = product(np.concatenate(deposits)[:, c].tolist(), item_factors)
        limits = bound(ray_factors, of_rays), bound(item_factors, of_items)
        assert abs(forward - true) <= limits[0]
        rest = cut_off * sum(map(abs, map(Fraction, item_factors))) if reproducible else 0
        assert abs(back - true) <= limits[1] + rest
        assert abs(forward - back) <= sum(limits) + rest
        assert forward != back
