"""Pictures that the page saves, and how much it draws of large scenes."""

import operator

import numpy as np
import pytest

import raybox as rb
import view_scenes
from browser import PHONE, WIDE, Page, are_of, pixels_of, served
from raybox.viewer.viewer import Viewer

INK = "#1f2937"


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
    picture = pixels_of(page.download("png"))
    counts, ink = [are_of(picture, colour).sum() for colour in legend], are_of(picture, INK)
    least = [20 if len(colours) == 1 else 5 for colours in entries]  # a scale has each colour once
    assert all(map(operator.ge, counts, least)), "a swatch of each colour, and scales"
    assert ink.sum() > 20
    _, _, width, _ = page.free()
    assert picture.shape[1] == pytest.approx(4 * width, abs=4)
    begin, end = (np.argwhere(np.diff(np.pad(ink, ((0, 0), (1, 1))).astype(int)) == step) for step in (1, -1))
    assert (end - begin).max() > 50, "the bar of the scale"


def test_python_gets_the_picture_of_the_page(browser, tmp_path):
    with rb.view(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), port=0) as viewer:
        page = Page(browser, viewer.url)
        found = {}
        for scale in (1, 2, 4):
            picture = viewer.screenshot(tmp_path / "scene.png", scale=scale)
            assert (tmp_path / "scene.png").read_bytes() == picture
            found[scale] = pixels_of(picture)
        height, width, _ = found[1].shape
        assert all(one.shape == (scale * height, scale * width, 3) for scale, one in found.items())
        ink = [are_of(one, INK).sum() for one in found.values()]
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
            dark[edges] = (pixels_of(page.picture()).max(axis=-1) < 100).mean()
        assert dark[True] < dark[False] + 0.01
        page.close()


def test_small_voxels_have_the_shade_of_their_free_face(browser):
    edges = np.linspace(0, 1, 101)
    with rb.view(rb.Grid(edges, edges, edges), port=0) as viewer:
        page = Page(browser, viewer.url, PHONE)
        plain = page.run("[...raybox.stage.drawing.look.rgba.slice(0, 3)]")
        upper = (pixels_of(page.picture()) == plain).all(axis=-1).sum()
        assert upper > 2000, "the upper side is as bright as its colour"
        page.close()


def test_a_million_boxes_need_at_most_50_calls_and_200_mb(browser):
    with Viewer(view_scenes.random_boxes(1_000_000), "127.0.0.1", 0) as viewer:
        page = Page(browser, viewer.url)
        page.assert_small()
        answer = page.pick(*page.pixels(1, 1)[0])
        assert answer["total"] > 0
        page.close()
