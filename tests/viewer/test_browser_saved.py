"""Saved pages, opened from disk in a real browser without a network, pick as the engine does, to the bit."""

import math

import numpy as np
import pytest

from browser import WIDE, Page, content_of, ends_of, of_engine, shown
from view_scenes import SCENES


@pytest.fixture(scope="module", params=SCENES)
def saved(request, browser, tmp_path_factory):
    """Return the name of a scene, and its saved page as a browser without a network shows it."""
    path = tmp_path_factory.mktemp("saved") / f"{request.param}.html"
    path.write_bytes(content_of(request.param).saved())
    page = Page(browser, path.as_uri(), WIDE, offline=True)
    yield request.param, page
    assert set(page.requested) == {path.as_uri()}, "a saved page asks nothing of the network"
    page.close()


def assert_exact(stage, answers, pickable) -> int:
    """Assert that answers are those of the engine; return the number of hits."""
    for answer in answers:
        found = shown(stage, answer)
        assert found == of_engine(stage, answer["ray"], pickable)
        assert answer["total"] == len(found)
    return sum(answer["total"] for answer in answers)


def hide_something(page: Page, stage) -> np.ndarray:
    """Hide the first group of the tree, or without groups a picked object; return what can still be hit."""
    pickable = stage.visible.copy()
    group = page.tab.locator("[data-test=group]").first
    if group.count():
        word = group.get_attribute("data-word")
        page.press("tree-hide")
        return pickable & (stage.labels[page.run("raybox.actions.store.model.classes")] != word)
    first = page.pick(*page.pixels(1, 1)[0])["hits"][0]["object"]
    page.press("hide")
    pickable[first] = False
    return pickable


def test_a_saved_page_picks_exactly(saved):
    name, page = saved
    stage = content_of(name).stage
    page.reset()
    pixels = page.pixels(20, 10)
    assert assert_exact(stage, page.answers(pixels[::2]), stage.visible) > 0

    pickable = hide_something(page, stage)
    page.show("cut")
    page.slide("cut-x-1", 0.55)
    answers = page.answers(pixels[1::2])
    (plane,) = page.state("cut")
    for answer in answers:
        assert_cut(answer["ray"], plane["at"])
    assert page.run("raybox.actions.store.visibility.shownCount") == pickable.sum()
    assert assert_exact(stage, answers, pickable) > 0


def assert_cut(ray: dict, at: float) -> None:
    """Assert that a ray is limited to where x is at most that of the cut."""
    speed, room = ray["direction"][0], at - ray["origin"][0]
    low, high = (0.0, room / speed) if speed > 0 else (max(0.0, room / speed), math.inf)
    assert ends_of(ray) == (low, high)
