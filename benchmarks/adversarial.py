"""Compare raybox with exact rational arithmetic on millions of adversarial rays.

    python benchmarks/adversarial.py [--pairs 1000000] [--family NAME] [--workers 2]

For each family (tests/helpers/families.py) it tests ``--pairs`` pairs with rb.intersect and with the oracle
(tests/helpers/exact.py), then as many ray-box pairs again in scenes of 64 boxes and 64 rays with
rb.Scene.nearest. It prints how many verdicts, normals and indices are wrong, and the largest error of t,
t_enter and t_exit in units in the last place. All must be 0 (every t is correctly rounded); else the exit
code is 1.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import exact
import families
import raybox as rb

CHUNK = 25_000  # pairs of one task
SIDE = 64  # boxes, and rays, in one scene


class Tally(NamedTuple):
    """Counts of cases and errors; ``ulps`` is the largest error."""

    pairs: int = 0
    hits: int = 0
    touches: int = 0
    wrong: int = 0
    normals: int = 0
    ulps: float = 0.0
    rays: int = 0
    tied: int = 0
    wrong_nearest: int = 0

    def plus(self, other: "Tally") -> "Tally":
        sums = self._make(a + b for a, b in zip(self, other, strict=True))
        return sums._replace(ulps=max(self.ulps, other.ulps))

    @property
    def failed(self) -> bool:
        return bool(self.wrong or self.normals or self.ulps or self.wrong_nearest)


def as_rays(pairs: families.Pairs) -> rb.Rays:
    return rb.Rays(*pairs[:2], t_min=pairs.t_min, t_max=pairs.t_max)


def check_pairs(name: str, seed: int, n: int) -> Tally:
    """Return the tally of n pairs of a family."""
    pairs = families.make(name, seed, n)
    want, hits = exact.box_rows(*pairs), rb.intersect(as_rays(pairs), rb.Boxes(*pairs[4:]))
    index = np.where(want.hit, np.arange(n), -1)
    wrong = (hits.hit != want.hit) | (hits.index != index)
    facing = (hits.normals != exact.normals(want, pairs.directions)).any(axis=1) & want.hit & ~wrong
    both = want.hit & ~wrong
    worst = [exact.ulps(getattr(hits, k)[both], getattr(want, k)[both]) for k in ("t", "t_enter", "t_exit")]
    return Tally(n, want.hit.sum(), want.touch.sum(), wrong.sum(), facing.sum(), np.max(worst, initial=0.0))


def check_scene(name: str, seed: int, _: int) -> Tally:
    """Return the tally of nearest hits in one small scene of a family, with many ties."""
    pairs = families.scene(name, seed, SIDE, SIDE)
    found = list(exact.along(*pairs))
    hits = rb.Scene(rb.Boxes(*pairs[4:])).nearest(as_rays(pairs), workers=1)
    want = np.array([f[0].index if f else -1 for f in found])
    t = np.array([f[0].plain[1:4] if f else (np.inf, np.nan, np.nan) for f in found])
    right = hits.index == want
    got = np.stack([hits.t, hits.t_enter, hits.t_exit], axis=1)
    tied = sum(exact.ties(f) > 0 for f in found if f)
    return Tally(
        ulps=exact.ulps(got[right], t[right]).max(initial=0.0),
        rays=SIDE,
        tied=tied,
        wrong_nearest=(~right).sum(),
    )


def work(pool: ProcessPoolExecutor, name: str, pairs: int) -> Tally:
    """Return the tally of a family; seeds do not depend on the number of workers."""
    sizes = [min(CHUNK, pairs - start) for start in range(0, pairs, CHUNK)]
    scenes = -(-pairs // SIDE**2)
    parts: Iterator[Tally] = pool.map(check_pairs, repeat(name), range(1000, 1000 + len(sizes)), sizes)
    total = Tally()
    for part in parts:
        total = total.plus(part)
    for part in pool.map(check_scene, repeat(name), range(scenes), repeat(0, scenes), chunksize=4):
        total = total.plus(part)
    return total


HEAD = (
    "family",
    "pairs",
    "hits",
    "misses",
    "touches",
    "wrong",
    "normals",
    "max ulp",
    "rays",
    "tied",
    "wrong nearest",
    "s",
)


def line(cells) -> str:
    widths = (20, 9, 9, 9, 9, 6, 8, 8, 8, 8, 14, 6)
    return "".join(
        str(c).ljust(w) if i == 0 else str(c).rjust(w)
        for i, (c, w) in enumerate(zip(cells, widths, strict=True))
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--family", choices=sorted(families.FAMILIES), action="append")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    failed = []
    print(line(HEAD))
    with ProcessPoolExecutor(options.workers, mp_context=get_context("spawn")) as pool:
        for name in options.family or families.FAMILIES:
            start = time.perf_counter()
            s = work(pool, name, options.pairs)
            took = f"{time.perf_counter() - start:.0f}"
            counts = (s.pairs, s.hits, s.pairs - s.hits, s.touches, s.wrong, s.normals, f"{s.ulps:g}")
            print(line((name, *counts, s.rays, s.tied, s.wrong_nearest, took)), flush=True)
            failed += [name] * s.failed
    print(f"wrong: {', '.join(failed)}" if failed else "all results are exact")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
