"""Colours of files: a pixel has the colour of the primitive that its ray hits, and glass is hit."""

import numpy as np
import pytest

import raybox as rb
from browser import Page, content_of, pixels_of
from cube_mesh import cubes
from raybox.geometry.labels import with_colors
from raybox.viewer.content import make_content
from raybox.viewer.stage import make_stage
from raybox.viewer.viewer import Viewer


def painted(geometry, *colors):
    return with_colors(geometry, np.array([[*color, 255] for color in colors], np.uint8))


def of_each_kind() -> list[rb.Boxes | rb.Mesh | rb.Instances]:
    """Return a cube of a colour for each triangle, and mirrored copies of boxes and of triangles."""
    colors = np.random.default_rng(3).integers(30, 256, (12, 3)).tolist()
    cube = painted(cubes(), *colors)
    mirror = np.diag([-1.0, 1.0, 1.0, 1.0])
    bases = [
        painted(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), (250, 40, 30)),
        painted(cubes(), *[(30, 200, 60)] * 12),
        painted(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), (40, 90, 250)),
        painted(cubes(), *[(220, 180, 40)] * 12),
    ]
    copies = []
    for k, base in enumerate(bases):
        mirror[:2, 3] = [2 * (k % 2) + 3.0, 2.0 * (k // 2)]
        copies.append(rb.Instances(base, [mirror.copy()]))
    return [cube, painted(rb.Boxes([[0, 2, 0]], [[1, 3, 1]]), (150, 150, 40)), *copies]


def colors_of(stage) -> list[np.ndarray]:
    """Return the colours of the rows of each geometry; of copies, that of their base."""
    solids = [part.geometry for part in stage.parts]
    return [
        solid.geometry.colors[:1] if isinstance(solid, rb.Instances) else solid.colors for solid in solids
    ]


@pytest.fixture(scope="module", params=["shop", "house", "of each kind"])
def opened(request, browser):
    kinds = make_content(make_stage(of_each_kind()))
    content = kinds if request.param == "of each kind" else content_of(request.param)
    with Viewer(content, "127.0.0.1", 0) as viewer:
        page = Page(browser, viewer.url, always_draws=False)
        yield content.stage, page
        page.close()


def test_what_lies_deeper_than_what_is_around_it_is_darker(browser):
    step = rb.Boxes([[0, 0, 0], [4, 4, 1]], [[10, 10, 1], [6, 6, 3]])
    with rb.view(step, port=0) as viewer:
        page = Page(browser, viewer.url, always_draws=False)
        page.run("() => { raybox.actions.store.set({ edges: false }); raybox.actions.toggleOrthographic() }")
        page.run("() => { raybox.stage.standardView('top') }")
        points = [[3.95, 5, 1], [1, 5, 1], [5, 5, 3], [4.05, 5, 3]]
        pixels = page.run(
            "(points) => points.map((point) => raybox.stage.pixelOf(point).map(Math.round))", points
        )
        near, *others = drawn_at(page, pixels)
        plain = page.run("[...raybox.stage.drawing.look.rgba.slice(0, 3)]")
        assert (near < 0.9 * np.array(plain)).all(), "next to the step"
        assert [one.tolist() for one in others] == [plain] * 3, "far from it, and on top"
        page.close()


def drawn_at(page: Page, pixels) -> np.ndarray:
    left, top, _, _ = page.free()
    x, y = np.array(pixels).T
    return pixels_of(page.picture())[y - top, x - left]


def first_colors(stage, page: Page, pixels) -> tuple[np.ndarray, np.ndarray]:
    """Return the colour of the first primitive at each pixel, zeros for none, and where none is."""
    hits = stage.scene.nearest(page.rays(pixels), where=stage.where(None))
    colors = np.zeros((len(pixels), 4), np.uint8)
    for number, own in enumerate(colors_of(stage)):
        rows = hits.hit & (hits.geometry == number)
        colors[rows] = own[hits.index[rows]]
    return colors, ~hits.hit


def test_pixels_have_the_colour_of_the_first_primitive(opened):
    stage, page = opened
    page.reset({"edges": False, "legend": {"on": False, "x": 0, "y": 0}})
    assert page.state("colour") == {"by": "file"}
    assert page.run("document.querySelector('[data-test=colour-by]').selectedOptions[0].text") == "file"
    pixels = page.pixels(40, 30)
    around = [(0, 0), (-2, 0), (2, 0), (0, -2), (0, 2)]
    each = np.array([first_colors(stage, page, [(x + i, y + j) for x, y in pixels])[0] for i, j in around])
    within = (each == each[0]).all(axis=(0, 2)) & (each[0, :, 3] == 255)
    assert within.sum() > 100
    want, found = each[0, within, :3].astype(float), drawn_at(page, pixels)[within]
    shade = found.max(axis=1) / np.maximum(want.max(axis=1), 1)
    close = np.abs(found - shade[:, None] * want).max(axis=1) <= 3
    assert (shade <= 1.02).all()
    assert np.median(shade) > 0.4
    assert close.mean() > 0.98
    page.reset({"edges": False, "colour": {"by": "plain"}})
    plain = drawn_at(page, pixels)[within]
    assert len(np.unique(np.round(plain[:, 0] / np.maximum(plain[:, 2], 1), 1))) <= 2


@pytest.mark.parametrize("opened", ["house"], indirect=True)
def test_a_click_on_glass_hits_the_glass_and_what_is_behind(opened):
    stage, page = opened
    page.reset({"edges": False})
    pixels = page.pixels(60, 40)
    colors, none = first_colors(stage, page, pixels)
    is_glass = ~none & (colors[:, 3] < 255)
    glass = [pixel for pixel, found in zip(pixels, is_glass, strict=True) if found]
    pixel = page.through_several(stage, glass)
    before = drawn_at(page, [pixel])
    answer = page.pick(*pixel)
    window, *behind = dict.fromkeys(hit["object"] for hit in answer["hits"])
    assert page.state("selection") == [window]
    assert stage.labels["ifc_class"][window] == "IfcWindow"
    hidden = page.run("raybox.actions.store.state.hidden")
    for objects, reason in (([window], "the glass is drawn"), (behind, "and what is behind it shows")):
        page.reset({"edges": False, "hidden": [*hidden, *np.repeat(objects, 2).tolist()]})
        assert (drawn_at(page, [pixel]) != before).any(), reason
