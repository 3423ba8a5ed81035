"""Chunks over threads: complete, in order, stopped by what goes wrong and by Ctrl-C."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import raybox as rb
from raybox import parallel
from raybox.parallel import check_workers, run_chunks
from raybox.placing import cores


@pytest.mark.parametrize("workers", [1, 2, 4, -1])
@pytest.mark.parametrize("total", [0, 1, 1024, 1025, 100_000])
def test_every_ray_is_in_one_chunk_and_answers_are_in_order(workers, total):
    chunks = run_chunks(lambda begin, end: (begin, end), total, workers=workers)
    covered = [k for begin, end in chunks for k in range(begin, end)]
    assert covered == list(range(total))


def test_threads_go_through_parts_of_their_own_then_help(monkeypatch):
    """Two threads: one is held up in its first chunk, and the other does all the rest, from the far end."""
    seen, held = {}, threading.Event()

    def work(begin, end):
        seen.setdefault(threading.get_ident(), []).append(begin)
        if begin == 0:
            held.wait(30)
        if sum(map(len, seen.values())) == 1 + (200_000 - 1024) // 1024 and begin:
            held.set()
        return end - begin

    for name in ("_LARGEST", "_SMALLEST"):
        monkeypatch.setattr(parallel, name, 1024)
    monkeypatch.setattr(parallel, "_EACH", 1000)
    with parallel.team(200_000, workers=2) as run:
        assert sum(run(work, 200_000, least=1024)) == 200_000
    one, other = sorted(seen.values(), key=len)
    assert one[0] == 0
    middle = other[0]
    assert 90_000 < middle < 110_000
    late = [begin for begin in other if begin < middle]
    assert late == sorted(late, reverse=True)
    assert len(late) > 90


@pytest.mark.parametrize("total", [65_536, 200_003])
def test_chunks_begin_at_multiples_of_sixteen(total):
    """However long chunks take, and whoever helps from the far end: sixteen neighbours stay together."""
    chunks, taken = parallel._Chunks(total, 2, 1024), []
    helper = 0
    while (chunk := chunks.take(helper)) is not None:
        taken.append(chunk)
        helper = int(len(taken) > 3)  # the first soon has someone else do all of its part
        chunks.learn(
            chunk[1] - chunk[0], (chunk[1] - chunk[0]) * parallel._SECONDS / (777 + 1234 * len(taken))
        )
    assert sorted(k for chunk in taken for k in range(*chunk)) == list(range(total))
    assert {begin % 16 for begin, _ in taken} == {0}
    assert len({end - begin for begin, end in taken}) > 4
    assert any(begin < 50_000 for begin, _ in taken[10:])


def test_several_threads_take_part():
    seen = set()
    both = threading.Barrier(2, timeout=30)

    def work(begin, end):
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            both.wait()

    run_chunks(work, 100_000, workers=2)
    assert len(seen) == 2


def test_who_asks_takes_part():
    seen = set()

    def work(begin, end):
        seen.add(threading.current_thread())
        time.sleep(0.001)

    run_chunks(work, 200_000, workers=2)
    assert threading.current_thread() in seen
    assert len(seen) == 2


def test_what_goes_wrong_here_waits_for_helpers_to_end_their_chunk():
    """Nothing writes into memory of a question that is over."""
    begun, late = threading.Event(), []

    def work(begin, end):
        if threading.current_thread() is threading.main_thread():
            begun.wait(30)
            raise OSError("the disk is full")
        begun.set()
        time.sleep(0.2)
        late.append(begin)

    with pytest.raises(OSError, match="the disk is full"):
        run_chunks(work, 100_000, workers=2)
    number = len(late)
    assert number == 1
    time.sleep(0.3)
    assert len(late) == number


def test_what_goes_wrong_in_a_helper_stops_who_asks():
    mine, failed = [], threading.Event()

    def work(begin, end):
        if threading.current_thread() is not threading.main_thread():
            failed.set()
            raise OSError("the disk is full")
        failed.wait(30)
        time.sleep(0.01)
        mine.append(begin)

    with pytest.raises(OSError, match="the disk is full"):
        run_chunks(work, 10_000_000, workers=2)
    assert len(mine) < 5


FORK = """
import os, time, threading
from raybox.parallel import run_chunks
def ask():
    seen = set()
    run_chunks(lambda begin, end: (seen.add(threading.get_ident()), time.sleep(0.002)), 200_000, workers=2)
    return len(seen)
assert ask() == 2
child = os.fork()
if child == 0:
    os._exit(0 if ask() == 2 else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")
def test_a_child_has_helpers_of_its_own():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], timeout=60, check=True)


@pytest.mark.parametrize("workers", [1, 3])
def test_an_error_stops_the_rest_and_comes_out(workers):
    done = []

    def work(begin, end):
        done.append(begin)
        if len(done) == 3:
            raise OSError("the disk is full")
        time.sleep(0.01)

    with pytest.raises(OSError, match="the disk is full"):
        run_chunks(work, 10_000_000, workers=workers)
    assert len(done) < 100


@pytest.mark.parametrize("workers", [0, -2, 1.5, "2", None, True])
def test_workers_that_make_no_sense_are_refused(workers):
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
        _, error = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in error
    assert process.returncode != 0
