"""What Python adds to a page, hides, selects, and hears of it, at the socket of a page."""

import math
import threading

import numpy as np
import pytest

import raybox as rb
from raybox.geometry.labels import with_colors
from view_client import Client
from waiting import wait_until

pytest.importorskip("websockets")

ROW = rb.Boxes(
    [[2, -1, -1], [5, -1, -1], [8, -1, -1]],
    [[3, 1, 1], [6, 1, 1], [9, 1, 1]],
    ids=["near", "middle", "far"],
    labels={"kind": ["a", "b", "a"]},
)
ONE = rb.Boxes([[0, 4, 0]], [[1, 5, 1]], labels={"size": [7.0]})
RAYS = rb.Rays([[0, 0, 0], [0, 0, 9]], [[1, 0, 0], [1, 0, 0]])
RIGHT = {"origin": [0, 0, 0], "direction": [1, 0, 0], "t_min": 0, "t_max": None}


@pytest.fixture
def viewer():
    with rb.view(ROW, port=0) as made:
        yield made


@pytest.fixture
def page(viewer):
    with Client(viewer) as client:
        yield client


def scene_after(page):
    """Return the runs of objects that stay, and the frames of the scene that follows them."""
    runs = page.receive("renumber").header["runs"]
    return runs, page.receive_scene()


def hidden(scene) -> list[int]:
    count = sum(one["objects"] for one in scene.header["geometries"])
    bits = scene.arrays.get("hidden", np.zeros(1, np.uint8))
    return np.flatnonzero(np.unpackbits(bits, count=count, bitorder="little")).tolist()


# Geometries


def test_an_added_geometry_is_hit_and_numbered_after_the_others(viewer, page):
    viewer.add("extra", ONE, color="#cc3311")
    runs, (scene,) = scene_after(page)
    assert runs == [[0, 0, 3]]
    assert [(one["firstObject"], one["color"]) for one in scene.header["geometries"]] == [
        (0, None),
        (3, "#cc3311"),
    ]
    assert [one["name"] for one in scene.header["labels"]] == ["kind", "size", "layer"]
    assert scene.header["labels"][2]["words"] == ["extra", "scene"]
    assert page.pick([0.5, 4.5, 9], [0, 0, -1]).arrays["object"].tolist() == [3]
    assert viewer.click([0.5, 4.5, 9], [0, 0, -1]).geometry.tolist() == [1]


def test_a_name_that_is_there_is_replaced_and_others_keep_their_view(viewer, page):
    viewer.add("extra", ONE)
    scene_after(page)
    viewer.add("scene", ONE)
    runs, (scene,) = scene_after(page)
    assert runs == [[3, 1, 1]]
    assert [one["objects"] for one in scene.header["geometries"]] == [1, 1]
    viewer.remove("scene")
    runs, (scene,) = scene_after(page)
    assert runs == [[1, 0, 1]]
    assert [one["name"] for one in scene.header["labels"]] == ["size"]
    with pytest.raises(rb.InvalidInput, match="a viewer needs a geometry"):
        viewer.remove("extra")
    assert page.pick([0.5, 4.5, 9], [0, 0, -1]).arrays["object"].tolist() == [0]


def test_a_file_is_added_by_its_path(viewer, page, tmp_path):
    rb.save(tmp_path / "one.csv", ONE)
    viewer.add("file", tmp_path / "one.csv")
    assert scene_after(page)[1][0].header["geometries"][1]["objects"] == 1


def test_what_is_hidden_is_so_on_open_pages_and_on_those_to_come(viewer, page):
    for objects, ranges, visible in (
        ("kind == 'a'", [0, 0, 2, 2], [1]),
        ([1, 2], [1, 2], []),
        (np.array([False, True, False]), [1, 1], []),
        (None, [0, 2], []),
    ):
        viewer.hide("scene", objects)
        assert page.receive("view").header["view"] == {"hide": ranges}
        assert viewer.click([0, 0, 0], [1, 0, 0]).index.tolist() == visible
        page.receive("hits")
    with Client(viewer) as other:
        assert hidden(other.scene) == [0, 1, 2]
        assert other.pick([0, 0, 0], [1, 0, 0]).arrays["object"].tolist() == []
    viewer.show("scene", [0])
    assert page.receive("view").header["view"] == {"show": [0, 0]}
    assert viewer.click([0, 0, 0], [1, 0, 0]).index.tolist() == [0]


def test_objects_of_an_added_geometry_have_numbers_of_their_own(viewer, page):
    viewer.add("extra", ONE)
    scene_after(page)
    viewer.hide("extra")
    assert page.receive("view").header["view"] == {"hide": [3, 3]}
    viewer.select("extra", [0])
    assert page.receive("view").header["view"] == {"selection": [3]}
    assert {name: own.tolist() for name, own in viewer.selection.items()} == {"extra": [0]}


