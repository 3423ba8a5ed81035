"""Boxes from rows of bounds or tables, and rays from rows of origin and direction."""

import numpy as np
import pytest

import raybox as rb

RANDOM = np.random.default_rng(6)
NAMES = {2: ["min_x", "min_y", "max_x", "max_y"], 3: ["min_x", "min_y", "min_z", "max_x", "max_y", "max_z"]}


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
        ({"min_x": [0], "max_z": [0]}, ["max_y max_z; min_y min_z max_x max_y missing"]),
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


FRAMES = {
    "pandas": lambda columns: pytest.importorskip("pandas").DataFrame(columns),
    "polars": lambda columns: pytest.importorskip("polars").DataFrame(columns),
    "arrow": lambda columns: pytest.importorskip("pyarrow").table(columns),
}
UNIT = rb.Boxes([0, 0, 0], [1, 1, 1])
BY_POSITION = {
    "origins": lambda frame: rb.Rays(frame, [1, 0, 0]).origins,
    "directions": lambda frame: rb.Rays([0, 0, 0], frame).directions,
    "starts": lambda frame: rb.Rays.segments(frame, [0, 0, 0]).origins,
    "ends": lambda frame: rb.Rays.segments([0, 0, 0], frame).directions,
    "points": lambda frame: rb.Rays.lines(frame, [1, 0, 0]).origins,
    "lower": lambda frame: rb.Boxes(frame, [[np.inf] * 3] * 2).lower,
    "upper": lambda frame: rb.Boxes([[-np.inf] * 3] * 2, frame).upper,
    "centers": lambda frame: rb.Boxes.from_centers(frame, 0).lower,
    "sizes": lambda frame: rb.Boxes.from_centers([[0, 0, 0]] * 2, frame).sizes,
    "normals": lambda frame: rb.Planes(frame, 0).normals,
    "vertices": lambda frame: rb.Mesh(frame, [[0, 1, 0]]).vertices,
    "contains": lambda frame: UNIT.expanded(2.5).contains(frame),
    "positions": lambda frame: rb.Instances.from_poses(UNIT, frame).transforms[:, :, 3],
    "scales": lambda frame: rb.Instances.from_poses(UNIT, [[0, 0, 0]] * 2, scales=frame).transforms.max(
        axis=1
    ),
}


@pytest.mark.core
@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("argument", BY_POSITION)
def test_frames_read_by_position_have_their_axes_in_order(argument, library):
    """A frame of vectors is read as its array, but for one whose columns name the axes in another order."""
    numbers, read = np.array([[0.0, 0.5, 1.0], [2.0, 0.25, 4.0]]) + 2.0, BY_POSITION[argument]
    for names in (
        ["x", "y", "z"],
        ["px", "py", "pz"],
        ["X_m", "Y_m", "Z_m"],
        ["lon", "lat", "alt"],
        ["max", "may", "az"],
    ):
        frame = FRAMES[library](dict(zip(names, numbers.T, strict=True)))
        np.testing.assert_array_equal(read(frame), read(numbers))
    for names in (["z", "y", "x"], ["min_y", "min_x", "min_z"], ["Yw", "Xw", "Zw"]):
        frame = FRAMES[library](dict(zip(names, numbers.T, strict=True)))
        with pytest.raises(
            rb.InvalidInput, match=f"must have its columns in the order .* got {' '.join(names)}"
        ):
            read(frame)


def test_frames_of_quaternions_and_of_two_dimensions():
    pandas = pytest.importorskip("pandas")
    turns = pandas.DataFrame({"qx": [0.0], "qy": [0.0], "qz": [1.0], "qw": [0.0]})
    words = (
        r"quaternions must have its columns in the order qw qx qy qz, as they are read by position; got qx"
    )
    with pytest.raises(rb.InvalidInput, match=words):
        rb.Instances.from_poses(UNIT, [0, 0, 0], quaternions=turns)
    half = rb.Instances.from_poses(UNIT, [0, 0, 0], quaternions=turns[["qw", "qx", "qy", "qz"]])
    assert half.transforms[0, :2, :2].tolist() == [[-1, 0], [0, -1]]
    flat = pandas.DataFrame({"y": [1.0], "x": [2.0]})
    with pytest.raises(rb.InvalidInput, match=r"origins must .* order x y, .* table\[\['x', 'y'\]\]"):
        rb.Rays(flat, [1, 0])
    assert rb.Rays(flat[["x", "y"]], [1, 0]).origins.tolist() == [[2, 1]]
