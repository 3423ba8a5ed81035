"""Scans in a real browser: residuals, fields, filters and sizes of points; dropped files; true counts."""

import json
from functools import lru_cache

import numpy as np
import pytest

import raybox as rb
from browser import PHONE, WIDE, Page, content_of, served
from raybox.viewer.viewer import Viewer
from real_data import LIDAR

SIZES = pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1280", "390"])
BOXES = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])
RAYS = "origin_x,origin_y,origin_z,direction_x,direction_y,direction_z\n0,0,0,2,0,0\n0,9,0,1,0,0\n"
SCAN = "x,y,z,intensity\n4,0,0,9\n-3,1,0,7\n1,-3,0,8\n"
DROP = """([name, text]) => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File([text], name));
    const event = (kind) => new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true });
    const scene = document.querySelector("[data-test=scene]");
    for (const kind of ["dragover", "drop"]) scene.dispatchEvent(event(kind));
}"""


@pytest.fixture(scope="module")
def scan(browser):
    made = Page(browser, served("lidar").url, density=0.25, always_draws=False)
    yield made
    made.close()


def legend(page: Page) -> list[str]:
    """Return the lines of the legend over the scene that are in sight."""
    entries = page.tab.locator("[data-test=scene-legend] .entry")
    return [one.inner_text().replace("\n", " ") for one in entries.all() if one.is_visible()]


def array(page: Page, path: str) -> np.ndarray:
    """Return numbers of the page's model; JSON has no infinity."""
    text = page.run(f"JSON.stringify([...raybox.actions.store.model.{path}].map(String))")
    return np.array([float(one.replace("Infinity", "inf")) for one in json.loads(text)])


def test_residuals_are_those_of_nearest_bit_for_bit(scan):
    """And their colours say which are above 0, within the scale that is typed."""
    content = content_of("lidar")
    rays = content.rays
    measured = np.linalg.norm(rays.directions, axis=1)
    want = content.stage.scene.nearest(rays).distances - measured
    rows = array(scan, "points.ray").astype(int)
    np.testing.assert_array_equal(array(scan, "table.distance")[rows] - array(scan, "points.distance"), want)
    scan.reset()
    scan.show("rays")
    scan.find("points-colour").select_option("residual")
    limit = scan.find("points-limit")
    assert 20 < float(limit.input_value()) < 40, "three times the median of a scale that this frame needs"
    limit.fill("0.5")
    limit.press("Tab")
    drawn = np.array(scan.run("[...raybox.stage.drawing.points]")).reshape(-1, 4)
    clear = np.isfinite(want) & (np.abs(want) > 0.25)
    assert ((drawn[clear, 0] > drawn[clear, 2]) == (want[clear] > 0)).all()
    assert ((drawn[:, 3] < 255) == ~np.isfinite(want)).all()
    lines = legend(scan)
    assert any(line.startswith("points, cast − measured: -0.5 to 0.5; all: -180.1 to 118") for line in lines)
    assert f"points without a hit {np.isinf(want).sum():,}" in lines


def test_a_range_of_time_leaves_points_rays_and_rows_and_a_link_restores_it(scan):
    content = content_of("lidar")
    with np.load(LIDAR / "frame.npz") as frame:
        times = frame["t"][frame["sensor"] == 0].astype(np.float64)
    scan.reset()
    scan.show("rays")
    scan.press("rays-hits")
    field = scan.find("range-points: time-field-1")
    field.fill("0.05")
    field.press("Tab")
    inside = times <= 0.05
    hit = content.stage.scene.nearest(content.rays).hit
    assert f"hit {(inside & hit).sum():,}" in legend(scan)
    assert scan.find("rays-table").get_attribute("aria-rowcount") == str(inside.sum())
    opacity = np.array(scan.run("[...raybox.stage.drawing.points]")).reshape(-1, 4)[:, 3]
    np.testing.assert_array_equal(opacity > 0, inside)
    sample = np.array(scan.run("[...raybox.stage.drawing.rays.rgba]")).reshape(-1, 4)[:, 3]
    rows = array(scan, "rays.row").astype(int)
    np.testing.assert_array_equal(sample > 0, (inside & hit)[rows])
    assert any(
        line.startswith(f"{(sample > 0).sum():,} of {(inside & hit).sum():,} rays") for line in legend(scan)
    )
    scan.slide("points-size", 0.5)
    before = scan.picture()
    address = scan.run("raybox.files.link()")
    scan.tab.goto("about:blank")
    scan.open(address)
    assert scan.state("ranges") == {"points: time": [0, 0.05]}
    assert scan.state("points")["size"] == 6.5
    assert scan.picture() == before
    scan.press("show-all")
    assert scan.state("ranges") == {}
    assert scan.picture() != before


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1280", "390"])
def test_rays_that_are_dropped_are_added_and_the_view_stays(browser, size):
    with rb.view(BOXES, port=0) as viewer:
        page = Page(browser, viewer.url, size, density=0.5)
        page.find("view").select_option("top")
        page.settled()
        camera = page.state("camera")
        page.run(DROP, ["rays.csv", RAYS])
        page.until("raybox.actions.store.model.table?.total === 2")
        assert page.run("raybox.actions.store.model.objects") == 2
        assert page.state("camera") == camera
        assert page.state("rays")["hits"]
        page.run(DROP, ["scan.csv", SCAN])
        page.notice("scan.csv: 3 rays from 0 0 0 to its points added")
        page.until("raybox.actions.store.model.table?.total === 5")
        assert page.run("[...raybox.actions.store.model.points.ray]") == [2, 3, 4]
        assert not page.state("rays")["hits"], "they would cover the points"
        page.show("rays")
        page.find("points-colour").select_option("residual")
        assert array(page, "table.distance").tolist() == [2, np.inf, 2, np.inf, np.inf]
        page.run(DROP, ["far.csv", "x,y,z\n84900,447500,3\n"])
        assert "far.csv" in page.notice("--origin X,Y,Z")
        assert page.run("raybox.actions.store.model.table.total") == 5
        page.close()


@lru_cache
def million() -> Viewer:
    """Return the server of a million rays."""
    directions = np.random.default_rng(0).normal(size=(1_000_000, 3))
    return rb.view(BOXES, rb.Rays(np.zeros(3), directions), port=0)


@SIZES
def test_counts_of_a_million_rays_are_those_of_all(browser, size):
    content = million()._content
    hits = content.stage.scene.nearest(content.rays).hit.sum()
    page = Page(browser, million().url, size, density=0.2, always_draws=False)
    said = "20,000 of 1,000,000 rays drawn, an even sample"
    counts = [f"hit {hits:,}", f"miss {1_000_000 - hits:,}"]
    assert legend(page)[-3:] == ([said] if size is PHONE else [*counts, said]), "over the scene"
    page.show("rays")
    in_panel = page.find("rays-legend").locator(".entry").all_text_contents()
    assert in_panel == [*(one.replace(" ", "") for one in counts), said]
    page.run("() => { raybox.actions.store.set({ legend: { on: false, x: 0, y: 0 } }) }")
    assert legend(page) == [said], "also without the legend"
    page.find("rays-misses").set_checked(False)
    drawn = page.run("raybox.stage.drawing.rays.rgba.filter((byte, at) => at % 4 === 3 && byte).length")
    assert legend(page) == [f"{drawn:,} of {hits:,} rays drawn, an even sample"]
    assert drawn < hits
    page.close()
