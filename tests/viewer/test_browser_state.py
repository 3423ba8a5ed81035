"""Random sequences of all controls: what is selected, listed, copied and explained is always one thing."""

import random

import pytest

import raybox as rb
import view_controls
from browser import PHONE, WIDE, Page, SceneWindow, content_of, served

# Elements that change the state, by the page's own table; not those that leave the page or replace its scene.
ELEMENTS = """() => {
    const left = ["link", "png", "save", "open", "help", "find", "scene", "view-*", "rays-table"];
    const patterns = Object.keys(raybox.partsByElement).filter((name) => !left.includes(name));
    const matches = (name) => patterns.some((one) =>
        one.endsWith("*") ? name.startsWith(one.slice(0, -1)) : name === one);
    const all = [...document.querySelectorAll("[data-test]:not(:disabled)")];
    window.elements = all.filter((one) => matches(one.dataset.test));
    return window.elements.map((one) => one.dataset.test);
}"""
USE = """async ([at, share]) => {
    const one = window.elements[at];
    const changed = () => { for (const kind of ["input", "change"]) one.dispatchEvent(new Event(kind)) };
    if (one.dataset.test === "hits") {
        const rows = [...one.querySelectorAll("[data-row]")];
        rows[Math.floor(share * rows.length)]?.click();
    } else if (one.tagName === "SELECT") {
        one.selectedIndex = Math.floor(share * one.options.length);
        changed();
    } else if (one.type === "range") {
        one.value = Number(one.min) + share * (Number(one.max) - Number(one.min));
        changed();
    } else if (one.tagName !== "INPUT" || one.type === "checkbox") one.click();
    await raybox.actions.settled();
}"""
CAST = """async ([x, y]) => {
    const { actions, stage } = raybox;
    const ray = stage.rayOf(x, y);
    if (!ray) return;
    if (actions.store.state.measure) await actions.pick(ray);  // a click that measures selects nothing
    actions.setMeasuring(false);
    await actions.pick(ray);
}"""
# Every place that names something of the selection.
PLACES = """async () => {
    const { actions, stage } = raybox;
    const { store, naming } = actions;
    const { answer, selection } = store.state;
    const test = (name) => document.querySelector(`[data-test="${name}"]`);
    const isOn = (one) =>
        one !== null && !one.hidden && !one.disabled && !one.closest("[hidden]:not([role=tabpanel])");
    const copied = [];
    actions.copy = async (text) => void copied.push(text);
    for (const what of ["id", "point", "t"]) {
        const button = test(`copy-hit-${what}`);
        if (isOn(button)) button.click();
    }
    if (isOn(test("explain"))) test("explain").click();
    delete actions.copy;
    return {
        selection,
        card: selection.length && isOn(test("selection")) ? test("selection").innerText : "",
        name: selection.length === 1 ? naming.name(selection[0]) : "",
        id: selection.length === 1 ? naming.id(selection[0]) : "",
        absence: test("absence")?.textContent ?? "",
        shown: selection.map((object) => store.visibility.shown[object]),
        highlight: stage.drawing.highlight,
        rows: [...document.querySelectorAll("[data-test=hits] [aria-selected=true]")].map(
            (row) => Number(row.dataset.of)),
        hits: (answer?.hits ?? []).map(({ object, t }) => [object, String(t)]),
        copied,
        explained: isOn(test("explanation")) ? test("explanation").dataset.of : null,
    };
}"""


def assert_one_thing(page: Page, steps: list[str]) -> None:
    """Assert that all places speak of the selected objects, and of nothing else."""
    found = page.run(PLACES)
    selection = found["selection"]
    assert (found["card"] != "") == bool(selection), steps
    assert found["highlight"] == [one for one, on in zip(selection, found["shown"], strict=True) if on], steps
    assert set(found["rows"]) <= set(selection), steps
    hit = [t for one, t in found["hits"] if [one] == selection]
    assert bool(found["copied"]) == bool(hit), steps
    if found["copied"]:
        number, _, t = found["copied"]
        assert (number, t in hit) == (found["id"], True), steps
    assert found["explained"] in (None, str(selection[0]) if len(selection) == 1 else None), steps
    if len(selection) == 1:
        assert found["name"].split("\n")[0] in found["card"], steps
        assert ("hidden" in found["absence"]) == (not found["shown"][0]), steps
        assert not (hit and found["absence"]), steps


@pytest.mark.parametrize("scene", ["house", "shop"])
def test_random_sequences_of_controls(browser, scene):
    generator = random.Random(scene)
    page = Page(browser, served(scene).url, density=0.2, always_draws=False)
    page.reset()
    pixels = page.pixels(7, 7)
    steps: list[str] = []
    chosen = 0
    for step in range(60):
        if step % 6 == 0:
            if step % 24 == 0:
                page.reset()
                steps.clear()
            page.run(CAST, list(generator.choice(pixels)))
            steps.append("scene")
        else:
            names = page.run(ELEMENTS)
            name = generator.choice(sorted(set(names)))
            at = generator.choice([k for k, one in enumerate(names) if one == name])
            page.run(USE, [at, generator.random()])
            steps.append(name)
        assert_one_thing(page, steps)
        chosen += len(page.state("selection")) == 1
    assert chosen > 8
    page.close()


ROW = rb.Boxes([[0, 0, 0], [2, 0, 0], [4, 0, 0]], [[1, 1, 1], [3, 1, 1], [5, 1, 1]], ids=["a", "b", "c"])


