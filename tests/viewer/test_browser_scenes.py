"""Clicks, filters, search, sections and links, on each scene in a real browser."""

import numpy as np
import pytest

import raybox as rb
from browser import SCENE_WINDOWS, Page, content_of, ends_of, of_engine, shown
from raybox.geometry import with_facts

PIXELS = (5, 4)
# The browser smooths the lines of axes and planes in one of two ways; what they are drawn from is compared.
HIDE_LINES = "() => { raybox.stage.flat.style.visibility = 'hidden' }"


@pytest.fixture(scope="module", params=SCENE_WINDOWS, ids=str)
def opened(request, browser):
    """Return the name of a scene and its page."""
    with request.param.opened(browser) as page:
        yield request.param.scene, page


@pytest.fixture(scope="module")
def several(opened):
    """Return a pixel whose ray hits two objects, as the page is at the start."""
    name, page = opened
    page.reset()
    page.pick(*page.pixels(1, 1)[0])  # the sheet of a phone opens
    page.reset()
    return page.through_several(content_of(name).stage, page.pixels(90, 90))


def objects_of(answer) -> list[int]:
    """Return the objects of an answer in order, each once."""
    return list(dict.fromkeys(hit["object"] for hit in answer["hits"]))


def test_picked_objects_are_those_of_the_engine(opened, several):
    name, page = opened
    stage = content_of(name).stage
    page.reset()
    page.assert_small()
    for answer in page.answers(page.pixels(*PIXELS)):
        assert shown(stage, answer) == of_engine(stage, answer["ray"], stage.visible)
    for pixel in [several, *page.pixels(2, 1)]:
        ray = page.run("([x, y]) => raybox.stage.rayOf(x, y)", list(pixel))
        answer = page.pick(*pixel)
        assert answer["ray"]["origin"] == ray["origin"]
        assert answer["ray"]["direction"] == ray["direction"]
        want = of_engine(stage, answer["ray"], stage.visible)
        assert shown(stage, answer) == want
        assert page.state("selection") == [hit.object for hit in want[:1]]


def test_a_click_names_the_object_behind_what_is_hidden_or_passed(opened, several):
    name, page = opened
    stage = content_of(name).stage
    page.reset()
    answer = page.pick(*several)
    front, behind = objects_of(answer)[:2]
    named = page.find("selected-name").inner_text()

    page.press("unpickable")
    page.until("!raybox.actions.store.visibility.pickable[given]", front)
    assert page.run("(object) => raybox.actions.store.visibility.shown[object]", front) == 1
    assert objects_of(page.pick(*several))[0] == behind
    assert page.state("selection") == [behind]

    page.press("hide")
    page.until("!raybox.actions.store.visibility.shown[given]", behind)
    pickable = stage.visible.copy()
    pickable[[front, behind]] = False
    answer = page.pick(*several)
    assert shown(stage, answer) == of_engine(stage, answer["ray"], pickable)

    page.reset()
    assert objects_of(page.pick(*several))[0] == front
    assert page.find("selected-name").inner_text() == named


def test_a_section_exposes_and_limits_the_ray(opened, several):
    name, page = opened
    stage = content_of(name).stage
    page.reset()
    whole = page.pick(*several)
    before = page.picture()
    page.run("() => raybox.actions.clearRay()")
    origin, away = np.array(whole["ray"]["origin"]), np.array(whole["ray"]["direction"])
    axis = int(np.argmax(np.abs(away)))
    behind = next(hit for hit in whole["hits"] if hit["object"] != whole["hits"][0]["object"])
    at = float((origin + (whole["hits"][0]["t"] + behind["t"]) / 2 * away)[axis])
    end = 0 if away[axis] > 0 else 1  # what the ray passes first is cut away
    page.show("cut")
    field = page.find(f"cut-{'xyz'[axis]}-field-{end}")
    field.fill(repr(at))
    field.press("Tab")
    page.until("raybox.actions.store.state.cut.length === 1")
    (plane,) = page.state("cut")
    assert page.picture() != before
    cut = page.pick(*several)
    assert ends_of(cut["ray"])[0] >= whole["hits"][0]["t"]
    assert shown(stage, cut) == of_engine(stage, cut["ray"], stage.visible)
    for hit in cut["hits"]:
        coordinate = cut["ray"]["origin"][axis] + hit["t"] * cut["ray"]["direction"][axis]
        assert (coordinate - plane["at"]) * (-1 if plane["flip"] else 1) <= 1e-9 * abs(plane["at"])


def test_a_link_reproduces_the_view(opened, several):
    _, page = opened
    page.reset()
    page.pick(*several)
    page.press("hide")
    page.show("cut")
    page.slide("cut-y-1", 0.9)
    page.pick(*several)
    page.show("colour")
    page.press("edges")
    page.press("dark")
    page.press("link")
    page.notice("link copied")
    address = page.run("navigator.clipboard.readText()")
    page.run("() => { raybox.notice.clear('info') }")
    assert address.startswith(page.tab.url.split("#")[0])
    lines = page.run("raybox.stage.furniture()")
    page.run(HIDE_LINES)
    view, picture = page.run("raybox.actions.store.view()"), page.picture()

    first, page.tab = page.tab, page._tab()
    try:
        page.open(address)
        page.until("raybox.actions.store.state.answer !== null")
        page.show("colour")
        assert page.run("raybox.actions.store.view()") == view
        assert page.run("raybox.stage.furniture()") == lines
        page.run(HIDE_LINES)
        assert page.picture() == picture
    finally:
        page.tab.close()
        page.tab = first
        page.run("() => { raybox.stage.flat.style.visibility = '' }")


def test_the_first_view_has_the_axis_and_the_unit_of_the_file(browser, tmp_path):
    """A scene whose y is up stands upright, and its lengths have the unit that it states."""
    tall = with_facts(rb.Boxes([[0, 0, 0]], [[1, 9, 1]]), {}, units="foot", up="y")
    with rb.view(tall, port=0) as viewer:
        page = Page(browser, viewer.url)
        camera = page.state("camera")
        assert camera["up"] == "y"
        assert camera["eye"][1] > camera["target"][1], "the eye is above, in y"
        page.run("raybox.actions.castTyped([0.5, 0.5, -8], [0, 0, 2])")
        page.until("raybox.actions.store.state.answer")
        assert "distance, ft" in page.find("hits").inner_text()
        viewer.open("other.csv", b"min_x,min_y,min_z,max_x,max_y,max_z\n0,0,0,1,1,1\n")
        page.until("raybox.actions.store.model.name === 'other.csv'")
        assert page.run("raybox.stage.camera().up") == "z"
        page.close()
