"""Blocks cast by threads: the first error, one written while another is queried, and no thread left."""

import threading
import time

import pytest

import raybox as rb
from raybox.casting import engine
from raybox.casting.caster import BlockCaster
from raybox.casting.part import PartFile
from streaming import RAYS, SCENE, put


def cast(tmp_path, workers=2):
    """Cast twelve blocks of rays."""
    return rb.cast(SCENE, put(tmp_path / "rays.npy", RAYS), tmp_path / "out.npy", chunk=9, workers=workers)


def before_each_part(monkeypatch, act):
    """Make each block call a function with its number before its results."""
    write_part = BlockCaster.write_part

    def write(caster, block, *others):
        act(block.facts.number)
        return write_part(caster, block, *others)

    monkeypatch.setattr(BlockCaster, "write_part", write)


@pytest.mark.parametrize("failing", [(3, 4), (4, 5), (2, 3, 4)])
def test_the_error_of_the_first_block_that_failed(tmp_path, monkeypatch, failing):
    def fail(number):
        time.sleep(0.05 * (number == failing[0]))
        if number in failing:
            raise rb.RayboxError(f"block {number}")

    before_each_part(monkeypatch, fail)
    with pytest.raises(rb.RayboxError, match=rf"^block {failing[0]}; \d+ rays are done"):
        cast(tmp_path)


def test_no_thread_is_left_when_the_caller_ends(tmp_path, monkeypatch):
    gate, before = threading.Event(), threading.active_count()

    def stop(_bar, _done):
        assert threading.active_count() > before
        gate.set()
        raise KeyboardInterrupt

    before_each_part(monkeypatch, lambda number: number > 2 and gate.wait(60))
    monkeypatch.setattr(engine, "_advance", stop)
    with pytest.raises(KeyboardInterrupt):
        cast(tmp_path)
    assert threading.active_count() == before


def test_one_block_is_written_while_another_is_queried(tmp_path, monkeypatch):
    """With one worker, too: one query at a time, and two threads."""
    started, running, most = threading.Event(), set(), []
    results_of_block, complete = BlockCaster._results, PartFile.complete

    def results(caster, block, workers, lock):
        with lock:  # as the query of the first rows
            running.add(block.facts.number)
            most.append(len(running))
            time.sleep(0.005)
            running.discard(block.facts.number)
        if block.facts.number == 1:
            started.set()
        yield from results_of_block(caster, block, workers, lock)

    def complete_late(file, job, form, blocks, **how):
        assert blocks[0].number or started.wait(60)
        return complete(file, job, form, blocks, **how)

    monkeypatch.setattr(BlockCaster, "_results", results)
    monkeypatch.setattr(PartFile, "complete", complete_late)
    assert cast(tmp_path, workers=1).rays == 103
    assert max(most) == 1
