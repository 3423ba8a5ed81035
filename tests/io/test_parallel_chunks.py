"""Chunks asked side by side: answers in the order of the rays, whatever fails, and whoever is slow."""

import queue
import threading
import time

import numpy as np
import pytest

import raybox as rb
from raybox.io.chunked import stages
from raybox.io.chunked.chunks import Chunk, Place
from raybox.io.chunked.stages import Line, Turns, shares
from streaming import RAYS, SCENE

SIZE = 12


def chunk(number: int) -> Chunk:
    return Chunk(number, RAYS[:1], Place(number + 1), None, {})


def told(monkeypatch, ask, *, threads=3, last=None) -> tuple[list, Turns]:
    """Have chunks asked by threads, each as `ask` says; return what is handed on, in the order it comes."""
    line, read, answered = Line(), queue.Queue(1), queue.Queue(1)
    monkeypatch.setattr(stages, "run_query", lambda _scene, _query, _rays, first, _workers: ask(first))
    made, came = Turns(line, read, answered), []

    def give():
        for item in (*map(chunk, range(SIZE)), last):
            line.put(read, item)

    def take():
        while (item := line.get(answered)) is not None:
            came.append(item)

    line.start(give)
    writer = line.start(take)
    for _ in range(threads - 1):
        line.start(made.ask, None, "", 1)
    made.ask(None, "", 1)
    writer.join()
    line.stop.set()
    line.join()
    if line.failure:
        raise line.failure
    return came, made


def test_answers_come_in_the_order_of_the_rays(monkeypatch):
    """Each chunk has three answers, and sleeps before and between them; several are at it at once."""
    wait, together, most = np.random.default_rng(1).uniform(0, 0.02, (SIZE, 4)), set(), []

    def ask(first):
        together.add(first)
        for k in range(3):
            time.sleep(wait[first, k])
            most.append(len(together))
            yield first, k
        together.discard(first)

    came, made = told(monkeypatch, ask)
    assert [answer for answer, _ in came] == [(n, k) for n in range(SIZE) for k in range(3)]
    assert [last and last.first for _, last in came] == [
        n if k == 2 else None for n in range(SIZE) for k in range(3)
    ]
    assert made.ended is None
    assert max(most) == 3


@pytest.mark.parametrize("error", [rb.RayboxError("no"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("failing", [0, 1, 5, SIZE - 1])
def test_what_comes_before_a_failure_is_handed_on_and_nothing_after(monkeypatch, failing, error):
    def ask(first):
        if first == failing:
            raise error
        time.sleep(0.01 if first < failing else 0.0)
        yield first

    came, made = told(monkeypatch, ask)
    assert [answer for answer, _ in came] == list(range(failing))
    assert made.ended is error


def test_what_is_wrong_with_the_rays_is_told_after_all_before_it(monkeypatch):
    wrong = rb.InvalidInput("ray 12")
    came, made = told(monkeypatch, lambda first: iter([first]), last=wrong)
    assert [answer for answer, _ in came] == list(range(SIZE))
    assert made.ended is wrong


def test_who_waits_leaves_when_another_thread_has_failed(monkeypatch):
    gate = threading.Event()

    def ask(first):
        if first == 0:
            gate.wait(5)
        yield first

    line, read, answered = Line(), queue.Queue(4), queue.Queue(1)
    monkeypatch.setattr(stages, "run_query", lambda _scene, _query, _rays, first, _workers: ask(first))
    made = Turns(line, read, answered)
    for item in map(chunk, range(4)):
        read.put(item)
    waiting = [line.start(made.ask, None, "", 1) for _ in range(3)]
    line.stop.set()
    gate.set()
    for thread in waiting:
        thread.join(5)
        assert not thread.is_alive()
    assert line.failure is None


def test_two_chunks_share_the_workers_and_parts_of_a_scene_are_opened_for_one():
    assert [shares(SCENE, workers) for workers in (1, 2, 3, 8)] == [[1], [1, 1], [2, 1], [4, 4]]
    split = rb.SplitScene(rb.Boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 1]]), parts=2)
    assert shares(split, 4) == [4]
