"""The mask of a grid as bits: what comes back, what it takes, and that hits do not depend on it."""

import pickle

import numpy as np
import pytest

import raybox as rb
from compare import assert_same
from raybox.geometry import cell_bits

SHAPES = [
    (1, 1),
    (7, 9),
    (1, 130, 1),
    (64, 64),
    (3, 5, 7),
    (16, 16, 16),
    (17, 16, 16),
    (5, 1, 4097),
    (40, 33, 9),
]
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
