"""A cast that ends at any step continues to the same bytes; parts of other bytes are cast again."""

import os
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import raybox as rb
from raybox.casting import steps
from raybox.cli import main
from streaming import BOXES, IDS, RAYS, SCENE, content, fail_at, pq, put, zarr

WAYS = {
    "one .npy": ("out.npy", {"query": "nearest"}),
    "one .parquet": ("out.parquet", {"query": "all"}),
    "one .zarr": ("out.zarr", {"query": "count"}),
    "one .npz": ("out.npz", {"query": "nearest", "ids": IDS}),
    "sums": ("out.csv", {"query": "deposit"}),
    "dataset": ("out/", {"query": "nearest", "ids": IDS}),
    "dataset of Zarr": ("out/", {"query": "nearest", "format": "zarr", "ids": IDS}),
    "dataset of sums": ("out/", {"query": "deposit", "per": "hit"}),
}

QUICK = "one .parquet", "sums", "dataset"


class Ended(BaseException):
    """What stands for the end of the process: nothing in raybox handles it."""


def passed(monkeypatch, stop=None):
    """Return the steps that casts pass from now on; the one of this number ends the cast."""
    found = []

    def hook(name):
        found.append(name)
        if len(found) - 1 == stop:
            raise Ended(name)

    monkeypatch.setattr(steps, "hook", hook)
    return found


def cast(folder, way, rays):
    name, how = WAYS[way]
    return rb.stream.cast(SCENE, rays, f"{folder}/{name}", chunk=60, workers=1, **how)


@pytest.mark.parametrize("way", [w if w in QUICK else pytest.param(w, marks=pytest.mark.long) for w in WAYS])
def test_ended_at_each_step(tmp_path, monkeypatch, way):
    monkeypatch.setattr("raybox.casting.engine.SYNC_SECONDS", 3600)  # all steps are those of the main thread
    rays, whole = put(tmp_path / "rays.npy", RAYS), tmp_path / "whole"
    whole.mkdir()
    with monkeypatch.context() as patch:
        names = passed(patch)
        cast(whole, way, rays)
    assert {"job stored", "part written", "place stored", "output placed", "file removed"} <= set(names)
    wanted = [*content(whole).values()]
    for stop in range(len(names) - 1):  # after the last, all is done
        folder = tmp_path / f"ended {stop}"
        folder.mkdir()
        with monkeypatch.context() as patch:
            passed(patch, stop)
            with pytest.raises(Ended):
                cast(folder, way, rays)
        done = cast(folder, way, rays)
        assert done.rays == 103
        assert done.resumed == 103 or names[stop] not in ("output placed", "place stored"), names[stop]
        assert [*content(folder).values()] == wanted, names[stop]
        shutil.rmtree(folder)


def test_no_part_is_computed_twice(tmp_path, monkeypatch):
    rays, out = put(tmp_path / "rays.npy", RAYS), tmp_path / "out.parquet"
    names = passed(monkeypatch)
    fail_at(monkeypatch, 60, rb.RayboxError("enough"))
    with pytest.raises(rb.RayboxError, match="60 rays are done"):
        rb.stream.cast(SCENE, rays, out, chunk=20)
    monkeypatch.undo()
    more = passed(monkeypatch)
    assert rb.stream.cast(SCENE, rays, out, chunk=20).resumed == 60
    assert (names.count("part written"), more.count("part written")) == (3, 3)


def test_the_command_finishes_a_zarr_that_is_in_its_place(tmp_path, monkeypatch):
    rays, out = put(tmp_path / "rays.npy", RAYS), tmp_path / "out.zarr"
    rb.save(tmp_path / "boxes.npz", BOXES)
    command = ["cast", str(tmp_path / "boxes.npz"), str(rays), "-o", str(out)]
    with monkeypatch.context() as patch:
        patch.setattr(
            steps, "hook", lambda name: (_ for _ in ()).throw(Ended()) if name == "output placed" else 0
        )
        with pytest.raises(Ended):
            CliRunner().invoke(main, command)
    assert out.exists()
    assert (tmp_path / "out.zarr.raybox").exists()
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    assert "(103 of them before)" in done.output
    assert not (tmp_path / "out.zarr.raybox").exists()
    assert zarr.open_group(out, mode="r")["t"].shape == (103,)


