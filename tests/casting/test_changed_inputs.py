"""A part counts only for the rays, weights and carried columns that it was made of."""

import os
import shutil

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from raybox.casting import cast_blocks, finish
from raybox.casting.caster import BlockCaster
from raybox.cli import main
from raybox.io import scene_files
from streaming import (
    BOXES,
    GROUPS,
    RAYS,
    SCENE,
    WORLDS,
    content,
    pq,
    put,
    run,
    stopping_at,
    with_column,
)

OUTPUTS = ["out.npy", "out.parquet", "out.csv", "out/"]


def moved(rays, by):
    """Return other rays, as many."""
    return rb.Rays(rays.origins + by, rays.directions, t_min=rays.t_min, t_max=rays.t_max)


def bad(path, rays, row):
    """Save rays, one of them with NaN."""
    put(path, rays)
    table = np.load(path)
    table[row, 4] = np.nan
    np.save(path, table)
    return path


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("query", ["nearest", "deposit"])
def test_rays_of_another_file_between_two_calls(tmp_path, name, query):
    """Two days share the name of their output by mistake; each stops at a bad ray."""
    monday = bad(tmp_path / "monday.npy", RAYS, 70)
    tuesday = bad(tmp_path / "tuesday.npy", moved(RAYS, 0.01), 90)
    how = {"query": query, "chunk": 20}
    for rays, stored in ((monday, 60), (tuesday, 80)):
        with pytest.raises(rb.FileFormatError, match=f"{stored} rays are done"):
            rb.cast(SCENE, rays, f"{tmp_path}/{name}", **how)
    done = rb.cast(SCENE, monday, f"{tmp_path}/{name}", invalid="miss", **how)
    assert done.rays == 103
    folder = tmp_path / "wanted"
    folder.mkdir()
    rb.cast(SCENE, monday, f"{folder}/{name}", invalid="miss", **how)
    assert [*content(tmp_path / name.strip("/")).values()] == [*content(folder).values()]


def test_only_blocks_of_changed_rays_are_cast_again(tmp_path, monkeypatch):
    rays, out = put(tmp_path / "rays.npy", RAYS), tmp_path / "out.npy"
    with stopping_at(monkeypatch, 100, rb.RayboxError("enough")):
        rb.cast(SCENE, rays, out, chunk=20)
    table = np.load(rays)
    table[45, 0] += 1
    np.save(rays, table)
    assert rb.cast(SCENE, rays, out, chunk=20).resumed == 80


WEIGHTS = np.random.default_rng(5).random(103)


@pytest.mark.parametrize("is_mapped", [True, False])
def test_weights_that_change_and_are_put_back(tmp_path, monkeypatch, is_mapped):
    rays, out, path = put(tmp_path / "rays.npy", RAYS), tmp_path / "out.npy", tmp_path / "weights.npy"

    def cast(target, weights):
        np.save(path, weights)
        given = np.load(path, mmap_mode="r" if is_mapped else None)
        return rb.cast(SCENE, rays, target, query="deposit", weights=given, chunk=20)

    for weights in (WEIGHTS, np.where(np.arange(103) < 50, WEIGHTS[::-1], WEIGHTS)):
        with stopping_at(monkeypatch, 60, rb.RayboxError("enough")):
            cast(out, weights)
    cast(out, WEIGHTS)
    cast(tmp_path / "wanted.npy", WEIGHTS)
    assert out.read_bytes() == (tmp_path / "wanted.npy").read_bytes()
    np.testing.assert_allclose(np.load(out)["deposit"], SCENE.deposit(RAYS, WEIGHTS), rtol=1e-12)


def test_carried_columns_that_change(tmp_path, monkeypatch):
    rays, out = tmp_path / "rays.parquet", tmp_path / "out.parquet"
    names = [f"ray {k}" for k in range(103)]
    with_column(rays, RAYS, "name", names)
    with stopping_at(monkeypatch, 80, rb.RayboxError("enough")):
        rb.cast(SCENE, rays, out, chunk=20, carry=["name"])
    names[30] = "another"
    with_column(rays, RAYS, "name", names)
    assert rb.cast(SCENE, rays, out, chunk=20, carry=["name"]).resumed == 60
    assert pq.read_table(out)["name"].to_pylist() == names


@pytest.mark.parametrize("given", ["csv", "parquet", "array", "mapped"])
@pytest.mark.parametrize("query", ["nearest", "deposit"])
def test_groups_that_change(tmp_path, monkeypatch, given, query):
    ending = given if given in ("csv", "parquet") else "npy"
    rays, array, out = tmp_path / f"rays.{ending}", tmp_path / "groups.npy", tmp_path / "out.npy"

    def cast(scene, groups, out):
        if ending == "npy":
            np.save(array, groups)
            put(rays, RAYS)
            groups = np.load(array, mmap_mode="r" if given == "mapped" else None)
        else:
            with_column(rays, RAYS, "world", groups)
            groups = "world"
        return rb.cast(scene, rays, out, query=query, groups=groups, chunk=20, workers=1)

    with stopping_at(monkeypatch, 80, rb.RayboxError("enough")):
        cast(WORLDS, GROUPS, out)
    others = np.where(np.arange(103) == 30, (GROUPS + 2) % 3, GROUPS)
    regrouped = rb.Scene(BOXES, groups=WORLDS.groups[::-1])
    with pytest.raises(rb.FileFormatError, match="scene 40 boxes, checksum "):
        cast(regrouped, others, out)
    assert cast(WORLDS, others, out).resumed == (0 if query == "deposit" else 60)
    cast(WORLDS, others, tmp_path / "wanted.npy")
    assert out.read_bytes() == (tmp_path / "wanted.npy").read_bytes()


