"""Results that no memory holds are refused, with the bytes that they need."""

import errno

import numpy as np
import pytest

import raybox as rb
from raybox.compiler import huge_pages
from raybox.queries import first

RAYS = rb.Rays(np.zeros((50, 3)), np.ones((50, 3)))
BOXES = rb.Boxes(np.zeros((9, 3)), np.ones((9, 3)))
LARGE = r"need [\d,]{13,} bytes of memory, more than there is; query fewer rays"


def scenes():
    return rb.Scene(BOXES), rb.Scene([BOXES, BOXES])


@pytest.mark.parametrize("rays", [RAYS, RAYS[:1], RAYS[0]], ids=["many", "one", "single"])
def test_first_of_a_thousand_million(rays, monkeypatch):
    monkeypatch.setattr(huge_pages, "_MACHINE_BYTES", 2**35)
    for scene in scenes():
        with pytest.raises(rb.InvalidInput, match=LARGE):
            scene.first(rays, 10**9)


def test_first_of_more_than_an_index_holds():
    for scene in scenes():
        for k in (2**31, 2**63, 2**200):
            with pytest.raises(rb.InvalidInput, match=r"k must be less than 2\*\*31, .*; got \d+"):
                scene.first(RAYS, k)


def test_results_that_only_all_rays_together_make_too_large(monkeypatch):
    monkeypatch.setattr(huge_pages, "_MACHINE_BYTES", 2 * 10**7)
    scene = rb.Scene(BOXES)
    assert scene.first(RAYS[:9], 20).shape == (9, 20)
    with pytest.raises(rb.InvalidInput, match=r"the results need 32,000,000 bytes of memory"):
        scene.first(rb.Rays(np.zeros((100, 3)), np.ones((100, 3))), 20_000)
    with pytest.raises(rb.InvalidInput, match=r"the results need 32,000,000 bytes of memory"):
        scene.nearest(rb.Rays(np.zeros((2_000_000, 3)), np.ones((2_000_000, 3))))


@pytest.mark.parametrize("error", [OSError(errno.ENOMEM, "no"), MemoryError(), OverflowError()])
def test_memory_that_the_system_refuses(monkeypatch, error):
    def refuse(*_):
        raise error

    monkeypatch.setattr(huge_pages, "empty", refuse)
    monkeypatch.setattr(huge_pages, "_FREE", type(huge_pages._FREE)())
    with pytest.raises(rb.InvalidInput, match=r"the results need 1,600,000 bytes of memory"):
        huge_pages.pooled((100_000, 2), np.float64)
    monkeypatch.undo()


def test_memory_of_recorders_that_the_system_refuses():
    results = first.FirstResults(np.empty((1, 1), np.int64), np.empty((1, 1)))
    with pytest.raises(rb.InvalidInput, match=LARGE):
        first._recorder(results, 64, first.FirstOptions(2**45))
