"""The lock of an unfinished output: one process at a time, no false refusals, nothing left behind."""

import errno
import os
import socket
import subprocess
import sys

import pytest
from click.testing import CliRunner
from raybox.cast.journal import open_journal

import raybox as rb
from raybox.cli import main
from streaming import BOXES, RAYS, SCENE, put, run

fcntl = pytest.importorskip("fcntl")

IN_USE = r"out\.npy: is in use by another process"


def test_a_lock_file_that_is_replaced_before_it_is_locked(tmp_path, monkeypatch):
    """Its owner removes it, and a third process makes a new one: one lock, not two."""
    out, flock, third = tmp_path / "out.npy", fcntl.flock, []
    owner = open_journal(out, {}, {})
    owner.__enter__()

    def delayed(file, how):
        if not third:
            third.append(open_journal(out, {}, {}))
            owner.__exit__(None, None, None)
            third[0].__enter__()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", delayed)
    with pytest.raises(rb.FileFormatError, match="another process"), open_journal(out, {}, {}):
        pass
    third[0].__exit__(None, None, None)
    assert not list(tmp_path.iterdir())


LOOP = """
    import os, sys
    from pathlib import Path
    from raybox.errors import FileFormatError
    from raybox.cast.journal import open_journal
    out, children = Path(sys.argv[1]), []
    for number in range(4):
        children.append(os.fork())
        if not children[-1]:
            for _ in range(400):
                try:
                    with open_journal(out, {}, {}) as journal:
                        (journal.folder / "results.npy").write_bytes(b"results")
                except FileFormatError as error:
                    if "is in use by another process" not in str(error):
                        print(error, flush=True)
                except BaseException as error:
                    print(repr(error), flush=True)
            os._exit(0)
    for child in children:
        os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="starts forks of one process, to be quick")
def test_many_processes_at_one_output_in_a_loop(tmp_path):
    assert run(LOOP, tmp_path / "out.npy") == ""
    assert not list(tmp_path.iterdir())


@pytest.fixture
def no_locks(monkeypatch):
    """Make a file system without locks."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.usefixtures("no_locks")
@pytest.mark.filterwarnings("error")
def test_a_file_system_without_locks(tmp_path):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    assert rb.stream.cast(SCENE, rays, out).rays == 103
    with open_journal(out, {}, {}), pytest.raises(rb.FileFormatError, match=IN_USE):
        rb.stream.cast(SCENE, rays, out)
    assert rb.stream.cast(SCENE, rays, out).rays == 103
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.npy", "rays.npz"]


@pytest.mark.usefixtures("no_locks")
def test_without_locks_those_of_ended_processes_do_not_count(tmp_path):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    folder = tmp_path / "out.npy.raybox-part"
    folder.mkdir()
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    ended = folder / f"lock-{socket.gethostname()}-{child.pid}-abc"
    ended.touch()
    other_host = folder / f"lock-of-another-host-{child.pid}-abc"
    other_host.touch()
    with pytest.raises(rb.FileFormatError, match=IN_USE) as caught:
        rb.stream.cast(SCENE, rays, out)
    assert f"if that process has ended, remove {other_host}" in str(caught.value)
    other_host.unlink()
    assert rb.stream.cast(SCENE, rays, out).rays == 103
    assert not folder.exists()


@pytest.mark.parametrize("number", [errno.EIO, errno.EPERM])
def test_a_lock_that_another_error_prevents(tmp_path, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    with pytest.raises(rb.FileFormatError) as caught:
        rb.stream.cast(SCENE, rays, out)
    problem = f"the file system locks no file there ({os.strerror(number)})"
    assert str(caught.value) == f"{out}: cannot be written: {problem}; give an output on another one"
    rb.save(tmp_path / "boxes.npz", BOXES)
    command = ["cast", *map(str, (tmp_path / "boxes.npz", rays, "-o", out))]
    done = CliRunner().invoke(main, command)
    assert (done.exit_code, done.output.splitlines()) == (2, [f"raybox: {caught.value}"])
    monkeypatch.undo()
    assert rb.stream.cast(SCENE, rays, out).rays == 103
    assert sorted(path.name for path in tmp_path.iterdir()) == ["boxes.npz", "out.npy", "rays.npz"]
