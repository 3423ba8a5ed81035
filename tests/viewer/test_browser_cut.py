"""The ray that is shown follows the section planes, live and in a saved page."""

import pytest

import raybox as rb
from browser import PHONE, WIDE, Page

ROW = rb.Boxes([[0, 0, 0], [2, 0, 0], [4, 0, 0]], [[1, 1, 1], [3, 1, 1], [5, 1, 1]])
CAST = "() => raybox.actions.castTyped([-5, 0.5, 0.5], [1, 0, 0])"
HITS = "JSON.stringify(raybox.actions.store.state.answer.hits.map((hit) => hit.object))"


@pytest.fixture(params=["live", "saved"])
def address(request, tmp_path):
    with rb.view(ROW, port=0) as viewer:
        viewer.save_html(tmp_path / "row.html")
        yield viewer.url if request.param == "live" else (tmp_path / "row.html").as_uri()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1280", "390"])
def test_hits_and_marks_follow_the_cut(browser, address, size):
    page = Page(browser, address, size, offline=address.startswith("file"))

    def hits(*objects: int) -> int:
        """Wait until the ray hits these objects; return the points on it."""
        page.until(f"{HITS} === given", str([*objects]).replace(" ", ""))
        assert page.find("hits").get_attribute("aria-rowcount") == str(len(objects))
        return page.run("raybox.stage.overlays.marks.bytes")

    page.run(CAST)
    marks = hits(0, 1, 2)
    page.show("cut")
    page.slide("cut-x-1", 0.5)  # at 2.5, within the box in the middle
    assert hits(0, 1) < marks
    page.slide("cut-x-1", 0.3)
    hits(0)
    page.press("cut-x-clear")
    page.slide("cut-x-0", 0.3)
    hits(1, 2)
    page.slide("cut-x-1", 0.7)
    hits(1)
    page.press("cut-none")
    assert hits(0, 1, 2) == marks
    page.close()
