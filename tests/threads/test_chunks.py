"""Chunks on threads: complete, in order, stopped by errors and by Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import raybox as rb
from processes import python
from raybox.compiler.cores import cores
from raybox.threads import chunks as parallel
from raybox.threads.chunks import check_workers, run_chunks
from waiting import SECONDS


@pytest.mark.core
@pytest.mark.parametrize("workers", [1, 2, 4, -1])
@pytest.mark.parametrize("total", [0, 1, 1024, 1025, 100_000])
def test_every_ray_is_in_one_chunk_and_results_are_in_order(workers, total):
    chunks = run_chunks(lambda begin, end: (begin, end), total, workers=workers)
    covered = [k for begin, end in chunks for k in range(begin, end)]
    assert covered == list(range(total))


def test_threads_finish_their_own_share_first(monkeypatch):
    """One of two threads blocks in its first chunk; the other finishes its share, too, from the far end."""
    begins, finished = {}, threading.Event()

    def work(begin, end):
        begins.setdefault(threading.get_ident(), []).append(begin)
        if begin == 0:
            finished.wait(30)
        if sum(map(len, begins.values())) == 1 + (200_000 - 1024) // 1024 and begin:
            finished.set()
        return end - begin

    for name in ("_LARGEST", "_SMALLEST"):
        monkeypatch.setattr(parallel, name, 1024)
    monkeypatch.setattr(parallel, "_MIN_PER_THREAD", 1000)
    with parallel.chunk_runner(200_000, workers=2) as run:
        assert sum(run(work, 200_000, min_chunk=1024)) == 200_000
    one, other = sorted(begins.values(), key=len)
    assert one[0] == 0
    middle = other[0]
    assert 90_000 < middle < 110_000
    late = [begin for begin in other if begin < middle]
    assert late == sorted(late, reverse=True)
    assert len(late) > 90


@pytest.mark.parametrize("total", [65_536, 200_003])
def test_chunks_begin_at_multiples_of_sixteen(total):
    """At any speed, and from the far end of a share, too."""
    chunks, chunks_run = parallel._Chunks(total, 2, 1024), []
    thread = 0
    while (chunk := chunks.next_chunk(thread)) is not None:
        chunks_run.append(chunk)
        thread = int(len(chunks_run) > 3)  # thread 1 soon works on the share of thread 0
        chunks.adjust_size(
            chunk[1] - chunk[0], (chunk[1] - chunk[0]) * parallel._SECONDS / (777 + 1234 * len(chunks_run))
        )
    assert sorted(k for chunk in chunks_run for k in range(*chunk)) == list(range(total))
    assert {begin % 16 for begin, _ in chunks_run} == {0}
    assert len({end - begin for begin, end in chunks_run}) > 4
    assert any(begin < 50_000 for begin, _ in chunks_run[10:])


def test_the_calling_thread_runs_chunks():
    idents, both = set(), threading.Barrier(2, timeout=SECONDS)

    def work(begin, end):
        if threading.current_thread() not in idents:
            idents.add(threading.current_thread())
            both.wait()

    run_chunks(work, 200_000, workers=2)
    assert threading.current_thread() in idents
    assert len(idents) == 2


@pytest.fixture
def stopped(monkeypatch):
    """Return an event that is set once the threads of a loop are to end after their present chunk."""
    event, stop = threading.Event(), parallel._Chunks.stop
    monkeypatch.setattr(parallel._Chunks, "stop", lambda chunks: (stop(chunks), event.set()))
    return event


def test_an_error_of_the_calling_thread_is_raised_after_workers_end_their_chunk(stopped):
    """No worker writes into memory of a finished query."""
    started, late = threading.Event(), []

    def work(begin, end):
        if threading.current_thread() is threading.main_thread():
            assert started.wait(60)
            raise OSError("the disk is full")
        started.set()
        stopped.wait(60)
        time.sleep(0.05)  # while the calling thread waits
        late.append(begin)

    with pytest.raises(OSError, match="the disk is full"):
        run_chunks(work, 100_000, workers=2)
    assert len(late) == 1


def test_an_error_of_a_worker_stops_the_calling_thread(stopped):
    mine = []

    def work(begin, end):
        if threading.current_thread() is not threading.main_thread():
            raise OSError("the disk is full")
        stopped.wait(60)
        mine.append(begin)

    with pytest.raises(OSError, match="the disk is full"):
        run_chunks(work, 10_000_000, workers=2)
    assert stopped.is_set()
    assert len(mine) <= 1


@pytest.mark.parametrize("total", [2000, 50_000])
@pytest.mark.parametrize("milliseconds", [0.0001, 1, 10])
def test_no_chunk_takes_longer_than_a_second(monkeypatch, total, milliseconds):
    """By a clock that only rays move: their speed is unknown at first, so the first chunk is short."""
    clock, chunks = [0.0], []

    def work(begin, end):
        chunks.append(end - begin)
        clock[0] += (end - begin) * milliseconds / 1000

    monkeypatch.setattr(parallel.time, "perf_counter", lambda: clock[0])
    with parallel.chunk_runner(total, workers=1) as run:
        run(work, total, min_chunk=64)
    assert sum(chunks) == total
    assert max(chunks) * milliseconds <= 1000
    assert len(chunks) <= 4 + total * milliseconds / 400


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_stops_all_threads_and_is_raised(workers, stopped):
    done, first = [], threading.Lock()

    def work(begin, end):
        done.append(begin)
        if len(done) >= 3:
            if first.acquire(blocking=False):
                raise OSError("the disk is full")
            stopped.wait(60)

    with pytest.raises(OSError, match="the disk is full"):
        run_chunks(work, 10_000_000, workers=workers)
    assert 3 <= len(done) <= 2 + workers


@pytest.mark.parametrize("workers", [0, -2, 1.5, "2", None, True])
def test_invalid_workers_are_refused(workers):
    with pytest.raises(rb.InvalidInput, match=r"workers must be .*-1 for all cores; got"):
        check_workers(workers)


def test_minus_one_is_all_cores():
    assert check_workers(-1) == cores() >= 1
    assert check_workers(np.int64(3)) == 3


def test_progress_is_drawn_on_stderr_alone(capsys):
    run_chunks(lambda begin, end: time.sleep((end - begin) / 4096), 4096, workers=1, progress=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "rays" in shown.err


CAST = """
import numpy as np, raybox as rb
scene = rb.Scene(rb.Boxes(np.zeros((2000, 3)), np.ones((2000, 3))))
rays = rb.Rays(np.full((1_000_000, 3), -1.0), np.ones((1_000_000, 3)))
scene.count(rays[:2000])
print("ready", flush=True)
scene.count(rays)  # minutes
"""


def test_ctrl_c_stops_compiled_loops():
    with subprocess.Popen(
        [sys.executable, "-c", CAST], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=SECONDS)
    assert b"KeyboardInterrupt" in error
    assert process.returncode != 0


CHILD_KILLED_IN_THE_LOCK = """
import os, signal, sys
from pathlib import Path
import numpy as np
import raybox as rb
from tqdm import tqdm

