"""raybox.explain of a grid: stretches, planes and ties against rational arithmetic, and the whole text."""

from fractions import Fraction

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from exact_grid import cut
from grids import KINDS, random_grid, random_rays
from raybox.cli import main

GRID = rb.Grid([0, 1, 2, 4], [0, 1, 2], occupied=np.array([[1, 1], [0, 1], [1, 1]]) > 0)

PAGE = """\
                  x  y
ray   origin     -1  0
      direction   2  1
      t          from 0 to inf
grid  lower       0  0
      upper       4  2
      cells       3  2

STRETCHES: from cell to cell, through the plane that is crossed first, by exact times
  cell  i  j  t begins  t ends             length  entered through
     0  0  0       0.5       1  1.118033988749895  x = 0
     3  1  1         1     1.5  1.118033988749895  x = 1 and y = 1 at once
     5  2  1       1.5       2  1.118033988749895  x = 2

Exact ties: 1 cells are entered through several planes at once. Others at that edge or
corner are only touched: `all` reports them, and they have no stretch.
3 of 6 cells, length 3.3541019662496847; occupied: 3 of them, length 3.3541019662496847.
"""


def test_the_page(capsys):
    found = rb.explain(rb.Rays([-1, 0], [2, 1]), GRID)
    assert capsys.readouterr().out == PAGE
    assert found
    assert repr(found) == "<GridTrace: 3 stretches, 3 in occupied cells>"


@pytest.mark.parametrize("kind", KINDS)
def test_stretches_are_those_of_rational_arithmetic(kind, capsys):
    rng = np.random.default_rng(KINDS.index(kind))
    counts = dict.fromkeys(("hits", "misses", "ties", "ends", "in planes", "empty"), 0)
    for shape in ((4, 5, 3), (6, 4), (1, 7, 2)):
        grid = random_grid(kind, rng, shape, share=0.7)
        rays, scene = random_rays(rng, grid, 60), rb.Scene(grid)
        segments = scene.segments(rays)
        for k in range(60):
            ray = rays[k]
            want = cut(grid.edges, ray.origins, ray.directions, float(ray.t_min), float(ray.t_max))
            found = rb.explain(ray, grid)
            assert [(one.place, one.begin, one.end) for one in found.stretches] == want.stretches
            occupied = [one for one in found.stretches if one.occupied]
            assert [one.cell for one in occupied] == segments[k].index.tolist()
            size = np.linalg.norm(ray.directions) * 1e-15
            slack = [size * float(abs(one.begin) + abs(one.end)) for one in occupied]
            off = np.abs([one.length for one in occupied] - segments[k].lengths)
            assert (off <= slack).all()
            check_planes(grid, ray, found.stretches)
            counts["hits" if want.stretches else "misses"] += 1
            counts["ties"] += sum(len(one.planes) > 1 for one in found.stretches)
            counts["ends"] += want.ends
            counts["in planes"] += want.in_planes
            counts["empty"] += len(found.stretches) - len(occupied)
            assert len(max(str(found).splitlines(), key=len)) <= 100
    capsys.readouterr()
    assert min(counts[name] for name in ("hits", "misses", "in planes", "empty")) > 5, counts
    assert kind not in ("integers", "steps") or min(counts["ties"], counts["ends"]) > 3, counts


def check_planes(grid, ray, stretches):
    """Assert that the planes of each stretch are all that are crossed where it begins."""
    for one in stretches:
        crossed = set()
        for axis, (o, d) in enumerate(zip(ray.origins.tolist(), ray.directions.tolist(), strict=True)):
            place = Fraction(o) + one.begin * Fraction(d)
            crossed |= {(axis, at) for at in grid.edges[axis].tolist() if d and place == at}
        assert set(one.planes) == crossed


def test_what_has_no_stretches(capsys):
    for ray, text in (
        (rb.Rays([1, 5], [1, 0]), "the ray runs beside the grid: y = 5 is not between its planes"),
        (rb.Rays([-1, -1], [-1, 0.5]), "the ray misses the grid"),
        (rb.Rays([-1, 1], [1, -1]), "the ray only touches the grid"),
        (rb.Rays([1, 1], [0, 0]), "the direction is zero: a point has no stretches"),
        (rb.Rays([np.nan, 1], [1, 0], invalid="miss"), "the ray holds no point"),
    ):
        found = rb.explain(ray, GRID)
        assert not found
        assert not found.stretches
        assert f"STRETCHES: none\n  {text}" in capsys.readouterr().out


def test_a_ray_in_planes_and_a_long_way(capsys):
    rb.explain(rb.Rays([0.5, 1], [1, 0]), GRID)
    assert "The ray runs in the plane y = 1: it is in the higher cell." in capsys.readouterr().out
    rb.explain(rb.Rays([0.5, 2], [1, 0]), GRID)
    assert "y = 2: it is in the last cell, whose upper face it is." in capsys.readouterr().out
    found = rb.explain(rb.Rays([0, 0.25], [1, 0]), rb.Grid.uniform([0, 0], 0.5, (100, 1)))
    assert len(found.stretches) == 100
    assert "  and 40 more" in capsys.readouterr().out


def test_refusals():
    with pytest.raises(rb.InvalidInput, match="explain takes one ray; got 2"):
        rb.explain(rb.Rays([[0, 0], [1, 1]], [1, 0]), GRID)
    with pytest.raises(rb.InvalidInput, match="must have the same dimension; got 3D and 2D"):
        rb.explain(rb.Rays([0, 0, 0], [1, 0, 0]), GRID)


def test_the_command(tmp_path):
    path = tmp_path / "cells.npy"
    np.save(path, np.ones((3, 2)))
    call = ["explain", "--origin=-1,0", "--direction=2,1", "--grid", str(path)]
    done = CliRunner().invoke(main, call)
    assert done.exit_code == 0, done.output
    assert "x = 1 and y = 1 at once" in done.stdout
    for wrong in ([*call, "--lower", "0,0", "--upper", "1,1"], call[:-2], [*call[:-2], "--lower", "0,0"]):
        done = CliRunner().invoke(main, wrong)
        assert "Pass --lower and --upper, or --grid" in done.output
