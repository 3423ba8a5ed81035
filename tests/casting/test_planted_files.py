"""Folders that others can write to: planted links are not followed, folders of other owners not used."""

import os
import shutil

import pytest

import raybox as rb
from raybox.io import manifest
from raybox.store import folder as folders
from streaming import RAYS, SCENE, interrupted, put

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and links are those of POSIX")

PRECIOUS = b"a file of the user\n" * 1000


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(PRECIOUS)
    return path


def outcome(*args, **how):
    """Cast; return the text of the error, or "" without one."""
    try:
        rb.stream.cast(*args, **how)
    except rb.FileFormatError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("folder", [".", "parts"])
def test_a_folder_that_others_can_write_to(tmp_path, monkeypatch, folder):
    rays, out = interrupted(tmp_path, monkeypatch)
    path = tmp_path / "out.npy.raybox" / folder
    path.chmod(0o777)
    with pytest.raises(
        rb.FileFormatError, match="can be written to by other users; if all in it is yours, run chmod go-w"
    ):
        rb.stream.cast(SCENE, rays, out, chunk=20)
    path.chmod(0o700)
    assert rb.stream.cast(SCENE, rays, out, chunk=20).resumed == 60


@pytest.mark.parametrize("make", [os.symlink, os.link])
@pytest.mark.parametrize("query", ["occluded", "deposit"])
def test_links_that_appear_while_a_cast_runs(tmp_path, precious, monkeypatch, make, query):
    """Under each name that the cast opens next; it ends with an error, or writes a new file in its place."""
    rays, opened = put(tmp_path / "rays.npz", RAYS), folders.Folder._open
    rb.stream.cast(SCENE, rays, whole := tmp_path / "whole.npy", query=query, chunk=20)
    names: list[str] = []
    monkeypatch.setattr(
        folders.Folder, "_open", lambda own, *how: (names.append(how[0]), opened(own, *how))[1]
    )
    rb.stream.cast(SCENE, rays, tmp_path / "named.npy", query=query, chunk=20)
    assert len(names) > 8

    for number in range(0, len(names), 3):
        left = [number]

        def planted_open(own, name, *how, left=left):
            left[0] -= 1
            if left[0] == -1 and own.stat(name) is None:
                make(precious, own.path / name)
            return opened(own, name, *how)

        monkeypatch.setattr(folders.Folder, "_open", planted_open)
        text = outcome(SCENE, rays, out := tmp_path / "out.npy", query=query, chunk=20)
        assert precious.read_bytes() == PRECIOUS
        if text:
            assert (
                "is a symbolic link" in text
                or "has a second name" in text
                or "cannot be written: File exists" in text
            )
        else:
            assert out.read_bytes() == whole.read_bytes()
            out.unlink()
        shutil.rmtree(tmp_path / "out.npy.raybox", ignore_errors=True)


def test_links_to_folders_are_removed_not_emptied(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(PRECIOUS)
    rays, out = interrupted(tmp_path, monkeypatch)
    (tmp_path / "out.npy.raybox" / "results.zarr").symlink_to(other)
    assert rb.stream.cast(SCENE, rays, out, chunk=20).resumed > 0
    assert (other / "file").read_bytes() == PRECIOUS
    assert not (tmp_path / "out.npy.raybox").exists()


def test_manifests(tmp_path, precious):
    (tmp_path / "scene.json").symlink_to(precious)
    manifest.write(tmp_path / "scene.json", {}, [])
    assert not (tmp_path / "scene.json").is_symlink()
    assert manifest.read(tmp_path / "scene.json").files == {}
    assert precious.read_bytes() == PRECIOUS
