"""The viewer's controls without a browser; exports; the command."""

import math
import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from raybox.cli import main
from raybox.viewer import open_file

pytest.importorskip("viser")

ROW = rb.Boxes([[2, -1, -1], [5, -1, -1], [8, -1, -1]], [[3, 1, 1], [6, 1, 1], [9, 1, 1]])
TABLE = b"id,min_x,min_y,min_z,max_x,max_y,max_z\nalone,0,0,0,1,1,1\n"


@pytest.fixture
def viewer():
    with rb.view(ROW, port=0) as viewer:
        yield viewer


# Controls


def click(viewer, origin, direction):
    """Call the click handler with a ray in page coordinates, as a browser sends it."""
    page_frame = viewer.stage.page_frame
    event = SimpleNamespace(
        ray_origin=tuple(page_frame.to_page(origin)), ray_direction=tuple(direction), screen_pos=(0.5, 0.5)
    )
    viewer._clicked(event)


def nodes(viewer):
    return {name for name in viewer._server.scene._handle_from_node_name if name.startswith("/answer/")}


def test_a_click_highlights_and_lists_hits(viewer):
    click(viewer, [0, 0, 0], [1, 0, 0])
    assert viewer.answer.nearest == 0
    assert 'data-index="0"' in viewer._panel.content
    assert {"/answer/solid", "/answer/others", "/answer/points", "/answer/ray"} <= nodes(viewer)
    solid = viewer._server.scene._handle_from_node_name["/answer/solid"]
    assert np.allclose(viewer.stage.page_frame.to_scene(solid.position), [2.5, 0, 0])
    click(viewer, [0, 0, 0], [-1, 0, 0])
    assert viewer.answer.nearest == -1
    assert "/answer/solid" not in nodes(viewer)
    click(viewer, [0, 0, 0], [math.nan, 0, 0])
    assert "must be finite" in viewer._message.content or "NaN" in viewer._message.content


def test_the_sliders_and_the_line_of_sight(viewer):
    click(viewer, [0, 0, 0], [1, 0, 0])
    viewer._low.value = 4.0
    viewer._range_changed(None)
    assert [c.index for c in viewer.answer.contacts] == [1, 2]
    viewer._low.value = 0.0
    viewer._range_changed(None)
    assert viewer._state.range == (0.0, math.inf)
    viewer._line_of_sight_box.value = True
    viewer._line_of_sight_toggled(None)
    assert viewer.answer is None
    click(viewer, [0, 0, 0], [1, 0, 0])
    click(viewer, [10, 0, 0], [-1, 0, 0])
    assert "blocked" in viewer._panel.content
    assert "/answer/between" in nodes(viewer)
    viewer._clicks_cleared(None)
    assert not nodes(viewer)


