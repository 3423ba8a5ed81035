"""Colours of files: a pixel has the colour of the primitive that its ray hits, and glass is hit."""

import base64

import numpy as np
import pytest

from browser import Page, content_of, served

AT_PIXELS = """async ([text, pixels]) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const image = await createImageBitmap(new Blob([bytes], { type: "image/png" }));
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    return pixels.map(([x, y]) => [...context.getImageData(x, y, 1, 1).data.slice(0, 3)]);
}"""


@pytest.fixture(scope="module", params=["shop", "house"])
def opened(request, browser):
    page = Page(browser, served(request.param).url, always_draws=False)
    yield content_of(request.param).stage, page
    page.close()


def drawn_at(page: Page, pixels) -> np.ndarray:
    left, top, _, _ = page.free()
    within = [[x - left, y - top] for x, y in pixels]
    return np.array(page.run(AT_PIXELS, [base64.b64encode(page.picture()).decode(), within]))


def first_colors(stage, page: Page, pixels) -> tuple[np.ndarray, np.ndarray]:
    """Return the colour of the first primitive at each pixel, zeros for none, and where none is."""
    hits = stage.scene.nearest(page.rays(pixels), where=stage.where(None))
    colors = stage.parts[0].geometry.colors[np.maximum(hits.index, 0)]
    return np.where(hits.hit[:, None], colors, 0), ~hits.hit


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


def test_a_click_on_glass_hits_the_glass_and_what_is_behind(opened):
    stage, page = opened
    if "ifc_class" not in stage.labels:
        pytest.skip("a scene without glass")
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
