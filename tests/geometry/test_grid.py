"""Grids: numbers, bounds, slices and masks of cells by their definitions, and the text of every error."""

import copy
import itertools
import math
import pickle
from collections import Counter
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybox as rb
from compare import assert_same
from raybox.geometry import cell_bits
from refusals import refusal

RNG = np.random.default_rng(20)


def bits(array):
    return np.ascontiguousarray(array).view(np.uint64).tolist()


def seeded_axes():
    """Yield edges of an axis: full mantissas, integers, map coordinates, tiny cells beside large ones."""
    for count in (1, 2, 5, 17):
        yield np.cumsum(RNG.random(count + 1)) - 2
        yield np.sort(RNG.choice(100, count + 1, replace=False)) - 50.0
        yield 447422.999 + np.cumsum(RNG.random(count + 1) * 1e-3)
        yield np.append(np.arange(count) * 1e-12, 1e6)
        yield np.sort(RNG.choice(1000, count + 1, replace=False)) * 5e-324
    yield np.array([-1.7976931348623157e308, -1.0, -0.0, 5e-324, 1.7976931348623157e308])


AXES = list(seeded_axes())


def seeded_grids():
    """Yield grids of 2 and 3 axes, half of them with a mask."""
    for k, first in enumerate(AXES):
        dims = 2 + k % 2
        edges = [first, *(AXES[j] for j in RNG.integers(0, len(AXES) - 1, dims - 1))]
        shape = tuple(len(values) - 1 for values in edges)
        yield rb.Grid(*edges, occupied=RNG.random(shape) < 0.5 if k % 4 > 1 else None)


GRIDS = list(seeded_grids())


# Numbers of cells


def number_by_definition(edges, point):
    """Return the number of the cell of a point, and where the point lies, by comparisons alone."""
    number, where = 0, set()
    for values, x in zip(edges, point, strict=True):
        last = len(values) - 2
        places = [i for i in range(last + 1) if values[i] <= x < values[i + 1]]
        places += [last] if x == values[-1] else []
        if not places:
            return -1, {"outside"}
        (place,) = places
        number = number * (last + 1) + place
        if x == values[-1]:
            where.add("last face")
        elif x in values[1:-1]:
            where.add("shared face")
    return number, where or {"inside"}


def coordinates_near(values):
    """Return edges, their neighbouring floats, and numbers between and beyond them."""
    near = [math.nextafter(float(x), towards) for x in values for towards in (-inf, inf)]
    between = [float(a) / 2 + float(b) / 2 for a, b in itertools.pairwise(values)]
    beyond = [float(values[0]) - 1.0, float(values[-1]) + 1.0, 0.0, -0.0]
    return [x for x in [*map(float, values), *near, *between, *beyond] if math.isfinite(x)]


def check_points(grid, points):
    """Compare the numbers of points with the definition; return how many lie where."""
    edges = [values.tolist() for values in grid.edges]
    expected = [number_by_definition(edges, point) for point in points.tolist()]
    assert grid.index_of(points).tolist() == [number for number, _ in expected]
    return Counter(name for _, where in expected for name in where)


def test_index_of_by_definition():
    counts = Counter()
    for grid in GRIDS:
        near = [np.array(coordinates_near(values)) for values in grid.edges]
        points = np.stack([RNG.choice(x, 300) for x in near], axis=-1)
        counts += check_points(grid, points)
    assert all(counts[name] > 200 for name in ("outside", "inside", "shared face", "last face")), counts


def test_index_of_has_the_shape_of_the_points():
    grid = rb.Grid([0, 1, 10], [0, 2, 3, 5])
    found = grid.index_of([[[0.5, 0.5], [1, 2]], [[10, 5], [11, 0]]])
    assert (found.dtype, found.tolist()) == (np.int64, [[0, 4], [5, -1]])
    assert grid.index_of([1, 4]).shape == ()
    assert grid.index_of([]).shape == (0,)
    assert "(..., 2): 2 numbers for each; got shape (3,)" in refusal(grid.index_of, [1, 2, 3])
    for bad in (nan, inf, -inf):
        text = refusal(grid.index_of, [[0, 0], [bad, 0]])
        assert f"points must be finite; 1 of 2 break this, first point 1: points[1] = [{bad}, 0.0]" in text


