"""Identity of inputs: every change is found, a copy or another name is not one."""

import os
import shutil

import pytest

from raybox.store.identity import InputFiles, content_facts, fingerprint, identity

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
    inputs, before = InputFiles([path]), fingerprint(path)
    assert inputs.changed() == []
    assert len(identity(path)) == 1
    change(path)
    assert inputs.changed() == [path]
    if path.exists():
        assert fingerprint(path) != before


def test_a_folder_is_its_files(path):
    folder = path.parent
    (folder / "in").mkdir()
    (folder / "in" / "c").write_bytes(b"c")
    facts = content_facts(folder)
    for change in (rewrite, replace, os.unlink):
        inputs = InputFiles([folder, folder / "in"])
        change(path)
        assert inputs.changed() == [folder]
    assert content_facts(folder) != facts


def test_a_file_that_moves_has_the_same_content(path, tmp_path):
    facts, before = content_facts(path), fingerprint(path)
    shutil.copy2(path, tmp_path / "copy")
    assert content_facts(tmp_path / "copy") == facts
    assert fingerprint(tmp_path / "copy") != before
    shutil.copytree(tmp_path, other := tmp_path.with_name("other"))
    assert content_facts(other) == content_facts(tmp_path)
