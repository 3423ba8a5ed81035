"""rb.cluster.cast: joined parts are listed and removed; a resumed call continues after them."""

import errno
import json
import sys

import numpy as np
import pytest

import raybox as rb
from clustering import both, interrupted, started_parts
from raybox.distributed.dask.join_parts import Joiner
from raybox.distributed.dask.part_folder import (
    JoinedPart,
    PartFolder,
    PartInfo,
    joined_line,
    part_path,
    read_joined,
    read_trailer,
    write_trailer,
)
from raybox.io.chunked import part_files
from raybox.io.chunked.result_columns import OutputSpec, column_dtypes
from raybox.io.chunked.writers import WRITERS
from streaming import ENDINGS, RAYS, put


@pytest.mark.parametrize("ending", ENDINGS)
def test_joined_parts_are_not_written_again(cluster, tmp_path, ending, log):
    rays, out = put(tmp_path / "rays.parquet", RAYS), tmp_path / f"found.{ending}"
    folder = out.with_name(out.name + ".raybox-parts")
    there = interrupted(cluster, rays, out, after=2, synced=True)
    joined = read_joined(folder / "joined", folder / "output")
    assert len(joined) >= 2
    numbers = {int(name[-3:]) for name in there}
    assert numbers.isdisjoint(range(len(joined)))
    before = len(log())
    _, done = both(cluster, rays, ending)
    done_parts = numbers | set(range(len(joined)))
    assert done.resumed == sum(3 if number == 5 else 20 for number in done_parts)
    assert set(started_parts(log()[before:])) == set(range(6)) - done_parts


@pytest.mark.parametrize("changed", [5, 45, 102])
def test_joined_parts_are_valid_up_to_the_first_changed_ray(cluster, tmp_path, changed, log):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "found.parquet"
    interrupted(cluster, rays, out, after=6, synced=True)
    folder = out.with_name(out.name + ".raybox-parts")
    assert len(read_joined(folder / "joined", folder / "output")) == 6
    origins = np.array(RAYS.origins)
    origins[changed] += 0.25
    put(rays, rb.Rays(origins, RAYS.directions, t_min=RAYS.t_min, t_max=RAYS.t_max))
    _, done = both(cluster, rays, "parquet")
    assert done.resumed == changed // 20 * 20


@pytest.mark.parametrize("number", [40, 50])
def test_joined_parts_are_valid_up_to_the_end_of_a_shorter_file(cluster, tmp_path, number):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "found.csv"
    interrupted(cluster, rays, out, after=6, synced=True)
    put(rays, RAYS[:number])
    _, done = both(cluster, rays, "csv")
    assert (done.rays, done.resumed) == (number, 40)


@pytest.mark.parametrize("damage", ["torn", "other", "short", "gone", "placed"])
def test_wrong_lists_of_joined_parts_are_ignored(cluster, tmp_path, damage):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "found.npy"
    interrupted(cluster, rays, out, after=6, synced=True)
    folder = out.with_name(out.name + ".raybox-parts")
    whole, log = folder / "output" / "results.npy", folder / "joined"
    lines = log.read_bytes().splitlines(keepends=True)
    done_parts = {"torn": 100, "other": 80}.get(damage, 0)
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
    assert both(cluster, rays, "npy")[1].resumed == done_parts


@pytest.mark.parametrize("ending", ENDINGS)
def test_parts_from_the_first_damaged_byte_of_the_output_on_are_written_again(cluster, tmp_path, ending):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / f"found.{ending}"
    interrupted(cluster, rays, out, after=6, synced=True)
    folder = out.with_name(out.name + ".raybox-parts")
    part = read_joined(folder / "joined", folder / "output")[3]
    name, length = max(part.lengths.items(), key=lambda item: item[1])
    (path,) = (path for path in (folder / "output").iterdir() if name in (path.stem, path.suffix[1:]))
    data = bytearray(path.read_bytes())
    data[length - 1] ^= 1
    path.write_bytes(data)
    assert both(cluster, rays, ending)[1].resumed == 60


@pytest.mark.parametrize("ending", ["csv", "npz"])
@pytest.mark.parametrize("kind", ["length", "hit count"])
def test_a_digit_in_the_list_of_joined_parts_is_wrong(cluster, tmp_path, kind, ending):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / f"found.{ending}"
    interrupted(cluster, rays, out, after=6, synced=True)
    log = out.with_name(out.name + ".raybox-parts") / "joined"
    lines = log.read_bytes().splitlines(keepends=True)
    number, info, lengths, *checksum = json.loads(lines[3])
    if kind == "length":
        lengths = {name: length - 1 for name, length in lengths.items()}
    else:
        info[2] -= 1
    lines[3] = json.dumps([number, info, lengths, *checksum]).encode() + b"\n"
    log.write_bytes(b"".join(lines if kind == "hit count" else lines[:4]))
    assert both(cluster, rays, ending)[1].resumed == 60


