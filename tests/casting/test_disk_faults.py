"""Each call that changes a disk fails, or kills the process: the next call of the cast ends right."""

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest

import raybox as rb
from processes import output_of
from raybox.casting import finishing
from raybox.casting.cast_folder import FILES

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import damaged_parts  # in benchmarks/
import killed_cases
from disk_faults import ERRORS, error, faults, killed
from streaming import IDS, RAYS, SCENE, content, put, run

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
EVERY = [way if way in QUICK else pytest.param(way, marks=pytest.mark.long) for way in WAYS]


def cast(folder, way, rays):
    name, how = WAYS[way]
    return rb.cast(SCENE, rays, f"{folder}/{name}", chunk=60, workers=1, **how)


@pytest.fixture
def rays(tmp_path):
    return put(tmp_path / "rays.npy", RAYS)


def left(folder):
    """Return the folder of an unfinished output."""
    return next(iter(folder.glob("*.raybox")), folder / "out.raybox")


def whole(folder, way, rays):
    """Return the content of an output that nothing disturbs, and the number of calls of its cast."""
    folder.mkdir()
    with faults() as calls:
        cast(folder, way, rays)
    return [*content(folder).values()], len(calls.names)


def error_of(folder, way, rays, number, code):
    """Return the text of the error of a cast, one of whose calls fails; None if it did not need that call."""
    try:
        with faults(number, error(code)):
            cast(folder, way, rays)
    except rb.RayboxError as found:
        return str(found)
    return None


@pytest.mark.parametrize("way", EVERY)
def test_an_error_at_each_call(tmp_path, rays, way):
    wanted, count = whole(tmp_path / "whole", way, rays)
    assert count > 20
    refused = 0
    for number in range(count):
        folder = tmp_path / f"failed {number}"
        folder.mkdir()
        code = ERRORS[number % len(ERRORS)]
        text = error_of(folder, way, rays, number, code)
        if text is not None:
            refused += 1
            assert "\n" not in text
            assert os.strerror(code) in text
            assert cast(folder, way, rays).rays == 103
        shutil.rmtree(left(folder), ignore_errors=True)  # what could not be removed
        assert [*content(folder).values()] == wanted, number
        shutil.rmtree(folder)
    assert refused > count // 2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forks of this process")
@pytest.mark.parametrize("way", EVERY)
def test_killed_at_each_call(tmp_path, rays, way):
    wanted, count = whole(tmp_path / "whole", way, rays)
    names = set()
    for number in range(count - 4):  # threads of the next one may make a call less
        folder = tmp_path / f"killed {number}"
        folder.mkdir()
        names.add(killed(lambda folder=folder: cast(folder, way, rays), number))
        if left(folder).exists() or not (folder / WAYS[way][0]).exists():
            assert cast(folder, way, rays).rays == 103
        assert not left(folder).exists()
        assert [*content(folder).values()] == wanted, number
        shutil.rmtree(folder)
    assert {"replace", "fsync", "write", "unlink"} <= names


@pytest.fixture
def umask_of_groups():
    before = os.umask(0o002)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask_of_groups")
@pytest.mark.skipif(os.name != "posix", reason="modes of folders")
def test_a_dataset_that_groups_may_write_to_continues(tmp_path, rays):
    wanted, _ = whole(tmp_path / "whole", "dataset", rays)
    with faults() as calls:
        cast(tmp_path, "dataset", rays)
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o775
    shutil.rmtree(tmp_path / "out")
    published = calls.names.index("fchmod")
    assert "put in its place" in error_of(tmp_path, "dataset", rays, published + 1, errno.EIO)
    assert cast(tmp_path, "dataset", rays).resumed == 103
    assert [*content(tmp_path / "out").values()] == wanted
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o775


