"""Boxes from rows of bounds or tables, and rays from rows of origin and direction."""

import numpy as np
import pytest

import raybox as rb

RANDOM = np.random.default_rng(6)
NAMES = {2: ["min_x", "min_y", "max_x", "max_y"], 3: ["min_x", "min_y", "min_z", "max_x", "max_y", "max_z"]}

ONE_SHORT = {"min_x": [0, 0], "min_y": [0, 0], "max_x": [1, 1]}


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_bounds_are_lower_beside_upper(dims, count):
    lower = RANDOM.normal(size=(count, dims))
    bounds = np.hstack([lower, lower + RANDOM.random((count, dims))])
    tables = [bounds, np.asfortranarray(bounds), dict(zip(NAMES[dims], bounds.T, strict=True))]
    for table in tables:
        boxes = rb.Boxes.from_bounds(table)
        np.testing.assert_array_equal(boxes.lower, bounds[:, :dims])
        np.testing.assert_array_equal(boxes.upper, bounds[:, dims:])
        assert boxes.lower.flags.c_contiguous
        assert not np.shares_memory(boxes.lower, bounds)


def test_one_row_and_none():
    assert rb.Boxes.from_bounds([0, 0, 0, 1, 2, 3]).upper.tolist() == [[1, 2, 3]]
    assert len(rb.Boxes.from_bounds([])) == 0
    assert rb.Rays.from_array([]).shape == (0,)


def test_frames_of_columns_in_any_order():
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    columns = {"max_y": [4, 5], "id": ["a", "b"], "min_x": [0, 1], "max_x": [2.5, 3], "min_y": [1, 1]}
    for table in (columns, pandas.DataFrame(columns), arrow.table(columns), {**columns, "max_y": (4.0, 5.0)}):
        boxes = rb.Boxes.from_bounds(table)
        assert boxes.lower.tolist() == [[0, 1], [1, 1]]
        assert boxes.upper.tolist() == [[2.5, 4], [3, 5]]


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        (np.zeros((2, 3)), ["bounds must have shape (..., 4) or (..., 6)", "(2, 3)"]),
        (np.zeros((1, 2, 6)), ["bounds must have shape", "(1, 2, 6)"]),
        ([[0, 0, np.nan, 1]], ["must not be NaN"]),
        ([[0, 0, 1, 1], [2, 2, 1, 1]], ["lower must not exceed upper", "first box 1"]),
        (
            {"min_x": [0], "min_y": [0], "max_x": [1]},
            ["needs the columns min_x min_y max_x max_y; max_y missing"],
        ),
        (
            {"min_x": [0], "max_z": [0]},
            ["max_y max_z; min_y min_z max_x max_y missing"],
        ),
        ({name: ["a"] for name in NAMES[2]}, ["min_x must be real numbers"]),
        (
            {name: [0] * (1 + (name != "max_y")) for name in NAMES[2]},
            ["must have the same shape", "max_y (1,)"],
        ),
    ],
)
def test_invalid_bounds_are_refused(bounds, words):
    with pytest.raises(rb.InvalidInput) as caught:
        rb.Boxes.from_bounds(bounds)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("dims", [2, 3])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (2, 3)])
def test_rays_of_rows(dims, shape):
    rows = RANDOM.normal(size=(*shape, 2 * dims))
    rays = rb.Rays.from_array(rows, t_min=-1, t_max=np.full(shape, 4.0))
    want = rb.Rays(rows[..., :dims], rows[..., dims:], t_min=-1, t_max=4)
    assert rays.shape == shape
    for name in ("origins", "directions", "t_min", "t_max"):
        np.testing.assert_array_equal(getattr(rays, name), getattr(want, name))
        assert not getattr(rays, name).flags.writeable
    assert rays.directions.flags.c_contiguous


def test_invalid_rows_of_rays():
    with pytest.raises(rb.InvalidInput, match=r"rays must have shape \(..., 4\) or \(..., 6\)"):
        rb.Rays.from_array(np.zeros((4, 3)))
    rows = [[0, 0, 1, 1], [0, np.nan, 1, 1]]
    with pytest.raises(rb.InvalidInput, match="origins must be finite; 1 of 2 break this, first ray 1"):
        rb.Rays.from_array(rows)
    assert rb.Rays.from_array(rows, invalid="miss").t_max.tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize("dims", [2, 3])
def test_rays_of_tables(dims):
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    values = RANDOM.normal(size=(4, 2 * dims))
    names = [prefix + axis for prefix in ("origin_", "direction_") for axis in "xyz"[:dims]]
    columns = dict(reversed([*zip(names, values.T, strict=True), ("id", [1, 2, 3, 4])]))
    for table in (columns, pandas.DataFrame(columns), arrow.table(columns)):
        rays = rb.Rays.from_array(table, t_max=7)
        np.testing.assert_array_equal(rays.origins, values[:, :dims])
        np.testing.assert_array_equal(rays.directions, values[:, dims:])
        assert (rays.t_min.tolist(), rays.t_max.tolist()) == ([0] * 4, [7] * 4)
    ranged = rb.Rays.from_array(columns | {"t_min": [1, 2, 3, 4], "t_max": [5, 6, 7, 8]})
    assert (ranged.t_min.tolist(), ranged.t_max.tolist()) == ([1, 2, 3, 4], [5, 6, 7, 8])
    holes = pandas.DataFrame(columns | {"origin_x": [np.nan, 0, 0, 0]})
    with pytest.raises(rb.InvalidInput, match="must be finite"):
        rb.Rays.from_array(holes)
    assert rb.Rays.from_array(holes, invalid="miss").shape == (4,)
    with pytest.raises(rb.InvalidInput, match="direction_x missing among"):
        rb.Rays.from_array({name: column for name, column in columns.items() if name != "direction_x"})
