"""Scenes of MagicaVoxel: each voxel is where Fractions, matrix by matrix, say that it is."""

import re
import struct
from fractions import Fraction
from itertools import permutations, product
from math import floor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybox as rb
from file_samples import CASES, vox, vox_chunk, vox_file, vox_mapping, vox_packed
from file_samples import vox_group as group
from file_samples import vox_shape as shape
from file_samples import vox_transform as transform
from raybox.errors import SkippedWarning
from refusals import counted, refused


def layer(number, hidden):
    named = vox_mapping({b"_hidden": hidden})
    return vox_chunk(b"LAYR", struct.pack("<i", number) + named + struct.pack("<i", -1))


def file_of(models, *chunks):
    """Write models (size, cells), of which cell k has the color 255 - k, and the chunks of a scene."""
    colored = [(size, [(*cell, 255 - k) for k, cell in enumerate(cells)]) for size, cells in models]
    return vox_file(colored, *chunks)


def packed(axes, signs):
    """Return the byte of the rotation whose row k is signs[k] times the unit vector of axes[k]."""
    return axes[0] | axes[1] << 2 | sum((sign < 0) << (4 + k) for k, sign in enumerate(signs))


ROTATIONS = [(axes, signs) for axes in permutations(range(3)) for signs in product((1, -1), repeat=3)]


def placed(point, axes, signs, shift):
    """Return a point moved by one node."""
    return tuple(signs[k] * point[axes[k]] + shift[k] for k in range(3))