def test_clicks_from_many_threads_each_leave_one_whole_answer(viewer):
    threads = [
        threading.Thread(target=click, args=(viewer, [x, 0, 0], [1, 0, 0])) for x in (0.0, 4.0, 7.0) * 4
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert f'data-index="{viewer.answer.nearest}"' in viewer._panel.content
    assert not viewer._message.content


@pytest.mark.parametrize(
    ("size", "top"), [(1.0, 14), (1e-9, 1.4e-8), (1e12, 1.4e13), (0.0, 1.0), (1e308, None)]
)
def test_the_sliders_fit_any_scene(size, top):
    with rb.view(rb.Boxes([[-size] * 3], [[size] * 3]), port=0) as viewer:
        for slider in (viewer._low, viewer._high):
            assert slider.max == pytest.approx(top) if top else 1e289 < slider.max < math.inf
            assert slider.step == slider.max / 1000
        assert (viewer._low.value, viewer._high.value) == (0.0, viewer._high.max)
        viewer._range_changed(None)
        assert viewer._state.range == (0.0, math.inf)


def test_a_ray_can_be_typed_and_is_written_back_bit_by_bit(viewer):
    viewer._origin.value, viewer._direction.value = "(0 0.1, 0)", "3; 0 0"
    viewer._handler(viewer._ray_entered)(None)
    assert [c.t for c in viewer.answer.contacts] == [2 / 3, 5 / 3, 8 / 3]
    assert (viewer._origin.value, viewer._direction.value) == ("0.0, 0.1, 0.0", "3.0, 0.0, 0.0")
    for bad in ("", "1, 2", "1, 2, x", "1, 2, 3, 4"):
        viewer._origin.value = bad
        viewer._handler(viewer._ray_entered)(None)
        assert "origin must be three numbers, such as 1, 2.5, -3; got" in viewer._message.content
    viewer._origin.value = "nan, 0, 0"
    viewer._handler(viewer._ray_entered)(None)
    assert viewer._message.content
    assert viewer.answer.nearest == 0


def test_a_small_box_gets_a_frame(viewer):
    click(viewer, [0, 0, 0], [1, 0, 0])
    assert "/answer/frame" not in nodes(viewer)
    click(viewer, [-200, 0, 0], [1, 0, 0])
    assert "/answer/frame" in nodes(viewer)
    lines = viewer.stage.page_frame.to_scene(
        viewer._server.scene._handle_from_node_name["/answer/frame"].points
    )
    assert np.allclose(lines.reshape(-1, 3).mean(axis=0), [2.5, 0, 0], atol=1e-5)
    label = viewer._server.scene._handle_from_node_name["/answer/label"]
    assert viewer.stage.page_frame.to_scene(label.position)[2] > lines[..., 2].max()
    assert np.ptp(lines[..., 0]) == pytest.approx(2 * 0.02 * 202.5, rel=1e-5)


def test_a_click_at_100_000_boxes_draws_its_answer_alone():
    """benchmarks/viewer.py measures how long that takes."""
    lower, sizes = np.random.default_rng(1).uniform(0, 100, (100_000, 3)), []
    boxes = rb.Boxes(lower, lower + 0.5)
    scene = rb.Scene(boxes)
    with rb.view(boxes, port=0) as viewer:
        drawn = viewer._server.scene._handle_from_node_name
        others = {name: handle for name, handle in drawn.items() if not name.startswith("/answer")}
        queue = viewer._server.scene._websock_interface.queue_message
        viewer._server.scene._websock_interface.queue_message = lambda message: (
            sizes.append(len(pickle.dumps(message))) or queue(message)
        )
        for k in range(21):
            origin, direction = [-50, 50 + k / 10, 49], [1.0, 0.01, 0.0]
            click(viewer, origin, direction)
            assert viewer.answer.nearest == scene.nearest(rb.Rays(origin, direction)).index
    assert {name: drawn[name] for name in others} == others
    assert len(sizes) > 21
    assert sum(sizes) < 21 * 20_000  # the boxes have 4.8 MB


def test_up_to_5000_boxes_have_edges():
    for count, edged in ((5_000, True), (5_001, False)):
        lower = np.random.default_rng(3).uniform(0, 100, (count, 3))
        with rb.view(rb.Boxes(lower, lower + 1), port=0) as viewer:
            assert ("/edges" in viewer._server.scene._handle_from_node_name) == edged
            assert (viewer._drawn.opacity is not None) == edged
            viewer.open("one.csv", TABLE)
            assert viewer._server.scene._handle_from_node_name["/edges"].points.shape == (12, 2, 3)
            viewer._show(open_file.stage_of(rb.Boxes(lower, lower + 1)[:0]), None)
            assert "/edges" not in viewer._server.scene._handle_from_node_name


# Exports


def test_html_is_whole_and_opens_no_connection(viewer, tmp_path):
    viewer.save_html(tmp_path / "view.html")
    text = (tmp_path / "view.html").read_text(encoding="utf-8")
    assert "__VISER_EMBED_DATA__" in text
    assert 'src="http' not in text
    assert 'href="http' not in text


def test_a_picture_needs_an_open_page(viewer, tmp_path):
    with pytest.raises(rb.RayboxError, match="no browser has the page open to draw the picture"):
        viewer.save_png(tmp_path / "view.png")


def test_rays_are_drawn_up_to_their_hits():
    rays = rb.Rays([[0, 0, 0], [0, 0, 0], [np.nan, 0, 0]], [[1, 0, 0], [-1, 0, 0], [1, 0, 0]], invalid="miss")
    with rb.view(ROW, rays, port=0) as viewer:
        drawn = viewer._server.scene._handle_from_node_name["/rays"]
        ends = viewer.stage.page_frame.to_scene(drawn.points)
        assert ends.shape == (2, 2, 3)
        assert np.allclose(ends[0], [[0, 0, 0], [2, 0, 0]], atol=1e-6)
        assert ends[1, 1, 0] < -5


# The command


def test_the_command_writes_html_and_refuses_what_it_should(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "one.csv").write_bytes(TABLE)
    (tmp_path / "rays.csv").write_text(
        "origin_x,origin_y,origin_z,direction_x,direction_y,direction_z\n9,9,9,1,0,0\n"
    )
    done = CliRunner().invoke(main, ["view", "one.csv", "rays.csv", "--port", "0", "--html", "out.html"])
    assert (done.exit_code, done.stdout) == (0, ""), done.output
    assert (tmp_path / "out.html").stat().st_size > 500_000
    for arguments, text_part in (
        (["none.csv"], "none.csv"),
        (["one.csv", "--port", "70000"], "port must be"),
        (["one.csv", "one.csv"], "one.csv"),
    ):
        done = CliRunner().invoke(main, ["view", *arguments])
        assert done.exit_code == 2
        assert text_part in done.stderr
        assert "Traceback" not in done.output
