"""What a notebook shows of a viewer: the page itself, or of a large scene a picture and a link."""

import base64
import re
from html import unescape

import numpy as np
import pytest

import raybox as rb
from raybox.viewer import content
from test_view_save import parts_of
from view_client import decoded

pytest.importorskip("websockets")

ROW = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]], ids=["<b>", '"'])


def test_a_notebook_shows_the_page_itself():
    with rb.view(ROW, port=0) as viewer:
        output = viewer._repr_html_()
        viewer.select("scene", [1])
        selected = viewer._repr_html_()
        want = viewer.html()
    assert len(output) < 2_500_000
    assert unescape(re.search('srcdoc="([^"]*)"', selected)[1]) == want
    assert '"selection": [1]' in want
    assert "allow-same-origin" not in re.search('sandbox="([^"]*)"', output)[1]
    assert "127.0.0.1" not in output, "what is saved shows without a server"


def test_a_live_notebook_shows_the_served_page():
    with rb.view(ROW, port=0, live=True) as viewer:
        assert f'<iframe src="{viewer.url}"' in viewer._repr_html_()


@pytest.mark.parametrize("limit", ["MAX_OUTPUT", "MAX_FRAMES"])
def test_a_large_scene_is_a_picture_and_a_link(monkeypatch, limit):
    monkeypatch.setattr(content, limit, 10)
    with rb.view(ROW, port=0) as viewer:
        output = viewer._repr_html_()
        assert f'<a href="{viewer.url}"' in output
    assert "srcdoc" not in output
    assert base64.b64decode(re.search('base64,([^"]*)', output)[1]).startswith(b"\x89PNG")


def test_the_limit_is_below_what_jupyter_cuts():
    generator = np.random.default_rng(1)
    lower = generator.uniform(0, 100, (60_000, 3))
    with rb.view(rb.Boxes(lower, lower + 1), port=0) as viewer:
        output = viewer._repr_html_()
    assert "<img" in output
    assert len(output) < 2_500_000


def pixels(stage):
    """Return the picture of a stage as colours, by the decoder of Matplotlib."""
    from io import BytesIO

    image = pytest.importorskip("matplotlib.image")
    return image.imread(BytesIO(content.picture_of(stage)), format="png")[..., :3]


def test_the_picture_shows_what_is_visible():
    with rb.view(ROW, port=0) as viewer:
        both = pixels(viewer._content.stage)
        viewer.hide("scene", [0])
        one = pixels(viewer._content.stage)
        viewer.hide("scene")
        none = pixels(viewer._content.stage)
    assert (none == 1).all(), "misses are white"
    shown = [(picture != 1).any(axis=2).sum() for picture in (one, both)]
    assert 1000 < shown[0] < shown[1]
    assert (both[:5] == 1).all(), "the scene fits into the picture"


@pytest.mark.parametrize(
    "geometry", [rb.Planes([[0, 0, 1]], [0]), rb.Boxes(np.zeros((0, 3)), np.zeros((0, 3)))]
)
def test_scenes_without_bounds_have_a_picture(geometry):
    with rb.view(geometry, port=0) as viewer:
        assert content.picture_of(viewer._content.stage).startswith(b"\x89PNG")


CELLS = [
    "import raybox as rb\nviewer = rb.view(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), port=0)\nviewer",
    'viewer.add("roof", rb.Boxes([[0, 0, 2]], [[1, 1, 3]]))\nviewer.hide("scene")\nviewer',
    "viewer.stop()",
]


def test_cells_of_a_notebook_show_the_viewer_as_it_is_then():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    nbclient.NotebookClient(made, timeout=300, kernel_name="python3").execute()
    shown = [cell.outputs[0]["data"]["text/html"] for cell in made.cells[:2]]
    pages = [unescape(re.search('srcdoc="([^"]*)"', output)[1]) for output in shown]
    scenes = [decoded(parts_of(page.encode())[0][0]) for page in pages]
    assert [len(scene.header["geometries"]) for scene in scenes] == [1, 2]
    assert ["hidden" in scene.arrays for scene in scenes] == [False, True]
