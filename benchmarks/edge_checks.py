"""Compare the results of every query of a case with the truth: which rays (or primitives) are wrong.

Hits, their order and their times must be equal. Lengths, sums, points and normals must be within the bounds
that API and docs state, and finite where the exact number is.
"""

import math
import tempfile
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from traceback import extract_tb
from unittest import mock

import numpy as np

import edge_sums
import raybox as rb
from edge_outcome import Outcome, Placed, equal, points_within
from edge_trial import Trial
from edge_truth import Case
from exact import rounded
from raybox.queries import one_by_one

PACKAGE = str(Path(rb.__file__).parent)
NEAR_ONE = 2.0**-40  # of unit vectors


# Checks: each yields outcomes of one result of the library.


def fields(trial: Trial, hits, names=("index", "primitive", "t", "t_enter", "t_exit")) -> Iterator[Outcome]:
    """Yield the outcomes of fields of the nearest hits."""
    first = trial.first
    miss = {"index": -1, "primitive": -1, "t": math.inf, "t_enter": math.nan, "t_exit": math.nan}
    for name in names:
        want = [miss[name] if x is None else getattr(x, name) for x in first]
        exact = [rounded(x) if isinstance(x, Fraction) else x for x in want]
        yield equal(name, getattr(hits, name).tolist(), exact)


def nearest(trial: Trial) -> Iterator[Outcome]:
    yield from (o._replace(query=_renamed(o.query)) for o in fields(trial, trial.nearest))


def _renamed(name: str) -> str:
    return "nearest" if name in ("index", "primitive") else name


def geometry_number(trial: Trial) -> Iterator[Outcome]:
    want = [-1 if x is None else x.geometry for x in trial.first]
    yield equal("nearest", trial.nearest.geometry.tolist(), want)


def occluded(trial: Trial) -> Iterator[Outcome]:
    got = trial.scene.occluded(trial.rays, workers=1).tolist()
    yield equal("occluded", got, [bool(row) for row in trial.truth.rows])


def count(trial: Trial) -> Iterator[Outcome]:
    got = trial.scene.count(trial.rays, workers=1).tolist()
    yield equal("count", got, [len(row) for row in trial.truth.rows])


def first(trial: Trial) -> Iterator[Outcome]:
    hits = trial.scene.first(trial.rays, 3, workers=1)
    rows = [[(x.index, rounded(x.t)) for x in row[:3]] for row in trial.truth.rows]
    want = [row + [(-1, math.inf)] * (3 - len(row)) for row in rows]
    pairs = zip(hits.index.tolist(), hits.t.tolist(), strict=True)
    yield equal("first", [list(zip(*pair, strict=True)) for pair in pairs], want)


def all_hits(trial: Trial) -> Iterator[Outcome]:
    yield from _listed("all", trial.all, trial.truth.rows)


def _listed(query: str, found, rows) -> Iterator[Outcome]:
    ends = list(pairwise(found.offsets.tolist()))
    columns = [getattr(found, name).tolist() for name in ("index", "t", "t_enter", "t_exit")]
    got = [[list(one) for one in zip(*(c[a:b] for c in columns), strict=True)] for a, b in ends]
    want = [[[x.index, *map(rounded, (x.t, x.t_enter, x.t_exit))] for x in row] for row in rows]
    yield equal(query, got, want)


def points(trial: Trial) -> Iterator[Outcome]:
    each = zip(trial.truth.parts, trial.first, strict=True)
    rays = [Placed(o, d, None if hit is None else hit.t) for (o, d, _), hit in each]
    yield points_within("points", trial.nearest.points.tolist(), rays)


def _vectors(query: str, got, want, tolerance: float) -> Outcome:
    each = zip(got, want, strict=True)
    wrong = [not np.allclose(a, b, rtol=0, atol=tolerance, equal_nan=True) for a, b in each]
    return Outcome(query, np.array(wrong, bool), got, want)


def normals(trial: Trial) -> Iterator[Outcome]:
    nothing = [math.nan] * trial.rays.ndim_space
    want = [nothing if x is None else trial.truth.normal(x, k) for k, x in enumerate(trial.first)]
    yield _vectors("normals", trial.nearest.normals.tolist(), want, NEAR_ONE)


