"""The card of an object with property sets, of a live page and of a saved one."""

import numpy as np
import pytest

from browser import PHONE, WIDE, Page, content_of, served

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