def test_a_page_with_another_file_is_left_alone(viewer, page):
    table = b"min_x,min_y,min_z,max_x,max_y,max_z\n0,0,0,1,1,1\n"
    page.upload("one.csv", table)
    page.receive("progress")
    page.receive_scene()
    page.receive("state")
    viewer.add("extra", ONE)
    viewer.hide("scene")
    assert page.pick([0.5, 0.5, 9], [0, 0, -1]).arrays["object"].tolist() == [0]


def test_bits_of_the_scene_before_are_no_error(viewer, page):
    """The page may send them while a new scene is on its way."""
    viewer.add("extra", rb.Grid.uniform([0, 4, 0], 1, (3, 3, 3)).boxes())
    scene_after(page)
    page.set_mask([False] * 3)
    page.line.send(b"\4\1")
    assert page.pick([0.5, 4.5, 9], [0, 0, -1]).header["total"] == 3
    assert viewer.selection == {}


# Rays and hits


def test_rays_and_hits_are_layers_that_can_be_hidden(viewer, page):
    hits = rb.Scene(ROW).nearest(RAYS)
    viewer.add("beams", RAYS, color="#00ff00")
    runs, (_, rays, table) = scene_after(page)
    assert runs == [[0, 0, 3]]
    assert (rays.header["colors"], table.arrays["object"].tolist()) == ([["#00ff00", 2]], [0, -1])
    viewer.add("more", RAYS[:1])
    rays = scene_after(page)[1][1]
    assert (rays.header["total"], rays.header["colors"]) == (3, [["#00ff00", 2], [None, 1]])
    viewer.add("contacts", hits)
    points = scene_after(page)[1][2]
    assert (points.kind, points.arrays["xyz"].tolist()) == ("points", [[2, 0, 0]])
    assert points.arrays["distance"].tolist() == [2]
    viewer.hide("beams")
    assert scene_after(page)[1][1].header["total"] == 1
    viewer.hide("contacts")
    assert [frame.kind for frame in scene_after(page)[1]] == ["scene", "rays", "table"]
    viewer.show("contacts")
    assert [frame.kind for frame in scene_after(page)[1]] == ["scene", "rays", "points", "table"]
    viewer.remove("beams")
    viewer.remove("more")
    assert [[frame.kind for frame in scene_after(page)[1]] for _ in range(2)][-1] == ["scene", "points"]


def test_all_hits_are_points_and_2d_is_at_zero(viewer, page):
    flat = rb.Scene(rb.Boxes([[1, -1], [4, -1]], [[2, 1], [5, 1]])).all(rb.Rays([[0, 0]], [[2, 0]]))
    viewer.add("contacts", flat)
    points = scene_after(page)[1][1]
    assert points.arrays["xyz"].tolist() == [[1, 0, 0], [4, 0, 0]]
    assert points.arrays["distance"].tolist() == [1, 4]


def test_rays_with_nan_are_misses(viewer, page):
    bad = rb.Rays([[math.nan, 0, 0], [0, 0, 0]], [1, 0, 0], invalid="miss")
    viewer.add("one", bad)
    scene_after(page)
    viewer.add("two", bad)
    assert scene_after(page)[1][2].arrays["object"].tolist() == [-1, 0, -1, 0]


# View


def test_the_view_is_that_of_open_pages_and_of_those_to_come(viewer, page, tmp_path):
    viewer.camera([0, -9, 0], [0, 0, 0], fov=90)
    camera = page.receive("view").header["view"]["camera"]
    assert (camera["eye"], camera["up"], camera["fov"]) == ([0, -9, 0], "z", 90)
    assert camera["height"] == pytest.approx(18)
    for given, colour in (
        ("kind", {"by": "label", "label": "kind"}),
        ("height", {"by": "height"}),
        (None, {"by": "plain"}),
    ):
        viewer.color_by(given)
        assert page.receive("view").header["view"] == {"colour": colour}
    viewer.select("scene", "kind == 'b'")
    assert page.receive("view").header["view"] == {"selection": [1]}
    with Client(viewer) as other:
        assert other.begin.header["view"] == {"camera": camera, "colour": colour, "selection": [1]}
    assert '"selection": [1]' in viewer.html()
    viewer.select()
    assert page.receive("view").header["view"] == {"selection": []}
    assert viewer.selection == {}


def test_colours_of_files_are_chosen_where_there_are_any():
    painted = with_colors(ROW[:], np.full((len(ROW), 4), 9, np.uint8))
    for scene in (painted, rb.Instances(painted, [np.eye(4)[:3]])):
        with rb.view(scene, port=0) as viewer, Client(viewer) as page:
            viewer.color_by("colors")
            assert page.receive("view").header["view"] == {"colour": {"by": "file"}}


# What users do


