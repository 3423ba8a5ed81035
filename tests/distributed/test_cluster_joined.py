"""rb.cluster.cast: what is joined is noted and its parts removed; who resumes goes on after it."""

import errno
import json
import sys

import numpy as np
import pytest

import raybox as rb
from clustering import asked, begun, both
from raybox.distributed.dask.join_parts import Joiner
from raybox.distributed.dask.part_folder import Folder, Note, Told, noted, part_of
from raybox.io.chunked import part_files
from raybox.io.chunked.result_columns import Task, kinds
from raybox.io.chunked.writers import SINKS
from streaming import ENDINGS, RAYS, put


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_joined_is_not_done_again(cluster, tmp_path, ending, log):
    rays, out = put(tmp_path / "rays.parquet", RAYS), tmp_path / f"found.{ending}"
    folder = out.with_name(out.name + ".raybox-parts")
    there = begun(cluster, rays, out, after=2, settled=True)
    joined = noted(folder / "joined", folder / "whole")
    assert len(joined) >= 2
    numbers = {int(name[-3:]) for name in there}
    assert numbers.isdisjoint(range(len(joined)))
    before = len(log())
    _, done = both(cluster, rays, ending)
    kept = numbers | set(range(len(joined)))
    assert done.resumed == sum(3 if number == 5 else 20 for number in kept)
    assert set(asked(log()[before:])) == set(range(6)) - kept


@pytest.mark.parametrize("changed", [5, 45, 102])
def test_of_what_is_joined_only_rays_before_those_that_changed_are_kept(cluster, tmp_path, changed, log):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "found.parquet"
    begun(cluster, rays, out, after=6, settled=True)
    folder = out.with_name(out.name + ".raybox-parts")
    assert len(noted(folder / "joined", folder / "whole")) == 6
    origins = np.array(RAYS.origins)
    origins[changed] += 0.25
    put(rays, rb.Rays(origins, RAYS.directions, t_min=RAYS.t_min, t_max=RAYS.t_max))
    _, done = both(cluster, rays, "parquet")
    assert done.resumed == changed // 20 * 20


@pytest.mark.parametrize("number", [40, 50])
def test_rays_that_are_fewer_now_end_what_is_kept(cluster, tmp_path, number):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "found.csv"
    begun(cluster, rays, out, after=6, settled=True)
    put(rays, RAYS[:number])
    _, done = both(cluster, rays, "csv")
    assert (done.rays, done.resumed) == (number, 40)


@pytest.mark.parametrize("damage", ["torn", "other", "short", "gone", "placed"])
def test_notes_that_do_not_hold_are_not_trusted(cluster, tmp_path, damage):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "found.npy"
    begun(cluster, rays, out, after=6, settled=True)
    folder = out.with_name(out.name + ".raybox-parts")
    whole, log = folder / "whole" / "answers.npy", folder / "joined"
    lines = log.read_bytes().splitlines(keepends=True)
    kept = {"torn": 100, "other": 80}.get(damage, 0)
    if damage == "torn":
        log.write_bytes(b"".join(lines)[:-3])
    elif damage == "other":
        log.write_bytes(b"".join([*lines[:4], lines[5], lines[4]]))
    elif damage == "short":
        whole.write_bytes(whole.read_bytes()[:-1])
    elif damage == "gone":
        whole.unlink()
        whole.parent.rmdir()
    else:
        whole.rename(out)
    assert both(cluster, rays, "npy")[1].resumed == kept


def part(folder, number, query="count", rows=2):
    """Write the part of two rays."""
    columns = {"ray": range(2 * number, 2 * number + rows), query: np.full(rows, number)}
    work = folder / "work"
    work.mkdir(exist_ok=True)
    sink = SINKS[".csv"](Task(work, kinds(query, 3, None), None), {})
    sink.add(columns)
    sink.close()
    path = part_of(folder, number)
    (work / "answers.csv").rename(path)
    return path, Told(2, rows, rows, path.stat().st_size, "00" * 16)


def test_a_disk_that_is_full_loses_no_part(tmp_path, monkeypatch):
    whole, log = tmp_path / "whole", tmp_path / "joined"
    whole.mkdir()
    joiner = Joiner(log, Task(whole, kinds("count", 3, None), None), ".csv", [])
    first, second = part(tmp_path, 0), part(tmp_path, 1)
    joiner.add(*first)
    joiner.settle()
    assert not first[0].exists()
    joiner.add(*second)
    write = part_files.Part.write

    def full(self, data):
        write(self, bytes(data)[:5])
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(part_files.Part, "write", full)
        with pytest.raises(OSError, match="no room"):
            joiner.settle()
    assert second[0].exists()
    assert len(noted(log, whole)) == 1
    joiner.settle()
    assert not second[0].exists()
    joiner.settle()
    joiner.finish(4)
    joiner.close()
    assert [json.loads(line)[0] for line in log.read_bytes().splitlines()] == [0, 1]
    assert (whole / "answers.csv").read_text() == "ray,count\n0,0\n1,0\n2,1\n3,1\n"
    again = Joiner(log, Task(whole, kinds("count", 3, None), None), ".csv", noted(log, whole)[:1])
    third = part(tmp_path, 1, rows=1)
    again.add(*third)
    text = "ray,count\n0,0\n1,0\n2,1\n"
    assert (whole / "answers.csv").read_text() == text
    notes = [Note(first[1], {"answers": len(text) - 4}), Note(third[1], {"answers": len(text)})]
    assert noted(log, whole) == notes[:1]
    again.settle()
    again.close()
    assert noted(log, whole) == notes


def test_parts_are_counted_once(cluster, tmp_path):
    """One that is noted may still be there, and one may be there that is not."""
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "found.npy"
    begun(cluster, rays, out, after=6, settled=True)
    folder = Folder(out, {}, {})
    assert folder.done() == 6
    for number in (0, 5, 6):
        part_of(folder.path, number).touch()
    assert folder.done() == 7


def test_stopped_again_and_again(cluster, tmp_path):
    rays, out = put(tmp_path / "rays.parquet", RAYS), tmp_path / "found.parquet"
    for after in (1, 3, 5):
        begun(cluster, rays, out, after=after, settled=True)
    assert both(cluster, rays, "parquet")[1].resumed >= 100


@pytest.mark.parametrize("platform", [sys.platform, "darwin"])
def test_bytes_of_another_file(tmp_path, platform, monkeypatch):
    monkeypatch.setattr(part_files.sys, "platform", platform)
    monkeypatch.setattr(part_files, "_MOVED", 1000)
    data = np.random.default_rng(0).bytes(4321)
    (tmp_path / "other").write_bytes(data)
    grown = part_files.Part(tmp_path / "grown")
    grown.write(b"head")
    grown.take(tmp_path / "other", 17, 4200)
    grown.write(b"tail")
    assert grown.length == 4208
    with pytest.raises(OSError, match="other has become shorter"):
        grown.take(tmp_path / "other", 4000, 400)
    grown.cut(4208)
    grown.close()
    assert (tmp_path / "grown").read_bytes() == b"head" + data[17:4217] + b"tail"
