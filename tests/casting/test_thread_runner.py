"""Blocks run by threads: each part once, all before a failure, and no thread left."""

import threading
import time

import numpy as np
import pytest

import raybox as rb
from raybox.casting.blocks import BlockSpan, Position
from raybox.casting.caster import BlockCaster
from raybox.casting.job import CastJob
from raybox.casting.part import PartFile, part_folders
from raybox.casting.runner import ThreadRunner
from raybox.io.formats.common import ReadOptions
from raybox.store.folder import make_folder
from streaming import RAYS, SCENE, put

SIZE = 9  # rays in a block: twelve blocks of 103 rays
ALL = [BlockSpan(0, Position(), None)]


@pytest.fixture
def folders(tmp_path):
    with make_folder(tmp_path) as folder, part_folders(folder) as made:
        yield made


@pytest.fixture
def caster(tmp_path):
    """Return what casts blocks."""
    rays = put(tmp_path / "rays.npy", RAYS)
    return BlockCaster(
        CastJob((rays,), ReadOptions("rays"), "all", SIZE, suffix=".npy", digest="id"), SCENE, {}
    )


def parts(caster, folders, workers=2, spans=ALL):
    """Return the parts of a run."""
    return [done.part for done in ThreadRunner(caster, workers).run(folders, spans)]


def slowly(monkeypatch, before, fails=lambda _number: None):
    """Make each block wait before its results, and some fail; return how many ran at once, at most."""
    write_part, running, most = BlockCaster.write_part, set(), []

    def write(caster, block, *others):
        number = block.facts.number
        running.add(number)
        most.append(len(running))
        before(number)
        try:
            if error := fails(number):
                raise error
            return write_part(caster, block, *others)
        finally:
            running.discard(number)

    monkeypatch.setattr(BlockCaster, "write_part", write)
    return most


@pytest.mark.parametrize("error", [rb.RayboxError("no"), MemoryError()])
@pytest.mark.parametrize("failing", [0, 1, 5, 11])
def test_all_before_a_failure_are_written(caster, folders, monkeypatch, failing, error):
    waits = np.random.default_rng(failing).uniform(0, 0.02, 12)
    slowly(
        monkeypatch,
        lambda number: time.sleep(waits[number]),
        lambda number: error if number == failing else None,
    )
    with pytest.raises(type(error)) as caught:
        parts(caster, folders)
    assert caught.value is error
    names = folders.parts.names()
    assert {f"part-{number:09}.rows" for number in range(failing)} <= set(names)
    assert len(names) <= failing + 3  # one is cast, one waits, one is read
    assert not [name for name in names if name.startswith("new-")]


@pytest.mark.parametrize("failing", [(3, 4), (4, 5), (2, 3, 4)])
def test_the_error_of_the_first_block_that_failed(caster, folders, monkeypatch, failing):
    errors = {number: rb.RayboxError(str(number)) for number in failing}
    slowly(monkeypatch, lambda number: time.sleep(0.05 * (number == failing[0])), errors.get)
    with pytest.raises(rb.RayboxError) as caught:
        parts(caster, folders)
    assert caught.value is errors[failing[0]]


def test_an_error_of_the_rays_follows_all_before_it(caster, folders):
    columns = np.load(caster.job.rays[0])
    columns[50, 4] = np.nan
    np.save(caster.job.rays[0], columns)
    with pytest.raises(rb.FileFormatError, match=r"\[50, 4\]: nan"):
        parts(caster, folders)
    assert folders.parts.names() == [f"part-{number:09}.rows" for number in range(5)]


def test_no_thread_is_left_when_the_caller_ends(caster, folders, monkeypatch):
    gate = threading.Event()
    slowly(monkeypatch, lambda number: number > 2 and gate.wait(60))
    before = threading.active_count()
    steps = ThreadRunner(caster, 2).run(folders, ALL)
    next(steps)
    assert threading.active_count() > before
    gate.set()
    steps.close()
    assert threading.active_count() == before


def test_one_block_is_written_while_another_is_queried(caster, folders, monkeypatch):
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
    assert len(parts(caster, folders, workers=1)) == 12
    assert max(most) == 1
