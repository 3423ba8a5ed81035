"""Object files on disk: damaged and foreign files, several processes at once, folders of others."""

import os
import sys
from pathlib import Path

import pytest

from raybox.compiler.jit import store
from raybox.compiler.jit.store import ObjectFile, cache_folder, load, save

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
CODE = ObjectFile("raybox_1", "(ib)", ("memset",), b"\x7fELF\n\0code\n")


@pytest.fixture
def path(tmp_path):
    """Where to store code, in a cache folder that does not exist yet."""
    store._prune.cache_clear()
    return tmp_path / "raybox" / "module.loop.o"


def test_stored_code_is_loaded_under_its_key_alone(path):
    new = CODE._replace(code=b"new")
    assert load(path, KEY) is None
    save(path, KEY, CODE)
    assert load(path, KEY) == CODE
    assert load(path, OTHER_KEY) is None
    save(path, OTHER_KEY, new)
    assert (load(path, KEY), load(path, OTHER_KEY)) == (None, new)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_a_file_renamed_to_another_key_is_not_loaded(path):
    other = path.with_name("module.other.o")
    save(other, OTHER_KEY, CODE)
    other.rename(path)
    assert load(path, KEY) is None
    # The checksum belongs to the key too.
    save(other, OTHER_KEY, CODE)
    path.write_bytes(other.read_bytes().replace(OTHER_KEY.hex().encode(), KEY.hex().encode()))
    assert load(path, KEY) is None


def test_two_processes_that_store_code_at_once_leave_whole_files(path, monkeypatch):
    """The second process stores its code between the first one's writing and renaming."""
    replace, interruptions, second = os.replace, [], CODE._replace(code=b"second")

    def interrupted(new, old, **folders):
        monkeypatch.setattr(os, "replace", replace)
        interruptions.append(new)
        assert load(path, KEY) is None
        save(path, KEY, second)
        assert load(path, KEY) == second
        replace(new, old, **folders)

    monkeypatch.setattr(os, "replace", interrupted)
    save(path, KEY, CODE)
    assert len(interruptions) == 1
    assert load(path, KEY) == CODE
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_code_that_cannot_be_written_is_not_stored(path):
    path.parent.write_text("no folder")
    save(path, KEY, CODE)
    assert load(path, KEY) is None
    path.parent.unlink()
    path.mkdir(parents=True)
    path.parent.chmod(0o700)
    save(path, KEY, CODE)
    assert load(path, KEY) is None
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.skipif(os.name == "nt", reason="folders have no mode there")
def test_a_folder_that_others_can_write_is_not_used(path):
    save(path, KEY, CODE)
    path.parent.chmod(0o702)
    assert load(path, KEY) is None
    save(path, OTHER_KEY, CODE)
    path.parent.chmod(0o700)
    assert load(path, KEY) == CODE


def test_the_most_recently_used_files_stay(path, monkeypatch):
    monkeypatch.setattr(store, "_FILES", 3)
    path.parent.mkdir(mode=0o700)
    old = [path.with_name(f"loop.{number}.o") for number in range(5)]
    for age, file in enumerate(old):
        save(file, KEY, CODE)
        os.utime(file, (1e9 - age, 1e9 - age))
    path.with_name("notes").touch()
    assert load(old[4], KEY) == CODE  # the oldest is used again
    store._prune.cache_clear()
    save(path, KEY, CODE)
    assert [file.exists() for file in [path, *old]] == [True, True, True, False, False, True]
    assert path.with_name("notes").exists()


def test_temporary_files_of_processes_that_ended_are_removed(path):
    path.parent.mkdir(mode=0o700)
    left, current = (path.with_name(f"new-{name}") for name in ("left", "current"))
    for file in (left, current):
        file.write_bytes(b"")
    os.utime(left, (1e9, 1e9))
    save(path, KEY, CODE)
    assert sorted(path.parent.iterdir()) == sorted([current, path])


def test_the_cache_folder_follows_the_platform(monkeypatch, tmp_path):
    monkeypatch.setenv("RAYBOX_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path / "raybox"
    monkeypatch.delenv("RAYBOX_CACHE_DIR")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    folders = {"win32": "local", "darwin": "Library/Caches", "linux": "xdg"}
    for platform, folder in folders.items():
        monkeypatch.setattr(sys, "platform", platform)
        assert cache_folder() == tmp_path / folder / "raybox"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == tmp_path / ".cache" / "raybox"

    def without_home():
        raise RuntimeError("no home")

    monkeypatch.setattr(Path, "home", without_home)
    assert cache_folder() is None
