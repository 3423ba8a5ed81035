"""Queries that are searched together find what each finds alone, also those that need too much memory."""

import numpy as np
import pytest

import raybox as rb
from raybox.spatial import overlap_tree


def pairs_of(lower, upper, other_lower, other_upper):
    """Return all pairs of query and box that overlap, sorted: comparisons of floats alone."""
    apart = (lower[None] > other_upper[:, None]) | (upper[None] < other_lower[:, None])
    return np.argwhere(~apart.any(axis=2))


def pairs(rows):
    return np.stack([rows.row, rows.index], axis=1)


@pytest.mark.parametrize("dimension", [2, 3])
@pytest.mark.parametrize("count", [1, overlap_tree.TOGETHER - 1, overlap_tree.TOGETHER + 1, 300])
def test_queries_of_all_sizes_find_what_comparisons_find(dimension, count):
    rng = np.random.default_rng(count)
    lower = rng.integers(0, 64, (3000, dimension)) / 64
    upper = lower + rng.integers(0, 9, lower.shape) / 64
    sizes = 2.0 ** -rng.integers(0, 12, (count, 1))
    begin = rng.integers(0, 64, (count, dimension)) / 64
    end = begin + sizes
    expected = pairs_of(lower, upper, begin, end)
    found = rb.Scene(rb.Boxes(lower, upper)).overlapping(rb.Boxes(begin, end), workers=1)
    np.testing.assert_array_equal(pairs(found), expected)
    each = np.bincount(expected[:, 0], minlength=count)
    if count == 300:
        batches = [each[k : k + overlap_tree.TOGETHER].sum() for k in range(0, count, overlap_tree.TOGETHER)]
        assert max(batches) > overlap_tree._FOUND
        assert ((each > 0) & (each <= 8)).any()
        assert ((each > 8) & (each <= 64)).any()
        assert (each > 64).any()


def test_batches_without_memory_for_nodes_or_rows_are_searched_one_by_one():
    rng = np.random.default_rng(2)
    lower = rng.random((20_000, 3))
    upper = lower + 1e-4
    begin = rng.random((64, 3)) * 0.01
    end = begin.copy()
    end[:32] += 1e-5
    end[32:, :2] = 1.0  # thin: they visit many nodes and find less
    end[32:, 2] = begin[32:, 2] + 1e-3
    scene, boxes = rb.Scene(rb.Boxes(lower, upper)), rb.Boxes(begin, end)
    expected = pairs_of(lower, upper, begin, end)
    found = pairs(scene.overlapping(boxes))
    np.testing.assert_array_equal(found, expected)
    each = np.bincount(expected[:, 0], minlength=64)
    assert 0 < each[32:].sum() < overlap_tree._FOUND
    counts = scene.overlapping(boxes, count=True)
    np.testing.assert_array_equal(counts, each)
    alone = [scene.overlapping(rb.Boxes(begin[k : k + 1], end[k : k + 1])).index for k in range(64)]
    np.testing.assert_array_equal(np.concatenate(alone), expected[:, 1])


def test_groups_of_queries_that_are_searched_together():
    rng = np.random.default_rng(3)
    lower = rng.random((2000, 2))
    upper = lower + 0.1 * rng.random(lower.shape)
    groups, points = rng.integers(-1, 5, 2000), rng.random((100, 2))
    own = rng.integers(0, 5, 100)
    expected = pairs_of(lower, upper, points, points)
    other = groups[expected[:, 1]]
    expected = expected[(other == -1) | (other == own[expected[:, 0]])]
    scene = rb.Scene(rb.Boxes(lower, upper), groups=groups)
    found = pairs(scene.containing(points, groups=own))
    assert len(found) > 100
    np.testing.assert_array_equal(found, expected)
