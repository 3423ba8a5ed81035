"""An interrupted rb.stream.cast leaves no half file; the resumed output is byte-identical."""

import os
from itertools import islice

import numpy as np
import pytest

import raybox as rb
from raybox.casting import engine
from raybox.casting.cast_folder import CastFolder
from raybox.io import manifest
from raybox.store.folder import Folder
from streaming import (
    BOXES,
    ENDINGS,
    IDS,
    RAYS,
    SCENE,
    content,
    endings_from,
    fail_at,
    interrupted,
    put,
    stopping_at,
)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("query", ["nearest", "all"])
def test_the_same_call_resumes(tmp_path, monkeypatch, ending, query):
    """Readers find the row, and writers the end, alone: each twice for each query, in other pairs."""
    for source in islice(endings_from(ending), 2):
        rays, whole, out = (
            tmp_path / f"{name}-{source}.{e}" for name, e in (("r", source), ("w", ending), ("o", ending))
        )
        how = {"query": query, "ids": IDS, "chunk": 20}
        put(rays, RAYS)
        rb.stream.cast(SCENE, rays, whole, **how)
        with stopping_at(monkeypatch, 60, KeyboardInterrupt()) as stopped:
            rb.stream.cast(SCENE, rays, out, **how)
        stored = int(stopped.value.__notes__[0].split()[0])
        assert stored == 60
        assert not out.exists()
        done = rb.stream.cast(SCENE, rays, out, **how)
        assert (done.rays, done.resumed) == (103, stored)
        assert list(content(out).values()) == list(content(whole).values())
    assert not list(tmp_path.glob("*.raybox"))


def test_an_error_reports_what_is_stored(tmp_path, monkeypatch):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    fail_at(monkeypatch, 60, rb.RayboxError("enough"))
    with pytest.raises(rb.RayboxError) as caught:
        rb.stream.cast(SCENE, rays, out, chunk=20)
    assert "rays are done and stored in out.npy.raybox; the same command continues from there" in str(
        caught.value
    )
    fail_at(monkeypatch, 0, rb.RayboxError("enough"))
    with pytest.raises(rb.RayboxError) as caught:
        rb.stream.cast(SCENE, rays, tmp_path / "other.npy", chunk=20)
    assert str(caught.value) == "enough"
    assert not list(tmp_path.glob("other*"))


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"query": "count"}, "query nearest there, count now"),
        ({"chunk": 21}, "chunk 20 there, 21 now"),
        ({"ids": IDS}, "ids none there, checksum "),
        ({"scene": rb.Scene(BOXES[:39])}, "scene 40 boxes, checksum "),
        ({"scene": rb.Scene(BOXES[::-1])}, "scene 40 boxes, checksum "),
    ],
)
def test_another_command_is_refused(tmp_path, monkeypatch, how, text):
    rays, out = interrupted(tmp_path, monkeypatch)
    before = content(tmp_path)
    with pytest.raises(rb.FileFormatError) as caught:
        rb.stream.cast(**{"scene": SCENE, "rays": rays, "out": out, "chunk": 20, **how})
    assert text in str(caught.value)
    assert "another command has started it, in out.npy.raybox" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert content(tmp_path) == before
    assert rb.stream.cast(SCENE, rays, out, chunk=20, workers=2).resumed > 0


def test_another_origin_is_another_command(tmp_path, monkeypatch):
    points, out = tmp_path / "points.npz", tmp_path / "out.npy"
    np.savez_compressed(points, points=RAYS.origins + 1)  # loaded whole
    fail_at(monkeypatch, 60, rb.RayboxError("enough"))
    with pytest.raises(rb.RayboxError, match="enough"):
        rb.stream.cast(SCENE, points, out, chunk=20, origin=(0, 0, 0))
    monkeypatch.undo()
    with pytest.raises(rb.FileFormatError, match=r"origin \[0.0, 0.0, 0.0\] there, \[0.0, 0.0, 1.0\] now"):
        rb.stream.cast(SCENE, points, out, chunk=20, origin=(0, 0, 1))
    assert rb.stream.cast(SCENE, points, out, chunk=20, origin=(0, 0, 0)).resumed > 0


