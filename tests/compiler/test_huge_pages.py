"""Buffers are reused, and never while an array still refers to them."""

import mmap
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import raybox as rb
import raybox.compiler.huge_pages
from processes import python
from raybox.compiler import huge_pages

SIZE = 1 << 19  # floats: four megabytes


@pytest.fixture(autouse=True)
def _empty_pool(monkeypatch):
    monkeypatch.setattr(huge_pages, "_FREE", deque())


def place_of(array):
    return array.__array_interface__["data"][0]


def test_memory_is_reused_after_its_last_array_is_gone():
    array = huge_pages.pooled((SIZE // 4, 4), np.float64)
    place, row = place_of(array), array[1]
    row[:] = 7.0
    del array
    other = huge_pages.pooled((SIZE,), np.int64)
    assert place_of(other) != place
    other[:] = 0
    assert (row == 7.0).all()
    del row
    assert place_of(huge_pages.pooled((SIZE,), np.float64)) == place
    assert other.flags.writeable
    assert other.flags.c_contiguous


@pytest.mark.parametrize(
    ("rows", "same"), [(SIZE, True), (SIZE // 2, True), (SIZE // 4, False), (SIZE + 1, False)]
)
def test_memory_is_reused_for_arrays_of_similar_size(rows, same):
    place = place_of(huge_pages.pooled((SIZE,), np.float64))
    array = huge_pages.pooled((rows,), np.float64)
    assert array.shape == (rows,)
    assert (place_of(array) == place) is same


def test_small_arrays_are_not_pooled():
    array = huge_pages.pooled((100,), np.float64)
    assert array.shape == (100,)
    del array
    assert not huge_pages._FREE


def test_the_pool_is_bounded_and_drops_the_oldest(monkeypatch):
    monkeypatch.setattr(huge_pages, "_MAX_FREE_BYTES", 3 * 8 * SIZE)
    arrays = [huge_pages.pooled((SIZE,), np.float64) for _ in range(5)]
    places = [place_of(array) for array in arrays]
    while arrays:
        arrays.pop(0)
    assert [place_of(memory) for memory in huge_pages._FREE] == places[2:]
    huge_pages.pooled((4 * SIZE,), np.float64)
    assert [place_of(memory) for memory in huge_pages._FREE] == places[2:]


def test_threads_never_share_memory():
    wrong = []

    def use(number):
        for turn in range(200):
            array = huge_pages.pooled((SIZE // 2 + 1000 * number,), np.int64)
            array[::1000] = 1000 * number + turn
            if not (array[::1000] == 1000 * number + turn).all():
                wrong.append(number)
            del array

    with ThreadPoolExecutor(8) as threads:
        assert len([*threads.map(use, range(8))]) == 8
    assert not wrong
    assert huge_pages._FREE


@pytest.mark.parametrize("query", ["nearest", "count", "first", "all"])
def test_results_survive_the_next_query(query):
    rng = np.random.default_rng(5)
    lower = rng.random((300, 3))
    scene = rb.Scene(rb.Boxes(lower, lower + 0.1))
    one, other = (rb.Rays(rng.random((150_000, 3)), rng.normal(size=(150_000, 3))) for _ in range(2))

    def run(rays):
        result = scene.first(rays, 1) if query == "first" else getattr(scene, query)(rays)
        return result if query == "count" else result.t

    result = run(one)
    copy = result.copy()
    place = place_of(result)
    assert place_of(run(other)) != place
    assert np.array_equal(result, copy)
    del result
    assert huge_pages._FREE
    assert np.array_equal(run(one), copy)


LATE = """
import ctypes, sys, types
def leak(module):  # as some extensions do: at exit the names of such modules become None, one by one
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(module))
    return sys.modules.setdefault(module.__name__, module)
early = leak(types.ModuleType("early"))
import numpy as np, raybox as rb, raybox.compiler.huge_pages
leak(raybox.compiler.huge_pages)
late = leak(types.ModuleType("late"))
scene = rb.Scene(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]))
rays = rb.Rays(np.full((200_000, 3), -1.0), [1, 1, 1])
early.hits, late.hits = scene.nearest(rays), scene.nearest(rays)
"""


@pytest.mark.long
def test_results_that_live_to_the_end_of_the_process_print_nothing():
    done = python("-c", LATE)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("size", [0, 7, SIZE // 8, SIZE + 77])
def test_the_rest_of_a_shortened_array_is_freed(size):
    array = huge_pages.empty((2 * size,), np.float64)
    array[:] = 3.0
    short = huge_pages.shortened(array, size)
    assert short.size == size
    assert short.flags.writeable
    assert (short == 3.0).all()
    if np.shares_memory(array, short):  # pages that were freed read as zeros
        assert np.count_nonzero(array[size:]) < mmap.PAGESIZE // 8
    else:
        assert size < SIZE


@pytest.mark.parametrize("size", [0, 5, SIZE])
def test_zeros(size):
    array = huge_pages.empty((size,), np.int64)
    array[:] = 7
    del array
    assert not huge_pages.zeros((size,), np.int64).any()
