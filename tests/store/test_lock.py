"""The lock of a folder: one process at a time, no false refusals, nothing left behind."""

import errno
import os

import pytest

from processes import output_of
from raybox.errors import FileFormatError
from raybox.store.disk import DiskError
from raybox.store.lock import locked

fcntl = pytest.importorskip("fcntl")

pytestmark = pytest.mark.core

IN_USE = r"out: is in use by another process"


@pytest.fixture
def paths(tmp_path):
    return tmp_path / "out", tmp_path / "out.raybox"


def test_one_at_a_time(paths, tmp_path):
    with locked(*paths) as folder, pytest.raises(FileFormatError, match=IN_USE), locked(*paths):
        pass
    assert not list(tmp_path.iterdir())
    with locked(*paths) as folder:
        folder.create("results").close()
    assert os.listdir(paths[1]) == ["results"]


def test_a_lock_file_that_is_replaced_before_it_is_locked(paths, tmp_path, monkeypatch):
    """Its owner removes it, and a third process makes a new one: one lock, not two."""
    flock, third, first = fcntl.flock, [], locked(*paths)
    first.__enter__()

    def delayed(file, how):
        if not third:
            third.append(locked(*paths))
            first.__exit__(None, None, None)
            third[0].__enter__()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", delayed)
    with pytest.raises(FileFormatError, match=IN_USE), locked(*paths):
        pass
    third[0].__exit__(None, None, None)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_moved_before_it_is_locked(paths, tmp_path, monkeypatch):
    """As that of a dataset that is finished: the lock is that of the new folder."""
    flock, moved = fcntl.flock, tmp_path / "moved"

    def delayed(file, how):
        if not moved.exists():
            paths[1].rename(moved)
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", delayed)
    with locked(*paths) as folder:
        assert os.path.samestat(folder.facts(), paths[1].stat())


LOOP = """
import os, sys
from pathlib import Path
from raybox.errors import FileFormatError
from raybox.store.lock import locked
out, children = Path(sys.argv[1]), []
for number in range(4):
    children.append(os.fork())
    if not children[-1]:
        for _ in range(400):
            try:
                with locked(out, out.with_suffix(".raybox")) as folder:
                    with folder.create("results") as file:
                        file.write(b"results")
                    assert sorted(folder.names()) == ["lock", "results"]
                    folder.remove("results")
            except FileFormatError as error:
                if "is in use by another process" not in str(error):
                    print(error, flush=True)
            except BaseException as error:
                print(repr(error), flush=True)
        os._exit(0)
for child in children:
    os.waitpid(child, 0)
"""


def test_many_processes_at_one_output_in_a_loop(tmp_path):
    assert output_of("-c", LOOP, tmp_path / "out") == ""
    assert not list(tmp_path.iterdir())


FORK = """
import fcntl, os, sys, warnings
from pathlib import Path
from raybox.store.lock import locked
{}
out = Path(sys.argv[1])
(reader, writer), (started, start) = os.pipe(), os.pipe()
with locked(out, out.with_suffix(".raybox")):
    child = os.fork()
    if child:
        os.read(started, 1)  # until the child runs
    else:
        os.close(writer)
        os.write(start, b"1")
        os.read(reader, 1)  # until the parent has ended its part
if not child:
    os._exit(0)
with locked(out, out.with_suffix(".raybox")):  # the child is still there
    print("locked again")
os.close(writer)
os.waitpid(child, 0)
"""
NO_LOCKS = """
import errno
def no(*_): raise OSError(errno.ENOLCK, '')
fcntl.flock = no
warnings.simplefilter('ignore')
"""


NO_REMOVAL = """
from raybox.store.folder import Folder
def no(*_): raise OSError
Folder.remove = no
"""


@pytest.mark.parametrize("before", ["", NO_LOCKS, NO_REMOVAL])
def test_a_forked_child_neither_holds_nor_removes_the_lock(tmp_path, before):
    assert output_of("-c", FORK.format(before), tmp_path / "out") == "locked again\n"
    assert before == NO_REMOVAL or not list(tmp_path.iterdir())


@pytest.fixture
def refuse(monkeypatch):
    """Return a function that makes the system refuse locks with an error of this number."""

    def refuse_with(number):
        def fail(*_):
            raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", fail)

    return refuse_with


def test_a_file_system_without_locks(paths, tmp_path, refuse):
    """Two processes at one output lose work, but no part of one counts for the other."""
    refuse(errno.ENOLCK)
    warns = pytest.warns(UserWarning, match="offers no locks; do not write it by two processes")
    with warns, locked(*paths), locked(*paths):
        pass
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("number", [errno.EIO, errno.EPERM])
def test_a_lock_that_another_error_prevents(paths, tmp_path, refuse, monkeypatch, number):
    refuse(number)
    with pytest.raises(DiskError) as caught, locked(*paths):
        pass
    assert (caught.value.step, caught.value.errno) == ("locked", number)
    monkeypatch.undo()
    with locked(*paths):
        pass
    assert not list(tmp_path.iterdir())


def test_a_shared_lock(paths, tmp_path):
    """It outlasts the first process that has it, and keeps out those that want it alone."""
    first, second = locked(*paths, shared=True), locked(*paths, shared=True)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with pytest.raises(FileFormatError, match=IN_USE), locked(*paths):
        pass
    second.__exit__(None, None, None)
    with locked(*paths), pytest.raises(FileFormatError, match=IN_USE), locked(*paths, shared=True):
        pass
    assert not list(tmp_path.iterdir())
