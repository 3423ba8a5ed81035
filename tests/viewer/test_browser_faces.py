"""Where faces coincide, the page shows the lowest geometry, then the lowest index, as the engine picks.

So it does where a cut opens solid boxes.
"""

import numpy as np
import pytest

import cube_mesh
import raybox as rb
from browser import Page, pixels_of

OPENED = 0.55  # of its brightness: what a cut opens of triangles
UNIT = [[0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]]
TURN = np.array([[0.0, -1, 0, 1], [1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])  # of the unit cube onto itself


def boxes(*classes: str) -> rb.Boxes:
    count = len(classes)
    return rb.Boxes(UNIT[0] * count, UNIT[1] * count, labels={"class": [*classes]})


def cube(*classes: str) -> rb.Mesh:
    """Return the same cube of triangles, once for each class."""
    return cube_mesh.cubes(len(classes), labels={"class": [*classes]})


def copies(*classes: str) -> rb.Instances:
    turns = [np.eye(4), TURN] * len(classes)
    return rb.Instances(rb.Boxes(*UNIT), turns[: len(classes)], labels={"class": [*classes]})


def grid(*classes: str) -> rb.Grid:
    edges = np.linspace(0.0, 1.0, len(classes) + 1)
    return rb.Grid([0.0, 1.0], [0.0, 1.0], edges, labels={"class": [*classes]})


SCENES = {
    "two boxes": [boxes("first", "second")],
    "two objects of triangles": [cube("first", "second")],
    "two copies": [copies("first", "second")],
    "boxes and triangles": [boxes("first"), cube("second")],
    "triangles and boxes": [cube("first"), boxes("second")],
    "copies and boxes": [copies("first"), boxes("second")],
    "boxes and copies": [boxes("first"), copies("second")],
    "triangles and copies": [cube("first"), copies("second")],
    "a grid and boxes": [grid("first"), boxes("second")],
    "boxes and a grid": [boxes("first"), grid("second")],
    "three geometries": [cube("first"), boxes("second", "third"), copies("fourth")],
}


@pytest.mark.parametrize("name", SCENES)
def test_the_lowest_is_in_front(browser, name):
    with rb.view(SCENES[name], port=0) as viewer:
        page = Page(browser, viewer.url, density=0.5)
        assert_front(page)
        page.close()


def assert_front(page: Page) -> None:
    """Assert that the picture with all objects is that with the first alone, and not that of another."""
    count = page.run("raybox.actions.store.model.objects")
    both = inner_picture(page)
    answer = page.answers([page.pixels(1, 1)[0]])[0]
    assert answer["hits"][0]["object"] == 0
    alone = []
    for number in range(count):
        page.run("(number) => raybox.actions.isolate([number])", number)
        alone.append(inner_picture(page))
    assert both == alone[0]
    assert both not in alone[1:]


def inner_picture(page: Page) -> bytes:
    """Return the middle of the picture: three faces of the cube, and the edges between them."""
    x, y = page.pixels(1, 1)[0]
    return page.picture((x - 60, y - 60, 120, 120))


def cubes(halves: list[float], kind: type) -> rb.Boxes | rb.Instances | rb.Mesh:
    """Return cubes around one point, as boxes, as copies, or as triangles."""
    sizes = np.array(halves)[:, None] * np.ones(3)
    labels = {"class": [str(half) for half in halves]}
    if kind is rb.Boxes:
        return rb.Boxes(-sizes, sizes, labels=labels)
    if kind is rb.Instances:
        return rb.Instances.oriented_boxes(0 * sizes, 2 * sizes, yaw=0.2, labels=labels)
    unit = cube(*labels["class"])
    vertices = (unit.vertices - 0.5) * 2 * np.repeat(sizes, 8, axis=0)
    return rb.Mesh(vertices, unit.faces, objects=unit.objects, labels=labels)


OVERLAPPING = [(kind, halves) for kind in (rb.Boxes, rb.Instances) for halves in ([1.0, 0.5], [0.5, 1.0])]


@pytest.mark.parametrize(("kind", "halves"), [*OVERLAPPING, (rb.Mesh, [1.0])], ids=str)
def test_what_is_cut_looks_solid(browser, kind, halves):
    """The cut of a box is a face of its colour; of boxes that overlap, of that which the engine hits.

    What a cut opens of triangles is darker.
    """
    with rb.view(cubes(halves, kind), port=0) as viewer:
        page = Page(browser, viewer.url)
        page.run("() => { raybox.actions.cutTo('z', [-Infinity, 0.1]); raybox.stage.standardView('top') }")
        x, y = page.pixels(1, 1)[0]
        assert page.answers([(x, y)])[0]["hits"][0]["object"] == 0
        tone = page.run("[...raybox.stage.drawing.look.rgba.slice(0, 3)]")
        shade = OPENED if kind is rb.Mesh else 1.0
        found = pixels_of(page.picture((x - 20, y - 20, 40, 40)))
        assert found.shape == (40, 40, 3)
        assert (found == [round(shade * byte) for byte in tone]).all()
        page.close()
