"""Compare lengths and sums of a case with the truth, within the bounds that API and docs state."""

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise

import numpy as np

import path_truth
import raybox as rb
from edge_outcome import Outcome, all_within, equal, within
from edge_trial import Trial
from exact import rounded

WEIGHTS = (1.0, 3.5, -0.1, 0.0)


def lengths(trial: Trial) -> Iterator[Outcome]:
    """Of each ray the first length beyond its bound: half a unit of each time, and of the product."""
    yield _lengths("lengths", trial, trial.all, trial.truth.rows)


def _lengths(query: str, trial: Trial, found, rows) -> Outcome:
    got = [found.lengths[a:b].tolist() for a, b in pairwise(found.offsets.tolist())]
    each = zip(rows, trial.truth.parts, strict=True)
    return all_within(query, got, [[_length(x, d, span) for x in row] for row, (_, d, span) in each])


def _length(hit, d, span) -> path_truth.Sum:
    path = path_truth.path(hit, d, *span)
    if isinstance(path.length, float):
        return path_truth.Sum(path.length, Fraction(0))
    speed = path_truth.root(sum(Fraction(x) ** 2 for x in d)) if any(d) else Fraction(0)
    return path_truth.Sum(path.length, path.reach / (1 << 51) + (speed + 2) / (1 << 1074), path.length)


def to_sparse(trial: Trial) -> Iterator[Outcome]:
    if not trial.has_sums:
        return
    matrix = trial.all.to_sparse().toarray()
    sizes = [len(g) for g in trial.case.geometries]
    starts = np.cumsum([0, *sizes])
    want = [[[] for _ in range(starts[-1])] for _ in range(trial.number)]
    for ray, row in enumerate(trial.truth.rows):
        _, d, span = trial.truth.parts[ray]
        for hit in row:
            want[ray][starts[hit.geometry] + hit.index].append(_length(hit, d, span))
    yield all_within("to_sparse", matrix.tolist(), [[_added(entry) for entry in row] for row in want])


def _added(sums) -> path_truth.Sum:
    if any(isinstance(x.value, float) for x in sums):
        return path_truth.Sum(math.inf, Fraction(0))
    size = sum((x.size for x in sums), Fraction(0))
    bound = sum((x.bound for x in sums), Fraction(0)) + len(sums) * size / (1 << 52)
    return path_truth.Sum(sum((x.value for x in sums), Fraction(0)), bound, size)


def integrate(trial: Trial) -> Iterator[Outcome]:
    if not trial.has_sums:
        return
    ones = [None for _ in trial.case.geometries]
    values = [np.resize(np.array(WEIGHTS), len(g)) for g in trial.case.geometries]
    given = values if len(values) > 1 else values[0]
    for reproducible in (False, True):
        got = trial.scene.integrate(trial.rays, reproducible=reproducible, workers=1)
        yield within("integrate", got, path_truth.integrals(trial.truth.paths, ones))
    got = trial.scene.integrate(trial.rays, given, workers=1)
    yield within("integrate", got, path_truth.integrals(trial.truth.paths, values))


def deposit(trial: Trial) -> Iterator[Outcome]:
    if not trial.has_sums:
        return
    weights = np.resize(np.array(WEIGHTS), trial.number)
    yield from _deposits(trial, weights, "deposit", {})
    yield from _deposits(trial, weights, "deposit per hit", {"per": "hit"})
    yield from _deposits(trial, weights, "deposit per hit", {"per": "hit", "reproducible": True})
    yield from _fixed_deposits(trial, weights)


def _deposits(trial: Trial, weights, query: str, how) -> Iterator[Outcome]:
    got = trial.scene.deposit(trial.rays, weights, workers=1, **how)
    sizes = [len(g) for g in trial.case.geometries]
    want = path_truth.deposits(trial.truth.paths, weights, sizes, per_hit="per" in how)
    for mine, true in zip(got if len(sizes) > 1 else [got], want, strict=True):
        yield within(query, mine, true)


def _fixed_deposits(trial: Trial, weights) -> Iterator[Outcome]:
    """Yield reproducible sums; a refusal is right if a term may exceed the range of float64."""
    geometries, weight = trial.case.geometries, Fraction(float(np.abs(weights).max()))
    terms = [_longest(trial, geometry) for geometry in geometries]
    try:
        got = trial.scene.deposit(trial.rays, weights, reproducible=True, workers=1)
    except rb.InvalidInput:
        bounded = max(terms) != math.inf and max(terms) * weight < path_truth.LARGEST / 4
        yield equal("deposit reproducible", [False], [bounded])
        return
    sizes = [len(geometry) for geometry in geometries]
    sums = path_truth.deposits(trial.truth.paths, weights, sizes, relative=lambda _: Fraction(1, 1 << 49))
    for k, (mine, want) in enumerate(zip(got if len(sizes) > 1 else [got], sums, strict=True)):
        number = trial.number * len(getattr(geometries[k], "geometry", "1"))
        more = Fraction(number**3, 1 << 120) * terms[k] * weight if want else Fraction(0)
        yield within("deposit reproducible", mine, [one._replace(bound=one.bound + more) for one in want])


def _longest(trial: Trial, geometry) -> Fraction | float:
    """Return a bound of all lengths inside of a geometry: its diagonal, or the longest range if shorter."""
    ranges = [Fraction(0)]
    for _, d, (low, high) in trial.truth.parts:
        speed = path_truth.root(sum(Fraction(x) ** 2 for x in d)) if any(d) else Fraction(0)
        bounded = math.isfinite(low) and math.isfinite(high)
        ranges.append((Fraction(high) - Fraction(low)) * speed if bounded else math.inf)
    lower, upper = geometry.bounds.tolist() if len(geometry) else ([0.0], [0.0])
    if not all(map(math.isfinite, (*lower, *upper))):
        return max(ranges)
    square = sum((Fraction(b) - Fraction(a)) ** 2 for a, b in zip(lower, upper, strict=True))
    return min(path_truth.root(square) if square else Fraction(0), max(ranges))


def segments(trial: Trial) -> Iterator[Outcome]:
    if trial.case.primitive not in ("grid 2D", "grid 3D"):
        return
    found, rows = trial.scene.segments(trial.rays, workers=1), trial.truth.cuts(trial.case.geometries[0])
    ends = list(pairwise(found.offsets.tolist()))
    cells = [found.index[a:b].tolist() for a, b in ends]
    want = [[x.index for x in row] for row in rows]
    yield equal("segments", cells, want)
    if cells == want:
        lows = [t for _, _, (t, _) in trial.truth.parts]
        each = zip(ends, lows, strict=True)
        times = [[max(t, low) for t in found.t[a:b].tolist()] for (a, b), low in each]
        yield equal("segments", times, [[rounded(x.t) for x in row] for row in rows])
        yield _lengths("segments", trial, found, rows)
