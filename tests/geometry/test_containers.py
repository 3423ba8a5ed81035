"""Boxes, planes and meshes: arrays, methods, and the text of every error."""

import copy
import pickle
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import raybox as rb
from processes import output_of
from refusals import refusal

pytestmark = pytest.mark.core

TETRAHEDRON = ([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def made():
    """One of each container, in each number of dimensions."""
    return [
        rb.Boxes(np.zeros((5, 3)), np.ones((5, 3))),
        rb.Boxes(np.zeros((5, 2)), np.ones((5, 2))),
        rb.Planes(np.ones((5, 3)), np.arange(5)),
        rb.Planes(np.ones((5, 2)), np.arange(5)),
        rb.Mesh(*TETRAHEDRON),
    ]


def row_arrays(container):
    """Return the arrays for kernels; rows of planes and meshes also have a flag, cull_back."""
    return [values for values in container._rows() if isinstance(values, np.ndarray)]


def arrays(container):
    names = {"Boxes": ("lower", "upper"), "Planes": ("normals", "offsets"), "Mesh": ("vertices", "faces")}
    return [getattr(container, name) for name in names[type(container).__name__]]


def assert_sound(container):
    for values in [*arrays(container), *row_arrays(container)]:
        assert values.flags.c_contiguous
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0
    for values in row_arrays(container):
        assert values.dtype == np.float64
        assert values.shape in ((len(container), 3), (len(container),), (len(container), 3, 3))


@pytest.mark.parametrize("container", made(), ids=repr)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_containers_are_frozen_and_stay_so_in_copies(container, again):
    twin = again(container)
    assert_sound(container)
    assert_sound(twin)
    assert all(np.array_equal(a, b) for a, b in zip(arrays(container), arrays(twin), strict=True))
    assert twin != container
    assert len({container, container, twin}) == 2
    for name in ("lower", "normals", "faces", "colour"):
        with pytest.raises(AttributeError):
            setattr(container, name, 0)


def test_representations():
    texts = ["Boxes(5, D=3)", "Boxes(5, D=2)", "Planes(5, D=3)", "Planes(5, D=2)", "Mesh(4, vertices=4)"]
    assert [repr(container) for container in made()] == texts
    assert [container.ndim_space for container in made()] == [3, 2, 3, 2, 3]


@pytest.mark.parametrize("dress", [np.asfortranarray, lambda a: a.astype(np.float32), np.ndarray.tolist])
def test_input_is_copied(dress):
    came = np.arange(12.0).reshape(4, 3)
    lower, upper = dress(came), dress(came + 1)
    boxes = rb.Boxes(lower, upper)
    assert_sound(boxes)
    assert np.array_equal(boxes.upper, came + 1)
    assert not np.shares_memory(boxes.lower, lower)
    if isinstance(lower, np.ndarray):
        lower[:] = 9
        assert np.array_equal(boxes.lower, came)


def test_empty_containers():
    for boxes in (rb.Boxes([], []), rb.Boxes(np.empty((0, 3)), np.empty((0, 3))), rb.Boxes.around([], [])):
        assert (len(boxes), boxes.ndim_space) == (0, 3)
        assert_sound(boxes)
        assert boxes.bounds.tolist() == [[inf] * 3, [-inf] * 3]
        assert boxes.volumes.shape == (0,)
        assert boxes.expanded(-1).centers.shape == boxes.sizes.shape == (0, 3)
        assert boxes.contains([1, 2, 3]).shape == (0,)
        assert list(boxes) == []
    assert rb.Boxes(np.empty((0, 2)), np.empty((0, 2))).ndim_space == 2
    assert len(rb.Boxes.from_centers([], 1)) == len(rb.Boxes.of_triangles([], [])) == 0
    assert len(rb.Boxes.of_voxels(np.zeros((0, 4, 2)), origin=[0, 0, 0], pitch=1)) == 0
    assert len(rb.Boxes.of_voxels(np.zeros((3, 3), dtype=bool), origin=[0, 0], pitch=1)) == 0
    for container in (
        rb.Planes([], []),
        rb.Planes.through([], []),
        rb.Mesh([], []),
        rb.Mesh([[1, 2, 3]], []),
    ):
        assert len(container) == 0
        assert_sound(container)
    assert rb.Mesh([], []).triangles.shape == (0, 3, 3)


def test_one_of_each_without_a_row_axis():
    assert len(rb.Boxes([0, 0, 0], [1, 1, 1])) == len(rb.Planes([0, 0, 1], 5.0)) == 1


def test_boxes_may_be_flat_and_unbounded_but_not_inside_out():
    boxes = rb.Boxes([[0, -inf], [inf, 0], [1, 1]], [[inf, inf], [inf, 2], [1, 1]])
    assert boxes.sizes.tolist() == [[inf, inf], [0, 2], [0, 0]]
    assert boxes.volumes.tolist() == [inf, 0, 0]
    assert np.array_equal(boxes.centers, [[inf, nan], [inf, 1], [1, 1]], equal_nan=True)
    lower, upper = np.zeros((4, 3)), np.ones((4, 3))
    upper[2, 1] = -1
    text = refusal(rb.Boxes, lower, upper)
    assert text.startswith("lower must not exceed upper on any axis; 1 of 4 break this, first box 2: ")
    assert "lower[2] = [0.0, 0.0, 0.0], upper[2] = [1.0, -1.0, 1.0]" in text
    assert "np.minimum(lower, upper)" in text
    lower[[1, 3], 0] = nan
    text = refusal(rb.Boxes, lower, upper)
    assert (
        "lower and upper must not be NaN; 2 of 4 break this, first box 1: lower[1] = [nan, 0.0, 0.0]" in text
    )
    assert "pass -inf or inf" in text


def test_shapes_that_do_not_fit_are_named():
    text = refusal(rb.Boxes, np.zeros((4, 3)), np.zeros((2, 3)))
    assert "lower and upper must have the same shape; got lower (4, 3), upper (2, 3)" in text
    assert "same shape" in refusal(rb.Boxes, [[0, 0]], [[0, 0, 0]])
    assert "(..., 2) or (..., 3)" in refusal(rb.Boxes, np.zeros((4, 1)), np.zeros((4, 1)))
    assert "(M, 2) or (M, 3)" in refusal(rb.Boxes, np.zeros((4, 4, 3)), np.zeros((4, 4, 3)))
    assert "sizes must be a scalar" in refusal(rb.Boxes.from_centers, np.zeros((4, 3)), [1, 2, 3, 4])
    assert "margin must be a scalar" in refusal(rb.Boxes([0, 0], [1, 1]).expanded, [1, 2, 3])
    assert "shape (..., 2)" in refusal(rb.Boxes([0, 0], [1, 1]).contains, [1, 2, 3])


@pytest.mark.parametrize("count", [0, 1, 3])
def test_truth_of_boxes_is_refused_and_they_iterate(count):
    boxes = rb.Boxes(np.zeros((count, 2)), np.ones((count, 2)) + np.arange(count)[:, None])
    with pytest.raises(rb.InvalidInput, match=r"ambiguous.*len\(boxes\) > 0.*\.hit\.any\(\)"):
        bool(boxes)
    assert [box.upper.tolist() for box in boxes] == [[[k + 1, k + 1]] for k in range(count)]


def test_boxes_are_indexed_as_a_flat_list():
    boxes = rb.Boxes.from_centers(np.arange(10.0).reshape(5, 2), 1)
    mask = np.array([True, False, True, False, False])
    slices = slice(1, 4, 2), slice(None, None, -1)
    for index in (1, -1, *slices, mask, [3, 3, 0], np.array([2]), [], np.int32(4)):
        places = np.atleast_1d(np.arange(5)[index])
        assert_sound(boxes[index])
        assert np.array_equal(boxes[index].lower, boxes.lower[places])
        assert np.array_equal(boxes[index].upper, boxes.upper[places])
    assert [len(box) for box in boxes] == [1] * 5
    for index in (5, (0, 1), (slice(None), 0), None, np.eye(5, 2, dtype=bool), [[0, 1], [1, 2]], 0.5):
        with pytest.raises(IndexError):
            boxes[index]


@given(
    hnp.arrays(float, (4, 2), elements=st.integers(-2, 2)),
    hnp.arrays(float, (3, 2, 2), elements=st.integers(-3, 3)),
)
def test_contains_counts_faces(corners, points):
    boxes = rb.Boxes(np.minimum(corners, 0), np.maximum(corners, 0))
    expected = (boxes.lower <= points[..., None, :]) & (points[..., None, :] <= boxes.upper)
    assert boxes.contains(points).shape == (3, 2, 4)
    assert np.array_equal(boxes.contains(points), expected.all(axis=-1))
    assert boxes.contains(boxes.upper).diagonal().all()


def test_contains_requires_finite_points():
    assert "points must be finite" in refusal(rb.Boxes([0, 0], [inf, inf]).contains, [inf, 1])


def test_measures_of_boxes_at_the_limits_of_float64():
    huge, tiny = 1.7e308, 5e-324
    boxes = rb.Boxes([[-huge, huge], [tiny, 0]], [[huge, huge], [tiny, tiny]])
    assert boxes.centers.tolist() == [[0, huge], [tiny, 0]]
    assert boxes.sizes.tolist() == [[inf, 0], [0, tiny]]
    assert boxes.bounds.tolist() == [[-huge, 0], [huge, huge]]
    assert boxes.volumes.tolist() == [0, 0]


def test_planes():
    planes = rb.Planes.through([[0, 0, 5], [1, 2, 3]], [[0, 0, 2], [1, 1, 1]])
    assert planes.offsets.tolist() == [10, 6]
    assert_sound(planes)
    assert rb.Planes([0, 1], [1, 2, 3]).normals.tolist() == [[0, 1]] * 3
    assert rb.Planes([[0, 1], [1, 0]], 4).offsets.tolist() == [4, 4]
    assert len(rb.Planes.through([1, 2], [[0, 1], [1, 0]])) == 2
    assert "normals must not be zero; 1 of 2 break this, first plane 1" in refusal(
        rb.Planes, [[0, 1], [0, 0]], 0
    )
    assert "normals must be finite" in refusal(rb.Planes, [[0, nan]], 0)
    assert "offsets must be finite; 1 of 2 break this, first plane 1: offsets[1] = inf" in refusal(
        rb.Planes, [0, 1], [0, inf]
    )
    assert "offsets must have shape (M,)" in refusal(rb.Planes, np.ones((3, 2)), [1, 2])
    assert "same D" in refusal(rb.Planes.through, [[0, 1]], [[0, 1, 2]])
    assert "points and normals" in refusal(rb.Planes.through, np.zeros((2, 3)), np.ones((4, 3)))
    assert "points must be finite" in refusal(rb.Planes.through, [[0, nan]], [[0, 1]])
    assert "offsets must be finite" in refusal(rb.Planes.through, [[1e300, 0]], [[1e300, 1]])


def test_mesh():
    mesh = rb.Mesh(*TETRAHEDRON)
    assert mesh.faces.dtype == np.int64
    assert np.array_equal(mesh.triangles, mesh.vertices[mesh.faces])
    assert np.array_equal(mesh._rows().corners, mesh.triangles)
    assert not mesh.triangles.flags.writeable
    with pytest.warns(DeprecationWarning, match=r"corners\(\) is now the array Mesh\.triangles") as warned:
        assert np.array_equal(mesh.corners(), mesh.triangles)
    assert warned[0].filename == __file__
    vertices, faces = TETRAHEDRON
    assert "three corners for each triangle; got shape (1, 4)" in refusal(rb.Mesh, vertices, [[0, 1, 2, 3]])
    assert "integer type; got float64" in refusal(rb.Mesh, vertices, [[0.0, 1.0, 2.0]])
    text = refusal(rb.Mesh, vertices, [[0, 1, 2], [1, 2, 4], [-1, 0, 1]])
    assert "faces must be indices of vertices, from 0 to 3 (4 vertices); 2 of 3 break this" in text
    assert "first face 1: faces[1] = [1, 2, 4]" in text
    assert "there are no vertices" in refusal(rb.Mesh, [], faces)
    assert "vertices must be finite; 1 of 4 break this, first vertex 3" in refusal(
        rb.Mesh, [*vertices[:3], [0, 0, inf]], faces
    )
    assert "(..., 3)" in refusal(rb.Mesh, [[0, 0], [1, 0], [0, 1]], [[0, 1, 2]])


def test_geometry_needs_no_compiler():
    unwanted = ("numba", "fractions", "tqdm")
    code = f"import sys, raybox.geometry; print([name for name in {unwanted} if name in sys.modules])"
    assert output_of("-c", code) == "[]\n"
