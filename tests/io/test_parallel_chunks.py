"""Chunks queried side by side: results in the order of the rays, whatever fails and however slow."""

import queue
import threading
import time

import numpy as np
import pytest
from raybox.cast.stages import OrderedQueries, StageThreads, split_workers

import raybox as rb
from raybox.cast import stages
from raybox.cast.blocks import Chunk, Position
from streaming import RAYS, SCENE

SIZE = 12


def chunk(number: int) -> Chunk:
    return Chunk(number, RAYS[:1], Position(number + 1), None, {})


def passed_on(monkeypatch, run_query, *, thread_count=3, last=None) -> tuple[list, OrderedQueries]:
    """Run a query of each chunk in threads; return what is passed on, in order, and the queries."""
    threads, read, results = StageThreads(), queue.Queue(1), queue.Queue(1)
    monkeypatch.setattr(stages, "run_query", lambda _scene, _query, _rays, first, _workers: run_query(first))
    queries, received = OrderedQueries(threads, read, results), []

    def read_all():
        for item in (*map(chunk, range(SIZE)), last):
            threads.put(read, item)

    def receive():
        while (item := threads.get(results)) is not None:
            received.append(item)

    threads.start(read_all)
    writer = threads.start(receive)
    for _ in range(thread_count - 1):
        threads.start(queries.run, None, "", 1, {})
    queries.run(None, "", 1, {})
    writer.join()
    threads.stop.set()
    threads.join()
    if threads.failure:
        raise threads.failure
    return received, queries


def test_results_are_in_the_order_of_the_rays(monkeypatch):
    """Each chunk has three results, and sleeps before and between them; several run at once."""
    wait, running, most = np.random.default_rng(1).uniform(0, 0.02, (SIZE, 4)), set(), []

    def run_query(first):
        running.add(first)
        for k in range(3):
            time.sleep(wait[first, k])
            most.append(len(running))
            yield first, k
        running.discard(first)

    received, queries = passed_on(monkeypatch, run_query)
    assert [result for result, _ in received] == [(n, k) for n in range(SIZE) for k in range(3)]
    assert [last and last.first for _, last in received] == [
        n if k == 2 else None for n in range(SIZE) for k in range(3)
    ]
    assert queries.error is None
    assert max(most) == 3


@pytest.mark.parametrize("error", [rb.RayboxError("no"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("failing", [0, 1, 5, SIZE - 1])
def test_all_before_a_failure_is_passed_on_and_nothing_after(monkeypatch, failing, error):
    def run_query(first):
        if first == failing:
            raise error
        time.sleep(0.01 if first < failing else 0.0)
        yield first

    received, queries = passed_on(monkeypatch, run_query)
    assert [result for result, _ in received] == list(range(failing))
    assert queries.error is error


def test_an_error_of_the_rays_follows_all_before_it(monkeypatch):
    wrong = rb.InvalidInput("ray 12")
    received, queries = passed_on(monkeypatch, lambda first: iter([first]), last=wrong)
    assert [result for result, _ in received] == list(range(SIZE))
    assert queries.error is wrong


def test_waiting_threads_end_when_another_has_failed(monkeypatch):
    gate = threading.Event()

    def run_query(first):
        if first == 0:
            gate.wait(5)
        yield first

    threads, read, results = StageThreads(), queue.Queue(4), queue.Queue(1)
    monkeypatch.setattr(stages, "run_query", lambda _scene, _query, _rays, first, _workers: run_query(first))
    queries = OrderedQueries(threads, read, results)
    for item in map(chunk, range(4)):
        read.put(item)
    waiting = [threads.start(queries.run, None, "", 1, {}) for _ in range(3)]
    threads.stop.set()
    gate.set()
    for thread in waiting:
        thread.join(5)
        assert not thread.is_alive()
    assert threads.failure is None


def test_two_chunks_share_the_workers_and_parts_of_a_scene_are_opened_for_one():
    assert [split_workers(SCENE, "count", workers) for workers in (1, 2, 3, 8)] == [
        [1],
        [1, 1],
        [2, 1],
        [4, 4],
    ]
    split = rb.SplitScene(rb.Boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 1]]), parts=2)
    assert split_workers(split, "count", 4) == split_workers(SCENE, "deposit", 4) == [4]