# Boxes of cells


def bounds_by_definition(grid):
    """Return the lower and upper bounds of all cells, in the order of `itertools.product`."""
    places = list(itertools.product(*map(range, grid.shape)))
    axes = list(enumerate(grid.edges))
    lower = np.array([[values[place[axis]] for axis, values in axes] for place in places])
    upper = np.array([[values[place[axis] + 1] for axis, values in axes] for place in places])
    return lower, upper


def test_boxes_have_the_bits_of_the_edges_in_c_order():
    masked = 0
    for grid in GRIDS:
        lower, upper = bounds_by_definition(grid)
        boxes = grid.boxes()
        assert (bits(boxes.lower), bits(boxes.upper)) == (bits(lower), bits(upper))
        assert len(boxes) == len(grid) == math.prod(grid.shape)
        numbers = RNG.integers(0, len(grid), 9)
        assert bits(grid.boxes(numbers).lower) == bits(lower[numbers])
        assert bits(grid.boxes(numbers).upper) == bits(upper[numbers])
        for mask in (grid.occupied, grid.occupied.ravel()):
            assert bits(grid.boxes(mask).lower) == bits(lower[mask.ravel()])
            assert bits(grid.boxes(mask).upper) == bits(upper[mask.ravel()])
        assert grid.bounds.tolist() == [lower.min(axis=0).tolist(), upper.max(axis=0).tolist()]
        # By the rule of shared faces, the lower corner of each cell lies in it.
        assert grid.index_of(lower).tolist() == list(range(len(grid)))
        masked += not grid.occupied.all()
    assert masked > 5


@given(st.data(), st.sampled_from([2, 3]))
def test_uniform_edges_are_the_bits_of_voxels(data, dims):
    shape = data.draw(st.tuples(*[st.integers(1, 5)] * dims))
    lower = data.draw(st.lists(st.floats(-1e6, 1e6), min_size=dims, max_size=dims))
    sizes = st.one_of(st.sampled_from([0.1, 1 / 3, 0.5, 1.0]), st.floats(1e-3, 1e3))
    pitch = data.draw(st.one_of(sizes, st.lists(sizes, min_size=dims, max_size=dims)))
    count = math.prod(shape)
    occupied = np.array(data.draw(st.lists(st.booleans(), min_size=count, max_size=count)))
    grid = rb.Grid.uniform(lower, pitch, shape, occupied)
    for mask in (occupied.reshape(shape), np.ones(shape, bool)):
        voxels, boxes = rb.Boxes.of_voxels(mask, origin=lower, pitch=pitch), grid.boxes(mask)
        assert (bits(boxes.lower), bits(boxes.upper)) == (bits(voxels.lower), bits(voxels.upper))


# Slices

SLICES = [
    np.s_[1:3],
    np.s_[:, 1:],
    np.s_[-2:, 0],
    np.s_[0],
    np.s_[-1, -1],
    np.s_[..., 1],
    np.s_[1, ...],
    np.s_[...],
    np.s_[1:2, ..., :1],
    np.s_[np.int64(1), 0:1:1],
    (),
]
CASES = [*itertools.product(SLICES, [(2, 3, 4), (3, 2)]), (np.s_[:99, -99:, -1], (2, 3, 4))]


