"""Scans in a real browser: residuals, fields, filters and sizes of points; dropped files; true counts."""

import json

import numpy as np
import pytest

import raybox as rb
from browser import PHONE, Page, content_of, served

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


def test_rays_that_are_dropped_are_added_and_the_view_stays(browser):
    with rb.view(BOXES, port=0) as viewer:
        page = Page(browser, viewer.url, PHONE, density=0.5)
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
