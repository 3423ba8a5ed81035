"""Sweeps at the edges of float64: the first contacts of moving boxes, against Fractions."""

from fractions import Fraction
from typing import NamedTuple

import numpy as np

import families
import raybox as rb
import sweeping
from edge_outcome import Outcome, Placed, equal, points_within
from edge_scales import arranged, scaled, scaled_rays
from exact import rounded

MOVERS = 16


class Sweep(NamedTuple):
    """Moving boxes, their displacements, and resting boxes."""

    low: np.ndarray
    high: np.ndarray
    way: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    @property
    def rows(self) -> np.ndarray:
        return self.low

    def outcomes(self, counts):
        scene = rb.Scene(rb.Boxes(self.lower, self.upper), workers=1)
        hits = rb.sweep(rb.Boxes(self.low, self.high), self.way, scene, workers=1)
        best = [found for found, _ in sweeping.truth(*self)]
        counts["hits"] += sum(x is not None for x in best)
        counts["misses"] += sum(x is None for x in best)
        counts["touches"] += sum(x is not None and x[2] == x[3] for x in best)
        counts["ties"] += sum(0 in later for _, later in sweeping.truth(*self))
        miss = [-1, np.inf, np.nan, np.nan]
        got = np.stack([hits.index, hits.t, hits.t_enter, hits.t_exit], axis=1)
        want = [miss if x is None else [x[1], *map(rounded, (x[0], x[2], x[3]))] for x in best]
        yield equal("sweep", got.tolist(), want)
        yield self._points(hits, best)

    def _points(self, hits, best) -> Outcome:
        ends = zip(self.low.tolist(), self.high.tolist(), strict=True)
        centers = [
            [rounded((Fraction(a) + Fraction(b)) / 2) for a, b in zip(*row, strict=True)] for row in ends
        ]
        times = [None if x is None else Fraction(x[0]) for x in best]
        each = zip(centers, self.way.tolist(), times, strict=True)
        return points_within("points", hits.points.tolist(), [Placed(*one) for one in each])

    def alone(self, k: int) -> "Sweep":
        return self._replace(low=self.low[[k]], high=self.high[[k]], way=self.way[[k]])

    def source(self) -> str:
        low, high, way, lower, upper = (x.tolist() for x in self)
        return f"# rb.sweep(rb.Boxes({low}, {high}), {way}, rb.Scene(rb.Boxes({lower}, {upper})))"


def make(rng, kind) -> Sweep:
    """Return boxes that move from the origins of rays along their directions."""
    dim = int(rng.integers(2, 4))
    name = "planar" if dim == 2 else str(rng.choice(["touching_edges", "ulp_off_corners", "generic"]))
    pairs = families.scene(name, int(rng.integers(1 << 31)), 8, MOVERS)
    scale = kind(rng, MOVERS, dim)
    size = rng.choice([0.0, 0.5, 1.0, 2.0], (2, MOVERS, dim))
    lower, upper = (scaled(x, scale.place) for x in arranged(rng, scale, pairs.lower, pairs.upper))
    origins, way, _, _ = scaled_rays(rng, scale, *pairs[:4])
    low, high = origins - scaled(size[0], scale.place), origins + scaled(size[1], scale.place)
    largest = np.finfo(float).max
    return Sweep(np.clip(low, -largest, largest), np.clip(high, -largest, largest), way, lower, upper)
