"""The hits of rays on a grid against those of the boxes of its cells, bit for bit."""

from collections import Counter

import numpy as np

import raybox as rb
from compare import assert_same

FIELDS = ("index", "t", "t_enter", "t_exit", "normals", "points", "hit")


def check(grid: rb.Grid, rays: rb.Rays, where=None) -> Counter:
    """Assert that all queries return what they do for boxes; count what the rays hit."""
    scene, boxes = rb.Scene(grid), rb.Scene(grid.boxes())
    scene.check()
    allowed = grid.occupied.flatten()
    if where is not None:
        allowed &= np.ravel(where)
    one, all_hits = boxes.nearest(rays, where=allowed), boxes.all(rays, where=allowed)
    assert_same(scene.nearest(rays, where=where), one, FIELDS)
    np.testing.assert_array_equal(scene.occluded(rays, where=where), one.hit)
    np.testing.assert_array_equal(scene.count(rays, where=where), np.diff(all_hits.offsets))
    for k in (1, 3, 20):
        assert_same(scene.first(rays, k, where=where), boxes.first(rays, k, where=allowed), FIELDS)
    assert_same(scene.all(rays, where=where), all_hits, ("offsets", *FIELDS[:4], "lengths", "ray"))
    return counted(grid, all_hits)


def counted(grid: rb.Grid, all_hits: rb.AllHits) -> Counter:
    """Count hits, misses, touches, ties, and corners: eight cells (in 2D four) at one time."""
    same = (all_hits.ray[1:] == all_hits.ray[:-1]) & (all_hits.t[1:] == all_hits.t[:-1])
    runs = np.diff(np.flatnonzero(np.concatenate([[True], ~same, [True]])))
    return Counter(
        hits=len(all_hits.index),
        misses=int((np.diff(all_hits.offsets) == 0).sum()),
        touches=int((all_hits.t_enter == all_hits.t_exit).sum()),
        ties=int(same.sum()),
        corners=int((runs >= 2**grid.ndim_space - 1).sum()),
    )