@pytest.mark.parametrize(("index", "shape"), CASES, ids=repr)
@pytest.mark.parametrize("is_masked", [True, False])
def test_slices_are_those_of_numpy(index, shape, is_masked):
    edges = [np.cumsum(RNG.random(count + 1)) for count in shape]
    grid = rb.Grid(*edges, occupied=RNG.random(shape) < 0.6 if is_masked else None)
    part = grid[index]
    numbers = np.arange(len(grid)).reshape(shape)[index].ravel()
    assert bits(part.boxes().lower) == bits(grid.boxes(numbers).lower)
    assert bits(part.boxes().upper) == bits(grid.boxes(numbers).upper)
    assert part.occupied.ravel().tolist() == grid.occupied.ravel()[numbers].tolist()
    assert part.ndim_space == grid.ndim_space
    assert_sound(part)
    assert not any(np.shares_memory(a, b) for a, b in zip(part.edges, grid.edges, strict=True))


def test_a_slice_without_empty_cells_needs_no_mask():
    grid = rb.Grid([0, 1, 2], [0, 1, 2], occupied=[[True, True], [True, False]])
    assert grid[0]._rows().blocks.size == 0
    assert grid[1]._rows().words[0] == 1


# Arrays


def assert_sound(grid):
    """Check that all arrays are read-only, C-ordered, and of the right types."""
    rows = grid._rows()
    for values in (*grid.edges, *rows[:3]):
        assert (values.dtype, values.ndim) == (np.float64, 1)
    assert {values.dtype for values in rows[3:]} == {np.dtype(np.int64)}
    assert all(values.flags.c_contiguous for values in (*grid.edges, *rows))
    for values in (*grid.edges, *rows, grid.occupied):
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0
    assert (grid.occupied.dtype, grid.occupied.shape) == (np.bool_, grid.shape)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_grids_are_frozen_and_stay_so_in_copies(again):
    for grid in GRIDS[:8]:
        twin = again(grid)
        assert_sound(grid)
        assert_sound(twin)
        assert [bits(values) for values in twin.edges] == [bits(values) for values in grid.edges]
        assert twin.occupied.tolist() == grid.occupied.tolist()
        assert twin != grid
        assert len({grid, grid, twin}) == 2
        for name in ("edges", "occupied", "colour"):
            with pytest.raises(AttributeError):
                setattr(grid, name, 0)


def test_input_is_copied():
    edges, occupied = [np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0])], np.array([[True], [False]])
    grid = rb.Grid(*edges, occupied=occupied)
    for values in (*edges, occupied):
        values[:] = 7
    assert [values.tolist() for values in grid.edges] == [[0, 1, 3], [0, 2]]
    assert grid.occupied.tolist() == [[True], [False]]
    exact = rb.Grid(np.float32([0.1, 0.2]), [0, 2**53]).edges
    assert exact[0].tolist() == [float(np.float32(0.1)), float(np.float32(0.2))]


def test_masks_of_either_shape_and_order():
    mask = RNG.random((3, 4, 2)) < 0.5
    for given_mask in (mask, mask.ravel(), np.asfortranarray(mask), mask.tolist()):
        grid = rb.Grid.uniform([0, 0, 0], 1, mask.shape, given_mask)
        assert grid.occupied.tolist() == mask.tolist()
        assert repr(grid) == f"Grid(3 x 4 x 2, occupied={mask.sum()})"
    full = rb.Grid.uniform([0, 0, 0], 1, mask.shape, np.ones(mask.shape, bool))
    assert repr(full) == "Grid(3 x 4 x 2)"
    assert full._rows().blocks.size == 0
    assert rb.Grid([0, 1], [0, 1], occupied=[[False]]).occupied.tolist() == [[False]]


def test_a_grid_without_a_mask_needs_no_memory_for_one():
    grid = rb.Grid.uniform([0, 0, 0], 1, (10_000, 10_000, 10_000))
    assert grid.occupied.strides == (0, 0, 0)
    assert grid.occupied[5, 6, 7]
    assert len(pickle.dumps(grid)) < 10 * 30_000
    part = grid[:9, :9, :9]
    assert rb.Grid(*part.edges, occupied=part.occupied)._rows().blocks.size == 0


