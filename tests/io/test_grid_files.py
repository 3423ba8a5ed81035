"""rb.load_grid: MagicaVoxel models and arrays of cells; every broken file raises one line."""

import tracemalloc

import numpy as np
import pytest

import raybox as rb
import refusals
from file_samples import samples, vox, vox_group, vox_scene, vox_transform
from mutants import mutants
from raybox.io.formats import vox as vox_format
from real_data import SHOP

CELLS = [(0, 0, 0), (3, 4, 5), (1, 2, 3)]
RNG = np.random.default_rng(40)


def refused(path, **options):
    """Return the error of a file that must be refused."""
    return refusals.refused(path, rb.load_grid, **options)


def same_cells(grid, boxes):
    """Compare the occupied cells of a grid with boxes in any order, of which none must be missing."""
    ours, theirs = (np.hstack([b.lower, b.upper]) for b in (grid.boxes(grid.occupied), boxes))
    assert np.unique(ours, axis=0).tolist() == np.unique(theirs, axis=0).tolist()
    assert len(ours) == len(np.unique(theirs, axis=0))


# MagicaVoxel


def test_a_model_is_a_grid_of_its_own_size(put):
    path = put("one.vox", vox(CELLS))
    grid = rb.load_grid(path)
    assert repr(grid) == "Grid(4 x 5 x 6, occupied=3)"
    assert np.argwhere(grid.occupied).tolist() == sorted(map(list, CELLS))
    same_cells(grid, rb.load(path))
    assert grid.bounds.tolist() == [[0, 0, 0], [4, 5, 6]]
    moved = rb.load_grid(path, origin=[10, 20, 30], pitch=0.1)
    same_cells(moved, rb.Boxes.of_voxels(grid.occupied, origin=[10, 20, 30], pitch=0.1))
    assert rb.load_grid(str(path), pitch=[1, 2, 3]).bounds[1].tolist() == [4, 10, 18]
    empty = rb.load_grid(put("empty.vox", vox([])))
    assert not empty.occupied.any()


def test_models_of_a_scene_are_one_grid_around_all(put):
    path = put("two.vox", vox(CELLS, models=2, scene=vox_scene({b"_t": b"-3 2 40"})))
    grid = rb.load_grid(path)
    assert grid.bounds.tolist() == [[-5, -2, -4], [12, 5, 43]]
    assert np.count_nonzero(grid.occupied) == 6
    same_cells(grid, rb.load(path))
    # Origin is the corner of cell (0, 0, 0) of the scene, not of the grid.
    assert rb.load_grid(path, origin=[100, 0, 0], pitch=2).bounds.tolist() == [[90, -4, -8], [124, 10, 86]]
    # Models that overlap fill cells once; of an animation, only the first frame counts.
    over = put("over.vox", vox(CELLS, models=2, scene=vox_scene({b"_t": b"10 0 -1"})))
    assert len(rb.load(over)) == 6
    assert np.count_nonzero(rb.load_grid(over).occupied) == 3
    walk = put("walk.vox", vox(CELLS, models=3, packed=3))
    same_cells(rb.load_grid(walk), rb.Boxes(CELLS, np.add(CELLS, 1)))


def test_wrong_models(put, monkeypatch):
    bare = vox_transform(0, 1, {}) + vox_group(1)
    far = vox_scene({b"_t": b"999999999 999999999 -999999999"})
    for content, text in (
        (vox(CELLS, models=2, scene=vox_scene({b"_r": b"5"})), "5 is no rotation"),
        (vox([(4, 0, 0)]), "a voxel lies outside"),
        (vox([], size=(4, 5, 257)), "a model of 4 x 5 x 257"),
        (vox([], size=(0, 5, 6)), "a model of 0 x 5 x 6"),
        (vox([], size=(2**31 - 1,) * 3), "a model of 2147483647 x"),
        (vox(CELLS, models=2, scene=bare), "its scene places no model"),
        (vox(CELLS, models=2, scene=far), "999999993 x 1000000004 x 1000000004 cells, more than fit"),
    ):
        assert text in refused(put("a.vox", content))
    assert rb.load_grid(put("a.vox", vox(CELLS, size=(256, 256, 256)))).shape == (256, 256, 256)
    path = put("a.vox", vox(CELLS))
    monkeypatch.setattr(vox_format, "machine_bytes", lambda: 119)
    assert "4 x 5 x 6 cells, more than fit into memory; move the models" in refused(path)
    monkeypatch.setattr(vox_format, "machine_bytes", lambda: 120)
    assert rb.load_grid(path).shape == (4, 5, 6)


def test_a_real_model():
    grid = rb.load_grid(SHOP)
    assert repr(grid) == "Grid(124 x 124 x 68, occupied=441118)"
    same_cells(grid, rb.load(SHOP))


# Arrays


@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int64, np.float32])
@pytest.mark.parametrize("shape", [(3, 4, 2), (4, 3)])
def test_nonzero_cells_of_arrays(put, dtype, shape):
    array = (RNG.integers(-2, 3, shape) * (RNG.random(shape) < 0.7)).astype(dtype)
    given = {"origin": np.arange(len(shape)), "pitch": 0.5}
    for values in (array, np.asfortranarray(array)):
        np.save(path := put("a.npy", b""), values)
        grid = rb.load_grid(path)
        assert grid.occupied.tolist() == (array != 0).tolist()
        assert grid.bounds.tolist() == [[0] * len(shape), list(shape)]
        np.savez_compressed(path := put("a.npz", b""), occupancy=values, **given)
        same_cells(rb.load_grid(path), rb.Boxes.of_voxels(array != 0, **given))
    assert 0 < np.count_nonzero(array) < array.size


