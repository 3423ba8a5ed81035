"""The page in a real browser, headless Chromium: a click on a known pixel, uploads, exports.

The expected box comes from the camera's pose, the pixel and a brute force over all boxes without raybox.
RAYBOX_SCREENSHOTS is a folder in which the pictures are saved.
"""

import math
import re

import imageio.v3 as iio
import numpy as np
import pytest

import raybox as rb
from browser import CHROMIUM, Page, chromium, colored, orange, to_page, viewing
from exact_surfaces import triangle
from test_real_data import DATA, duplex, read_csv, voxel_boxes
from view_truth import boxes_hit, pixel_ray

pytest.importorskip("viser")
pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed: apt-get install chromium")
real = pytest.mark.skipif(not DATA.is_dir(), reason=f"the real data are not here: no folder {DATA}")
HOUSE = (25.0, -30.0, 14.0), (4.0, -9.0, 3.0)  # eye and target
IFC = DATA / "duplex_ifc" / "duplex_a_20110907.ifc"
SHOP = (100.0, 30.0, 30.0), (65.0, 63.0, 12.0)
FOV = math.radians(50)
NAMES = "min_x,min_y,min_z,max_x,max_y,max_z"
TILES = np.array([[x, y, 0.0] for x in range(4) for y in range(4)])


def uniform_pixel(lower, upper, eye, target, size):
    """Return a pixel near the middle whose neighbourhood shows one box, and the box."""
    for step in range(200):
        pixel = size[0] * (0.5 + 0.13 * math.cos(step)), size[1] * (0.55 + 0.13 * math.sin(1.7 * step))
        around = [(pixel[0] + dx, pixel[1] + dy) for dx, dy in ((0, 0), (-2, -2), (2, -2), (-2, 2), (2, 2))]
        found = [boxes_hit(lower, upper, eye, pixel_ray(eye, target, FOV, size, p))[:1] for p in around]
        rows = {one[0][1] if one else -1 for one in found}
        if len(rows) == 1 and rows != {-1}:
            return tuple(map(round, pixel)), rows.pop()
    raise AssertionError("no such pixel")


def click_and_check(browser, url, boxes, pose, name):
    """Click a known pixel from a known pose, and compare the page with brute force."""
    (lower, upper), (eye, target) = boxes, pose
    shift, scale = to_page(lower, upper)
    at = [",".join(map(str, (np.array(p) - shift) / scale)) for p in pose]
    page = Page(browser, f"{url}/?initialCameraPosition={at[0]}&initialCameraLookAt={at[1]}")
    page.tab.get_by_text("Click on the scene").wait_for()
    assert orange(page.drawn(f"{name}-before", 5_000, colored)) == 0
    x, y, *size = page.box()
    pixel, want = uniform_pixel(lower, upper, np.array(eye), np.array(target), size)
    page.tab.mouse.click(x + pixel[0], y + pixel[1])
    row, origin, direction = page.answer()
    assert np.abs(origin - eye).max() < 1e-3 * scale
    assert np.abs(direction - pixel_ray(eye, target, FOV, size, pixel)).max() < 1 / size[1]
    everything = boxes_hit(lower, upper, origin, direction)
    assert row == everything[0][1] == want
    text = page.tab.locator(".raybox-answer").inner_text()
    assert f"Along the ray, in order: {len(everything):,}" in text
    listed = re.findall(r"^\d+\t(\d+)", text, re.MULTILINE)
    assert list(map(int, listed)) == [row for _, row in everything[:60]]
    column, line = pixel
    page.drawn(f"{name}-after", 15, lambda p: orange(p[line - 12 : line + 13, column - 12 : column + 13]))
    assert not page.foreign_urls()
    return page, pixel_ray(eye, target, FOV, size, pixel)


@real
def test_a_click_on_the_ifc_house():
    """The box picked in the IFC file has the same id in the table of another program."""
    from raybox.io.formats import load

    house = load(IFC, boxes=True, all_objects=True)
    with viewing(IFC, "--boxes", "--all-objects") as url, chromium(seconds=150) as browser:
        page, direction = click_and_check(browser, url, (house.lower, house.upper), HOUSE, "duplex")
        row = boxes_hit(*duplex(), np.array(HOUSE[0]), direction)[0][1]
        name = read_csv(DATA / "duplex_ifc" / "duplex_aabb.csv")[row]["global_id"]
        assert f"id\t{name}" in page.tab.locator(".raybox-answer").inner_text()


@real
def test_a_click_on_the_surfaces_of_the_house_names_the_product():
    mesh = rb.load(IFC)
    shift, scale = to_page(*mesh.bounds[:, None])
    at = [",".join(map(str, (np.array(point) - shift) / scale)) for point in HOUSE]
    with viewing(IFC) as url, chromium(seconds=150) as browser:
        page = Page(browser, f"{url}/?initialCameraPosition={at[0]}&initialCameraLookAt={at[1]}")
        page.tab.get_by_text("Click on the scene").wait_for()
        page.drawn("surfaces-before", 5_000, colored)
        x, y, width, height = page.box()
        page.tab.mouse.click(x + 0.5 * width, y + 0.55 * height)
        row, origin, direction = page.answer()
        text = page.tab.locator(".raybox-answer").inner_text()
    met = {}
    for k, corners in enumerate(mesh.corners()):
        found = triangle(origin, direction, (0.0, math.inf), *corners)
        if found is not None:
            met[k] = found[0].t
    assert len(met) > 2
    assert row == min(met, key=lambda k: (met[k], k))
    assert f"id\t{mesh.ids[mesh.objects[row]]}" in text


