"""Pictures that the page saves, and how much it draws of large scenes."""

import base64
import operator

import numpy as np
import pytest

import raybox as rb
import view_scenes
from browser import PHONE, WIDE, Page, served
from raybox.viewer.viewer import Viewer

# The size of a picture, its pixels of each colour, and the longest row of pixels of the last colour.
READ = """async ([text, colours]) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const canvas = new OffscreenCanvas(image.width, image.height);
    const context = canvas.getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    const counts = colours.map(() => 0);
    let [longest, length] = [0, 0];
    for (let at = 0; at < data.length; at += 4) {
        const hex = "#" + [0, 1, 2].map((k) => data[at + k].toString(16).padStart(2, "0")).join("");
        const found = colours.indexOf(hex);
        if (found >= 0) counts[found]++;
        length = found === colours.length - 1 && at % (4 * image.width) ? length + 1 : 0;
        longest = Math.max(longest, length);
    }
    return { width: image.width, height: image.height, counts, longest };
}"""
INK = "#1f2937"
# The part of a picture's pixels that are nearly black.
DARK = """async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const { data } = context.getImageData(0, 0, image.width, image.height);
    const isDark = (_, at) => Math.max(...data.subarray(4 * at, 4 * at + 3)) < 100;
    return Array.from({ length: data.length / 4 }, isDark).filter(Boolean).length / (data.length / 4);
}"""


@pytest.fixture(scope="module")
def page(browser):
    made = Page(browser, served("lidar").url, WIDE)
    yield made
    made.close()


def test_a_picture_has_legend_and_scale(page):
    page.run("() => { raybox.actions.store.set({ dark: false }) }")
    entries = page.run("raybox.files.legend.map((entry) => entry.colours)")
    legend = [colours[0] for colours in entries]
    assert len(legend) > 5
    page.find("png-scale").select_option("4")
    content = base64.b64encode(page.download("png")).decode()
    with_legend = page.run(READ, [content, [*legend, INK]])
    *counts, ink = with_legend["counts"]
    least = [20 if len(colours) == 1 else 5 for colours in entries]  # a scale has each colour once
    assert all(map(operator.ge, counts, least)), "a swatch of each colour, and scales"
    assert ink > 20
    _, _, width, _ = page.free()
    assert with_legend["width"] == pytest.approx(4 * width, abs=4)
    assert with_legend["longest"] > 50, "the bar of the scale"


def test_python_gets_the_picture_of_the_page(browser, tmp_path):
    with rb.view(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), port=0) as viewer:
        page = Page(browser, viewer.url)
        found = {}
        for scale in (1, 2, 4):
            picture = viewer.screenshot(tmp_path / "scene.png", scale=scale)
            assert (tmp_path / "scene.png").read_bytes() == picture
            found[scale] = page.run(READ, [base64.b64encode(picture).decode(), [INK]])
        width, height = found[1]["width"], found[1]["height"]
        assert [(one["width"], one["height"]) for one in found.values()] == [
            (scale * width, scale * height) for scale in found
        ]
        ink = [one["counts"][0] for one in found.values()]
        assert ink[0] > 20
        assert ink[2] > 2 * ink[1] > 4 * ink[0], "letters and the scale bar grow with the picture"
        page.close()


def test_a_changed_picture_equals_a_fresh_one(browser):
    """The picture depends on the state alone, not on how long the first one took."""
    page = Page(browser, served("house").url, PHONE, density=0.5)
    page.run("() => { window.hash = location.hash; raybox.actions.store.set({ edges: false }) }")
    changed = page.picture()
    page.until("location.hash !== window.hash")
    fresh = Page(browser, served("house").url + page.run("location.hash"), PHONE, density=0.5)
    assert fresh.state("edges") is False
    assert fresh.picture() == changed
    fresh.close()
    page.close()


def test_edges_do_not_cover_what_is_small(browser):
    """Rows of slivers, as trees of a city are: far away they have their colour, near their edges show."""
    x = np.arange(2000) / 100.0
    zero, one = np.zeros_like(x), np.ones_like(x)
    corners = np.array([[x, zero, zero], [x + 0.01, zero, zero], [x, zero, 20 * one]])
    slivers = rb.Mesh(
        corners.transpose(2, 0, 1).reshape(-1, 3), np.arange(6000).reshape(-1, 3), objects=zero.astype(int)
    )
    with rb.view(slivers, port=0) as viewer:
        page = Page(browser, viewer.url)
        page.run("() => { raybox.stage.standardView('front') }")
        dark = {}
        for edges in (True, False):
            page.run("(edges) => { raybox.actions.store.set({ edges }) }", edges)
            dark[edges] = page.run(DARK, base64.b64encode(page.picture()).decode())
        assert dark[True] < dark[False] + 0.01
        page.close()


def test_small_voxels_have_the_shade_of_their_free_face(browser):
    edges = np.linspace(0, 1, 101)
    with rb.view(rb.Grid(edges, edges, edges), port=0) as viewer:
        page = Page(browser, viewer.url, PHONE)
        content = base64.b64encode(page.picture()).decode()
        plain = "#{:02x}{:02x}{:02x}".format(*page.run("[...raybox.stage.drawing.look.rgba.slice(0, 3)]"))
        upper = page.run(READ, [content, [plain]])["counts"][0]
        assert upper > 2000, "the upper side is as bright as its colour"
        page.close()


def test_a_million_boxes_need_at_most_50_calls_and_200_mb(browser):
    with Viewer(view_scenes.random_boxes(1_000_000), "127.0.0.1", 0) as viewer:
        page = Page(browser, viewer.url)
        page.assert_small()
        answer = page.pick(*page.pixels(1, 1)[0])
        assert answer["total"] > 0
        page.close()
