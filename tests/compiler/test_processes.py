"""Kernels that other processes compile: which, where none may, and processes that fail or are left behind.

Scripts run with an empty cache. The kernel is the smallest of the list: it compiles in 0.1 s.
"""

import os
import signal
import subprocess
import sys
from inspect import unwrap

import pytest

from processes import output_of
from raybox.cli.demo import _expect_kernels
from raybox.compiler.decorators import ALONGSIDE
from raybox.compiler.jit import lines, processes
from raybox.queries.batches import packet_batches, ray_groups
from raybox.store.lock import locked
from waiting import wait_until

pytest.importorskip("numba", reason="needs Numba")


pytestmark = pytest.mark.jit

SCRIPT = """
import sys
import numpy as np
from raybox.compiler import cores, entry_points
from raybox.compiler.jit import compile as jit
from raybox.compiler.jit import processes
from raybox.queries.path_sums.arguments import _count_others
cores.cores = processes.cores = lambda: 2
made, make, started, begin = [], jit.compile_entry, [], processes._Process.start
def compile_entry(function, *rest):
    made.append(function.__name__)
    return make(function, *rest)
def start(process):
    started.append(1)
    begin(process)
jit.compile_entry, processes._Process.start = compile_entry, start
BEFORE
entry_points.expect([_count_others])
AFTER
print(*(_count_others(np.full(3, value).view(np.int64)) for value in (0.0, np.inf)), len(started), *made)
"""
STARTED = """
import time
while not processes._RUNNING or next(iter(processes._RUNNING))._process is None:
    time.sleep(0.01)
"""
TAKEN = """
import time
while processes._QUEUE:
    time.sleep(0.01)
"""
THERE, HERE = "0 3 1\n", "0 3 1 _count_others\n"
NONE = "0 3 0 _count_others\n"
LINE = "raybox.queries.path_sums.arguments._count_others(i8:1r)"


def run(cache, before="", after="", *flags, **environment):
    script = SCRIPT.replace("BEFORE", before).replace("AFTER", after)
    return output_of(*flags, "-c", script, RAYBOX_CACHE_DIR=str(cache), **environment)


def test_a_kernel_is_compiled_by_another_process_and_stored(tmp_path):
    assert run(tmp_path, after=TAKEN) == THERE
    assert run(tmp_path, after=TAKEN) == "0 3 0\n"  # stored: nothing is started


def test_the_process_has_the_flags_and_the_modules_of_this_one(tmp_path):
    """Byte code differs with -O, and so does the key; modules come from a path that only this process has."""
    paths = f"sys.path[:0] = {[path for path in sys.path if 'src' in path]!r}"
    assert run(tmp_path, paths, TAKEN, "-O") == THERE
    (tmp_path / "beacon.py").write_text(f"open({str(tmp_path / 'seen')!r}, 'w').close()")
    program = "processes._PROGRAM = processes._PROGRAM.replace('; from', '; import beacon; from')"
    assert run(tmp_path / "other", f"{program}\nsys.path.append({str(tmp_path)!r})", TAKEN) == THERE
    assert (tmp_path / "seen").exists()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("processes._PROGRAM = 'raise SystemExit(3)'", TAKEN),
        ("processes._PROGRAM = 'print(input())'", TAKEN),
        ("processes._PROGRAM = 'import time; time.sleep(1000)'", f"{STARTED}{TAKEN}\nprocesses.stop()"),
        ("processes._PROGRAM = 'import time; time.sleep(1000)'", "processes.stop()"),
        ("sys.executable = '/nowhere/python'", ""),
    ],
)
def test_a_process_that_fails_or_is_killed_costs_nothing_but_time(tmp_path, before, after):
    assert run(tmp_path, before, after) == HERE


@pytest.mark.parametrize(
    "before",
    [
        "sys.executable = ''",
        "sys.executable = None",
        "sys.executable = '/usr/sbin/httpd'",
        "processes.cores = lambda: 1",
        "import multiprocessing.process as m; m.parent_process = lambda: 'a parent'",
        "import types; w = sys.modules['distributed.worker'] = types.ModuleType('w')\n"
        "w.Worker = type('Worker', (), {'_instances': {1}})",
        "import os; os.environ['RAYBOX_CACHE_DIR'] = sys.orig_argv[0]",
    ],
)
def test_none_is_started_where_it_cannot_help(tmp_path, before):
    assert run(tmp_path, before) == NONE