@real
def test_a_click_on_the_shop_of_441_118_voxels():
    with viewing(DATA / "voxel_store" / "scene_store8.vox") as url, chromium(seconds=240) as browser:
        click_and_check(browser, url, voxel_boxes(), SHOP, "shop")


@pytest.fixture
def tiles(tmp_path):
    """Write files of sixteen blocks, of two, and of no scene; return the blocks' corners."""
    upper = TILES + np.array([0.8, 0.8, 1.0])
    for name, rows in (("tiles.csv", slice(None)), ("two.csv", slice(2))):
        blocks = np.hstack([TILES, upper])[rows]
        np.savetxt(tmp_path / name, blocks, delimiter=",", header=NAMES, comments="")
    (tmp_path / "bad.csv").write_text("this,is\nno,scene\n")
    return TILES, upper


def test_bad_files_are_messages_and_exports_are_whole(tiles, tmp_path):
    with chromium(seconds=150) as browser:
        with viewing(tmp_path / "tiles.csv") as url:
            page, _ = click_and_check(browser, url, tiles, ((7.0, -6.0, 6.0), (2.0, 2.0, 0.0)), "tiles")
            chooser = page.tab.locator("input[type=file]")
            chooser.set_input_files(tmp_path / "bad.csv")
            page.tab.locator(".raybox-message", has_text="bad.csv").wait_for()
            assert page.tab.get_by_text("tiles.csv").count() == 1

            html = page.download(page.tab.get_by_text("HTML", exact=True).click)
            picture = iio.imread(page.download(page.tab.get_by_text("PNG", exact=True).click))
            assert orange(picture[..., :3].astype(int)) > 100
            assert list(picture.shape[:2]) == [int(length) for length in page.box()[:1:-1]]

            chooser.set_input_files(tmp_path / "two.csv")
            page.tab.get_by_text("2 boxes").wait_for()
            type_a_ray(page, "0.4, 0.4, 5", "0 0 -2")
            assert page.answer()[0] == 0
            assert "t\t2\n" in page.tab.locator(".raybox-answer").inner_text()
            type_a_ray(page, "0.4, 0.4, 5", "0 0")
            page.tab.locator(".raybox-message", has_text="direction must be three numbers").wait_for()
            assert not page.foreign_urls()

        # The server has stopped: the page shows the file's content.
        (tmp_path / "view.html").write_bytes(html)
        alone = Page(browser, (tmp_path / "view.html").as_uri())
        alone.drawn("html", 3_000, colored)
        alone.drawn("html", 100, orange)
        assert not alone.foreign_urls(known=())


# The third part of an upload never comes, as if the disk were slow.
STALL = """() => {
    let parts = 0;
    File.prototype.slice = function (...range) {
        const part = Blob.prototype.slice.apply(this, range);
        if (++parts > 2) part.arrayBuffer = () => new Promise(() => {});
        return part;
    };
}"""
ACKNOWLEDGED = """() => [...document.querySelectorAll("[role=progressbar]")].some(
    bar => bar.getAttribute("aria-valuenow") > 0
)"""


def test_a_tab_closed_during_an_upload_leaves_the_button_of_others_alive(tiles, tmp_path):
    large = (tmp_path / "tiles.csv").read_bytes() + b"\n" * (3 << 20)
    (tmp_path / "large.csv").write_bytes(large)
    with viewing(tmp_path / "tiles.csv") as url, chromium(seconds=150) as browser:
        beside, closed = Page(browser, url), Page(browser, url)
        closed.tab.evaluate(STALL)
        closed.tab.locator("input[type=file]").set_input_files(tmp_path / "large.csv")
        closed.tab.locator("button:disabled", has_text="Open another file").wait_for()
        closed.tab.wait_for_function(ACKNOWLEDGED)
        assert upload_button(beside).is_enabled()
        closed.tab.close()
        later = Page(browser, url)
        for page in (beside, later):
            assert upload_button(page).is_enabled()
        later.tab.locator("input[type=file]").set_input_files(tmp_path / "two.csv")
        later.tab.get_by_text("2 boxes").wait_for()
        assert upload_button(later).is_enabled()
        assert not later.foreign_urls()


def upload_button(page):
    """Return the page's upload button, once it is shown."""
    button = page.tab.get_by_role("button", name="Open another file")
    button.wait_for()
    return button


def type_a_ray(page, origin, direction):
    """Type a ray into the page and cast it."""
    if not page.tab.get_by_text("Cast this ray").is_visible():
        page.tab.get_by_text("The ray", exact=True).click()
    for name, text in (("origin", origin), ("direction", direction)):
        page.tab.locator(f"xpath=//label[.='{name}']/following::input[1]").fill(text)
    page.tab.get_by_text("Cast this ray").click()


def test_a_browser_that_hangs_is_killed_in_time():
    """Otherwise the script would run for ever."""
    with pytest.raises(Exception, match="closed"), chromium(seconds=8) as browser:
        browser.new_page().evaluate("() => { for (;;); }")


def test_a_notebook_shows_the_page_in_a_frame():
    """The text of the panel comes by the connection that the server accepts from its own page alone."""
    boxes = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])
    with rb.view(boxes, port=0) as viewer, chromium(seconds=100) as browser:
        tab = browser.new_context().new_page()
        tab.set_content(f"<p>a notebook's cell</p>{viewer._repr_html_()}")
        frame = tab.frame_locator("iframe")
        frame.locator("canvas").first.wait_for()
        frame.get_by_text("Click on the scene").wait_for()
        assert frame.locator("canvas").first.bounding_box()["width"] > 100