def test_arguments_come_before_the_numbers_of_a_file(put):
    np.savez(path := put("a.npz", b""), occupancy=np.ones((2, 2)), origin=[5, 6], pitch=[2, 3], more=[1])
    assert rb.load_grid(path).bounds.tolist() == [[5, 6], [9, 12]]
    assert rb.load_grid(path, origin=[0, 0]).bounds.tolist() == [[0, 0], [4, 6]]
    assert rb.load_grid(path, pitch=1).bounds.tolist() == [[5, 6], [7, 8]]
    np.savez(path, occupancy=np.ones((2, 2)))
    assert rb.load_grid(path).bounds.tolist() == [[0, 0], [2, 2]]
    np.savez(path, occupancy=np.ones((2, 2)), origin=[np.nan, 0], pitch=0)
    assert rb.load_grid(path, origin=[1, 1], pitch=1).bounds.tolist() == [[1, 1], [3, 3]]


ONES = np.ones((2, 2))
WRONG = {
    ", occupancy: holds text, not real numbers": {"occupancy": [["a", "b"]]},
    "does not unpickle": {"occupancy": np.array([[{}, {}]])},
    ", occupancy[1, 0]: nan is neither zero nor a number; set empty": {"occupancy": [[0, 1], [np.nan, 0]]},
    ", origin: holds text, not real numbers": {"occupancy": ONES, "origin": ["x", "y"], "pitch": 1},
    **{
        f", occupancy: has shape {shape}; give an array of 2 or 3 dimensions": {"occupancy": np.zeros(shape)}
        for shape in ((3,), (2, 2, 2, 2), (0, 4, 2), ())
    },
    **{
        text: {"occupancy": ONES, "origin": origin, "pitch": pitch}
        for origin, pitch, text in (
            ([1, 2, 3], 1, "have 2 axes, origin has shape (3,); give origin one number for each axis"),
            (4, 1, "its cells have 2 axes, origin has shape (); "),
            ([1, 2], [1, 2, 3], "its cells have 2 axes, pitch has shape (3,); "),
            ([np.nan, 0], 1, "origin must be finite"),
            ([0, 0], 0, "pitch must be finite and above zero on every axis"),
            ([0, 1e16], 1, "origin + pitch * arange on axis 1 must be strictly increasing"),
            ([0, 1e308], 1e308, "origin + pitch * (2, 2) must be finite"),
        )
    },
}


def test_wrong_arrays(put):
    path = put("a.npz", b"")
    np.savez(path, np.ones((2, 2, 2)), lower=[1])
    assert "has no array occupancy, but 'lower arr_0'; name the array of cells occupancy" in refused(path)
    for text, arrays in WRONG.items():
        np.savez(path, **arrays)
        assert text in refused(path)
    np.save(path := put("a.npy", b""), np.ones(3))
    assert ": has shape (3,); give an array of 2 or 3 dimensions" in refused(path)
    np.save(path, ONES)
    assert "its cells have 2 axes, origin has shape (3,)" in refused(path, origin=[0, 0, 0])
    for options, text in (
        ({"origin": [0, np.inf]}, "origin must be finite"),
        ({"origin": "here"}, "origin must be real numbers"),
        (
            {"pitch": 0},
            r"pitch must be finite and above zero on every axis; got 0\.0\. Pass the size of a cell",
        ),
        ({"pitch": [1, np.nan]}, r"got \[1\.0, nan\]"),
    ):
        with pytest.raises(rb.InvalidInput, match=text):
            rb.load_grid(path, **options)


# Files


def test_places_that_are_no_grids(tmp_path, put):
    with pytest.raises(FileNotFoundError, match="No such file"):
        rb.load_grid(tmp_path / "nowhere.vox")
    (tmp_path / "folder.vox").mkdir()
    cells = arrays_of_cells(put)["cells.npy"].replace(b"(5, 6, 7), }" + b" " * 9, b"(500000, 60000, 7), }", 1)
    for name, content, text in (
        ("a.csv", b"x", "unsupported file extension '.csv' of a grid; supported: .vox .npy .npz"),
        ("a.npy", b"", "is empty"),
        ("a.npz", samples()["boxes.npy"][0], "looks like .npy; rename it"),
        ("a.vox", b"hello", "does not begin like MagicaVoxel"),
        ("folder.vox", None, "is a folder"),
        ("cells.npy", cells, "is cut off: 210000000000 bytes of numbers announced"),
    ):
        path = tmp_path / name if content is None else put(name, content)
        tracemalloc.start()
        assert text in refused(path)
        assert tracemalloc.get_traced_memory()[1] < 50e6
        tracemalloc.stop()


def arrays_of_cells(put):
    """Return an `.npy` and an `.npz` file of cells, as bytes."""
    cells = RNG.integers(0, 2, (5, 6, 7), dtype=np.uint8)
    np.save(first := put("cells.npy", b""), cells)
    np.savez_compressed(second := put("cells.npz", b""), occupancy=cells, origin=[1, 2, 3], pitch=0.5)
    return {path.name: path.read_bytes() for path in (first, second)}


def test_damaged_files_give_a_grid_or_one_line(put):
    models = {name: samples()[name][0] for name in ("cells.vox", "scene.vox", "frames.vox")}
    counts = {"read": 0, "refused": 0}
    tracemalloc.start()
    for name, content in (models | arrays_of_cells(put)).items():
        for damaged in mutants(content, 120, seed=len(content)):
            path = put(name, damaged)
            try:
                counts["read"] += isinstance(rb.load_grid(path), rb.Grid)
            except rb.FileFormatError:
                refused(path)
                counts["refused"] += 1
        for cut in range(0, len(content), 7):
            refused(put(name, content[:cut]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200e6
    assert min(counts.values()) > 20, counts