def test_up_to_2_to_the_62_cells():
    shape = (2**21, 2**21, 2**20)
    grid = rb.Grid.uniform([0, 0, 0], 1, shape)
    assert len(grid) == 2**62
    assert grid.index_of(grid.bounds).tolist() == [0, 2**62 - 1]
    assert grid.index_of(np.array(shape) - 0.5) == 2**62 - 1
    assert grid.index_of([[-1, 2**21, 2**20], [2**21, 2**21, 2**20 + 1]]).tolist() == [-1, -1]
    assert grid.boxes([2**62 - 1]).lower.tolist() == [[2**21 - 1, 2**21 - 1, 2**20 - 1]]
    text = refusal(rb.Grid.uniform, [0, 0, 0], 1, (2**21, 2**21, 2**20 + 1))
    assert "up to 2**62 cells; got 2097152 x 2097152 x 1048577. Split it by space" in text
    text = refusal(grid.boxes)
    assert "boxes of all 4611686018427387904 cells need 221,360,928,884,514,619,392 bytes of memory" in text
    assert "grid.boxes(grid.occupied)" in text
    assert "the edges of 1099511627776 x 2 cells need" in refusal(rb.Grid.uniform, [0, 0], 1, (2**40, 2))


def test_a_grid_is_not_iterable():
    """Python would iterate over slices of the first axis, of which there are not `len(grid)`."""
    with pytest.raises(TypeError, match="not iterable"):
        iter(GRIDS[0])


# Errors


def test_edges_that_are_refused():
    for count, edges in ((0, []), (1, [[[0, 1], [0, 1]]]), (4, [[0, 1]] * 4)):
        text = refusal(rb.Grid, *edges)
        assert f"2 or 3 axes, with an array of edges for each; got {count}. " in text
        assert "Grid(x, y, z)" in text
    assert "edges[1] must have two numbers or more" in refusal(rb.Grid, [0, 1], [5])
    assert "edges[0] must have one dimension; got shape (2, 2)" in refusal(rb.Grid, np.ones((2, 2)), [0, 1])
    assert "edges[0] must have one dimension; got shape ()" in refusal(rb.Grid, 3, [0, 1])
    text = refusal(rb.Grid, [0, 1], [0, 1, 1, 3, 2])
    assert "edges[1] must be strictly increasing; 2 of 5 break this, first number 2: 1.0 after 1.0. " in text
    assert "np.unique(x)" in text
    text = refusal(rb.Grid, [0, 1], [0, 1], [3, 2, 1])
    assert "edges[2] must be strictly increasing; 2 of 3 break this, first number 1: 2.0 after 3.0. " in text
    assert "Flip the axis: x[::-1]" in text
    assert "first number 1: 0.0 after -0.0" in refusal(rb.Grid, [-0.0, 0.0], [0, 1])
    for bad in (nan, inf, -inf):
        text = refusal(rb.Grid, [0, bad, 2], [0, 1])
        assert f"edges[0] must be finite; 1 of 3 break this, first number 1: edges[0][1] = {bad}" in text
    assert "edges[0] must be real numbers" in refusal(rb.Grid, ["a", "b"], [0, 1])


def test_masks_that_are_refused():
    text = refusal(rb.Grid, [0, 1, 2], [0, 1, 2, 3], occupied=np.ones((3, 2), bool))
    assert text.startswith("occupied must be bools of shape (2, 3) or (6,), one for each cell; got bool of ")
    assert "shape (3, 2). Cells are in C order: transpose it" in text
    text = refusal(rb.Grid, [0, 1, 2], [0, 1, 2, 3], occupied=np.ones((2, 3)))
    assert "got float64 of shape (2, 3). Compare with zero or a threshold: x > 0" in text
    assert "are masked" in refusal(rb.Grid, [0, 1], [0, 1], occupied=np.ma.array([[True]], mask=[[True]]))


