"""Paths and folders that the system refuses: one-line errors of raybox, and nothing printed."""

import errno
import json
import os
import sys

import numpy as np
import pytest

import raybox as rb
from file_samples import BOXES, RAYS
from processes import python
from raybox.store import lock

DOORS = {
    "load": rb.load,
    "load_grid": rb.load_grid,
    "save": lambda path: rb.save(path, BOXES),
    "cast to": lambda path: rb.stream.cast(rb.Scene(BOXES), "rays.csv", path),
    "cast of": lambda path: rb.stream.cast(rb.Scene(BOXES), path, "out.csv"),
    "cast of two": lambda path: rb.stream.cast(rb.Scene(BOXES), ["rays.csv", path], "out.csv"),
    "open": rb.Scene.open,
}


@pytest.mark.parametrize("door", DOORS)
def test_a_nul_in_a_path(tmp_path, monkeypatch, door):
    monkeypatch.chdir(tmp_path)
    rb.save("rays.csv", RAYS)
    with pytest.raises(rb.InvalidInput, match=r"^a path must not contain NUL; got 'a\\x00\.csv'\. Correct"):
        DOORS[door]("a\0.csv")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps the folder of a process")
@pytest.mark.parametrize("door", DOORS)
def test_a_deleted_working_folder(tmp_path, monkeypatch, door):
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(rb.FileFormatError, match=r"csv: the working folder was deleted; change") as caught:
        DOORS[door]("a.csv")
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("number", [errno.EIO, errno.EPERM])
def test_locks_that_the_system_refuses(tmp_path, monkeypatch, number):
    def refuse(_file, _shared):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(lock, "_lock_file", refuse)
    rb.save(tmp_path / "rays.csv", RAYS)
    with pytest.raises(
        rb.FileFormatError,
        match=rf"out\.csv\.raybox/lock: cannot be locked: {os.strerror(number)}; check .*, and cast again",
    ):
        rb.stream.cast(rb.Scene(BOXES), tmp_path / "rays.csv", tmp_path / "out.csv")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no /proc here")
def test_a_file_that_cannot_be_read(tmp_path):
    for ending in ("csv", "obj", "npy", "las"):
        path = tmp_path / f"mem.{ending}"
        path.symlink_to("/proc/self/mem")
        with pytest.raises(rb.FileFormatError, match=rf"mem\.{ending}: cannot be read: "):
            rb.load(path, origin=(0, 0, 0) if ending == "las" else None)


def test_a_codec_that_zarr_does_not_know(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "rays.zarr", mode="w")
    for name in ("origins", "directions", "t_max"):
        array = group.create_array(name, shape=(4, 3), chunks=(2, 3), dtype="f8")
        array[:] = 1.0
        path = tmp_path / "rays.zarr" / name / "zarr.json"
        content = json.loads(path.read_text())
        content["codecs"] = [*content["codecs"][:-1], {"name": "mystery", "configuration": {}}]
        path.write_text(json.dumps(content))
    rb.save(tmp_path / "boxes.npz", BOXES)
    done = python("-m", "raybox", "cast", "boxes.npz", "rays.zarr", "-o", "o.csv", cwd=tmp_path)
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("raybox: rays.zarr: is not readable as Zarr (Unknown codec: 'mystery'); check")


def test_arrays_of_zarr_beside_those_of_rays(tmp_path):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "rays.zarr", mode="w")
    for name in ("origins", "directions", "other"):
        group.create_array(name, shape=(4, 3), dtype="f8")[:] = 1.0
    group.create_group("points")
    done = rb.stream.cast(rb.Scene(BOXES), tmp_path / "rays.zarr", tmp_path / "out.csv")
    assert done.rays == 4
    assert np.loadtxt(tmp_path / "out.csv", delimiter=",", skiprows=1, usecols=0).tolist() == [0, 1, 2, 3]
