"""One file that is joined of parts: listed when it is on the disk, continued after what is whole."""

import errno
import sys

import numpy as np
import pytest

import raybox as rb
from raybox.casting import append_file, cast, engine
from raybox.casting.append_file import AppendFile
from raybox.casting.join import JoinedOutput
from raybox.casting.part import part_number
from raybox.store.folder import make_folder
from streaming import ENDINGS, RAYS, SCENE, content, put

pytestmark = pytest.mark.core


def stopped(rays, out, after=6, **how):
    """Cast, and stop when some parts are joined, each synced at once; return the folder."""
    add = JoinedOutput.add

    def stopping(output, part):
        add(output, part)
        output.sync()
        if len(output.parts) >= after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(JoinedOutput, "add", stopping)
        patch.setattr(engine, "SYNC_SECONDS", 1e6)
        with pytest.raises(KeyboardInterrupt):
            cast(SCENE, rays, out, chunk=20, **how)
    return out.with_name(out.name + ".raybox")


def finished(rays, out, **how):
    """Cast the rest; return the rays that were done before. The output is that of one call."""
    done, wanted = cast(SCENE, rays, out, chunk=20, **how), out.with_name("wanted_" + out.name)
    cast(SCENE, rays, wanted, chunk=20, **how)
    assert [*content(out).values()] == [*content(wanted).values()]
    assert not list(out.parent.glob("*.raybox"))
    return done.resumed


@pytest.fixture
def rays(tmp_path):
    return put(tmp_path / "rays.npz", RAYS)


@pytest.mark.parametrize("ending", ENDINGS)
def test_joined_parts_are_not_cast_again(tmp_path, rays, ending):
    for query in ("nearest", "all"):
        out = tmp_path / f"{query}.{ending}"
        folder = stopped(rays, out, after=2, query=query)
        there = {part_number(path.name) for path in (folder / "parts").iterdir()} - {None}
        joined = {*range((folder / "joined").read_bytes().count(b"\n"))}
        assert len(joined) >= 2
        assert there.isdisjoint(joined)
        assert finished(rays, out, query=query) == sum(3 if k == 5 else 20 for k in joined | there)


@pytest.mark.parametrize("changed", [5, 45, 102])
def test_joined_parts_are_valid_up_to_the_first_changed_ray(tmp_path, rays, changed):
    stopped(rays, out := tmp_path / "out.parquet")
    origins = np.array(RAYS.origins)
    origins[changed] += 0.25
    put(rays, rb.Rays(origins, RAYS.directions, t_min=RAYS.t_min, t_max=RAYS.t_max))
    assert finished(rays, out) == changed // 20 * 20


@pytest.mark.parametrize("number", [40, 50])
def test_joined_parts_are_valid_up_to_the_end_of_a_shorter_file(tmp_path, rays, number):
    stopped(rays, out := tmp_path / "out.csv")
    put(rays, RAYS[:number])
    assert finished(rays, out) == 40


@pytest.mark.parametrize("damage", ["torn", "other", "short", "gone", "placed"])
def test_wrong_lists_of_joined_parts_are_ignored(tmp_path, rays, damage):
    folder = stopped(rays, out := tmp_path / "out.npy")
    whole, log = folder / "results.npy", folder / "joined"
    lines = log.read_bytes().splitlines(keepends=True)
    if damage == "torn":
        log.write_bytes(b"".join(lines)[:-3])
    elif damage == "other":
        log.write_bytes(b"".join([*lines[:4], lines[5], lines[4]]))
    elif damage == "short":
        whole.write_bytes(whole.read_bytes()[:-1])
    elif damage == "gone":
        whole.unlink()
    else:
        whole.rename(out)
    assert finished(rays, out) == {"torn": 100, "short": 100, "other": 80}.get(damage, 0)


@pytest.mark.parametrize("ending", ENDINGS)
def test_parts_from_the_first_damaged_byte_of_the_output_on_are_cast_again(tmp_path, rays, ending):
    folder = stopped(rays, out := tmp_path / f"out.{ending}")
    names = ["results" + out.suffix] if out.suffix in (".npy", ".csv", ".parquet") else ["column-000"]
    for name in names:
        data = bytearray((folder / name).read_bytes())
        data[len(data) * 3 // 5] ^= 1
        (folder / name).write_bytes(data)
    resumed = finished(rays, out)
    assert resumed % 20 == 0
    assert 40 <= resumed <= 80


def test_every_damage_of_the_list_is_found(tmp_path, rays):
    folder = stopped(rays, out := tmp_path / "out.csv")
    log = folder / "joined"
    data, saved = log.read_bytes(), {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    ends = np.cumsum([len(line) for line in data.splitlines(keepends=True)])
    for place in np.random.default_rng(3).integers(0, len(data), 12):
        changed = bytearray(data)
        changed[place] ^= 1 << int(place) % 8
        folder.mkdir(exist_ok=True, mode=0o700)
        for path, content_before in saved.items():
            path.write_bytes(content_before)
        log.write_bytes(changed)
        out.unlink(missing_ok=True)
        assert cast(SCENE, rays, out, chunk=20).resumed == 20 * np.searchsorted(ends, place, side="right")


def test_a_disk_that_is_full_loses_no_part(tmp_path, rays, monkeypatch):
    """The list cannot be written: parts stay, and what was joined of them is joined again."""
    write, out = AppendFile.write, tmp_path / "out.npy"

    def full(file, data):
        if isinstance(data, bytes) and data.startswith(b'{"raybox": "joined part"'):
            write(file, data[:5])
            raise OSError(errno.ENOSPC, "no room")
        write(file, data)

    with monkeypatch.context() as patch:
        patch.setattr(AppendFile, "write", full)
        with pytest.raises(rb.FileFormatError, match="No space left on device"):
            cast(SCENE, rays, out, chunk=20)
    folder = tmp_path / "out.npy.raybox"
    assert (folder / "joined").read_bytes() == b""
    assert len(list((folder / "parts").iterdir())) == 6
    assert finished(rays, out) == 103


@pytest.mark.parametrize("platform", [sys.platform, "darwin"])
def test_bytes_of_another_file(tmp_path, platform, monkeypatch):
    monkeypatch.setattr(append_file.sys, "platform", platform)
    monkeypatch.setattr(append_file, "_READ", 1000)
    data = np.random.default_rng(0).bytes(4321)
    with make_folder(tmp_path / "folder") as folder:
        with folder.create("other") as file:
            file.write(data)
        grown = AppendFile(folder, "grown")
        grown.write(b"head")
        with folder.open("other") as other:
            assert b"".join(map(bytes, grown.append_from(other, 17, 4200))) == data[17:4217]
            grown.write(b"tail")
            assert grown.length == 4208
            with pytest.raises(OSError, match="has become shorter"):
                list(grown.append_from(other, 4000, 400))
        grown.truncate(4208)
        grown.close()
    assert (tmp_path / "folder" / "grown").read_bytes() == b"head" + data[17:4217] + b"tail"