def test_uniform_grids_that_are_refused():
    uniform = rb.Grid.uniform
    for shape in ((0, 2), (2,), (1, 1, 1, 1), 5, (-1, 2)):
        assert "shape must be 2 or 3 whole numbers above zero" in refusal(uniform, [0, 0], 1, shape)
    assert "integer type; got float64" in refusal(uniform, [0, 0], 1, (2.0, 2.0))
    assert "as shape has 3 numbers; got shapes (2,) and ()" in refusal(uniform, [0, 0], 1, (2, 2, 2))
    assert "got shapes () and ()" in refusal(uniform, 0, 1, (2, 2))
    assert "got shapes (2,) and (1,)" in refusal(uniform, [0, 0], [1], (2, 2))
    assert "lower must be finite" in refusal(uniform, [0, nan], 1, (2, 2))
    for bad in (0, -1, nan, inf):
        assert "pitch must be finite and above zero on every axis" in refusal(uniform, [0, 0], bad, (2, 2))
    assert "lower + pitch * (2, 2) must be finite" in refusal(uniform, [1e308, 0], 1e308, (2, 2))
    text = refusal(uniform, [0, 1e16], 1, (2, 2))
    assert text.startswith(
        "lower + pitch * arange on axis 1 must be strictly increasing; 1 of 3 break this, "
    )
    assert "first number 1: 1e+16 after 1e+16. Choose a larger pitch" in text


def test_cells_that_are_refused():
    grid = rb.Grid([0, 1, 2], [0, 1, 2, 3])
    text = refusal(grid.boxes, [3, -1, 6])
    assert "cells must be from 0 to 5; 2 of 3 break this, first number 1: cells[1] = -1. " in text
    assert "cells[cells >= 0]" in text
    text = refusal(grid.boxes, [[1, 2]])
    assert "cells must be a flat list of numbers, or a mask; got numbers of shape (1, 2)" in text
    assert "cells must be bools of shape (2, 3) or (6,)" in refusal(grid.boxes, np.ones(5, bool))
    assert "integer type; got float64" in refusal(grid.boxes, [1.5])
    assert [len(grid.boxes(cells)) for cells in ([], 4, [2, 2])] == [0, 1, 2]
    assert grid.boxes([]).ndim_space == 2


def test_indices_that_are_refused():
    grid = rb.Grid([0, 1, 2], [0, 1, 2, 3])

    def text(index):
        return refusal(grid.__getitem__, index, error=IndexError)

    assert "must have step 1, as its cells share edges; got step 2 on axis 1" in text(np.s_[:, ::2])
    assert "got step -1 on axis 0" in text(np.s_[::-1])
    assert "must have a cell on each axis; 1:1 on axis 0 of 2 cells has none" in text(np.s_[1:1])
    assert "3:3 on axis 1 of 3 cells has none" in text(np.s_[:, 7:9])
    assert "index 2 is out of range on axis 0 of 2 cells" in text(2)
    assert "index -4 is out of range on axis 1 of 3 cells" in text((0, -4))
    assert "a Grid of 2 axes has as many indices; got 3" in text((0, 0, 0))
    for index in (np.ones(2, bool), np.ones((2, 3), bool), [0, 1], None, True, np.True_, 0.5, "x"):
        name = type(index).__name__
        assert f"indexed by integers and slices; got {name} on axis 0. For a mask of cells: " in text(index)
    assert "got ellipsis on axis 1" in text((..., ...))


def test_instances_refuse_grids_and_pairs_are_of_cells():
    grid = rb.Grid([0, 1], [0, 1])
    text = "Instances are copies of Boxes or of a Mesh; got Grid. Pass the boxes of its cells: grid.boxes("
    assert text in refusal(rb.Instances, grid, [[[1, 0, 0], [0, 1, 0]]])
    assert text in refusal(rb.Instances.from_poses, grid, [[0, 0]])
    rays = rb.Rays([0, 0], [1, 0])
    assert rb.intersect(rays, grid).t == rb.intersect(rays, grid.boxes()).t == 0.0