def uv(trial: Trial) -> Iterator[Outcome]:
    want = [[math.nan] * 2 if x is None else trial.truth.weights(x, k) for k, x in enumerate(trial.first)]
    yield _vectors("uv", trial.nearest.uv.tolist(), want, 2.0**-50)


def update(trial: Trial) -> Iterator[Outcome]:
    """A scene of other primitives that is moved to these."""
    if len(trial.case.geometries) > 1 or not isinstance(trial.geometry, rb.Boxes):
        return
    boxes = trial.geometry
    turned = rb.Boxes(-boxes.upper[::-1], -boxes.lower[::-1])
    scene = rb.Scene(turned, workers=1)
    scene.update(boxes)
    scene.check()
    hits = scene.nearest(trial.rays, workers=1)
    yield from (o._replace(query="update") for o in fields(trial, hits, ("index", "t")))
    yield equal("update", scene.count(trial.rays).tolist(), [len(row) for row in trial.truth.rows])


def intersect(trial: Trial) -> Iterator[Outcome]:
    if len(trial.case.geometries) > 1 or not isinstance(trial.geometry, rb.Boxes | rb.Mesh | rb.Planes):
        return
    hits = rb.intersect(trial.rays[:, None], trial.geometry, workers=1)
    want = np.full((trial.number, len(trial.geometry), 3), math.nan)
    for k, row in enumerate(trial.truth.rows):
        for x in row:
            want[k, x.index] = [rounded(t) for t in (x.t, x.t_enter, x.t_exit)]
    got = np.stack([np.where(hits.hit, hits.t, math.nan), hits.t_enter, hits.t_exit], axis=-1)
    yield equal("intersect", got.tolist(), want.tolist())


def saved(trial: Trial) -> Iterator[Outcome]:
    if not trial.case.primitive.startswith("saved"):
        return
    with tempfile.TemporaryDirectory() as folder:
        trial.scene.save(f"{folder}/a.scene")
        opened = rb.Scene.open(f"{folder}/a.scene", check=True)
        yield from (o._replace(query=_renamed(o.query)) for o in fields(trial, opened.nearest(trial.rays)))
        yield equal("count", opened.count(trial.rays).tolist(), [len(row) for row in trial.truth.rows])
        yield equal("occluded", opened.occluded(trial.rays).tolist(), [bool(r) for r in trial.truth.rows])
        yield from _listed("all", opened.all(trial.rays), trial.truth.rows)


def check(trial: Trial) -> Iterator[Outcome]:
    """Yield whether `Scene.check` accepts the tree."""
    trial.scene.check()
    yield equal("check", [True], [True])


CHECKS = (
    check,
    nearest,
    geometry_number,
    occluded,
    count,
    first,
    all_hits,
    edge_sums.lengths,
    points,
    normals,
    uv,
    *([edge_sums.to_sparse] if find_spec("scipy") else []),
    edge_sums.integrate,
    edge_sums.deposit,
    edge_sums.segments,
    update,
    intersect,
    saved,
)


def outcomes(case: Case, counts: Counter | None = None) -> Iterator[Outcome]:
    """Yield the outcomes of all checks; an exception makes the rays of its check wrong.

    counts: hits, misses, touches and ties are added to it.
    """
    trial = Trial(case)
    most = 15 if case.sorted else one_by_one.MOST_RAYS
    with mock.patch.object(one_by_one, "MOST_RAYS", most), np.errstate(all="ignore"):
        for one in CHECKS:
            try:
                yield from one(trial)
            except Exception as error:  # whatever the library raises is a wrong result
                if not any(frame.filename.startswith(PACKAGE) for frame in extract_tb(error.__traceback__)):
                    raise
                what = f"{type(error).__name__}: {error}"[:200]
                nothing = [None] * trial.number
                yield Outcome(one.__name__, np.ones(trial.number, bool), [what] * trial.number, nothing)
    if counts is not None:
        rows = trial.truth.rows
        counts["hits"] += sum(map(bool, rows))
        counts["misses"] += sum(not row for row in rows)
        counts["touches"] += sum(x.touch for row in rows for x in row)
        counts["ties"] += sum(a.t == b.t for row in rows for a, b in pairwise(row))