def test_every_wrong_byte_of_a_list_of_joined_parts_is_found(tmp_path):
    infos = [PartInfo(20, 18 + k, k, 700, f"{k}c" * 16) for k in range(3)]
    parts = [JoinedPart(info, {"results": 90 * k}, {"results": f"{k}"}) for k, info in enumerate(infos)]
    lines, log = [joined_line(*numbered) for numbered in enumerate(parts)], tmp_path / "joined"
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "results.csv").write_bytes(bytes(180))
    data, ends = b"".join(lines), [sum(map(len, lines[: k + 1])) for k in range(3)]
    log.write_bytes(data)
    assert read_joined(log, tmp_path / "output") == parts
    for place in range(len(data)):
        for bit in range(8):
            changed = bytearray(data)
            changed[place] ^= 1 << bit
            log.write_bytes(changed)
            whole = next(k for k in range(3) if place < ends[k])
            assert read_joined(log, tmp_path / "output") == parts[:whole], (place, bit)


def part(folder, number, query="count", rows=2):
    """Write the part of two rays."""
    columns = {"ray": range(2 * number, 2 * number + rows), query: np.full(rows, number)}
    work = folder / "work"
    work.mkdir(exist_ok=True)
    writer = WRITERS[".csv"](OutputSpec(work, column_dtypes(query, 3, None), None), {})
    writer.add(columns)
    writer.close()
    path = part_path(folder, number)
    (work / "results.csv").rename(path)
    return path, PartInfo(2, rows, rows, path.stat().st_size, "00" * 16)


def test_every_wrong_bit_of_a_part_is_found(tmp_path):
    path, info = part(tmp_path, 3)
    job = "0123456789abcdef" * 2
    write_trailer(path, info, job, 3)
    assert read_trailer(path, job) == info
    assert read_trailer(path, job[::-1]) is None
    data = path.read_bytes()
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        assert read_trailer(path, job) is None, bit
    path.write_bytes(data)
    assert read_trailer(path.rename(part_path(tmp_path, 4)), job) is None


def test_a_disk_that_is_full_loses_no_part(tmp_path, monkeypatch):
    whole, log = tmp_path / "whole", tmp_path / "joined"
    whole.mkdir()
    joiner = Joiner(log, OutputSpec(whole, column_dtypes("count", 3, None), None), ".csv", [])
    first, second = part(tmp_path, 0), part(tmp_path, 1)
    joiner.add(*first)
    joiner.sync()
    assert not first[0].exists()
    joiner.add(*second)
    write = part_files.PartFile.write

    def full(self, data):
        write(self, bytes(data)[:5])
        raise OSError(errno.ENOSPC, "no room")

    with monkeypatch.context() as patch:
        patch.setattr(part_files.PartFile, "write", full)
        with pytest.raises(OSError, match="no room"):
            joiner.sync()
    assert second[0].exists()
    assert len(read_joined(log, whole)) == 1
    joiner.sync()
    assert not second[0].exists()
    joiner.sync()
    joiner.finish(4)
    joiner.close()
    assert [json.loads(line)[0] for line in log.read_bytes().splitlines()] == [0, 1]
    assert (whole / "results.csv").read_text() == "ray,count\n0,0\n1,0\n2,1\n3,1\n"
    again = Joiner(
        log, OutputSpec(whole, column_dtypes("count", 3, None), None), ".csv", read_joined(log, whole)[:1]
    )
    third = part(tmp_path, 1, rows=1)
    again.add(*third)
    text = "ray,count\n0,0\n1,0\n2,1\n"
    assert (whole / "results.csv").read_text() == text
    lengths = len(text) - 4, len(text)
    assert [(part.info, part.lengths["results"]) for part in read_joined(log, whole)] == [
        (first[1], lengths[0])
    ]
    again.sync()
    again.close()
    parts = read_joined(log, whole)
    assert [part.info for part in parts] == [first[1], third[1]]
    assert [part.lengths["results"] for part in parts] == list(lengths)


def test_parts_are_counted_once(cluster, tmp_path):
    """One that is listed may still exist, and one may exist that is not listed."""
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "found.npy"
    interrupted(cluster, rays, out, after=6, synced=True)
    folder = PartFolder(out, {}, {})
    assert folder.done() == 6
    for number in (0, 5, 6):
        part_path(folder.path, number).touch()
    assert folder.done() == 7


def test_stopped_again_and_again(cluster, tmp_path):
    rays, out = put(tmp_path / "rays.parquet", RAYS), tmp_path / "found.parquet"
    for after in (1, 3, 5):
        interrupted(cluster, rays, out, after=after, synced=True)
    assert both(cluster, rays, "parquet")[1].resumed >= 100


@pytest.mark.parametrize("platform", [sys.platform, "darwin"])
def test_bytes_of_another_file(tmp_path, platform, monkeypatch):
    monkeypatch.setattr(part_files.sys, "platform", platform)
    monkeypatch.setattr(part_files, "_COPIED", 1000)
    data = np.random.default_rng(0).bytes(4321)
    (tmp_path / "other").write_bytes(data)
    grown = part_files.PartFile(tmp_path / "grown")
    grown.write(b"head")
    grown.append_from(tmp_path / "other", 17, 4200)
    grown.write(b"tail")
    assert grown.length == 4208
    with pytest.raises(OSError, match="other has become shorter"):
        grown.append_from(tmp_path / "other", 4000, 400)
    grown.truncate(4208)
    grown.close()
    assert (tmp_path / "grown").read_bytes() == b"head" + data[17:4217] + b"tail"