def test_picks_call_back_one_at_a_time_and_an_exception_is_printed(viewer, page, capsys):
    heard, running, most = [], [], []

    @viewer.on_pick
    def fails(hits):
        raise KeyError("of the callback")

    @viewer.on_pick
    def hears(hits):
        running.append(hits)
        most.append(len(running))
        heard.append((hits.ids.tolist(), threading.current_thread()))
        viewer.select("scene", hits.object[:1])  # a callback may change the page
        running.pop()

    page.set_mask([False, True, True])
    page.send("picked", **RIGHT)
    page.send("picked", **RIGHT | {"origin": [0, 9, 0]})
    wait_until(lambda: len(heard) == 2, "both picks are heard")
    assert [ids for ids, _ in heard] == [["middle", "far"], []]
    assert max(most) == 1
    assert len({thread for _, thread in heard} | {threading.current_thread()}) == 2
    assert page.receive("view").header["view"] == {"selection": [1]}
    assert capsys.readouterr().err.count("KeyError: 'of the callback'") == 2
    assert page.receive("view").header["view"] == {"selection": []}
    assert page.pick([0, 0, 0], [1, 0, 0]).arrays["object"].tolist() == [1, 2], "a cast is no pick"
    assert len(heard) == 2


def test_the_selection_of_a_page_is_that_of_python(viewer, page):
    viewer.add("extra", ONE)
    scene_after(page)
    page.line.send(b"\4" + np.packbits([1, 0, 1, 1], bitorder="little").tobytes())
    wait_until(lambda: viewer.selection, "the selection has arrived")
    assert {name: own.tolist() for name, own in viewer.selection.items()} == {"scene": [0, 2], "extra": [0]}
    viewer.add("scene", ROW)
    assert {name: own.tolist() for name, own in viewer.selection.items()} == {"extra": [0]}
    viewer.remove("scene")
    assert {name: own.tolist() for name, own in viewer.selection.items()} == {"extra": [0]}


def test_a_click_of_python_selects_and_calls_nothing_back(viewer, page):
    heard = []
    viewer.on_pick(heard.append)
    viewer.click([4, 0, 0], [1, 0, 0])
    page.receive("hits")
    assert {name: own.tolist() for name, own in viewer.selection.items()} == {"scene": [1]}
    viewer.click([0, 9, 0], [1, 0, 0])
    assert (viewer.selection, heard) == ({}, [])


# Wrong input


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda viewer: viewer.add("x", 7), "scene must be a path, Boxes, a Grid"),
        (lambda viewer: viewer.add("x", ROW, color="red"), r'color must be "#rrggbb"'),
        (lambda viewer: viewer.remove("x"), "nothing is shown as 'x'; there are: scene, beams"),
        (lambda viewer: viewer.hide("x"), "nothing is shown as 'x'"),
        (lambda viewer: viewer.hide("beams", [0]), "'beams' has no objects; name a geometry: scene"),
        (lambda viewer: viewer.hide("scene", [3]), "objects must be numbers from 0 to 2, a mask of 3"),
        (lambda viewer: viewer.hide("scene", [-1]), "Leave misses"),
        (lambda viewer: viewer.hide("scene", [0.5]), "objects must be numbers"),
        (lambda viewer: viewer.hide("scene", "color == 1"), "there is no label 'color'"),
        (lambda viewer: viewer.select("scene", [True]), "objects must be numbers"),
        (lambda viewer: viewer.color_by("color"), "there is no label 'color'; there are: kind, height"),
        (lambda viewer: viewer.color_by("colors"), "there is no label 'colors'; there are: kind, height"),
        (lambda viewer: viewer.camera([0, 0, 0], [0, 0, 0]), "eye and target must be two points"),
        (lambda viewer: viewer.camera([0, 0, math.nan], [0, 0, 0]), "eye and target must be two points"),
        (lambda viewer: viewer.camera([0, 0, 1], [0, 0, 0], fov=180), "fov within 0 and 180 degrees"),
        (lambda viewer: viewer.camera([0, 0, 1], [0, 0, 0], up="w"), "up"),
        (lambda viewer: viewer.camera([0, 0], [1, 0]), "eye and target must be two points in 3D"),
    ],
)
def test_wrong_input_is_one_line_and_changes_nothing(call, text):
    with rb.view(ROW, port=0) as viewer:
        viewer.add("beams", RAYS)
        before = viewer._content
        with pytest.raises(rb.InvalidInput, match=text) as caught:
            call(viewer)
        assert "\n" not in str(caught.value)
        assert viewer._content is before


def test_older_names_are_deprecated(tmp_path):
    with rb.view(ROW, port=0) as viewer:
        with pytest.warns(DeprecationWarning, match="Viewer.answer is now what Viewer.click returns"):
            assert viewer.answer is None
        hits = viewer.click([0, 0, 0], [1, 0, 0])
        with pytest.warns(DeprecationWarning, match="on_pick passes"):
            assert viewer.answer is hits
        named = pytest.warns(DeprecationWarning, match="Viewer.save_png is now Viewer.screenshot")
        with named as warned, pytest.raises(rb.RayboxError, match="no browser has the page open"):
            viewer.save_png(tmp_path / "a.png")
        assert warned[0].filename == __file__, "at the line that calls it"