def swap(parts):
    """Exchange two parts of one length."""
    one, other = (parts / f"part-00000000{k}.rows" for k in (0, 1))
    one.rename(parts / "third")
    other.rename(one)
    (parts / "third").rename(other)


def foreign(parts):
    """Put a part of another job under the name of one."""
    rays, other = put(parts.parent.parent / "others.npy", RAYS[::-1]), parts.parent.parent / "other.npy"
    with pytest.MonkeyPatch.context() as patch:
        fail_at(patch, 60, rb.RayboxError("enough"))
        with pytest.raises(rb.RayboxError):
            rb.stream.cast(SCENE, rays, other, chunk=20)
    shutil.copy(parts.parent.parent / "other.npy.raybox/parts/part-000000001.rows", parts)
    shutil.rmtree(parts.parent.parent / "other.npy.raybox")
    rays.unlink()


DAMAGE = {
    "swapped": (swap, 20),
    "foreign": (foreign, 40),
    "renamed": (lambda parts: (parts / "part-000000002.rows").rename(parts / "part-000000004.rows"), 40),
    "cut": (lambda parts: os.truncate(parts / "part-000000000.rows", 700), 40),
    "empty": (lambda parts: os.truncate(parts / "part-000000000.rows", 0), 40),
    "without its trailer": (lambda parts: os.truncate(parts / "part-000000000.rows", 20 * 48), 40),
    "longer": (lambda parts: (parts / "part-000000001.rows").open("ab").write(b"more"), 40),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_parts_that_are_not_what_they_say(tmp_path, monkeypatch, damage):
    monkeypatch.setattr("raybox.casting.engine.SYNC_SECONDS", 3600)
    rays, out = put(tmp_path / "rays.npy", RAYS), tmp_path / "out.npy"
    rb.stream.cast(SCENE, rays, whole := tmp_path / "whole.npy", chunk=20)
    with monkeypatch.context() as patch:
        fail_at(patch, 60, rb.RayboxError("enough"))
        with pytest.raises(rb.RayboxError):
            rb.stream.cast(SCENE, rays, out, chunk=20)
    harm, resumed = DAMAGE[damage]
    harm(tmp_path / "out.npy.raybox" / "parts")
    assert rb.stream.cast(SCENE, rays, out, chunk=20).resumed == resumed
    assert out.read_bytes() == whole.read_bytes()


# Datasets


def test_a_dataset_is_what_readers_expect(tmp_path):
    """Files of Parquet alone, of one schema, in the order of the rays, that others may read."""
    rays, out = put(tmp_path / "rays.npy", RAYS), tmp_path / "hits"
    for given in (f"{out}/", f"{out}2"):
        done = rb.stream.cast(SCENE, rays, given, chunk=30, ids=IDS, format="parquet")
        assert (done.rays, done.rows) == (103, 103)
    rb.stream.cast(SCENE, rays, one := tmp_path / "one.parquet", chunk=30, ids=IDS)
    assert [path.name for path in sorted(out.iterdir())] == [f"part-{k:09}.parquet" for k in range(4)]
    assert pq.read_table(out).equals(pq.read_table(one))
    assert pq.read_table(out).schema.equals(pq.read_table(one).schema)
    umask = os.umask(0o022)
    os.umask(umask)
    assert out.stat().st_mode & 0o777 == 0o777 & ~umask
    assert all(path.stat().st_mode & 0o777 == 0o666 & ~umask for path in out.iterdir())
    with pytest.raises(rb.FileFormatError, match="hits: exists already; remove it first"):
        rb.stream.cast(SCENE, rays, f"{out}/", chunk=30)


def test_a_dataset_of_zarr_is_the_group(tmp_path):
    rays, out, one = put(tmp_path / "rays.csv", RAYS), tmp_path / "hits", tmp_path / "one.zarr"
    rb.stream.cast(SCENE, rays, f"{out}/", chunk=30, ids=IDS, format="zarr")
    rb.stream.cast(SCENE, rays, one, chunk=30, ids=IDS)
    found, wanted = zarr.open_group(out, mode="r"), zarr.open_group(one, mode="r")
    assert dict(found.attrs) == dict(wanted.attrs)
    assert {*found.array_keys()} == {*wanted.array_keys()}
    for name, array in wanted.arrays():
        assert found[name].dtype == array.dtype
        assert found[name].chunks == (30,)
        assert found[name][:].tobytes() == array[:].tobytes() or found[name][:].tolist() == array[:].tolist()


def test_what_was_half_written_of_zarr_is_not_in_the_dataset(tmp_path, monkeypatch):
    rays, out, whole = (tmp_path / name for name in ("rays.npy", "hits", "whole"))
    put(rays, RAYS)
    rb.stream.cast(SCENE, rays, whole, chunk=30, format="zarr")
    fail_at(monkeypatch, 60, rb.RayboxError("enough"))
    with pytest.raises(rb.RayboxError):
        rb.stream.cast(SCENE, rays, out, chunk=30, format="zarr")
    monkeypatch.undo()
    group = tmp_path / "hits.raybox" / "group"
    (group / "t" / "c" / "new-1-2").write_bytes(b"half")
    (group / "t" / "c" / "99").write_bytes(b"of rays that are gone")
    for folder in (group, group / "t"):  # by Zarr itself
        (folder / "zarr.json").write_bytes(b"half")
        (folder / "zarr.0123456789abcdef.partial").write_bytes(b"half")
    rb.stream.cast(SCENE, rays, out, chunk=30, format="zarr")
    assert list(content(out)) == [name.replace("whole", "hits") for name in content(whole)]
    assert list(content(out).values()) == list(content(whole).values())


@pytest.mark.parametrize("umask", [0o002, 0o077])
def test_datasets_have_the_mode_of_the_user(tmp_path, umask):
    rays, before = put(tmp_path / "rays.npy", RAYS), os.umask(umask)
    try:
        for form in ("parquet", "zarr"):
            rb.stream.cast(SCENE, rays, tmp_path / form, chunk=30, format=form)
            modes = {path.stat().st_mode & 0o777 for path in (tmp_path / form).rglob("*") if path.is_file()}
            assert modes == {0o666 & ~umask}
            assert (tmp_path / form).stat().st_mode & 0o777 == 0o777 & ~umask
    finally:
        os.umask(before)


def test_no_rays(tmp_path):
    rays = put(tmp_path / "rays.npy", RAYS[:0])
    rb.stream.cast(SCENE, rays, f"{tmp_path}/hits/")
    table = pq.read_table(tmp_path / "hits")
    assert (table.num_rows, table.column_names) == (0, ["ray", "index", "t", "x", "y", "z"])
    rb.stream.cast(SCENE, rays, f"{tmp_path}/group", format="zarr")
    assert zarr.open_group(tmp_path / "group", mode="r")["t"].shape == (0,)


def test_wrong_datasets_are_refused(tmp_path):
    rays = put(tmp_path / "rays.npy", RAYS)
    with pytest.raises(rb.InvalidInput, match="format is that of a dataset, 'parquet' or 'zarr'; got 'csv'"):
        rb.stream.cast(SCENE, rays, tmp_path / "hits", format="csv")
    with pytest.raises(
        rb.FileFormatError, match="a dataset of Zarr has a row for each ray, and all has others"
    ):
        rb.stream.cast(SCENE, rays, tmp_path / "hits", query="all", format="zarr")
    assert [path.name for path in tmp_path.iterdir()] == ["rays.npy"]


def test_the_command_writes_datasets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rb.save("boxes.npz", BOXES)
    put(Path("rays.npy"), RAYS)
    for more in ([], ["--format", "zarr"]):
        name = "hits/" if not more else "group/"
        done = CliRunner().invoke(main, ["cast", "boxes.npz", "rays.npy", "-o", name, "--chunk", "30", *more])
        assert done.exit_code == 0, done.output
    assert pq.read_table("hits").num_rows == 103
    assert zarr.open_group("group", mode="r")["t"].shape == (103,)
    for arguments, text in (
        (["-o", "hits/"], "hits: exists already; remove it first"),
        (["-o", "out.csv", "--format", "csv"], "--format is for stdin (-)"),
        (["-o", "other/", "--format", "csv"], "format is that of a dataset"),
    ):
        done = CliRunner().invoke(main, ["cast", "boxes.npz", "rays.npy", *arguments])
        assert done.exit_code == 2
        assert text in done.output
