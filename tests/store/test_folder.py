"""Trusted folders: only those of this user, no name followed, nothing outside touched."""

import errno
import os
import stat

import pytest

from raybox.errors import FileFormatError
from raybox.store import folder as folders
from raybox.store.folder import Folder, make_folder, open_folder
from raybox.store.record import RecordKind

pytestmark = [
    pytest.mark.core,
    pytest.mark.skipif(os.name != "posix", reason="owners, modes and links are those of POSIX"),
]

PRECIOUS = b"a file of the user\n" * 1000
KIND = RecordKind("test thing", 1, list)


@pytest.fixture
def precious(tmp_path):
    path = tmp_path / "precious"
    path.write_bytes(PRECIOUS)
    yield path
    assert path.read_bytes() == PRECIOUS


@pytest.fixture
def folder(tmp_path):
    with make_folder(tmp_path / "folder") as made:
        yield made


def test_a_new_folder_is_private(folder):
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    with folder.subfolder("in") as inner:
        assert stat.S_IMODE(inner.path.stat().st_mode) == 0o700
        inner.create("file").close()
    assert folder.names() == ["in"]
    folder.remove("in")
    folder.remove("missing")
    assert folder.names() == []
    with pytest.raises(FileNotFoundError):
        open_folder(folder.path / "missing")


def test_files_are_written_read_renamed_moved(folder, tmp_path):
    with folder.create("a") as file:
        assert file.write(b"first") == 5
        file.write(b" second")
    folder.rename("a", "b")
    assert folder.stat("a") is None
    with folder.open("b") as file:
        assert file.read() == b"first second"
        with pytest.raises(OSError, match="write"):
            file.write(b"x")
    with folder.open_or_create("b") as file, folder.open_or_create("c"):
        assert file.read(5) == b"first"
    folder.move_to("b", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == b"first second"
    assert folder.names() == ["c"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc/passwd", "../precious"])
def test_a_path_is_no_name(folder, name, precious):
    for function in (folder.create, folder.open, folder.remove, folder.stat, folder.subfolder):
        with pytest.raises(ValueError, match="no name of a file"):
            function(name)


@pytest.mark.parametrize("make", [os.symlink, os.link])
def test_links_under_the_name_of_a_file(folder, precious, make):
    make(precious, folder.path / "name")
    for function in (folder.open, folder.open_or_create):
        with pytest.raises(FileFormatError) as caught:
            function("name")
        kind = "is a symbolic link" if make is os.symlink else "has a second name"
        assert kind in str(caught.value)
        assert f"find out who made it; remove the folder {folder.path}" in str(caught.value)
    with folder.create("name") as file:  # in its place
        file.write(b"new")
    make(precious, folder.path / "record")
    folder.write_record("record", KIND, [1])
    assert folder.read_record("record", KIND).value == [1]
    make(precious, folder.path / "to remove")
    folder.remove("to remove")


def test_a_link_that_appears_after_the_check(folder, precious, monkeypatch):
    (folder.path / "name").symlink_to(precious)
    (folder.path / "absent").symlink_to(precious.parent / "new")
    monkeypatch.setattr(Folder, "stat", lambda *_: None)
    for function in (folder.open, folder.open_or_create, folder.create):
        for name in ("name", "absent"):
            if function == folder.create:  # in its place
                function(name).close()
                assert not (folder.path / name).is_symlink()
                continue
            with pytest.raises(OSError, match="symbolic links"):
                function(name)
    assert not (precious.parent / "new").exists()


def test_a_pipe_does_not_wait(folder, monkeypatch):
    os.mkfifo(folder.path / "pipe")
    for patch in (lambda: None, lambda: monkeypatch.setattr(Folder, "stat", lambda *_: None)):
        patch()
        for function in (folder.open, folder.open_or_create):
            with pytest.raises(FileFormatError, match="no regular file"):
                function("pipe")


def test_links_to_folders(folder, precious, tmp_path):
    (tmp_path / "link").symlink_to(folder.path)
    (folder.path / "outside").symlink_to(tmp_path)
    for function, path in ((make_folder, tmp_path / "link"), (make_folder, precious), (open_folder, precious),
                           (open_folder, tmp_path / "link"), (folder.subfolder, "outside")):  # fmt: skip
        with pytest.raises(FileFormatError, match="is no folder; rename or remove it"):
            function(path)
    folder.remove("outside")
    assert tmp_path.exists()


def test_a_folder_that_is_renamed_and_replaced(folder, tmp_path):
    """All names are those of the folder that was opened."""
    folder.path.rename(tmp_path / "moved")
    folder.path.mkdir()
    (folder.path / "trap").touch()
    folder.create("mine").close()
    folder.remove("trap")
    folder.write_record("record", KIND, [1], durable=True)
    assert os.listdir(folder.path) == ["trap"]
    assert sorted(os.listdir(tmp_path / "moved")) == folder.names() == ["mine", "record"]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777, 0o720])
def test_a_folder_that_others_can_write_to(tmp_path, mode, monkeypatch):
    path = tmp_path / "folder"
    path.mkdir()
    path.chmod(mode)
    with pytest.raises(FileFormatError) as caught:
        make_folder(path)
    text = "can be written to by other users; if all in it is yours, run chmod go-w for it"
    assert str(caught.value) == f"{path}: {text}, or give an output in another folder"
    assert os.listdir(path) == []
    facts = os.stat_result([stat.S_IFREG | 0o777, *path.stat()[1:]])
    monkeypatch.setattr(folders, "_facts_of_new", lambda _: facts)  # a file system without modes
    make_folder(path).close()
    path.chmod(mode & ~0o022)
    monkeypatch.undo()
    make_folder(path).close()


def test_a_folder_of_another_owner(tmp_path, monkeypatch):
    """It is not used; one is where the file system gives all files one owner."""
    path, owner = tmp_path / "folder", os.geteuid()
    path.mkdir()
    if owner == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(folders.os, "geteuid", lambda: owner + 1)
    new = os.stat_result([stat.S_IFREG | 0o600, 0, 0, 1, owner + (owner > 0), 0, 0, 0, 0, 0])
    monkeypatch.setattr(folders, "_facts_of_new", lambda _: new)
    with pytest.raises(FileFormatError, match="belongs to another user; remove it, or give an output in"):
        make_folder(path)
    monkeypatch.setattr(folders, "_facts_of_new", lambda _: path.stat())
    make_folder(path).close()


def test_a_published_folder_has_the_mode_of_a_new_one(folder, tmp_path):
    (tmp_path / "usual").mkdir()
    folder.publish()
    assert folder.path.stat().st_mode == (tmp_path / "usual").stat().st_mode
    assert folder.names() == []


def test_a_record_that_cannot_be_written_changes_nothing(folder, monkeypatch):
    before = folder.write_record("record", KIND, [1])
    monkeypatch.setattr(Folder, "rename", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        folder.write_record("record", KIND, [2])
    assert folder.read_record("record", KIND) == ([1], before)
    assert folder.names() == ["record"]


def test_a_closed_folder(folder):
    folder.close()
    folder.close()
    for use in (folder.names, folder.facts, lambda: folder.create("name")):
        with pytest.raises(ValueError, match="is closed"):
            use()
    assert not list(folder.path.iterdir())


def test_a_folder_whose_closing_fails_is_closed_once(tmp_path, monkeypatch):
    """Its descriptor may be another file's by the time of a second call."""
    made, closed = make_folder(tmp_path / "folder"), []
    close = os.close

    def failing(descriptor):
        closed.append(descriptor)
        close(descriptor)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "close", failing)
    made.close()
    made.close()
    del made
    assert len(closed) == 1
