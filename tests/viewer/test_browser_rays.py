"""The rays of a lidar frame in a real browser: table, toggles, colours, and what each of them hits."""

import numpy as np
import pytest

import raybox as rb
from browser import PHONE, Page, content_of, ends_of, of_engine, served, shown
from raybox.viewer.content import make_content
from raybox.viewer.stage import make_stage


@pytest.fixture(scope="module")
def page(browser):
    made = Page(browser, served("lidar").url, density=0.5, always_draws=False)
    yield made
    assert not made.foreign()
    made.close()


@pytest.fixture(autouse=True)
def at_the_start(page):
    page.reset()
    page.show("rays")


def answer_of_row(page: Page, row: int):
    page.until("raybox.actions.store.state.answer?.row === given", row)
    return page.state("answer")


def assert_answer(page: Page, row: int) -> None:
    """Assert that the answer shown is that of a ray of the file, and what its row of the table says."""
    stage, rays = content_of("lidar").stage, content_of("lidar").rays
    answer = answer_of_row(page, row)
    want = of_engine(stage, answer["ray"], stage.visible)
    assert shown(stage, answer) == want
    for name, of_file in (("origin", rays.origins), ("direction", rays.directions)):
        assert answer["ray"][name] == of_file[row].tolist()
    assert ends_of(answer["ray"]) == (0, np.inf)
    assert page.state("selection") == [hit.object for hit in want[:1]]
    table = "[raybox.actions.store.model.table.object[row], raybox.actions.store.model.table.t[row]]"
    in_table = page.run(f"(row) => {table}", row)
    assert in_table == ([want[0].object, want[0].t] if want else [-1, np.inf])


def test_the_page_says_how_many_rays_are_drawn(page):
    total = len(content_of("lidar").rays)
    summary = page.find("rays-summary").inner_text()
    assert summary == f"{total:,} rays; at most 20,000 drawn"
    assert page.find("rays-table").get_attribute("aria-rowcount") == str(total)


def test_the_table_agrees_with_the_engine_for_every_ray(page):
    content = content_of("lidar")
    want = content.stage.scene.nearest(content.rays)
    table = page.run("[...raybox.actions.store.model.table.object]")
    np.testing.assert_array_equal(table, want.index)
    times = page.run("[...raybox.actions.store.model.table.t]")
    np.testing.assert_array_equal(times, want.t)


def test_a_row_selects_what_its_ray_hits(page):
    page.press("rays-table-sort-1")  # hits before misses
    rows = page.tab.locator("[data-test=rays-table] [data-row]")
    for at in (0, 2):
        row = int(rows.nth(at).get_attribute("data-row"))
        page.press_at(rows.nth(at))
        assert_answer(page, row)
        assert rows.nth(at).get_attribute("aria-selected") == "true"
    page.press("rays-table-sort-1")  # and now misses first
    row = int(rows.first.get_attribute("data-row"))
    page.press_at(rows.first)
    assert_answer(page, row)
    page.run("() => { raybox.actions.clearRay() }")


def test_the_table_sorts_by_distance(page):
    page.press("rays-table-sort-2")
    cells = page.tab.locator("[data-test=rays-table] [data-row]").evaluate_all(
        "(rows) => rows.slice(0, 5).map((row) => Number(row.dataset.row))"
    )
    content = content_of("lidar")
    lengths = np.linalg.norm(content.rays.directions, axis=1)
    metres = content.stage.scene.nearest(content.rays).t * lengths
    np.testing.assert_array_equal(metres[cells], np.sort(metres)[: len(cells)])


def test_filters_change_what_the_rays_hit(page):
    """Without cars, the table is that of the engine with `where=`."""
    content = content_of("lidar")
    where = content.stage.labels["label"] != "Car"
    page.run("() => { window.table = raybox.actions.store.state.table }")
    page.show("objects")
    page.press_at(page.tab.locator("[data-word=Car] [data-test=tree-hide]").first)
    page.until("raybox.actions.store.state.table !== window.table")
    want = content.stage.scene.nearest(content.rays, where=[where])
    np.testing.assert_array_equal(page.run("[...raybox.actions.store.model.table.object]"), want.index)
    page.run("() => { window.table = raybox.actions.store.state.table }")
    page.press("show-all")
    page.until("raybox.actions.store.state.table !== window.table")


# The pixel of a range whose ray passes nearest to a point.
NEAREST_PIXEL = """([left, top, width, height, step, point]) => {
    const away = (x, y) => {
        const { origin, direction } = raybox.stage.rayOf(x, y);
        const to = point.map((value, k) => value - origin[k]);
        const size = Math.hypot(...direction);
        const along = to.reduce((sum, value, k) => sum + value * direction[k], 0) / size;
        return Math.hypot(...to.map((value, k) => value - (along * direction[k]) / size));
    };
    let [best, least] = [null, Infinity];
    for (let y = top; y < top + height; y += step)
        for (let x = left; x < left + width; x += step) {
            const distance = away(x, y);
            if (distance < least) [best, least] = [[x, y], distance];
        }
    return best;
}"""


def pixel_of(page: Page, point: np.ndarray) -> tuple[int, int]:
    """Return the free pixel whose ray passes nearest to a point."""
    left, top, width, height = page.free()
    x, y = page.run(NEAREST_PIXEL, [left, top, width, height, 8, point.tolist()])
    return tuple(page.run(NEAREST_PIXEL, [x - 8, y - 8, 17, 17, 1, point.tolist()]))


def test_a_click_on_a_drawn_ray_selects_it(browser):
    """Far from what it hits, and on a ray that hits nothing."""
    boxes = rb.Boxes([[9, -1, -1], [9, 5, -1]], [[11, 1, 1], [11, 7, 1]], ids=["one", "two"])
    rays = rb.Rays([[0, 0, 0], [0, 3, 0], [0, 6, 0]], [[1, 0, 0], [1, 0, 0], [1, 0, 0]])
    with rb.view(boxes, rays, port=0) as viewer:
        page = Page(browser, viewer.url, PHONE)
        page.find("view").select_option("top")
        page.settled()
        for row, selected in ((2, [1]), (1, []), (0, [0])):
            page.click(*pixel_of(page, rays.origins[row] + [6.0, 0, 0]))
            answer = answer_of_row(page, row)
            assert [hit["object"] for hit in answer["hits"]] == selected
            assert page.state("selection") == selected
            page.show("rays")
            chosen = page.tab.locator("[data-test=rays-table] [aria-selected=true]")
            assert chosen.get_attribute("data-row") == str(row)
        page.close()


def test_a_saved_page_says_that_its_table_does_not_follow_filters(browser, page, tmp_path):
    assert page.find("rays-saved").count() == 0, "a live page casts all rays again"
    boxes = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])
    path = tmp_path / "saved.html"
    path.write_bytes(make_content(make_stage(boxes), rb.Rays([[0, 0, 0]], [1, 0, 0])).saved())
    saved = Page(browser, path.as_uri(), page.size, offline=True)
    saved.run("() => { raybox.actions.setHidden([0], true) }")
    saved.show("rays")
    assert "time of saving" in saved.find("rays-saved").inner_text()
    assert saved.run("[...raybox.actions.store.model.table.object]") == [0]
    saved.press_at(saved.tab.locator("[data-test=rays-table] [data-row]").first)
    saved.until("raybox.actions.store.state.answer")
    assert [hit["object"] for hit in saved.state("answer")["hits"]] == [1], "a row casts its ray anew"
    saved.close()
