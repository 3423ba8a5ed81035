"""AllHits.to_sparse: every entry by hand, of boxes, several geometries, instances and scenes in parts."""

import importlib.util

import numpy as np
import pytest

import raybox as rb
from needs import package
from raybox.hits.sparse import sparse_matrix

package("scipy")
RANDOM = np.random.default_rng(30)
LOWER = RANDOM.random((50, 3))
BOXES = rb.Boxes(LOWER, LOWER + 0.2)
OTHERS = rb.Boxes(LOWER[:7] - 0.1, LOWER[:7] + 0.3)
TURNED = rb.Instances(BOXES, [np.eye(4), np.diag([1.0, -1.0, 1.0, 1.0])])
RAYS = rb.Rays(RANDOM.random((4, 90, 3)), RANDOM.normal(size=(4, 90, 3)), t_max=2)


def dense(hits, starts, columns, numbers):
    """Return the matrix, hit by hit."""
    matrix = np.zeros((len(hits.offsets) - 1, columns))
    for ray, geometry, index, number in zip(hits.ray, hits.geometry, hits.index, numbers, strict=True):
        matrix[ray, starts[geometry] + index] += number
    return matrix


@pytest.mark.parametrize("values", ["lengths", "t", "t_enter", "t_exit"])
@pytest.mark.parametrize(
    ("geometry", "starts", "columns"),
    [(BOXES, [0], 50), (TURNED, [0], 2), ([BOXES, TURNED, OTHERS], [0, 50, 52], 59)],
    ids=["boxes", "instances", "several"],
)
def test_entries(values, geometry, starts, columns):
    hits = rb.Scene(geometry).all(RAYS)
    matrix = hits.to_sparse(values)
    assert matrix.shape == (360, columns)
    assert len(hits.index) > 200
    np.testing.assert_allclose(
        matrix.toarray(), dense(hits, starts, columns, getattr(hits, values)), rtol=1e-14
    )
    assert matrix.has_canonical_format
    np.testing.assert_array_equal(hits.offsets, rb.Scene(geometry).all(RAYS).offsets)  # SciPy sorted copies


def test_integrals_are_products():
    hits = rb.Scene(BOXES).all(RAYS)
    values = RANDOM.random(50)
    sums = np.bincount(hits.ray, hits.lengths * values[hits.index], minlength=len(hits.offsets) - 1)
    np.testing.assert_allclose(hits.to_sparse() @ values, sums, rtol=1e-14)
    counted = hits.to_sparse(np.ones(len(hits.index)))
    np.testing.assert_array_equal(counted.sum(axis=1), rb.Scene(BOXES).count(RAYS).ravel())


def test_no_hits():
    assert rb.Scene(BOXES).all(rb.Rays([9, 9, 9], [1, 0, 0])).to_sparse().shape == (1, 50)
    assert rb.Scene(rb.Boxes(np.empty((0, 3)), np.empty((0, 3)))).all(RAYS).to_sparse().nnz == 0


def test_other_values_are_refused():
    hits = rb.Scene(BOXES).all(RAYS)
    with pytest.raises(rb.InvalidInput, match="one of lengths, t, t_enter, t_exit, or an array; got 'index'"):
        hits.to_sparse("index")
    with pytest.raises(rb.InvalidInput, match=r"one number for each of the .* hits; got shape \(50,\)"):
        hits.to_sparse(np.ones(50))


def test_without_scipy(monkeypatch):
    monkeypatch.setattr("raybox.hits.sparse.find_spec", lambda name: None)
    with pytest.raises(rb.RayboxError, match=r"pip install 'raybox\[sparse\]'"):
        rb.Scene(BOXES).all(RAYS).to_sparse()
    assert importlib.util.find_spec("scipy")


@pytest.mark.parametrize(("columns", "dtype"), [(2**31 - 1, np.int32), (2**31, np.int64)])
def test_indices_are_of_32_bits_where_columns_fit(columns, dtype):
    """A solver reads them for every product."""
    hits = rb.Scene(BOXES).all(RAYS)
    matrix = sparse_matrix(hits, "lengths", (columns,))
    assert (matrix.indices.dtype, matrix.indptr.dtype) == (dtype, dtype)
    assert matrix.shape == (360, columns)
    np.testing.assert_array_equal(matrix[:, : len(BOXES)].toarray(), hits.to_sparse().toarray())
    assert hits.to_sparse().indices.dtype == np.int32
