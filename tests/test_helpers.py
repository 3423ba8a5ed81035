"""Helpers: kept from question to question, never waited for in vain, and never on the core of who asks."""

import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

from raybox import helpers, placing
from raybox.kernels.waiting import wait_while
from raybox.parallel import run_chunks, team

movable = pytest.mark.skipif(
    placing.find() is placing.NOWHERE or placing.cores() < 2, reason="threads cannot be moved here"
)


@pytest.fixture(autouse=True)
def crews(monkeypatch):
    monkeypatch.setattr(helpers, "_CREWS", made := {})
    return made


def several(work=lambda _begin, _end: time.sleep(0.002), **how):
    """Ask something that takes long enough for a helper to come."""
    return run_chunks(work, 200_000, workers=2, **how)


def test_helpers_wait_for_the_next_question(crews):
    seen = []
    for _ in range(3):
        several()
        ((crew,),) = crews.values()
        seen.append(crew._threads)
    assert len(seen[0]) == 1
    assert seen[0] == seen[1] == seen[2]


def test_helpers_remember_nothing_of_a_question_that_is_over():
    held = np.zeros(3)
    gone = [weakref.ref(held)]

    def work(begin, end, held=held):
        time.sleep(0.002 + held[0])
        answer = np.zeros(3)
        gone.append(weakref.ref(answer))
        return answer

    several(work)
    del held, work
    deadline = time.monotonic() + 30
    while any(ref() is not None for ref in gone) and time.monotonic() < deadline:
        time.sleep(0.001)
    assert len(gone) > 5
    assert all(ref() is None for ref in gone)


def test_who_asks_meanwhile_has_helpers_of_their_own(crews):
    together, seen = threading.Barrier(4, timeout=30), set()

    def work(begin, end):
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            together.wait()

    asking = [threading.Thread(target=several, args=(work,)) for _ in range(2)]
    for thread in asking:
        thread.start()
    for thread in asking:
        thread.join()
    assert len(seen) == 4
    assert len(crews[1]) == 2


def test_a_question_is_many_pieces_some_of_them_for_fewer(crews):
    """And some so late that helpers have gone to sleep."""
    done = []

    def work(begin, end):
        time.sleep(0.002)
        return begin, end

    with team(200_000, workers=3) as run:
        for piece in range(12):
            least = (20_000, 70_000, 200_000)[piece % 3]
            time.sleep(0.01 * (piece > 8))
            spans = run(work, 200_000, least=least, done=done.append)
            assert [k for begin, end in spans for k in range(begin, end)] == list(range(200_000))
    assert len(crews[2]) == 1


def test_what_goes_wrong_in_one_piece_is_over_in_the_next():
    def wrong(begin, _end):
        time.sleep(0.001)
        if begin >= 100_000:
            raise OSError("the disk is full")

    with team(200_000, workers=2) as run:
        for _ in range(3):
            with pytest.raises(OSError, match="the disk is full"):
                run(wrong, 200_000)
            assert sum(run(lambda begin, end: end - begin, 200_000)) == 200_000


def test_nobody_waits_for_helpers_that_have_no_thread(monkeypatch, crews):
    def start(_thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    chunks = run_chunks(lambda begin, end: (begin, end), 100_000, workers=3)
    assert [k for begin, end in chunks for k in range(begin, end)] == list(range(100_000))
    assert crews[2][0]._threads == []


def test_who_cannot_look_is_told_why_and_does_not_wait_for_ever(monkeypatch):
    def broken(*_):
        raise ImportError("no compiled code")

    monkeypatch.setattr(helpers, "_look", broken)
    with pytest.raises(ImportError, match="no compiled code"):
        several(lambda begin, end: end - begin)


def test_who_is_stopped_before_there_are_helpers_is_not_held(monkeypatch):
    def stop(_crew):
        raise KeyboardInterrupt

    monkeypatch.setattr(helpers.Crew, "_gather", stop)
    with pytest.raises(KeyboardInterrupt):
        several()


# Where threads run


@movable
def test_helpers_keep_off_the_core_of_who_asks():
    """Those that are new, and those that waited, while who asks was elsewhere."""
    before, counts = os.sched_getaffinity(0), {True: 0, False: 0}

    def work(begin, end):
        time.sleep(0.002)
        mine = threading.current_thread() is threading.main_thread()
        counts[mine] += 1
        (core,) = stays[-1].here
        assert os.sched_getaffinity(0) == ({core} if mine else before - {core})

    stays, find = [], placing.find
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placing, "find", lambda: stays.append(find()) or stays[-1])
        for core in sorted(before)[:2] * 2:
            os.sched_setaffinity(0, {core})
            os.sched_setaffinity(0, before)
            several(work)
            assert os.sched_getaffinity(0) == before
    assert len(stays) == 4
    assert min(counts.values()) > 4


@movable
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_who_asks_goes_where_it_likes_afterwards_whatever_comes(error):
    before = os.sched_getaffinity(0)

    def work(begin, end):
        time.sleep(0.002)
        if threading.current_thread() is threading.main_thread():
            assert len(os.sched_getaffinity(0)) == 1
            if error is KeyboardInterrupt:
                signal.raise_signal(signal.SIGINT)
            raise error

    with pytest.raises(error):
        several(work)
    assert os.sched_getaffinity(0) == before


@movable
def test_more_threads_than_cores_run_where_they_like():
    before, seen = os.sched_getaffinity(0), set()

    def work(begin, end):
        time.sleep(0.002)
        seen.add(frozenset(os.sched_getaffinity(0)))

    run_chunks(work, 2_000_000, workers=placing.cores() + 1)
    assert seen == {frozenset(before)}


def test_threads_that_cannot_be_moved_do_without(monkeypatch):
    monkeypatch.setattr(placing, "_teller", lambda: None)
    assert placing.find() is placing.NOWHERE
    chunks = several(lambda begin, end: (begin, end))
    assert [k for begin, end in chunks for k in range(begin, end)] == list(range(200_000))


@movable
def test_who_may_not_move_threads_does_without(monkeypatch):
    def refused(_thread, _cores):
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refused)
    assert len(several(lambda begin, end: (begin, end))) > 1


# Looking


def test_who_looks_sees_what_another_thread_writes():
    bell, seen = np.zeros(2, np.int64), []

    def look():
        wait_while(bell, 1, 0, 0, 1 << 40)
        seen.append(bell[1])

    looking = threading.Thread(target=look)
    looking.start()
    time.sleep(0.05)
    bell[0] = 7
    time.sleep(0.05)
    assert not seen
    bell[1] = 3
    looking.join(30)
    assert seen == [3]


@pytest.mark.parametrize(("value", "looks"), [(4, 1 << 60), (5, 100), (7, 100), (8, 1 << 60)])
def test_who_looks_gives_up_after_so_many_times(value, looks):
    """Where there is something to see, that is never reached."""
    wait_while(np.array([value]), 0, 5, 7, looks)