def test_what_is_cut_away_is_not_described_as_being_there(browser):
    with rb.view(ROW, port=0) as viewer:
        page = Page(browser, viewer.url)
        page.run("() => raybox.actions.castTyped([-5, 0.5, 0.5], [1, 0, 0])")
        page.run("() => { raybox.actions.cutTo('x', [1.5, Infinity]) }")
        page.run("raybox.actions.settled()")
        assert page.find("absence").inner_text() == "Not in the picture: cut away"
        assert not page.find("copy-hit-t").is_enabled()
        page.show("cut")
        page.press("cut-none")
        page.run("raybox.actions.settled()")
        assert page.find("absence").inner_text() == ""
        page.press("copy-hit-id")
        page.notice("id copied")
        assert page.run("navigator.clipboard.readText()") == "a"
        assert "a" in page.find("selected-name").inner_text()
        page.close()


def test_on_a_phone_the_list_comes_first_and_the_model_stays_in_sight(browser):
    page = Page(browser, served("house_boxes").url, PHONE, density=0.5)
    page.reset_sheet()
    page.press("grip")  # the sheet grows
    left, top, width, height = page.free()
    corners = page.run(
        """() => {
            const { stage, actions } = raybox, { shown } = actions.store.visibility;
            return stage.model.geometries.flatMap(({ firstObject, lower, upper }) =>
                Array.from({ length: 8 * (lower.length / 3) }, (_, at) => [at >> 3, at & 7])
                    .filter(([box]) => shown[firstObject + box])
                    .map(([box, end]) => stage.pixelOf([0, 1, 2].map(
                        (axis) => ((end >> axis) & 1 ? upper : lower)[3 * box + axis]))));
        }"""
    )
    assert all(left <= x <= left + width and top <= y <= top + height for x, y in corners)
    page.reset_sheet()
    page.pick(*page.pixels(1, 1)[0])
    tops = page.run(
        """() => ["panel", "hits", "selection", "title"].map((name) =>
            document.querySelector(`[data-test=${name}]`).getBoundingClientRect().top)"""
    )
    panel, hits, card, title = tops
    assert panel < hits < panel + 120 < card
    assert title < panel, "the title is scrolled away"
    bars = page.run(
        "[...document.querySelectorAll('.toolbar .group')].map((one) => one.getBoundingClientRect().top)"
    )
    assert len(set(bars)) == 1, "one bar of tools"
    page.close()


CLASSES = {"class": ["wall"] * 299 + ["door"], "storey": ["Level 1", "Level 2"] * 150}
MANY = rb.Boxes([[2 * k, 0, 0] for k in range(300)], [[2 * k + 1, 1, 1] for k in range(300)], labels=CLASSES)


def test_a_search_selects_all_results_and_shows_nothing_that_is_hidden(browser):
    with rb.view(MANY, port=0) as viewer:
        page = Page(browser, viewer.url)
        page.run("() => { raybox.actions.setHidden([4], true) }")
        page.find("find").fill("1 wall level")
        page.until("document.querySelectorAll('[data-test=result]').length === 150")
        hidden = page.tab.locator("[data-test=result].off")
        assert hidden.get_attribute("data-object") == "4"
        assert "hidden" in hidden.inner_text()
        page.press_at(hidden)
        assert page.state("selection") == [4]
        assert page.run("raybox.actions.store.visibility.shown[4]") == 0
        assert not page.find("results").is_visible()
        assert "hidden" in page.find("absence").inner_text()
        page.press("show")
        assert page.run("raybox.actions.store.visibility.shown[4]") == 1
        page.find("find").fill("wall")
        page.until("document.querySelectorAll('[data-test=result]').length === 200")
        page.press("select-found")
        assert len(page.state("selection")) == 299
        assert not page.find("results").is_visible()
        page.close()


RAYS = frozenset(["tab-rays", "rays-hits", "rays-misses", "rays-points", "rays-colour", "rays-table"])
POINTS = frozenset(["points-colour", "points-limit", "points-size"])
TREE = frozenset(["tree-only", "tree-pick", "tree-label", "tree-expand"])
# What would do nothing, and is absent.
ABSENT = {
    "house": RAYS | POINTS,
    "shop": RAYS | POINTS | TREE,
    "lidar": frozenset(["tree-label"]),
    "boxes": RAYS | POINTS | {"tree-label"},
}
# All controls are in one of them; pictures are compared on a phone.
WINDOWS = [SceneWindow(scene, size) for scene in ("house", "lidar") for size in (WIDE, PHONE)]
WINDOWS += [SceneWindow("shop", WIDE), SceneWindow("boxes", PHONE)]
# How much nearer than at the start the camera is: at the start, boxes and cells are too small for edges.
NEARER = {"boxes": 0.9, "shop": 0.7}


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_each_control_has_an_effect(browser, window):
    name = window.scene
    with window.opened(browser) as page:
        view_controls.cast_through_several(page, content_of(name).stage, NEARER.get(name, 0.15))
        uses = view_controls.use_all(page)
    assert not uses.problems, "\n".join(uses.problems)
    assert uses.there == uses.done
    assert name != "lidar" or uses.there >= RAYS | POINTS | {"range-*-0"}
    assert ABSENT[name].isdisjoint(uses.there), "a control that does nothing here"