def truth(size, cells, nodes):
    """Return the lower corners of cells below nodes, outermost first: the cell of each rotated middle."""
    found = []
    for cell in cells:
        point = tuple(Fraction(2 * c + 1, 2) - s // 2 for c, s in zip(cell, size, strict=True))
        for axes, signs, shift in reversed(nodes):
            point = placed(point, axes, signs, shift)
        found.append([floor(x) for x in point])
    return found


def frame(axes, signs, shift):
    return {b"_r": b"%d" % packed(axes, signs), b"_t": b"%d %d %d" % shift}


def test_the_truth_is_that_of_a_file_of_another_program():
    turned = ((1, 0, 2), (-1, 1, 1), (5, 5, 5))  # the byte 17
    assert packed(*turned[:2]) == 17
    wanted = truth((2, 2, 2), [(0, 0, 0), (1, 1, 1)], [turned])
    assert rb.load(CASES / "v03_rot1.vox").lower.tolist() == wanted


@pytest.mark.parametrize("size", [(1, 1, 1), (2, 3, 4), (5, 4, 1)])
def test_every_rotation_of_every_size(put, size):
    cells = [tuple(s - 1 for s in size), (0, 0, 0), (size[0] // 2, 0, size[2] - 1)]
    assert len(ROTATIONS) == len({packed(*turn) for turn in ROTATIONS}) == 48
    for axes, signs in ROTATIONS:
        content = file_of([(size, cells)], transform(0, 1, frame(axes, signs, (3, -2, 7))), shape(1, 0))
        path = put("a.vox", content)
        wanted = truth(size, cells, [(axes, signs, (3, -2, 7))])
        assert rb.load(path).lower.tolist() == wanted
        grid = rb.load_grid(path)
        assert grid.shape == tuple(size[axis] for axis in axes)
        cells_there = grid.boxes(grid.occupied).lower.tolist()
        assert sorted(cells_there) == sorted(map(list, {tuple(cell) for cell in wanted}))


@given(st.integers(0, 2**32))
def test_nested_placements(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    nodes, chunks, depth = [], [], int(rng.integers(1, 5))
    for level in range(depth):
        axes, signs = ROTATIONS[rng.integers(48)]
        nodes.append((axes, signs, tuple(rng.integers(-9, 10, 3).tolist())))
        chunks += [transform(2 * level, 2 * level + 1, frame(*nodes[-1]))]
        chunks += [group(2 * level + 1, 2 * level + 2)] if level < depth - 1 else [shape(2 * level + 1, 0)]
    size = tuple(rng.integers(1, 6, 3).tolist())
    cells = [tuple(rng.integers(0, size).tolist()) for _ in range(4)]
    path = tmp_path_factory.mktemp("vox") / "a.vox"
    path.write_bytes(file_of([(size, cells)], *chunks))
    boxes = rb.load(path)
    assert boxes.lower.tolist() == truth(size, cells, nodes)
    assert boxes.labels["color"].tolist() == [255, 254, 253, 252]


MODEL = ((1, 1, 1), [(0, 0, 0)])
CELLS = [(0, 0, 0), (3, 4, 5)]


def test_shared_groups_are_placed_each_time(put):
    chunks = [transform(0, 1, {}), group(1, 2, 4), transform(2, 6, {b"_t": b"1 0 0"}), shape(7, 0)]
    chunks += [transform(4, 6, {b"_t": b"0 5 0"}), group(6, 7, 9), transform(9, 7, {b"_t": b"0 0 3"})]
    mesh = rb.load(put("a.vox", file_of([MODEL], *chunks)))
    assert mesh.lower.tolist() == [[1, 0, 0], [1, 0, 3], [0, 5, 0], [0, 5, 3]]


def test_groups_that_double_at_each_level(put, monkeypatch):
    def doubled(levels, last):
        return put("a.vox", file_of([MODEL], *(group(k, k + 1, k + 1) for k in range(levels)), last))

    assert len(rb.load(doubled(10, shape(10, 0)))) == 1024
    assert "its scene has 2,361,183,241,434,822,606,847 places; save it with fewer shared" in refused(
        doubled(70, shape(70, 0))
    )
    mesh, skipped = counted(doubled(70, group(70)))
    assert (len(mesh), skipped) == (0, {"models that the scene does not place": 1})
    monkeypatch.setattr("raybox.io.formats.vox.machine_bytes", lambda: 1000 * 200)
    assert "does not fit into memory" in refused(doubled(10, shape(10, 0)))


def test_a_deep_scene_is_read_and_a_circle_refused(put):
    deep = [group(k, k + 1) for k in range(5000)]
    assert len(rb.load(put("a.vox", file_of([MODEL], *deep, shape(5000, 0))))) == 1
    for chunks in (
        [group(0, 1), group(1, 2), group(2, 1)],
        [transform(0, 1, {}), transform(1, 0, {})],
        [group(0, 0)],
        [group(0, 1)],
        [group(1, 2), shape(2, 0)],
        [group(0, 1), shape(1, 1)],
        [group(0, 1), shape(1, -1)],
    ):
        text = refused(put("a.vox", file_of([MODEL], *chunks)))
        assert re.search(
            r"its scene is broken at node \d: it lacks a node or a model, or contains itself", text
        )


SHORT = vox_chunk(b"SIZE", b"1234")
TURNS = dict.fromkeys((b"0", b"5", b"3", b"128", b"-4"), "is no rotation)") | {
    b"x": "'x' is not a whole number)"
}
SHIFTS = {b"1 2 x": "'x' is not a whole number)"}
SHIFTS |= dict.fromkeys((b"1 2", b"1 2 " + b"9" * 30), "its nTRN chunk is broken")
FRAMES = [({b"_r": turn}, problem) for turn, problem in TURNS.items()]
FRAMES += [({b"_t": shift}, problem) for shift, problem in SHIFTS.items()]
BROKEN = {  # file, and its error
    **{file_of([MODEL], transform(0, 1, frame), shape(1, 0)): problem for frame, problem in FRAMES},
    file_of([], SHORT): "SIZE chunk is broken (it ends too early)",
    file_of([MODEL]).replace(b"SIZE", b"SIZA"): "models are pairs of a SIZE and an XYZI chunk",
    vox(CELLS[:1], models=2, packed=2).replace(b"XYZI", b"XYZA", 1): "models are pairs of a SIZE and an XYZI",
    vox(CELLS[:1], models=2, packed=2)[:-4]: "too early",
    vox(CELLS[:2], models=3, packed=4): "PACK chunk announces 4 models, the file holds 3",
    vox(CELLS, models=2): "holds 2 models, but no scene with their places, and no PACK chunk of frames",
    vox([(4, 0, 0)]): "outside",
}


@pytest.mark.parametrize("content", BROKEN, ids=BROKEN.values())
def test_broken_files_are_named_in_plain_words(put, content):
    assert BROKEN[content] in refused(put("a.vox", content))


def frames(*counts):
    """Return models of that many voxels each."""
    return [((9, 9, 9), [(k, 0, 0) for k in range(count)]) for count in counts]


def test_an_animation_is_its_first_frame(put):
    content = vox_file([], vox_packed(3), vox_file(frames(2, 5, 4))[20:])
    assert rb.load(put("walk.vox", content)).lower.tolist() == [[0, 0, 0], [1, 0, 0]]


def test_an_animated_shape_is_its_lowest_frame(put):
    def animated(*times):
        return [transform(0, 1, {b"_t": b"4 4 4"}), shape(1, *range(len(times)), frames=times)]

    boxes = rb.load(put("new.vox", vox_file(frames(2, 5, 4), *animated(b"8", b"0", b"16"))))
    assert boxes.lower.tolist() == [[k, 0, 0] for k in range(5)]
    wrong = vox_file(frames(2, 5), *animated(b"0", b"x"))
    assert "its nSHP chunk is broken ('x' is not a whole number)" in refused(put("wrong.vox", wrong))


def test_hidden_models_are_left_out_and_counted(put):
    def scene(**options):
        chunks = [transform(0, 1, {}), group(1, 2, 4, 6), transform(2, 8, {}, layer=0)]
        chunks += [transform(4, 8, {b"_t": b"1 0 0"}, layer=1), transform(6, 9, {b"_t": b"2 0 0"}, **options)]
        return [*chunks, shape(8, 0), group(9, 8, 8)]

    for chunks, shown, hidden in (
        ([*scene(), layer(0, b"0"), layer(1, b"0")], [0, 1, 2, 2], 0),
        ([*scene(), layer(0, b"0"), layer(1, b"1")], [0, 2, 2], 1),
        ([*scene(hidden=b"1"), layer(1, b"1")], [0], 3),
        ([*scene(layer=1), layer(1, b"1")], [0], 3),
    ):
        path = put("a.vox", file_of([MODEL], *chunks))
        if not hidden:
            assert rb.load(path).lower[:, 0].tolist() == shown
            continue
        for load in (rb.load, rb.load_grid):
            with pytest.warns(SkippedWarning, match=rf"models that are hidden \({hidden}\)"):
                found = load(path)
            assert found.skipped == {"models that are hidden": hidden}
        with pytest.warns(SkippedWarning):
            assert rb.load(path).lower[:, 0].tolist() == shown