CUT = """
    import sys, os
    import numpy as np
    import raybox as rb
    from raybox.casting.caster import BlockCaster
    from streaming import SCENE
    rays, weights, out = sys.argv[1:]
    add_to = BlockCaster.add_to
    def cut(caster, total, block, workers):
        if block.block.number == 1:
            os.truncate(weights, 200)
        add_to(caster, total, block, workers)
    BlockCaster.add_to = cut
    try:
        rb.cast(SCENE, rays, out, query="deposit", weights=np.load(weights, mmap_mode="r"), chunk=20)
    except rb.RayboxError as error:
        print(error)
"""


def test_mapped_weights_that_are_cut_short_are_an_error(tmp_path):
    rays, weights = put(tmp_path / "rays.npy", RAYS), tmp_path / "weights.npy"
    np.save(weights, WEIGHTS)
    text = run(CUT, rays, weights, tmp_path / "out.npy")
    assert "weights.npy: has become shorter while it was mapped" in text or "was changed" in text


def test_a_mapped_scene_whose_file_changes_during_the_cast(tmp_path, monkeypatch):
    """Its content is in no record: no part is written once it has changed, also if it is put back."""
    rays, out, folder = put(tmp_path / "rays.npy", RAYS), tmp_path / "out.npy", tmp_path / "boxes.scene"
    folder.mkdir()
    scene_files.write_scene(folder, SCENE)
    scene, results = scene_files.read_scene(folder), BlockCaster._results

    def changing(caster, block, *others):
        if block.block.number == 2:
            with (folder / "lower.npy").open("r+b") as file:  # never shorter: other threads read its map
                file.write(file.read(1))
        return results(caster, block, *others)

    monkeypatch.setattr(BlockCaster, "_results", changing)
    with pytest.raises(rb.FileFormatError, match=r"lower.npy: was changed while it was cast"):
        rb.cast(scene, rays, out, chunk=20, workers=1)
    assert not out.exists()
    assert not (tmp_path / "out.npy.raybox").exists()


class Slow:
    """An unbuffered file that accepts a few bytes at a time."""

    name = "pipe"

    def __init__(self):
        self.data = b""

    def write(self, data):
        self.data += bytes(data[:7])
        return min(7, len(data))

    def flush(self):
        pass


def test_an_open_file_that_accepts_fewer_bytes_than_given(tmp_path):
    rays, out = put(tmp_path / "rays.npy", RAYS), Slow()
    rb.cast(SCENE, rays, tmp_path / "out.csv", chunk=20)
    for query in ("nearest", "deposit"):
        out = Slow()
        rb.cast(SCENE, rays, out, chunk=20, query=query)
        rb.cast(SCENE, rays, tmp_path / f"{query}.csv", chunk=20, query=query)
        assert out.data == (tmp_path / f"{query}.csv").read_bytes()


@pytest.mark.skipif(os.name != "posix", reason="errors of POSIX")
def test_errors_of_the_system_are_one_line(tmp_path):
    rays = put(tmp_path / "rays.npy", RAYS)
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for out, text in (
        (tmp_path / ("n" * 251 + ".npy"), "File name too long; give a shorter name"),
        (tmp_path / "a" / "out.npy", "has links in a circle"),
        ("/proc/out.npy", "cannot be made: (No such file or directory|Permission denied)"),
    ):
        with pytest.raises(rb.RayboxError, match=text) as found:
            rb.cast(SCENE, rays, out)
        assert "\n" not in str(found.value)


def test_blocks_cast_by_several_calls_and_finished(tmp_path):
    for source, groups in (("npy", GROUPS), ("csv", "world")):
        rays = tmp_path / f"rays.{source}"
        put(rays, RAYS) if source == "npy" else with_column(rays, RAYS, "world", GROUPS)
        for name, query, how in (
            ("a.npy", "nearest", {"groups": groups}),
            ("b.csv", "deposit", {"groups": groups}),
            ("c/", "all", {"groups": 2}),
            ("d.npy", "count", {}),
        ):
            how |= {"scene": WORLDS if how else SCENE, "query": query, "chunk": 20}
            out = tmp_path / name
            folder = out.with_name(out.name + ".raybox")
            rb.cast(rays=rays, out=f"{tmp_path}/{name}", blocks=[1], **how)
            assert cast_blocks(folder, range(2, 4)).rays == 40
            with pytest.raises(rb.FileFormatError, match="lacks 3 blocks of rays: 0, 4, 5"):
                finish(folder)
            assert cast_blocks(folder, range(100)).rays == 103
            assert finish(folder).rays == 103
            whole = tmp_path / "whole"
            whole.mkdir()
            rb.cast(rays=rays, out=f"{whole}/{name}", **how)
            assert [*content(out).values()] == [*content(whole).values()]
            for path in (out, whole):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_the_command_casts_blocks_and_finishes(tmp_path):
    rays, out = put(tmp_path / "rays.npy", RAYS), tmp_path / "out.npy"
    rb.save(tmp_path / "boxes.npz", BOXES)
    command = ["cast", f"{tmp_path}/boxes.npz", str(rays), "-o", str(out), "--chunk", "20"]
    for more in (["--blocks", "0:2"], ["--blocks", "2:99"], ["--finish"]):
        assert not out.exists()
        done = CliRunner().invoke(main, [*command, *more])
        assert done.exit_code == 0, done.output
    rb.cast(SCENE, rays, tmp_path / "wanted.npy", chunk=20)
    assert out.read_bytes() == (tmp_path / "wanted.npy").read_bytes()
    out.unlink()
    done = CliRunner().invoke(main, [*command, "--blocks", "0-2"])
    assert "is no range. Write FROM:TO" in done.output
    done = CliRunner().invoke(main, [*command[:4], "-", "--finish"])
    assert "Several processes write to a file" in done.output