def test_workers_of_dask_start_none(cluster):
    assert not any(cluster.run(processes.are_allowed).values())


def test_all_processes_of_a_cache_folder_share_a_limit(tmp_path):
    """With both locks taken, as by another program, a process ends before it compiles."""
    (tmp_path / "raybox").mkdir(mode=0o700)
    first, second = (tmp_path / "raybox" / f"compiling-{number}" for number in range(2))
    program = "processes._PROGRAM = processes._PROGRAM.replace('main()', 'w.cores = lambda: 2; main()')"
    program += ".replace('; from', '; import raybox.compiler.jit.worker as w; from')"
    with locked(first, first), locked(second, second):
        assert run(tmp_path, program, TAKEN) == HERE
    (file,) = (tmp_path / "raybox").glob("*.o")
    file.unlink()
    with locked(first, first):
        assert run(tmp_path, program, TAKEN) == THERE


def test_a_forked_process_has_none_of_its_parents(tmp_path):
    fork = f"""{STARTED}
import os
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
    processes.stop()
elif not processes._RUNNING and processes.counts() == (0, 0):
    started.clear()
"""
    assert run(tmp_path, "processes._PROGRAM = 'input()'", fork) == NONE + THERE


@pytest.mark.skipif(os.name == "nt", reason="signals")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_a_process_ends_with_its_parent_and_by_ctrl_c(tmp_path, end):
    """While it compiles a kernel of some seconds, for which the parent waits."""
    script = (
        SCRIPT.replace("BEFORE", "").split("entry_points.expect")[0]
        + f"""
processes.start([{next(line for line in lines._listed().values() if "traverse_packets" in line)!r}])
{STARTED}
print(next(iter(processes._RUNNING))._process.pid, flush=True)
try:
    processes.wait_for(*processes._LINES, lambda line: False)
finally:
    processes.stop()
"""
    )
    env = os.environ | {"RAYBOX_CACHE_DIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", script], env=env, stdout=-1, stderr=-1, text=True)
    pid = int(parent.stdout.readline())
    assert is_running(pid)
    parent.send_signal(end)
    error = parent.communicate()[1]
    wait_until(lambda: not is_running(pid), "the process has ended")
    assert end == signal.SIGKILL or "KeyboardInterrupt" in error
    assert not list(tmp_path.rglob("*.o"))


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_callers_share_code_whether_their_arrays_are_read_only(tmp_path):
    array = "array = np.zeros(6, np.int64); array.flags.writeable = False; _count_others(array)"
    assert run(tmp_path, "entry_points.expect = len", array) == NONE
    assert len(list(tmp_path.rglob("*.o"))) == 1
    name = LINE.partition("(")[0]
    assert lines.marked(name, "i8:1") == lines.marked(name, "i8:1r") == "i8:1r"
    assert lines.marked(name, "f4:1") == "f4:1"
    assert lines.marked("raybox.bvh.cell_tree.count_bits", "i8:1,i8:1r") == "i8:1,i8:1r"  # it is written


def test_with_packets_come_streams_of_the_same_primitive_and_query():
    traverse_groups = unwrap(ray_groups.traverse_groups)
    assert ALONGSIDE[unwrap(packet_batches.traverse_packets)] == (traverse_groups,)
    packets = [line for line in lines._listed().values() if ".traverse_packets(" in line]
    for line in packets:
        classes = lines.class_names(line)
        (stream,) = lines.closest(lines.name_of(traverse_groups), classes)
        assert not lines.class_names(stream.partition("(")[2]) - classes
    assert len(packets) > 5


def test_the_demo_expects_what_takes_longest(monkeypatch, tmp_path):
    started = []
    monkeypatch.setenv("RAYBOX_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(processes, "are_allowed", lambda: True)
    monkeypatch.setattr(processes, "start", started.extend)
    monkeypatch.setattr("raybox.compiler.library.library", lambda: None)
    _expect_kernels()
    names = [line.partition("(")[0].rpartition(".")[2] for line in started]
    assert names == ["traverse_packets", "traverse_groups", "normals_of", "build_nodes"]
    for line in started[:3]:
        assert "TriangleRows" in line
    assert all("Nearest" in line for line in started[:2])