@pytest.mark.parametrize("out", ["out.npy", "out.csv", "out.npz", "out.parquet", "out.zarr"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_part_that_the_disk_loses_before_it_is_read(tmp_path, rays, monkeypatch, out, number):
    """It was whole when it was compared; now its bytes are zeros."""
    how, check = {"chunk": 60, "query": "all"}, finishing._check_room
    rb.cast(SCENE, rays, tmp_path / f"whole-{out}", **how)

    def losing(cast, source):
        check(cast, source)
        path = cast.parts.parts.path / source.parts[number].name
        path.write_bytes(bytes(path.stat().st_size))

    with monkeypatch.context() as patch:
        patch.setattr(finishing, "_check_room", losing)
        with pytest.raises(rb.FileFormatError, match="is damaged; cast again: it is written anew"):
            rb.cast(SCENE, rays, tmp_path / out, **how)
    assert rb.cast(SCENE, rays, tmp_path / out, **how).resumed > 0
    found, wanted = (content(tmp_path / f"{start}{out}") for start in ("", "whole-"))
    assert [*found.values()] == [*wanted.values()]


def test_metadata_of_zarr_that_the_disk_loses(tmp_path, rays, monkeypatch):
    zarr = pytest.importorskip("zarr")
    create = zarr.create_array

    def losing(path, **how):
        found = create(path, **how)
        (path / how["name"] / "zarr.json").write_bytes(bytes(100))
        return found

    monkeypatch.setattr(zarr, "create_array", losing)
    monkeypatch.setattr(zarr.Array, "__setitem__", lambda one, *_: zarr.open_array(one.store_path))
    with pytest.raises(rb.FileFormatError, match="cannot be read just after it was written"):
        rb.cast(SCENE, rays, tmp_path / "out.zarr", query="count")


def test_files_for_other_processes_that_get_no_name(tmp_path, rays, monkeypatch):
    replace = os.replace

    def failing(old, new, **folders):
        if new == FILES:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        replace(old, new, **folders)

    monkeypatch.setattr(os, "replace", failing)
    how = {"chunk": 60, "workers": 1, "blocks": [0, 1]}
    with pytest.raises(rb.RayboxError, match="cannot be named"):
        rb.cast(SCENE, rays, tmp_path / "out.npy", **how)
    monkeypatch.undo()
    rb.cast(SCENE, rays, tmp_path / "out.npy", **how)
    assert rb.casting.finish(tmp_path / "out.npy.raybox").rays == 103


@pytest.mark.parametrize("name", ["ready.json", "lower.npy"])
def test_files_for_other_processes_of_which_one_is_lost(tmp_path, rays, name):
    how = {"chunk": 60, "workers": 1, "blocks": [0, 1]}
    rb.cast(SCENE, rays, tmp_path / "out.npy", **how)
    folder = tmp_path / "out.npy.raybox"
    (folder / FILES / name).unlink()
    assert rb.cast(SCENE, rays, tmp_path / "out.npy", **how).resumed == 103
    assert rb.casting.finish(folder).rays == 103


SCRIPT = Path(__file__).parents[2] / "benchmarks" / "faulty_disk.py"


@pytest.mark.long
@pytest.mark.skipif(
    shutil.which("cc") is None or sys.platform != "linux", reason="compiles a library for Linux"
)
def test_each_call_of_the_system_fails_for_some_outputs():
    """A share of benchmarks/faulty_disk.py."""
    ways = "`.npy`", "`.npy` by blocks", "`.zarr`", "dataset of Parquet", "sums"
    table = output_of(SCRIPT, "--every", 9, *ways).splitlines()
    numbers = (int(number.replace(",", "")) for number in table[-1].split("|")[3:-1])
    faults, right, refused, then_right, failures = numbers
    assert faults > 200
    assert right > 50
    assert refused == then_right > 50
    assert failures == 0


posix = pytest.mark.skipif(os.name != "posix", reason="forks, and kills by signals")


def failures(found):
    """Return what failed, and what was not offered; assert that some casts were killed."""
    found = list(found)
    assert sum(outcome.kills for _, outcome in found) > len(found) // 3
    return [(str(case), one.failure) for case, one in found if one.failure or not one.offered]


def some_cases(number):
    """Return cases of every query and output, spread over all."""
    every = list(killed_cases.cases())
    return every[:: len(every) // number + 1]


def campaign(expression, folder):
    """Return the failures that a process of its own prints: it forks, and has no threads of other tests."""
    code = f"""
        import sys
        from pathlib import Path
        import damaged_parts, killed_cases, killed_casts, killed_outcomes
        from test_disk_faults import failures, links, some_cases
        files = killed_cases.write_inputs(Path(sys.argv[1]))
        print(failures({expression}))
    """
    return run(code, folder).strip()


@posix
@pytest.mark.long
def test_killed_casts_continue_to_the_same_bytes(tmp_path):
    casts = "killed_casts.campaign(24, files, killed_outcomes.forked, some_cases(24), 3)"
    assert campaign(casts, tmp_path) == "[]"


@posix
@pytest.mark.long
def test_killed_casts_whose_rays_change_between_calls(tmp_path):
    how = "files, killed_outcomes.forked, some_cases(16), 3, changing=True"
    assert (
        campaign(f"(killed_cases.write_others(files), killed_casts.campaign(16, {how}))[1]", tmp_path) == "[]"
    )


@posix
@pytest.mark.long
def test_damaged_parts_are_cast_again_or_refused(tmp_path):
    assert campaign("damaged_parts.damaged(30, files, some_cases(30), 4)", tmp_path) == "[]"


@posix
@pytest.mark.long
def test_nothing_outside_is_touched(tmp_path):
    assert campaign("links(files)", tmp_path) == "[]"


def links(files):
    """Return the outcomes of one cast with links at the names in its folder."""
    case = next(one for one in killed_cases.cases() if one.out == "parquet" and not one.dataset)
    found = [one for one in damaged_parts.planted(files, [case], 5) if one[1].offered]
    assert len(found) > 18
    return found


def test_the_cases_have_every_query_format_and_option():
    every = list(killed_cases.cases())
    assert {case.query for case in every} == set(killed_cases.QUERIES)
    assert {(case.out, case.dataset) for case in every} > {(out, False) for out in killed_cases.FILES}
    assert {case.scene for case in every} == {*killed_cases.ANY_SCENE}
    assert {name for case in every for name in case.options} == {
        "values",
        "weights",
        "where",
        "labels",
        "carry",
    }