SHAPES = [(1, 1), (7, 9), (1, 130, 1), (64, 64), (3, 5, 7)]
SHAPES += [(16, 16, 16), (17, 16, 16), (5, 1, 4097), (40, 33, 9)]  # of whole blocks, and of more
SHARES = [0.0, 0.002, 0.02, 0.5, 0.99]


def masks(shape):
    """Return masks of a shape: random ones, one of clumps, one of the last cell alone."""
    rng = np.random.default_rng(len(shape) * shape[-1])
    yield from (rng.random(shape) < share for share in SHARES)
    clump = np.zeros(shape, bool)
    clump[tuple(slice(n // 2, n // 2 + 3) for n in shape)] = True
    yield clump
    last = np.zeros(shape, bool)
    last.ravel()[-1] = True
    yield last


@pytest.mark.parametrize("shape", SHAPES)
def test_masks_come_back(shape):
    for mask in masks(shape):
        grid = rb.Grid.uniform([0.0] * len(shape), 1.0, shape, mask)
        for one in (grid, pickle.loads(pickle.dumps(grid))):
            np.testing.assert_array_equal(one.occupied, mask)
        for axis, count in enumerate(shape):
            index = (slice(None),) * axis + (slice(count // 3, count // 3 + 2),)
            np.testing.assert_array_equal(grid[index].occupied, mask[index])
        if not mask.all():
            assert cell_bits.count(cell_bits.pack(mask)) == mask.sum()
        rb.Scene(grid).check()


def test_any_range_of_cells_is_unpacked():
    rng = np.random.default_rng(3)
    mask = rng.random(3 * 4096 + 70) < 0.01
    bits = cell_bits.pack(mask)
    for _ in range(50):
        begin, end = np.sort(rng.choice(mask.size, 2, replace=False)).tolist()
        np.testing.assert_array_equal(cell_bits.unpack(bits, begin, end), mask[begin:end])


def test_chunks_are_packed_as_a_whole_is(monkeypatch):
    mask = np.random.default_rng(4).random(5 * 4096 - 1) < 0.3
    whole = cell_bits.pack(mask)
    monkeypatch.setattr(cell_bits, "_CELLS_AT_ONCE", 4096)
    for one, other in zip(cell_bits.pack(mask), whole, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_mask_takes_a_bit_a_cell_at_most_and_next_to_nothing_where_it_is_empty():
    mask = np.random.default_rng(5).random((128, 64, 64)) < 0.5
    assert sum(array.nbytes for array in cell_bits.pack(mask)) <= mask.size / 8 * 1.04
    mask[...] = False
    mask[30:60, 30:60, 30:60] = True
    assert sum(array.nbytes for array in cell_bits.pack(mask)) < mask.size / 8 / 5


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if len(shape) == 3])
def test_hits_are_those_of_boxes(shape):
    rng = np.random.default_rng(6)
    size = np.array(shape)
    origins = rng.uniform(-0.2, 1.2, (60, 3)) * size
    rays = rb.Rays(origins, rng.uniform(0, 1, (60, 3)) * size - origins)
    for mask in masks(shape):
        grid = rb.Grid.uniform([0.0] * 3, 1.0, shape, mask)
        cells, boxes, where = rb.Scene(grid), rb.Scene(grid.boxes()), mask.ravel()
        assert_same(cells.nearest(rays), boxes.nearest(rays, where=where))
        np.testing.assert_array_equal(cells.count(rays), boxes.count(rays, where=where))
        values = rng.random(shape)
        alone = rb.Scene(rb.Grid(*grid.edges)).integrate(rays, np.where(mask, values, 0.0))
        np.testing.assert_allclose(cells.integrate(rays, values), alone, rtol=1e-12, atol=1e-300)
        index = cells.segments(rays).index
        assert where[index].all()
        every = rb.Scene(rb.Grid(*grid.edges)).segments(rays).index
        np.testing.assert_array_equal(index, every[where[every]])
