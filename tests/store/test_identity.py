"""Identity of inputs: every change is found, a copy or another name is not one."""

import os
import shutil

import pytest

from raybox.store.identity import InputFiles, identity

pytestmark = pytest.mark.core


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "rays.npy"
    path.write_bytes(b"a" * 200_000)
    return path


def rewrite(path):
    """Other content of the same size and times."""
    stat = path.stat()
    with path.open("r+b") as file:
        file.write(b"b")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def replace(path):
    """An equal file of the same times under the same name."""
    shutil.copy2(path, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


@pytest.mark.parametrize("change", [rewrite, replace, os.unlink], ids=["rewritten", "replaced", "removed"])
def test_a_file_that_changes(path, change):
    inputs = InputFiles([path])
    assert inputs.changed() == []
    assert len(identity(path)) == 1
    change(path)
    assert inputs.changed() == [path]


def test_a_folder_is_its_files(path):
    folder = path.parent
    (folder / "in").mkdir()
    (folder / "in" / "c").write_bytes(b"c")
    for change in (rewrite, replace, os.unlink):
        inputs = InputFiles([folder, folder / "in"])
        change(path)
        assert inputs.changed() == [folder]
