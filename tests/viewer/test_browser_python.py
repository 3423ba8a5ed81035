"""What Python and a page do to one another, and pages in notebooks, in a real browser."""

import threading

import pytest

import raybox as rb
from browser import CAST, WIDE, Page
from waiting import wait_until

ROW = rb.Boxes(
    [[0, 0, 0], [2, 0, 0], [4, 0, 0]],
    [[1, 1, 1], [3, 1, 1], [5, 1, 1]],
    ids=["near", "middle", "far"],
    labels={"class": ["wall", "door", "wall"], "size": [1.0, 2.0, 3.0]},
)
ABOVE = rb.Boxes([[0, 0, 3]], [[5, 1, 4]], ids=["roof"])
DOWN = {"origin": [2.5, 0.5, 9.0], "direction": [0.0, 0.0, -1.0]}


@pytest.fixture
def viewer():
    with rb.view(ROW, port=0) as made:
        yield made


@pytest.fixture
def page(browser, viewer):
    made = Page(browser, viewer.url, WIDE)
    yield made
    made.close()


def lists(selection) -> dict[str, list[int]]:
    return {name: own.tolist() for name, own in selection.items()}


def test_an_added_geometry_keeps_the_view_of_the_page(viewer, page):
    page.press("tree-hide")  # walls
    page.until("raybox.actions.store.visibility.shownCount === 1")
    assert page.cast(DOWN) == [1]
    page.run("() => raybox.actions.store.set({ dark: true })")
    page.run("() => raybox.stage.standardView('front')")
    camera = page.run("raybox.stage.camera()")
    viewer.add("roof", ABOVE, color="#112233")
    page.until("raybox.actions.store.model.objects === 4")
    assert page.run("Array.from(raybox.actions.store.visibility.shown)") == [0, 1, 0, 1]
    assert page.run("raybox.stage.camera()") == camera
    assert page.state("dark") is True
    assert page.state("selection") == [1]
    page.until("raybox.actions.store.state.answer?.hits.length === 2")  # the ray is cast again
    assert page.run("Array.from(raybox.stage.drawing.look.rgba.slice(12, 16))") == [0x11, 0x22, 0x33, 255]
    assert page.cast(DOWN) == [3, 1]
    viewer.add("first", ABOVE)
    viewer.remove("scene")
    page.until("raybox.actions.store.model.objects === 2")
    assert page.state("hidden") == []
    assert page.cast(DOWN) == [0, 1]


def test_python_hides_selects_colours_and_looks(browser, viewer, page):
    """On a page that is open, and on one that opens later."""
    viewer.hide("scene", "`class` == 'wall'")
    page.until("raybox.actions.store.visibility.shownCount === 1")
    assert page.cast({"origin": [-5, 0.5, 0.5], "direction": [1, 0, 0]}) == [1]
    viewer.show("scene", [2])
    page.until("raybox.actions.store.visibility.shownCount === 2")
    viewer.select("scene", [0, 2])
    page.until("raybox.actions.store.state.selection.join() === '0,2'")
    viewer.color_by("size")
    page.until("raybox.actions.store.state.colour.label === 'size'")
    assert "size: 1 to 3" in page.find("scene-legend").inner_text()
    viewer.color_by("class")
    page.until("raybox.actions.store.state.colour.by === 'class'")
    viewer.camera([20, 0.5, 0.5], [0, 0.5, 0.5], fov=30)
    page.until("raybox.stage.camera().eye[0] === 20")
    camera = page.run("raybox.stage.camera()")
    assert (camera["target"], camera["fov"], camera["up"]) == ([0, 0.5, 0.5], 30, "z")
    later = Page(browser, viewer.url)
    assert later.run("raybox.stage.camera()") == camera
    assert (later.state("selection"), later.state("colour")["by"]) == ([0, 2], "class")
    assert later.run("raybox.actions.store.visibility.shownCount") == 2
    later.close()


def test_a_click_and_a_selection_reach_python(viewer, page):
    heard = []
    done = threading.Event()

    @viewer.on_pick
    def hears(hits):
        heard.append((hits.ids.tolist(), lists(viewer.selection)))
        done.set()

    page.run("() => raybox.stage.standardView('front')")
    answer = page.pick(*page.pixels(1, 1)[0])
    assert [hit["object"] for hit in answer["hits"]] == [1]
    assert done.wait(90)
    assert heard == [(["middle"], {"scene": [1]})]
    page.press("tree-hide")  # the ray is cast again, and that is no pick
    page.until("raybox.actions.store.visibility.shownCount === 1")
    page.run("raybox.actions.settled()")
    page.run("() => raybox.actions.select([2, 0])")
    wait_until(lambda: lists(viewer.selection) == {"scene": [0, 2]}, "the selection reaches Python")
    page.run("() => raybox.actions.select([])")
    wait_until(lambda: viewer.selection == {}, "the empty selection reaches Python")
    viewer.click(**DOWN)
    page.until("raybox.actions.store.state.answer?.ray.origin[2] === 9")
    assert "middle" in page.find("selected-name").inner_text()
    viewer.select("scene", [0])
    page.until("raybox.actions.store.state.selection.join() === '0'")
    assert len(heard) == 1, "what Python does calls nothing back"


def test_the_output_of_a_notebook_casts_rays_without_a_server(browser, viewer, tmp_path):
    """As it is saved in a notebook: a page in a frame of another origin, without the server."""
    viewer.hide("scene", [0])
    (tmp_path / "notebook.html").write_text(f"<!doctype html><body>{viewer._repr_html_()}</body>")
    viewer.stop()
    context = browser.new_context(offline=True)
    tab = context.new_page()
    errors = []
    tab.on("pageerror", lambda error: errors.append(str(error)))
    tab.goto((tmp_path / "notebook.html").as_uri())
    inner = tab.frames[1]
    inner.wait_for_function("window.raybox?.actions")
    assert inner.evaluate("origin") == "null"
    assert inner.evaluate(CAST, {"origin": [-5, 0.5, 0.5], "direction": [1, 0, 0]}) == [1, 2]
    inner.evaluate("raybox.stage.settled()")
    assert not errors
    context.close()