def test_a_foreign_folder_is_left_alone(tmp_path):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    folder = tmp_path / "out.npy.raybox"
    folder.mkdir(mode=0o700)
    (folder / "letter").write_text("dear")
    with pytest.raises(rb.FileFormatError, match="exists, but has no job; rename or remove it"):
        rb.stream.cast(SCENE, rays, out)
    (folder / "job").write_text('{"raybox": 1')
    with pytest.raises(rb.FileFormatError, match="has a job that is damaged; rename or remove it"):
        rb.stream.cast(SCENE, rays, out)
    assert (folder / "letter").read_text() == "dear"


def test_two_at_once(tmp_path, monkeypatch):
    """The second is refused while the first runs, and disturbs nothing."""
    rays, out, refused = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy", []

    def second(*_):
        if not refused:
            with pytest.raises(rb.FileFormatError, match="is in use by another process") as caught:
                rb.cast(SCENE, rays, out, chunk=20)
            refused.append(caught)

    monkeypatch.setattr(engine, "_advance", second)
    assert rb.cast(SCENE, rays, out, chunk=20).rays == 103
    assert len(refused) == 1


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("stage", ["finish", "replace", "remove"])
def test_stopped_at_the_very_end(tmp_path, monkeypatch, ending, stage):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / f"out.{ending}"
    rb.cast(SCENE, rays, whole := tmp_path / f"whole.{ending}", chunk=20)

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if stage == "finish":
            patch.setattr(engine, "finish", stop)
        elif stage == "remove":
            patch.setattr(CastFolder, "remove", stop)
        else:
            patch.setattr(Folder, "move_to", stop)
        with pytest.raises(KeyboardInterrupt):
            rb.cast(SCENE, rays, out, chunk=20)
    assert out.exists() == (stage == "remove")
    fail_at(monkeypatch, 0, AssertionError("queried again"))
    done = rb.cast(SCENE, rays, out, chunk=20)
    assert (done.rays, done.resumed, done.rows) == (103, 103, 103)
    assert list(content(out).values()) == list(content(whole).values())
    assert not list(tmp_path.glob("*.raybox"))


@pytest.mark.parametrize("is_removed", [True, False])
def test_an_output_that_was_removed_or_replaced_is_written_again(tmp_path, monkeypatch, is_removed):
    """Killed after the output was moved to its place, before the parts were removed."""
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    rb.stream.cast(SCENE, rays, out, chunk=20)
    wanted = out.read_bytes()

    def stop(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CastFolder, "remove", stop)
        with pytest.raises(KeyboardInterrupt):
            rb.stream.cast(SCENE, rays, out, chunk=20)
    assert out.read_bytes() == wanted
    if is_removed:
        out.unlink()
    else:
        out.write_bytes(wanted[:200])
    assert rb.stream.cast(SCENE, rays, out, chunk=20).resumed == 103
    assert out.read_bytes() == wanted


posix = pytest.mark.skipif(os.name != "posix", reason="owners and links are those of POSIX")

PRECIOUS = b"a file of the user\n" * 1000


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(PRECIOUS)
    return path


@posix
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


@posix
def test_links_to_folders_are_removed_not_emptied(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(PRECIOUS)
    rays, out = interrupted(tmp_path, monkeypatch)
    (tmp_path / "out.npy.raybox" / "results.zarr").symlink_to(other)
    assert rb.stream.cast(SCENE, rays, out, chunk=20).resumed > 0
    assert (other / "file").read_bytes() == PRECIOUS
    assert not (tmp_path / "out.npy.raybox").exists()


@posix
def test_manifests(tmp_path, precious):
    (tmp_path / "scene.json").symlink_to(precious)
    manifest.write(tmp_path / "scene.json", {}, [])
    assert not (tmp_path / "scene.json").is_symlink()
    assert manifest.read(tmp_path / "scene.json").files == {}
    assert precious.read_bytes() == PRECIOUS
