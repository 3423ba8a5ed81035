"""Boxes from centres, groups of points, triangles, cells of a grid, and other boxes."""

from math import inf, nan

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import raybox as rb
from refusals import refusal

NUMBERS = st.floats(-1e6, 1e6)


def assert_sound(boxes):
    for values in (boxes.lower, boxes.upper):
        assert values.dtype == np.float64
        assert values.flags.c_contiguous
        assert not values.flags.writeable
    assert (boxes.lower <= boxes.upper).all()


@given(hnp.arrays(float, (3, 2), elements=NUMBERS), hnp.arrays(float, (3, 2), elements=st.floats(0, 1e6)))
def test_from_centers(centers, sizes):
    boxes = rb.Boxes.from_centers(centers, sizes)
    assert_sound(boxes)
    assert np.array_equal(boxes.lower, centers - sizes / 2)
    assert np.array_equal(boxes.upper, centers + sizes / 2)
    assert np.allclose(boxes.centers, centers, atol=1e-9)


def test_from_centers_with_sizes_for_all_or_for_each_axis():
    assert rb.Boxes.from_centers([0, 0], 2).bounds.tolist() == [[-1, -1], [1, 1]]
    assert rb.Boxes.from_centers([0, 0], [2, inf]).upper.tolist() == [[1, inf]]
    assert "sizes must not be negative or NaN; 1 of 2" in refusal(
        rb.Boxes.from_centers, np.zeros((2, 2)), [[1, 1], [1, nan]]
    )
    assert "sizes[0] = [-1.0, -1.0]" in refusal(rb.Boxes.from_centers, [0, 0], -1)
    assert "centers must be finite" in refusal(rb.Boxes.from_centers, [0, inf], 1)


@given(st.data(), st.integers(1, 12), st.sampled_from([2, 3]))
def test_around_is_tight_around_each_group(data, count, dims):
    points = data.draw(hnp.arrays(float, (count, dims), elements=NUMBERS))
    labels = data.draw(hnp.arrays(np.int32, count, elements=st.integers(0, 4)))
    groups = np.unique(labels, return_inverse=True)[1]
    boxes = rb.Boxes.around(points, groups)
    assert_sound(boxes)
    assert len(boxes) == groups.max() + 1
    for group in range(len(boxes)):
        assert boxes.lower[group].tolist() == points[groups == group].min(axis=0).tolist()
        assert boxes.upper[group].tolist() == points[groups == group].max(axis=0).tolist()


def test_groups_are_numbered_without_gaps():
    points = np.zeros((3, 2))
    text = refusal(rb.Boxes.around, points, [0, 2, 2])
    assert "groups must use every number from 0 to 2" in text
    assert "number 1 is the first without a point" in text
    assert "np.unique(groups, return_inverse=True)[1]" in text
    assert "number 1 is the first" in refusal(rb.Boxes.around, points, [0, 10**15, 0])
    assert "number 0 is the first" in refusal(rb.Boxes.around, points, [1, 1, 1])
    assert "from 0; 1 of 3 break this, first point 1: groups[1] = -1" in refusal(
        rb.Boxes.around, points, [0, -1, 0]
    )
    assert "integer type" in refusal(rb.Boxes.around, points, [0.0, 1.0, 2.0])
    assert "groups must have shape (3,)" in refusal(rb.Boxes.around, points, [0, 1])
    assert "points must be finite" in refusal(rb.Boxes.around, [[nan, 0]], [0])


@given(hnp.arrays(float, (6, 3), elements=NUMBERS), hnp.arrays(int, (4, 3), elements=st.integers(0, 5)))
def test_of_triangles(vertices, faces):
    boxes = rb.Boxes.of_triangles(vertices, faces)
    assert_sound(boxes)
    assert np.array_equal(boxes.lower, vertices[faces].min(axis=1))
    assert np.array_equal(boxes.upper, vertices[faces].max(axis=1))


@given(st.data(), st.sampled_from([2, 3]))
def test_voxels_that_touch_share_a_face_exactly(data, dims):
    shape = data.draw(st.tuples(*[st.integers(1, 4)] * dims))
    origin = data.draw(hnp.arrays(float, dims, elements=NUMBERS))
    pitch = data.draw(st.one_of(st.floats(1e-3, 10), hnp.arrays(float, dims, elements=st.floats(1e-3, 10))))
    occupancy = data.draw(hnp.arrays(np.int8, shape, elements=st.integers(-1, 1)))
    boxes = rb.Boxes.of_voxels(occupancy, origin=origin, pitch=pitch)
    assert_sound(boxes)
    cells = np.argwhere(occupancy)
    assert len(boxes) == len(cells)
    assert np.array_equal(boxes.lower, origin + pitch * cells)
    assert np.array_equal(boxes.upper, origin + pitch * (cells + 1))
    full = rb.Boxes.of_voxels(np.ones(shape, dtype=bool), origin=origin, pitch=pitch)
    lower, upper = (values.reshape(*shape, dims) for values in (full.lower, full.upper))
    for axis in range(dims):
        low, high = (np.moveaxis(values[..., axis], axis, 0) for values in (lower, upper))
        assert low[1:].tobytes() == high[:-1].tobytes()


def test_invalid_grids_are_refused():
    cells = np.ones((2, 2), dtype=bool)
    voxels = rb.Boxes.of_voxels
    assert "bools or integers" in refusal(voxels, np.ones((2, 2)), origin=[0, 0], pitch=1)
    assert "grid > threshold" in refusal(voxels, np.ones((2, 2)), origin=[0, 0], pitch=1)
    assert "2 or 3 dimensions; got shape (4,)" in refusal(voxels, [1] * 4, origin=[0, 0], pitch=1)
    assert "got shapes (3,) and ()" in refusal(voxels, cells, origin=[0, 0, 0], pitch=1)
    assert "got shapes (2,) and (1,)" in refusal(voxels, cells, origin=[0, 0], pitch=[1])
    assert "origin must be finite" in refusal(voxels, cells, origin=[0, nan], pitch=1)
    assert "pitch must be finite and above zero" in refusal(voxels, cells, origin=[0, 0], pitch=[1, 0])
    assert "pitch must be finite and above zero" in refusal(voxels, cells, origin=[0, 0], pitch=nan)
    assert "must be finite; got origin = [1e+308" in refusal(voxels, cells, origin=[1e308, 0], pitch=1e308)


def test_expanded():
    boxes = rb.Boxes([[0, 0], [5, -inf]], [[2, 4], [5, inf]])
    assert boxes.expanded([1, 2]).lower.tolist() == [[-1, -2], [4, -inf]]
    assert boxes.expanded([[1, 1], [0, 3]]).upper.tolist() == [[3, 5], [5, inf]]
    assert boxes[0].expanded(-1).bounds.tolist() == [[1, 1], [1, 3]]
    assert boxes.lower[0].tolist() == [0, 0]
    assert_sound(boxes.expanded(1))
    text = refusal(boxes.expanded, -0.5)
    assert "margin must not turn a box inside out; 1 of 2 break this, first box 1" in text
    assert "-boxes.sizes / 2" in text
    for margin in (nan, inf):
        assert "margin must be finite" in refusal(boxes.expanded, margin)
