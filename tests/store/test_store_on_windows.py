"""Folders, records and locks on a simulated Windows: by paths, without modes."""

import os
import sys

import pytest

from raybox.errors import FileFormatError
from raybox.store.folder import make_folder, open_folder
from raybox.store.lock import locked
from test_folder import (  # noqa: F401  # those that hold on Windows, too
    folder,
    precious,
    test_a_path_is_no_name,
    test_a_record_that_cannot_be_written_changes_nothing,
    test_files_are_written_read_renamed_moved,
)
from windows import windows  # noqa: F401

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
    pytest.mark.usefixtures("windows"),
]


def test_folders(tmp_path):
    with make_folder(tmp_path / "folder") as made, made.subfolder("in") as inner:
        inner.create("file").close()
        assert (made.names(), inner.names()) == (["in"], ["file"])
        made.sync()
        made.publish()
        assert os.path.samestat(made.facts(), os.stat(tmp_path / "folder"))
        (tmp_path / "folder" / "link").symlink_to(tmp_path / "folder" / "in" / "file")
        for function in (made.open, made.open_or_create):
            with pytest.raises(FileFormatError, match="is a symbolic link"):
                function("link")
        made.remove("in")
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    with pytest.raises(FileFormatError, match="is no folder"):
        open_folder(tmp_path / "link")
    open_folder(tmp_path / "link", own=False).close()


def test_locks(tmp_path):
    paths = tmp_path / "out", tmp_path / "out.raybox"
    with locked(*paths), pytest.raises(FileFormatError, match="is in use by another process"), locked(*paths):
        pass
    assert not list(tmp_path.iterdir())