lock = tqdm.get_lock()
reading, writing = os.pipe()
child = os.fork()
if not child:
    lock.acquire()
    os.write(writing, b"locked")
    signal.pause()
os.read(reading, 6)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)

folder = Path(sys.argv[1])
scene = rb.Scene(rb.Boxes(np.zeros((1, 3)), np.ones((1, 3))))
rays = rb.Rays(np.full((50_000, 3), -1.0), np.ones((50_000, 3)))
rb.save(folder / "rays.npy", rays)
print(scene.nearest(rays).hit.sum(), rb.cast(scene, folder / "rays.npy", folder / "hits.npy").rays)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs forks")
def test_a_child_that_was_killed_in_the_lock_of_bars_stops_no_cast(tmp_path):
    done = python("-c", CHILD_KILLED_IN_THE_LOCK, tmp_path, timeout=200)
    assert (done.stdout.split(), done.stderr) == (["50000", "50000"], "")


def test_a_bar_counts_rays():
    script = """
import time
from raybox.threads.progress import progress_bar
for shown in (False, True):
    with progress_bar("rays", 4000, shown=shown) as bar:
        time.sleep(0.6)
        bar.update(3000)
    print(bar.n, bar.total)
"""
    done = python("-c", script)
    assert done.stdout.split() == ["3000", "4000"] * 2
    last = done.stderr.split("\n")[-2]  # of the bar that is shown, and closed
    assert "3.00k/4.00k" in last
