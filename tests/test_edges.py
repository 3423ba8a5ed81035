"""benchmarks/edges.py: no query is wrong at the edges of float64, and what is wrong is found and printed."""

import sys
from collections import Counter
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

import raybox as rb

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

import edge_families
import edge_report
import edges

CASES = 480  # of each kind


@pytest.mark.parametrize("kind", edge_families.KINDS)
def test_no_result_is_wrong(kind):
    counts = Counter()
    for task in edges.tasks(kind, CASES, seed=0):
        tally = edges.examine(task)
        assert not tally.wrong, [edges.as_python(one) for one in tally.examples[:2]]
        counts += tally.counts
    assert counts["cases"] >= CASES
    assert min(counts[name] for name in ("hits", "misses", "ties")) > 30, counts
    assert counts["touches"] > 10, counts


def test_a_wrong_result_is_found_and_reduced():
    def never(_scene, rays, **_):
        return np.zeros(rays.shape, bool)

    with mock.patch.object(rb.Scene, "occluded", never):
        tally = edges.examine(edges.Task(2, "boxes 2D", range(4)))
        assert set(tally.wrong) == {"occluded"}
        (example,) = tally.examples
        source = edges.as_python(example)
        case = edge_families.make(example.kind, example.primitive, example.seed)
        small, outcome = edge_report.reduced(case, "occluded", example.row)
    assert len(small.rays) == len(small.geometries[0]) == 1
    assert (outcome.got, outcome.want) == ([False], [True])
    made = {}
    exec("\n".join(source.splitlines()[:3]), {"rb": rb, "np": np}, made)
    np.testing.assert_array_equal(made["geometry"].bounds, small.geometries[0].bounds)
    np.testing.assert_array_equal(made["rays"].directions, small.rays.directions)
