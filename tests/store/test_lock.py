"""The lock of a folder: one process at a time, no false refusals, nothing left behind."""

import errno
import os
import subprocess
import sys

import pytest

from raybox.errors import FileFormatError
from raybox.store import lock, owner
from raybox.store.folder import make_folder
from raybox.store.lock import locked
from raybox.store.owner import OWNER, this_process

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


def run(code, *args):
    command = [sys.executable, "-c", "\n".join(line[4:] for line in code.splitlines()), *map(str, args)]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def test_many_processes_at_one_output_in_a_loop(tmp_path):
    assert run(LOOP, tmp_path / "out") == ""
    assert not list(tmp_path.iterdir())


FORK = """
    import os, sys
    from pathlib import Path
    from raybox.store.lock import locked
    out = Path(sys.argv[1])
    reader, writer = os.pipe()
    with locked(out, out.with_suffix(".raybox")):
        child = os.fork()
        if not child:
            os.close(writer)
            os.read(reader, 1)  # until the parent has ended its part
    if not child:
        os._exit(0)
    with locked(out, out.with_suffix(".raybox")):  # the child is still there
        print("locked again")
    os.close(writer)
    os.waitpid(child, 0)
"""


@pytest.mark.parametrize(
    "before",
    ["", "import fcntl, errno\n    def no(*_): raise OSError(errno.ENOLCK, '')\n    fcntl.flock = no"],
)
def test_a_forked_child_neither_holds_nor_removes_the_lock(tmp_path, before):
    code = FORK.replace(
        "    import os, sys",
        f"    import os, sys, warnings\n    warnings.simplefilter('ignore')\n    {before}",
        1,
    )
    assert run(code, tmp_path / "out") == "locked again\n"
    assert not list(tmp_path.iterdir())


@pytest.fixture
def no_locks(monkeypatch):
    """Make a file system without locks."""

    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", refuse)


@pytest.mark.usefixtures("no_locks")
@pytest.mark.filterwarnings("ignore:.*offers no locks")
def test_a_file_system_without_locks(paths, tmp_path):
    with pytest.warns(UserWarning, match="offers no locks") as warned, locked(*paths):
        pass
    with locked(*paths), pytest.raises(FileFormatError, match=IN_USE), locked(*paths):
        pass
    assert len(warned) == 1
    assert not list(tmp_path.iterdir())


def plant(path, **changes):
    """Write the lock of a process like this one."""
    with make_folder(path) as folder:
        folder.write_record("lock-other", OWNER, this_process()._replace(**changes))


def ended():
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    return child.pid


NOT_DECIDED = {
    "running": {},
    "another host": {"host": "another", "process": 1 << 22},
    "another namespace": {"namespace": 1, "process": 1 << 22},
    "another boot, in a container": {"boot": "another", "namespace": 1},
}


@pytest.mark.usefixtures("no_locks")
@pytest.mark.filterwarnings("ignore:.*offers no locks")
@pytest.mark.parametrize("changes", NOT_DECIDED.values(), ids=NOT_DECIDED)
def test_without_locks_a_process_that_may_run_is_refused(paths, changes):
    plant(paths[1], **changes)
    with pytest.raises(FileFormatError, match=IN_USE) as caught, locked(*paths):
        pass
    assert f"if no process uses the output, remove {paths[1] / 'lock-other'}" in str(caught.value)
    (paths[1] / "lock-other").unlink()
    with locked(*paths):
        pass
    assert not paths[1].exists()


@pytest.mark.usefixtures("no_locks")
@pytest.mark.filterwarnings("ignore:.*offers no locks")
@pytest.mark.parametrize("how", ["ended", "number used again", "another boot"])
def test_without_locks_a_process_that_has_ended_is_not(paths, how, monkeypatch):
    if how == "another boot":
        monkeypatch.setattr(owner, "_namespace", lambda: owner._FIRST_NAMESPACE)
        plant(paths[1], boot="another", process=1)
    elif how == "ended":
        plant(paths[1], process=ended())
    else:
        plant(paths[1], start=this_process().start + 1)
    with locked(*paths):
        pass
    assert not paths[1].exists()


OWNER_ELSEWHERE = """
    import errno, sys, warnings
    from pathlib import Path
    import fcntl
    from raybox.store.lock import locked
    def refuse(*_):
        raise OSError(errno.ENOLCK, "no locks")
    fcntl.flock = refuse
    warnings.simplefilter("ignore")
    out = Path(sys.argv[1])
    with locked(out, out.with_suffix(".raybox")):
        print("locked", flush=True)
        sys.stdin.read()
"""


def namespace(*command):
    return ["unshare", "--user", "--map-root-user", "--pid", "--fork", *command]


def can_unshare():
    try:
        return subprocess.run(namespace("true"), capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not can_unshare(), reason="makes a PID namespace")
@pytest.mark.usefixtures("no_locks")
def test_without_locks_a_process_of_another_namespace_is_refused(paths):
    """It runs, though no process has its number here."""
    code = "\n".join(line[4:] for line in OWNER_ELSEWHERE.splitlines())
    # not the first process there, whose number exists everywhere
    command = namespace("sh", "-c", '"$@"; true', "sh", sys.executable, "-c", code, str(paths[0]))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as elsewhere:
        assert elsewhere.stdout.readline() == "locked\n"
        (name,) = os.listdir(paths[1])
        with make_folder(paths[1]) as folder:
            there = folder.read_record(name, OWNER).value
        assert there.host == this_process().host
        assert there.namespace != this_process().namespace
        with pytest.raises(FileFormatError, match=IN_USE) as caught, locked(*paths):
            pass
        assert f"remove {paths[1] / name}" in str(caught.value)
        elsewhere.communicate("")
    assert not paths[1].exists()


@pytest.mark.usefixtures("no_locks")
def test_a_damaged_owner_counts_as_running(paths):
    paths[1].mkdir()
    for text in (b"", b"lock", b'{"raybox": '):
        (paths[1] / "lock-other").write_bytes(text)
        with pytest.raises(FileFormatError, match=IN_USE), locked(*paths):
            pass
        assert os.listdir(paths[1]) == ["lock-other"]


def test_this_process_runs():
    assert not this_process().has_ended()
    if sys.platform == "linux":
        assert this_process().boot
        assert this_process().namespace
        assert this_process().start > 0
    with pytest.raises(ValueError, match="no process"):
        owner._parse([*this_process()[:3], -1, 0])


@pytest.mark.parametrize("number", [errno.EIO, errno.EPERM])
def test_a_lock_that_another_error_prevents(paths, tmp_path, monkeypatch, number):
    def fail(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(FileFormatError) as caught, locked(*paths):
        pass
    problem = f"the file system locks no file there ({os.strerror(number)})"
    assert str(caught.value) == f"{paths[0]}: cannot be written: {problem}; give an output on another one"
    monkeypatch.undo()
    with locked(*paths):
        pass
    assert not list(tmp_path.iterdir())


def test_names_of_locks():
    assert [lock.is_lock(name) for name in ("lock", "lock-a", "locked", "results")] == [
        True,
        True,
        False,
        False,
    ]
