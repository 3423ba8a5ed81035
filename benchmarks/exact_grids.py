"""Compare grids with rational arithmetic on a million rays, two thirds of them in faces, edges and corners.

    python benchmarks/exact_grids.py [--rays 1000000] [--kind NAME] [--workers 1]

Each block of 2,000 rays has a grid of its own (tests/helpers/grids.py), of up to 64 cells an axis, in 2D or
3D; every second one is partly occupied. The cells of `Scene.segments`, their order, and their times are
compared with those of tests/helpers/integer_grid.py, which follow from the definition in integers; so are the
cells that `deposit` reaches (each ray has a whole weight of its own), and lengths with the stated bound. All
hits are compared with those of ``Scene(grid.boxes())``, bit for bit. The exit code is 1 if anything is wrong.
"""

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import grid_hits
import integer_grid
import raybox as rb
from grids import KINDS, random_grid, random_rays

BLOCK = 2000  # rays of one grid
SHAPES = [(64, 64, 64), (48, 1, 33), (1, 1, 1), (5, 6, 7), (17, 16, 3), (64, 64), (2, 64, 2), (1, 40)]


class Tally(NamedTuple):
    """Counts of cases, and of what is wrong."""

    rays: int = 0
    crossing: int = 0  # rays with a stretch in a cell that is occupied
    cells: int = 0
    corners: int = 0  # times at which a ray crosses planes of several axes
    ends: int = 0  # ends of ranges on planes
    in_planes: int = 0  # axes on which a ray runs in a plane
    hits: int = 0
    touches: int = 0
    ties: int = 0
    wrong_cells: int = 0
    wrong_orders: int = 0
    wrong_times: int = 0
    wrong_sums: int = 0
    beyond_bound: int = 0
    wrong_hits: int = 0  # blocks with any

    def plus(self, other: "Tally") -> "Tally":
        return self._make(a + b for a, b in zip(self, other, strict=True))

    @property
    def failed(self) -> bool:
        return any(getattr(self, name) for name in self._fields[-6:])


def check_ray(cut, stays, found: rb.AllHits, ray: rb.Rays, sums: tuple[float, float]) -> Tally:
    """Return the tally of one ray. found: its segments; sums: of their lengths, and by `integrate`."""
    want, got = [one.cell for one in stays], found.index.tolist()
    times = [(one.begin / cut.scale, one.end / cut.scale) for one in stays]
    mine = list(zip(found.t.tolist(), np.minimum(found.t_exit, ray.t_max).tolist(), strict=True))
    return Tally(
        rays=1,
        crossing=bool(want),
        cells=len(want),
        corners=cut.corners,
        ends=cut.ends,
        in_planes=cut.in_planes if want else 0,
        wrong_cells=sorted(want) != sorted(got),
        wrong_orders=sorted(want) == sorted(got) and want != got,
        wrong_times=want == got and times != mine,
        beyond_bound=sum(integer_grid.is_off(total, cut, stays, ray.directions.tolist()) for total in sums)
        + (sum(one.end - one.begin for one in cut.stretches) != cut.inside),
    )


def check_partition(grid: rb.Grid, rays: rb.Rays, seed: int) -> Tally:
    """Return the tally of the partition of all rays, and of sums over it."""
    scene, occupied = rb.Scene(grid), grid.occupied.ravel()
    segments, integrals = scene.segments(rays, workers=1), scene.integrate(rays, workers=1)
    weights = np.random.default_rng(seed).integers(1, 1 << 30, len(rays)).astype(float)  # sums are exact
    tally, deposits = Tally(), np.zeros(len(grid))
    for k, cut in enumerate(integer_grid.cut_all(grid.edges, rays)):
        stays = [one for one in cut.stretches if occupied[one.cell]]
        np.add.at(deposits, [one.cell for one in stays], weights[k])
        sums = float(segments[k].lengths.sum()), float(integrals[k])
        tally = tally.plus(check_ray(cut, stays, segments[k], rays[k], sums))
    for reproducible in (False, True):
        found = scene.deposit(rays, weights, per="hit", reproducible=reproducible, workers=1)
        tally = tally.plus(Tally(wrong_sums=int((found != deposits).sum())))
    return tally


def check_hits(grid: rb.Grid, rays: rb.Rays) -> Tally:
    try:
        counts = grid_hits.check(grid, rays)
    except AssertionError as error:
        print(f"{grid}: {error}")
        return Tally(wrong_hits=1)
    return Tally(hits=counts["hits"], touches=counts["touches"], ties=counts["ties"])


def check_block(kind: str, seed: int, count: int) -> Tally:
    """Return the tally of one grid and so many rays."""
    rng = np.random.default_rng([300, KINDS.index(kind), seed])
    shape = SHAPES[seed % len(SHAPES)]
    if seed // len(SHAPES) % 2:
        shape = tuple(rng.integers(1, 65, len(shape)).tolist())
    share = rng.choice([0.02, 0.3, 0.8]) if seed // len(SHAPES) % 4 > 1 else None
    grid = random_grid(kind, rng, shape, share)
    rays = random_rays(rng, grid, count)
    return check_partition(grid, rays, seed).plus(check_hits(grid, rays))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rays", type=int, default=1_000_000)
    parser.add_argument("--kind", choices=KINDS, action="append")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    kinds = options.kind or KINDS
    blocks = -(-options.rays // (BLOCK * len(kinds)))
    failed = False
    print("".join(name.replace("_", " ").rjust(13) for name in ("kind", *Tally._fields, "seconds")))
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for kind in kinds:
            start, total = time.perf_counter(), Tally()
            for part in pool.map(check_block, repeat(kind), range(blocks), repeat(BLOCK, blocks)):
                total = total.plus(part)
            took = f"{time.perf_counter() - start:.0f}"
            print("".join(str(cell).rjust(13) for cell in (kind, *total, took)), flush=True)
            failed |= total.failed
    print("something is wrong" if failed else "all results are right")
    return failed


if __name__ == "__main__":
    sys.exit(main())
