"""Arguments and results that no memory holds: one kind of error, with the size, from every public call."""

import numpy as np
import pytest

import raybox as rb
from needs import package
from raybox.errors import OutOfMemory

ROWS = 2**50  # more numbers than any address space
POINTS = np.broadcast_to(np.zeros(3), (ROWS, 3))
FACES = np.broadcast_to([0, 1, 2], (ROWS, 3))
NUMBERS = np.broadcast_to(0, (ROWS,))
BOXES = rb.Boxes(np.zeros((3, 3)), np.ones((3, 3)))
SCENE = rb.Scene(BOXES)
RAYS = rb.Rays(np.full((10, 3), 0.5), np.ones((10, 3)))
GRID = rb.Grid.uniform((0, 0, 0), 1.0, (2, 2, 2))
PIXELS = {"width": 2**25, "height": 2**25}


def many_pairs():
    zeros = np.zeros((2**22, 2))
    return rb.Rays(zeros, [1, 0])[:, None], rb.Boxes(zeros, zeros)


CALLS = {
    "Rays": lambda: rb.Rays(POINTS, [1, 0, 0]),
    "Rays of directions": lambda: rb.Rays([1, 0, 0], POINTS),
    "segments": lambda: rb.Rays.segments(POINTS, [1, 0, 0]),
    "lines": lambda: rb.Rays.lines(POINTS, [1, 0, 0]),
    "from_array": lambda: rb.Rays.from_array(np.broadcast_to(0.0, (ROWS, 6))),
    "pinhole": lambda: rb.Rays.pinhole([0, 0, 9], [0, 0, 0], up=[0, 1, 0], fov=41, **PIXELS).directions,
    "from_camera": lambda: rb.Rays.from_camera(np.eye(3), np.eye(3), [0, 0, 0], **PIXELS).origins,
    "at": lambda: RAYS[:1].at(np.broadcast_to(0.0, (ROWS,))),
    "rays[]": lambda: RAYS[NUMBERS],
    "Boxes": lambda: rb.Boxes(POINTS, POINTS),
    "from_centers": lambda: rb.Boxes.from_centers(POINTS, POINTS),
    "around": lambda: rb.Boxes.around(POINTS, NUMBERS),
    "contains": lambda: BOXES.contains(POINTS),
    "boxes[]": lambda: BOXES[NUMBERS],
    "Mesh of vertices": lambda: rb.Mesh(POINTS, [[0, 1, 2]]),
    "Mesh of faces": lambda: rb.Mesh(np.eye(3), FACES),
    "of_triangles": lambda: rb.Boxes.of_triangles(np.eye(3), FACES),
    "Planes": lambda: rb.Planes(POINTS, 1),
    "Grid": lambda: rb.Grid(np.broadcast_to(0.0, (ROWS,)), [0, 1]),
    "Grid.uniform": lambda: rb.Grid.uniform((0, 0), 1.0, (ROWS, 2)),
    "grid.boxes": lambda: rb.Grid.uniform((0, 0, 0), 1.0, (2**16, 2**16, 2**16)).boxes(),
    "Instances": lambda: rb.Instances(BOXES, np.broadcast_to(np.eye(4), (ROWS, 4, 4))),
    "from_poses": lambda: rb.Instances.from_poses(BOXES, POINTS),
    "first": lambda: rb.Scene(BOXES).first(RAYS[np.zeros(2**20, int)], 2**30),
    "intersect": lambda: rb.intersect(*many_pairs()),
    "where": lambda: SCENE.nearest(RAYS, where=np.broadcast_to(True, (ROWS,))),
    "integrate": lambda: SCENE.integrate(RAYS, np.broadcast_to(1.0, (3, ROWS))),
    "deposit": lambda: SCENE.deposit(RAYS, np.broadcast_to(1.0, (10, ROWS))),
    "deposit on cells": lambda: rb.Scene(rb.Grid.uniform((0, 0, 0), 1.0, (2**16,) * 3)).deposit(RAYS),
    "all_hits[]": lambda: SCENE.all(RAYS)[NUMBERS],
    "to_sparse": lambda: SCENE.all(RAYS).to_sparse(np.broadcast_to(1.0, (ROWS,))),
}


@pytest.mark.long
@pytest.mark.parametrize("name", CALLS)
def test_what_no_memory_holds(name):
    if name == "to_sparse":
        package("scipy")
    with pytest.raises(OutOfMemory, match=r" [\d,]{15,} bytes.* more than there is[;.] ") as caught:
        CALLS[name]()
    assert isinstance(caught.value, MemoryError)
    assert isinstance(caught.value, rb.InvalidInput)
    assert caught.value.__cause__ is None
    assert "\n" not in str(caught.value)


def test_the_text_names_the_call_the_array_and_the_rays():
    with pytest.raises(OutOfMemory, match=r"^Rays needs an array of shape \(1125899906842624, 3\), 27,0"):
        rb.Rays(POINTS, [1, 0, 0])
    with pytest.raises(OutOfMemory, match=r"^integrate of 10 rays needs an array .*; query fewer rays"):
        CALLS["integrate"]()


@pytest.mark.parametrize("scene", [SCENE, rb.Scene([BOXES, BOXES])])
def test_hits_that_no_memory_holds(scene, monkeypatch):
    def refuse(*_, **__):
        raise MemoryError("Allocation failed")

    monkeypatch.setattr(np, "concatenate", refuse)
    monkeypatch.setattr(np, "searchsorted", refuse)
    monkeypatch.setattr(np, "empty", refuse)
    with pytest.raises(OutOfMemory, match=r"needs more memory than there is"):
        scene.all(RAYS)


def test_a_reader_names_the_file(tmp_path, monkeypatch):
    rb.save(tmp_path / "boxes.csv", BOXES)

    def refuse(*_):
        raise MemoryError

    monkeypatch.setattr("raybox.validation.rows", refuse)
    with pytest.raises(rb.FileFormatError, match=r"boxes\.csv: does not fit into memory; split the file"):
        rb.load(tmp_path / "boxes.csv")
