"""Thread pools: reused by later queries, no needless waits, off the core of the calling thread."""

import os
import threading
import time
import weakref

import numpy as np
import pytest

from raybox.compiler.runtime import spin_while
from raybox.threads import pool
from raybox.threads import pool as thread_pool
from raybox.threads.chunks import chunk_runner, run_chunks
from waiting import SECONDS, wait_until

movable = pytest.mark.skipif(not pool.other_cores(), reason="threads cannot be moved here")


@pytest.fixture(autouse=True)
def pools(monkeypatch):
    monkeypatch.setattr(thread_pool, "_POOLS", made := {})
    return made


def several(work=lambda _begin, _end: time.sleep(0.002), **how):
    """Run work that takes long enough for a worker to join."""
    return run_chunks(work, 200_000, workers=2, **how)


def together(work, number=2):
    """Return work in whose first chunk each thread waits until so many threads take part."""
    threads, all_of_them = set(), threading.Barrier(number, timeout=SECONDS)

    def first_together(begin, end):
        if threading.get_ident() not in threads:
            threads.add(threading.get_ident())
            all_of_them.wait()
        return work(begin, end)

    return first_together


def test_later_queries_reuse_the_workers(pools):
    threads = []
    for _ in range(3):
        several()
        ((pool,),) = pools.values()
        threads.append(pool._threads)
    assert len(threads[0]) == 1
    assert threads[0] == threads[1] == threads[2]


def test_an_idle_pool_has_no_reference_to_its_last_query():
    array = np.zeros(3)
    gone = [weakref.ref(array)]

    def work(begin, end, array=array):
        time.sleep(0.002 + array[0])
        result = np.zeros(3)
        gone.append(weakref.ref(result))
        return result

    several(work)
    del array, work
    assert len(gone) > 5
    wait_until(lambda: all(ref() is None for ref in gone), "all results are gone")


def test_simultaneous_queries_have_separate_pools(pools):
    together, idents = threading.Barrier(4, timeout=SECONDS), set()

    def work(begin, end):
        if threading.get_ident() not in idents:
            idents.add(threading.get_ident())
            together.wait()

    callers = [threading.Thread(target=several, args=(work,)) for _ in range(2)]
    for thread in callers:
        thread.start()
    for thread in callers:
        thread.join()
    assert len(idents) == 4
    assert len(pools[1]) == 2


def test_a_query_runs_many_loops_some_with_fewer_threads(pools):
    """Some loops start after the workers have gone to sleep."""
    done = []

    def work(begin, end):
        time.sleep(0.002)
        return begin, end

    with chunk_runner(200_000, workers=3) as run:
        for loop in range(12):
            min_chunk = (20_000, 70_000, 200_000)[loop % 3]
            time.sleep(0.01 * (loop > 8))
            spans = run(work, 200_000, min_chunk=min_chunk, done=lambda span: done.append(span) or 0)
            assert [k for begin, end in spans for k in range(begin, end)] == list(range(200_000))
    assert len(pools[2]) == 1


def test_an_error_in_one_loop_does_not_affect_the_next():
    def wrong(begin, _end):
        time.sleep(0.001)
        if begin >= 100_000:
            raise OSError("the disk is full")

    with chunk_runner(200_000, workers=2) as run:
        for _ in range(3):
            with pytest.raises(OSError, match="the disk is full"):
                run(wrong, 200_000)
            assert sum(run(lambda begin, end: end - begin, 200_000)) == 200_000


def test_workers_without_a_thread_are_not_waited_for(monkeypatch, pools):
    def start(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    chunks = run_chunks(lambda begin, end: (begin, end), 100_000, workers=3)
    assert [k for begin, end in chunks for k in range(begin, end)] == list(range(100_000))
    assert pools[2][0]._threads == []


def test_an_error_while_spinning_is_raised(monkeypatch):
    def broken(*_):
        raise ImportError("no compiled code")

    monkeypatch.setattr(thread_pool, "_spin", broken)
    with pytest.raises(ImportError, match="no compiled code"):
        several(lambda begin, end: end - begin)


def test_ctrl_c_before_the_workers_start_is_raised(monkeypatch):
    def stop(_pool):
        raise KeyboardInterrupt

    monkeypatch.setattr(thread_pool.ThreadPool, "_prepare", stop)
    with pytest.raises(KeyboardInterrupt):
        several()


# Affinity


@movable
def test_workers_keep_off_the_core_of_the_calling_thread_which_is_never_moved():
    """New workers and reused ones, while the calling thread was on another core."""
    before, counts = os.sched_getaffinity(0), {True: 0, False: 0}

    def work(begin, end):
        time.sleep(0.002)
        caller = threading.current_thread() is threading.main_thread()
        counts[caller] += 1
        assert os.sched_getaffinity(0) == (before if caller else others[-1])

    others, other_cores = [], pool.other_cores
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "other_cores", lambda: others.append(other_cores()) or others[-1])
        for core in sorted(before)[:2] * 2:
            os.sched_setaffinity(0, {core})
            os.sched_setaffinity(0, before)
            several(together(work))
            assert os.sched_getaffinity(0) == before
    assert [len(cores) for cores in others] == [len(before) - 1] * 4
    assert min(counts.values()) >= 4


def affinities(workers):
    """Return the affinities of all threads that take part in a query."""
    affinity_of_threads = set()

    def work(begin, end):
        time.sleep(0.002)
        affinity_of_threads.add((threading.get_ident(), frozenset(os.sched_getaffinity(0))))

    run_chunks(together(work, workers), 2_000_000, workers=workers)
    assert len({thread for thread, _ in affinity_of_threads}) == workers
    return {cores for _, cores in affinity_of_threads}


@movable
def test_more_threads_than_cores_are_not_pinned():
    assert affinities(pool.cores() + 1) == {frozenset(os.sched_getaffinity(0))}


@movable
def test_an_environment_variable_turns_pinning_off(monkeypatch):
    before = frozenset(os.sched_getaffinity(0))
    monkeypatch.setenv("RAYBOX_PIN_THREADS", "0")
    assert affinities(2) == {before}
    monkeypatch.setenv("RAYBOX_PIN_THREADS", "1")
    assert len(affinities(2)) == 2


def test_workers_are_not_pinned_without_the_system_calls(monkeypatch):
    monkeypatch.setattr(pool, "_current_core", lambda: None)
    assert pool.other_cores() == frozenset()
    chunks = several(lambda begin, end: (begin, end))
    assert [k for begin, end in chunks for k in range(begin, end)] == list(range(200_000))


@movable
def test_a_system_that_forbids_pinning_raises_nothing(monkeypatch):
    def refused(_thread, _cores):
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refused)
    assert len(several(lambda begin, end: (begin, end))) > 1


# Spinning


def test_spinning_ends_when_another_thread_writes():
    signal_array, values = np.zeros(2, np.int64), []

    def spin():
        spin_while(signal_array, 1, 0, 0, 1 << 40)
        values.append(signal_array[1])

    spinning = threading.Thread(target=spin)
    spinning.start()
    time.sleep(0.05)
    signal_array[0] = 7
    time.sleep(0.05)
    assert not values
    signal_array[1] = 3
    spinning.join(30)
    assert values == [3]


@pytest.mark.parametrize(("value", "reads"), [(4, 1 << 60), (5, 100), (7, 100), (8, 1 << 60)])
def test_spinning_ends_after_so_many_reads(value, reads):
    """A value outside the span ends it at once."""
    spin_while(np.array([value]), 0, 5, 7, reads)
