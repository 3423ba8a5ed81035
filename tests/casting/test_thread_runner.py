"""Blocks run by threads: each part once, all before a failure, and no thread left."""

import threading
import time

import numpy as np
import pytest
from raybox.casting.thread_runner import ThreadRunner, queries_at_once
from raybox.casting.threads import StageThreads

import raybox as rb
from raybox.casting import block_caster, thread_runner
from raybox.casting.blocks import BlockSpan, Position
from raybox.casting.part import PARTS, PartFile, read_part
from raybox.io.formats.common import ReadOptions
from raybox.store.folder import make_folder
from streaming import RAYS, SCENE, put

SIZE = 9  # rays in a block: twelve blocks of 103 rays
ALL = [BlockSpan(0, Position(), None)]


@pytest.fixture
def caster(tmp_path):
    """Return what casts blocks, into a folder of parts."""
    rays = put(tmp_path / "rays.npy", RAYS)
    make_folder(tmp_path / PARTS).close()
    job = thread_runner.CastJob(
        (rays,), ReadOptions("rays"), "all", SIZE, suffix=".npy", id="id", folder=tmp_path
    )
    with_caster = block_caster.BlockCaster(job, SCENE, {})
    yield with_caster
    with_caster.close()


def slowly(monkeypatch, before, fails=lambda _number: None):
    """Make each block wait before its results, and some fail; return how many ran at once, at most."""
    results_of_block, running, most = block_caster.BlockCaster._results, set(), []

    def results(caster, block, workers):
        running.add(block.number)
        most.append(len(running))
        before(block.number)
        if error := fails(block.number):
            running.discard(block.number)
            raise error
        yield from results_of_block(caster, block, workers)
        running.discard(block.number)

    monkeypatch.setattr(block_caster.BlockCaster, "results", results)
    return most


def test_each_part_once_whatever_the_order(caster, monkeypatch):
    waits = np.random.default_rng(1).uniform(0, 0.02, 12)
    most = slowly(monkeypatch, lambda number: time.sleep(waits[number]))
    parts = list(ThreadRunner(caster, 2).run(caster.job, ALL))
    assert sorted(part.number for part in parts) == list(range(12))
    assert sum(part.rays for part in parts) == 103
    assert max(most) == 2
    for part in parts:
        assert read_part(caster.folder, part.name, "id", check=True).value == part
    assert len(caster.folder.names()) == 12


def test_spans(caster):
    ends = {part.number: part.end for part in ThreadRunner(caster, 2).run(caster.job, ALL)}
    for name in caster.folder.names():
        caster.folder.remove(name)
    spans = [BlockSpan(2, ends[1], 3), BlockSpan(7, ends[6], 1), BlockSpan(11, ends[10], None)]
    parts = list(ThreadRunner(caster, 2).run(caster.job, spans))
    assert sorted(part.number for part in parts) == [2, 3, 4, 7, 11]
    assert {part.number: part.end for part in parts} == {part.number: ends[part.number] for part in parts}


@pytest.mark.parametrize("error", [rb.RayboxError("no"), KeyboardInterrupt(), MemoryError()])
@pytest.mark.parametrize("failing", [0, 1, 5, 11])
def test_all_before_a_failure_are_written(caster, monkeypatch, failing, error):
    is_known, failed_in, get = threading.Event(), [], StageThreads.get

    def wait(number):
        assert number <= failing or is_known.wait(60)

    def fail(number):
        if number == failing:
            failed_in.append(threading.get_ident())
            return error
        return None

    def get_next(threads, items):
        if threading.get_ident() in failed_in:
            is_known.set()
        return get(threads, items)

    slowly(monkeypatch, wait, fail)
    monkeypatch.setattr(StageThreads, "get", get_next)
    written = []
    with pytest.raises(type(error)) as caught:
        written += ThreadRunner(caster, 2).run(caster.job, ALL)
    assert caught.value is error
    names = caster.folder.names()
    assert {f"part-{number:09}.rows" for number in range(failing)} <= set(names)
    assert len(names) <= failing + 3  # one is cast, one waits, one is read
    assert not [name for name in names if name.startswith("new-")]


def test_an_error_of_the_rays_follows_all_before_it(caster):
    columns = np.load(caster.job.rays[0])
    columns[50, 4] = np.nan
    np.save(caster.job.rays[0], columns)
    with pytest.raises(rb.FileFormatError, match=r"\[50, 4\]: nan"):
        list(ThreadRunner(caster, 2).run(caster.job, ALL))
    assert caster.folder.names() == [f"part-{number:09}.rows" for number in range(5)]


def test_no_thread_is_left_when_the_caller_ends(caster, monkeypatch):
    gate = threading.Event()
    slowly(monkeypatch, lambda number: number > 2 and gate.wait(60))
    before = threading.active_count()
    parts = ThreadRunner(caster, 2).run(caster.job, ALL)
    next(parts)
    assert threading.active_count() > before
    gate.set()
    parts.close()
    assert threading.active_count() == before


def test_two_blocks_share_the_workers_and_parts_of_a_scene_are_opened_for_one(caster):
    job = caster.job
    assert [queries_at_once(SCENE, job, workers) for workers in (1, 2, 3, 8)] == [1, 2, 2, 2]
    split = rb.SplitScene(rb.Boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 1]]), parts=2)
    assert queries_at_once(split, job, 4) == queries_at_once(SCENE, job._replace(query="deposit"), 4) == 1


def test_one_block_is_written_while_another_is_queried(caster, monkeypatch):
    """With one worker, too: one query at a time, and two threads."""
    started, running, most = threading.Event(), set(), []
    results_of_block, complete = block_caster.BlockCaster._results, PartFile.complete

    def results(caster, block, workers):
        found = results_of_block(caster, block, workers)
        if block.number == 1:
            started.set()
        while True:
            running.add(block.number)
            most.append(len(running))
            time.sleep(0.005)
            some = next(found, None)
            running.discard(block.number)
            if some is None:
                return
            yield some

    def complete_late(file, part):
        assert part.number or started.wait(60)
        return complete(file, part)

    monkeypatch.setattr(block_caster.BlockCaster, "results", results)
    monkeypatch.setattr(PartFile, "complete", complete_late)
    assert len(list(ThreadRunner(caster, 1).run(caster.job, ALL))) == 12
    assert max(most) == 1
