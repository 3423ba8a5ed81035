"""Measuring, floor plans, the section box, the cube of views, and sizes of pictures."""

import struct

import numpy as np
import pytest

import raybox as rb
from browser import PHONE, WIDE, Page, served
from needs import package
from real_data import HOUSE

OFFSET = np.array([447_500.25, 84_900.75, 12.5])  # as of a map
# Pixels near the corners of triangles that are in the picture, and these corners.
CORNERS = """async (pixels) => {
    const { stage, actions } = raybox, { left, top } = stage.canvas.getBoundingClientRect();
    const found = [];
    for (const [x, y] of pixels) {
        const { hits: [hit] } = await actions.caster.pick(stage.rayOf(x, y));
        if (!hit) continue;
        const { vertices, faces } = stage.model.geometries[hit.geometry];
        const corners = [0, 1, 2].map((k) => [0, 1, 2].map(
            (axis) => vertices[3 * faces[3 * hit.primitive + k] + axis]));
        const places = corners.map((corner) => stage.pixelOf(corner));
        const middle = [0, 1].map((k) => places.reduce((sum, place) => sum + place[k] / 3, 0));
        places.forEach((place, k) => {
            const size = Math.hypot(middle[0] - place[0], middle[1] - place[1]);
            if (size < 40) return;
            const at = [0, 1].map((axis) => place[axis] + (3 * (middle[axis] - place[axis])) / size);
            found.push({ x: left + at[0], y: top + at[1], corner: corners[k] });
        });
    }
    return found;
}"""


@pytest.fixture(scope="module")
def house():
    package("ifcopenshell")
    mesh = rb.load(HOUSE)
    return rb.Mesh(mesh.vertices + OFFSET, mesh.faces, objects=mesh.objects)


@pytest.fixture(params=["live-1280", "saved-390"])
def page(request, house, browser, tmp_path):
    kind, width = request.param.split("-")
    with rb.view(house, port=0) as viewer:
        viewer.save_html(tmp_path / "house.html")
        address = viewer.url if kind == "live" else (tmp_path / "house.html").as_uri()
        size = PHONE if width == "390" else WIDE
        page = Page(browser, address, size, offline=kind == "saved", density=0.5)
        yield page
        page.close()


def click(page: Page, at: dict) -> list[float]:
    """Click a pixel while the measuring tool is on; return the last point."""
    page.run("() => { window.measured = raybox.actions.store.state.measure }")
    page.click(at["x"], at["y"])
    page.until("raybox.actions.store.state.measure !== window.measured")
    return page.state("measure")[-1]


def test_measured_points_are_vertices_of_the_file_at_map_coordinates(page, house):
    left, top, width, height = page.free()
    near = page.run(CORNERS, [list(pixel) for pixel in page.pixels(6, 6)])
    inside = [
        one for one in near if left < one["x"] < left + width and top + 60 < one["y"] < top + height - 40
    ]
    page.press("measure")
    chosen = inside[:: max(1, len(inside) // 6)][:6]
    points = [click(page, one) for one in chosen]
    same = [point == one["corner"] for point, one in zip(points, chosen, strict=True)]
    assert sum(same) >= len(same) - 2 > 2, "the others are behind something"
    vertices = {tuple(vertex) for vertex in house.vertices.tolist()}
    first, second = [point for point, is_same in zip(points, same, strict=True) if is_same][:2]
    assert {tuple(first), tuple(second)} <= vertices
    page.run("(measure) => { raybox.actions.store.set({ measure }) }", [first, second])
    distance = float(np.linalg.norm(np.subtract(first, second)))
    text = page.find("measured").inner_text().replace("\xa0", " ")
    assert f"distance {float(f'{distance:.6g}'):g}" in text
    link = page.run("raybox.files.link()")
    page.tab.goto(link)
    page.tab.reload()
    page.until("window.raybox?.actions")
    assert page.state("measure") == [first, second]
    page.tab.keyboard.press("Escape")
    assert page.state("measure") == []
    page.tab.keyboard.press("m")
    assert not page.find("measured").is_visible()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["1280", "390"])
def test_a_floor_plan_is_drawn_from_above_without_what_is_over_it(browser, size):
    page = Page(browser, served("house").url, size, density=0.2, always_draws=False)
    page.reset()
    before = page.run("raybox.stage.camera()")
    page.show("cut")
    page.press("storey-Level 1")
    (plane,) = page.state("cut")
    assert (plane["axis"], plane["flip"]) == ("z", False)
    assert 0 < plane["at"] < 2.6, "under the ceilings of the storey"
    camera = page.run("raybox.stage.camera()")
    assert camera["orthographic"]
    for answer in page.answers(page.pixels(5, 5)):
        ray = answer["ray"]
        assert ray["direction"][2] < -0.99
        assert all(
            ray["origin"][2] + hit["t"] * ray["direction"][2] < plane["at"] + 1e-9 for hit in answer["hits"]
        )
    page.tab.keyboard.press(".")
    assert page.state("cut")[0]["at"] > 3.1
    page.press("storey-all")
    assert page.state("cut") == []
    assert page.run("raybox.stage.camera()") == before
    page.close()


def test_rays_stay_within_the_box_around_the_selection(browser):
    page = Page(browser, served("house_boxes").url, density=0.2, always_draws=False)
    page.reset()
    number = page.pick(*page.pixels(1, 1)[0])["hits"][0]["object"]
    bounds = page.run(
        """(k) => {
            const { lower, upper } = raybox.stage.model.geometries[0];
            return [lower, upper].map((ends) => [...ends.slice(3 * k, 3 * k + 3)]);
        }""",
        number,
    )
    page.tab.keyboard.press("b")
    assert len(page.state("cut")) >= 3
    answers = page.answers(page.pixels(15, 15))
    assert any(answer["hits"] for answer in answers)
    for answer in answers:
        origin, direction = (np.array(answer["ray"][key]) for key in ("origin", "direction"))
        for hit in answer["hits"]:
            point = origin + hit["t"] * direction
            assert (point >= np.array(bounds[0]) - 1e-9).all()
            assert (point <= np.array(bounds[1]) + 1e-9).all()
    page.close()


def test_the_cube_turns_to_standard_views_and_is_absent_on_a_phone(browser):
    page = Page(browser, served("house_boxes").url, density=0.2, always_draws=False)
    page.reset()
    assert not page.find("cube-back").is_visible()
    page.press("cube-top")
    camera = page.run("raybox.stage.camera()")
    away = np.subtract(camera["eye"], camera["target"])
    np.testing.assert_allclose(away / np.linalg.norm(away), [0, 0, 1], atol=1e-4)
    page.tab.keyboard.press("3")
    assert page.find("cube-back").is_visible()
    assert not page.find("cube-top").is_visible()
    page.close()
    phone = Page(browser, served("house_boxes").url, PHONE, density=0.2, always_draws=False)
    assert not phone.find("cube-top").is_visible()
    phone.close()


def test_pictures_have_the_size_that_is_chosen(browser):
    page = Page(browser, served("house_boxes").url, density=0.5, always_draws=False)
    sizes = {}
    for scale in ("1", "2", "4"):
        page.find("png-scale").select_option(scale)
        sizes[scale] = np.array(struct.unpack(">II", page.download("png")[16:24]))
    assert (abs(sizes["2"] - 2 * sizes["1"]) <= 1).all()
    assert (abs(sizes["4"] - 4 * sizes["1"]) <= 2).all()
    page.close()
