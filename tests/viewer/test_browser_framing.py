"""What a scene looks like when it opens: its place in the picture, its legend, and what it lacks."""

import numpy as np
import pytest

import raybox as rb
from browser import PHONE, WIDE, Page, content_of, served


def covered(page: Page) -> tuple[float, float]:
    """Return the shares of the free width and height that the triangles cover."""
    left, top, width, height = page.free()
    pixels = np.array(
        page.run(
            """() => {
                const { stage } = raybox, rows = [];
                for (const { vertices, faces } of stage.model.geometries)
                    for (const at of faces)
                        rows.push(stage.pixelOf([0, 1, 2].map((k) => vertices[3 * at + k])));
                return rows;
            }"""
        )
    )
    assert (pixels >= [left, 0]).all()
    assert (pixels <= [left + width, top + height]).all()
    return tuple(np.ptp(pixels, axis=0) / [width, height])


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1280", "390"])
def test_a_city_fills_what_panels_leave_free(browser, size):
    page = Page(browser, served("city").url, size, density=0.5)
    assert max(covered(page)) > 0.85
    page.find("view").select_option("top")
    assert max(covered(page)) > 0.85
    page.close()


def test_the_legend_is_moved_and_closed(browser):
    page = Page(browser, served("house_boxes").url, density=0.5)
    box = page.find("scene-legend").bounding_box()
    mouse = page.tab.mouse
    mouse.move(box["x"] + 30, box["y"] + 12)
    mouse.down()
    mouse.move(box["x"] + 130, box["y"] + 212)
    mouse.up()
    moved = page.find("scene-legend").bounding_box()
    assert (moved["x"] - box["x"], moved["y"] - box["y"]) == (100, 200)
    page.press("legend-close")
    assert not page.find("scene-legend").is_visible()
    page.show("colour")
    page.press("legend-on")
    assert page.find("scene-legend").bounding_box() == moved
    page.close()


def test_a_flat_scene_opens_from_above(browser):
    flat = rb.Boxes([[0, 0], [3, 1]], [[1, 1], [5, 4]], labels={"class": ["a", "b"]})
    with rb.view(flat, port=0) as viewer:
        page = Page(browser, viewer.url)
        camera = page.run("raybox.stage.camera()")
        assert camera["orthographic"]
        away = np.subtract(camera["eye"], camera["target"])
        np.testing.assert_allclose(away / np.linalg.norm(away), [0, 0, 1], atol=1e-4)
        assert page.pick(*page.pixels(1, 1)[0])["ray"]["direction"][2] < -0.99
        page.press("fit-all")
        assert page.run("raybox.stage.camera()")["orthographic"]
        page.close()


def test_an_empty_scene_says_so(browser):
    with rb.view(rb.Boxes(np.empty((0, 3)), np.empty((0, 3))), port=0) as viewer:
        page = Page(browser, viewer.url)
        assert "is empty" in page.find("empty").inner_text()
        page.close()


def test_a_scene_without_labels_lists_its_objects(browser):
    lower = np.arange(450.0).reshape(150, 3)
    with rb.view(rb.Boxes(lower, lower + 1), port=0) as viewer:
        page = Page(browser, viewer.url)
        assert page.find("empty").inner_text() == ""
        rows = page.tab.locator("[data-test=tree] [data-object]")
        assert rows.count() == 100
        page.press("tree-more")
        assert rows.count() == 150
        page.press("tree-object")
        assert page.state("selection") == [0]
        page.run("() => { raybox.actions.isolate([]) }")
        assert "hidden" in page.find("empty").inner_text()
        page.close()


def test_the_cube_turns_to_standard_views_and_is_absent_on_a_phone(browser):
    page = Page(browser, served("house_boxes").url, density=0.2, always_draws=False)
    page.reset()
    assert not page.find("cube-back").is_visible()
    page.press("cube-top")
    camera = page.run("raybox.stage.camera()")
    away = np.subtract(camera["eye"], camera["target"])
    np.testing.assert_allclose(away / np.linalg.norm(away), [0, 0, 1], atol=1e-4)
    page.tab.keyboard.press("3")
    assert page.find("cube-back").is_visible()
    assert not page.find("cube-top").is_visible()
    page.close()
    phone = Page(browser, served("house_boxes").url, PHONE, density=0.2, always_draws=False)
    assert not phone.find("cube-top").is_visible()
    phone.close()


SETS = """[...document.querySelectorAll("[data-test=properties] > details")].map((set) => [
    set.querySelector("summary").textContent,
    set.open,
    [...set.querySelectorAll("dl > div")].map((row) => [...row.children].map((one) => one.textContent)),
])"""


def select(page, number):
    page.run("(object) => { raybox.actions.select([object]) }", number)
    page.until("document.querySelector('[data-test=property-set]')")
    return page.run(SETS)


@pytest.mark.parametrize(("size", "is_live"), [(WIDE, True), (PHONE, False)], ids=["live", "saved"])
def test_a_card_has_the_property_sets_of_its_object(browser, tmp_path, size, is_live):
    stage = content_of("house").stage
    wall, other = np.flatnonzero(stage.labels["ifc_class"] == "IfcWallStandardCase")[[3, 4]].tolist()
    (tmp_path / "house.html").write_bytes(content_of("house").saved())
    address = served("house").url if is_live else (tmp_path / "house.html").as_uri()
    page = Page(browser, address, size, density=0.2, always_draws=False)
    sets = select(page, wall)
    assert [name for name, *_ in sets] == list(stage.properties[wall])
    assert not any(is_open for _, is_open, _ in sets)
    own = dict(sets[0][2])
    assert own.keys() == stage.properties[wall]["Pset_WallCommon"].keys()
    assert own["Reference"] == stage.properties[wall]["Pset_WallCommon"]["Reference"]
    assert own["IsExternal"] == ("yes" if stage.properties[wall]["Pset_WallCommon"]["IsExternal"] else "no")
    if size is PHONE:
        page.press("selected-details")
    page.press("property-set")
    assert page.run(SETS)[0][1], "it is open"
    page.find("property-set").press("Enter")
    assert not page.run(SETS)[0][1], "a key has closed it"
    page.press("property-set")
    page.until("document.querySelector('[data-test=properties] > details').open")
    page.run("new Promise((resolve) => setTimeout(resolve, 50))")  # the event of the opened set
    again = select(page, other)
    assert [name for name, is_open, _ in again if is_open] == ["Pset_WallCommon"], "it stays open"
    page.close()
