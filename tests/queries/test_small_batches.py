"""Small batches with many candidates: traversed in several calls, between which Ctrl-C is noticed."""

import numpy as np
import pytest

import raybox as rb
from raybox.traversal import ray_groups

RAYS, BOXES = 900, 6000


@pytest.fixture
def calls(monkeypatch):
    """Return a list of the first ray of each call."""
    begins, call = [], ray_groups.traverse_groups
    monkeypatch.setattr(
        ray_groups,
        "traverse_groups",
        lambda job, span, *rest: begins.append(span[1]) or call(job, span, *rest),
    )
    return begins


@pytest.mark.parametrize("query", ["all", "deposit"])
def test_batches_with_millions_of_candidates(query, calls):
    """Concentric boxes, each flat on one side, and rays through all of them or none."""
    size = 1.0 + np.arange(BOXES)[:, None] * [1e-6, 2e-6, 0.0]
    scene = rb.Scene(rb.Boxes(-size, size))
    origins = np.array([-3.0, 0.5, 1.0]) + np.arange(RAYS)[:, None] * [0.0, 1e-4, 0.0]
    origins[::9, 2] = 1.5
    rays = rb.Rays(origins, [1.0, 0.0, 0.0])
    hit = np.arange(RAYS) % 9 != 0
    if query == "all":
        hits = scene.all(rays)
        assert (np.diff(hits.offsets) == np.where(hit, BOXES, 0)).all()
        assert (hits.index.reshape(-1, BOXES) == np.arange(BOXES)[::-1]).all()
    else:
        np.testing.assert_array_equal(scene.deposit(rays, per="hit"), np.full(BOXES, hit.sum()))
    assert len(set(calls)) == 2, calls
