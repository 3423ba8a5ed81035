"""Rays with many candidates: traversed in several calls, between which Ctrl-C is noticed."""

from collections import defaultdict
from functools import wraps
from inspect import unwrap

import numpy as np
import pytest

import raybox as rb
from raybox.queries import batches, deposit, one_by_one
from raybox.queries.all_hits import run as all_run
from raybox.traversal import ray_groups
from raybox.traversal.workspace import next_ray
from test_many_rays import at_once

BOXES = 6000


@pytest.fixture
def calls(monkeypatch):
    """Return the places at which calls begin, by their span of rays."""
    begins, call = defaultdict(set), ray_groups.traverse_groups

    @wraps(unwrap(call))  # what compiles it looks for the function
    def recorded(job, rays, span, order, *rest):
        begins[span[2]].add(max(span[1], next_ray(order)))
        return call(job, rays, span, order, *rest)

    for caller in (ray_groups, one_by_one):
        monkeypatch.setattr(caller, "traverse_groups", recorded)
    monkeypatch.setattr(batches, "GROUP", 32)
    for runner in (all_run, deposit):  # as chunks by time may be short
        monkeypatch.setattr(runner, "chunk_runner", at_once)
    return begins


@pytest.mark.parametrize("count", [900, 2100])
@pytest.mark.parametrize("query", ["all", "deposit"])
def test_millions_of_candidates(query, count, calls):
    """Concentric boxes, each flat on one side, and rays through all of them or none.

    Of the larger batch rays are sorted.
    """
    size = 1.0 + np.arange(BOXES)[:, None] * [1e-6, 2e-6, 0.0]
    scene = rb.Scene(rb.Boxes(-size, size))
    origins = np.array([-3.0, 0.5, 1.0]) + np.arange(count)[:, None] * [0.0, 1e-4, 0.0]
    origins[::9, 2] = 1.5
    rays = rb.Rays(origins, [1.0, 0.0, 0.0])
    hit = np.arange(count) % 9 != 0
    if query == "all":
        hits = scene.all(rays, workers=1)
        assert (np.diff(hits.offsets) == np.where(hit, BOXES, 0)).all()
        assert (hits.index.reshape(-1, BOXES) == np.arange(BOXES)[::-1]).all()
    else:
        np.testing.assert_array_equal(scene.deposit(rays, per="hit", workers=1), np.full(BOXES, hit.sum()))
    assert max(map(len, calls.values())) > 1, calls
