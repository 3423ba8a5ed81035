"""Folders that others can write to: planted links are not followed, folders of other owners not used."""

import os

import pytest
from raybox.cast.journal import Journal

import raybox as rb
from raybox.cast import sum_stage, writer_stage
from raybox.io import checked_json, manifest, own_files
from streaming import ENDINGS, RAYS, SCENE, content, interrupted, put

pytestmark = pytest.mark.skipif(os.name != "posix", reason="owners and links are those of POSIX")

PRECIOUS = b"a file of the user\n" * 1000


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(PRECIOUS)
    return path


def planted(tmp_path, out, make, names, target):
    """Return the folder of an output's unfinished part, with links under some names."""
    folder = tmp_path / f"{out}.raybox-part"
    folder.mkdir()
    for name in names:
        make(target, folder / name)
    return folder


NAMES = {
    "npy": ["results.npy"],
    "csv": ["results.csv"],
    "parquet": ["results.parquet", "footers"],
    "npz": ["results.npz", "column.ray", "column.occluded"],
    "zarr": ["results.zarr", "column.ray"],
}


def outcome(*args, **how):
    """Cast; return the text of the error, or "" without one."""
    try:
        rb.stream.cast(*args, **how)
    except rb.FileFormatError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("make", [os.symlink, os.link])
@pytest.mark.parametrize("name", ["journal.json.new", "lock", "sums-103"])
def test_a_link_under_the_name_of_a_file(tmp_path, precious, make, name):
    """The file that it leads to never changes."""
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    folder = planted(tmp_path, out.name, make, [name], precious)
    text = outcome(SCENE, rays, out, query="deposit")
    kind = "is a symbolic link" if make is os.symlink else "is no regular file, or has a second name"
    way_out = f"find out who made it; remove the folder {folder}, or give an output in another folder"
    wanted = {
        "journal.json.new": "",  # it is made anew
        "lock": f"{folder / name}: {kind}; {way_out}",
        "sums-103": f"{folder}: exists, but has no journal; rename or remove it, or give another output",
    }
    assert text == wanted[name]
    assert out.exists() == (not text)
    assert precious.read_bytes() == PRECIOUS
    assert precious.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_a_link_under_the_name_of_a_part_file(tmp_path, precious, ending, make, monkeypatch):
    """It appears after the folder was checked, as in one that a group can write to."""
    rays, out, load = put(tmp_path / "rays.npz", RAYS), tmp_path / f"out.{ending}", Journal.load
    rb.stream.cast(SCENE, rays, whole := tmp_path / f"whole.{ending}", query="occluded")
    texts = []
    for name in NAMES[ending]:

        def plant(journal, name=name):
            load(journal)
            make(precious, journal.folder / name)

        with monkeypatch.context() as patch:
            patch.setattr(Journal, "load", plant)
            texts.append(outcome(SCENE, rays, out, query="occluded"))
        if texts[-1]:
            assert ("is a symbolic link" if make is os.symlink else "has a second name") in texts[-1]
            assert not out.exists()
        else:
            assert [*content(out).values()] == [*content(whole).values()]
            own_files.remove(out)
        assert precious.read_bytes() == PRECIOUS
    assert texts.count("") == (ending in ("npz", "zarr"))  # made anew


@pytest.mark.parametrize("suffix", [".raybox-part", ".raybox-parts"])
def test_a_link_under_the_name_of_the_folder(tmp_path, suffix):
    from raybox.cast.journal import open_journal

    from raybox.distributed.dask.part_folder import open_part_folder

    other, out = tmp_path / "other", tmp_path / "out.npy"
    other.mkdir()
    (tmp_path / f"out.npy{suffix}").symlink_to(other)
    opened = open_journal if suffix == ".raybox-part" else open_part_folder
    with pytest.raises(rb.FileFormatError, match="is no folder; rename or remove it"), opened(out, {}, {}):
        pass
    assert not list(other.iterdir())


def test_a_folder_of_another_owner(tmp_path, monkeypatch):
    """It is not used, whatever is in it; one is where the file system gives all files one owner."""
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    folder = tmp_path / "out.npy.raybox-part"
    folder.mkdir()
    owner = os.geteuid()
    if owner == 0:
        os.chown(folder, 12345, -1)
    else:
        monkeypatch.setattr(own_files.os, "geteuid", lambda: owner + 1)
        monkeypatch.setattr(own_files, "_owner_of_new", lambda _: owner + 1)
    with pytest.raises(rb.FileFormatError) as caught:
        rb.stream.cast(SCENE, rays, out)
    assert str(caught.value).startswith(f"{folder}: belongs to another user; remove it, or give an output in")
    monkeypatch.setattr(own_files, "_owner_of_new", lambda _: folder.stat().st_uid)
    folder.mkdir(exist_ok=True)
    assert rb.stream.cast(SCENE, rays, out).rays == 103


def test_a_link_that_appears_while_a_cast_runs(tmp_path, precious, monkeypatch):
    """Under the name of the next journal, before each is written."""
    monkeypatch.setattr(writer_stage, "SECONDS", 0.0)
    rays, out, save, links = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy", Journal.save, []

    def plant(journal, *progress):
        links.append((journal.folder / "journal.json.new").symlink_to(precious))
        save(journal, *progress)

    monkeypatch.setattr(Journal, "save", plant)
    rb.stream.cast(SCENE, rays, out, chunk=20)
    assert len(links) > 2
    assert precious.read_bytes() == PRECIOUS
    monkeypatch.setattr(sum_stage.Sums, "store", planting(sum_stage.Sums.store, precious))
    rb.stream.cast(SCENE, rays, tmp_path / "sums.npy", query="deposit", chunk=20)
    assert precious.read_bytes() == PRECIOUS


def planting(store, precious):
    def wrapped(sums, path):
        path.symlink_to(precious)
        return store(sums, path)

    return wrapped


def test_links_to_folders_are_removed_not_emptied(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    (other / "file").write_bytes(PRECIOUS)
    rays, out = interrupted(tmp_path, monkeypatch)
    (tmp_path / "out.npy.raybox-part" / "results.zarr").symlink_to(other)
    assert rb.stream.cast(SCENE, rays, out, chunk=20).resumed > 0
    assert (other / "file").read_bytes() == PRECIOUS
    assert not (tmp_path / "out.npy.raybox-part").exists()


def test_manifests(tmp_path, precious):
    (tmp_path / "scene.json").symlink_to(precious)
    manifest.write(tmp_path / "scene.json", {}, [])
    assert not (tmp_path / "scene.json").is_symlink()
    assert manifest.read(tmp_path / "scene.json").files == {}
    assert precious.read_bytes() == PRECIOUS


def test_the_manifest_of_a_cast_on_a_cluster(tmp_path, precious):
    from raybox.distributed.dask.part_folder import open_part_folder

    folder = tmp_path / "out.npy.raybox-parts"
    folder.mkdir()
    (folder / "job.json.new").symlink_to(precious)
    with open_part_folder(tmp_path / "out.npy", {}, {}) as opened:
        assert checked_json.read(folder / "job.json")[0]["id"] == opened.job_id
    assert precious.read_bytes() == PRECIOUS
    assert not folder.exists()
