"""One open page: its answers are those of the engine, and its state is its own."""

import json
import math
import runpy
from importlib import resources
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import numpy as np
import pytest

import exact_instances
import raybox as rb
from exact import rounded
from raybox.viewer import content, messages
from raybox.viewer.content import make_content
from raybox.viewer.messages import is_valid
from raybox.viewer.stage import make_stage
from raybox.viewer.viewer import Viewer
from view_client import Client
from waiting import wait_until

pytest.importorskip("websockets")

INF = math.inf
ROW = rb.Boxes(
    [[2, -1, -1], [5, -1, -1], [8, -1, -1]],
    [[3, 1, 1], [6, 1, 1], [9, 1, 1]],
    ids=["near", "middle", "far"],
    labels={"kind": ["a", "b", "a"]},
)
RAYS = rb.Rays([[0, 0, 0], [0, 0, 9], [0, 0.5, 0]], [[1, 0, 0], [1, 0, 0], [2, 0, 0]])
RIGHT = {"origin": [0, 0, 0], "direction": [1, 0, 0]}


@pytest.fixture(scope="module")
def viewer():
    with rb.view(ROW, RAYS, port=0) as shown:
        yield shown


@pytest.fixture
def page(viewer):
    with Client(viewer) as client:
        yield client


def rows(answer) -> list[int]:
    return answer.arrays["object"].tolist()


# Hits


def test_a_pick_is_the_list_of_the_engine(page):
    answer = page.pick([0, 0, 0], [2, 0, 0])
    assert rows(answer) == [0, 1, 2]
    assert [answer.arrays[name].tolist() for name in ("t", "t_enter", "t_exit")] == [
        [1.0, 2.5, 4.0],
        [1.0, 2.5, 4.0],
        [1.5, 3.0, 4.5],
    ]
    assert answer.header["total"] == 3
    assert answer.header["t_max"] is None
    assert rows(page.pick([0, 0, 0], [2, 0, 0], 2.75, 2.9)) == [1]
    assert rows(page.pick([10, 0, 0], [1, 0, 0])) == []
    assert rows(page.pick([10, 0, 0], [1, 0, 0], None)) == [0, 1, 2]


@pytest.mark.core
def test_picks_on_a_building_agree_with_fractions():
    with resources.as_file(resources.files("raybox") / "data" / "duplex.npz") as path:
        boxes = rb.load(path, boxes=True)
    low, high = boxes.lower.min(axis=0), boxes.upper.max(axis=0)
    random = np.random.default_rng(5)
    hits = 0
    walls = np.char.startswith(boxes.labels["ifc_class"].astype(str), "IfcWall")
    with rb.view(boxes, port=0) as viewer, Client(viewer) as page:
        for visible in (np.ones(len(boxes), bool), ~walls):
            page.set_mask(visible)
            for _ in range(20):
                side = random.normal(size=3)
                eye = (low + high) / 2 + 40 * side / np.linalg.norm(side)
                direction = random.uniform(low, high) - eye
                (truth,) = exact_instances.along(rb.Rays([eye], [direction]), boxes)
                want = [(rounded(hit.t), hit.index) for hit in truth if visible[hit.index]]
                answer = page.pick(eye.tolist(), direction.tolist())
                assert list(zip(answer.arrays["t"].tolist(), rows(answer), strict=True)) == want
                hits += bool(want)
    assert hits > 30


def test_rays_of_the_table_are_cast_by_their_row(page):
    drawn, table = page.scene_frames[1:]
    assert drawn.header["total"] == table.header["total"] == 3
    assert table.arrays["object"].tolist() == [0, -1, 0]
    assert table.arrays["t"].tolist() == [2.0, INF, 1.0]
    answer = page.request("ray", row=2)
    assert (rows(answer), answer.header["row"], answer.header["direction"]) == ([0, 1, 2], 2, [2, 0, 0])
    assert "row must be that of a ray; got 3 of 3" in page.request("ray", row=3).header["text"]


def test_long_answers_are_cut_and_say_so(monkeypatch, page):
    monkeypatch.setattr("raybox.viewer.frames.MAX_LISTED", 2)
    answer = page.pick([0, 0, 0], [1, 0, 0])
    assert (rows(answer), answer.header["total"]) == ([0, 1], 3)


# What is hidden


def test_what_is_hidden_is_hit_by_no_click_and_no_ray_of_the_table(page):
    page.set_mask([False, True, True])
    table = page.receive("table")
    assert table.arrays["object"].tolist() == [1, -1, 1]
    assert rows(page.pick([0, 0, 0], [1, 0, 0])) == [1, 2]
    assert rows(page.request("ray", row=0)) == [1, 2]
    page.set_mask([False] * 3)
    assert page.receive("table").arrays["t"].tolist() == [INF] * 3
    page.set_mask([True] * 3)
    page.receive("table")
    assert rows(page.pick([0, 0, 0], [1, 0, 0])) == [0, 1, 2]


def test_two_pages_have_two_states(viewer, page):
    with Client(viewer) as other:
        assert other.begin.header == page.begin.header
        other.set_mask([False, False, True])
        other.receive("table")
        assert rows(other.pick([0, 0, 0], [1, 0, 0])) == [2]
        assert rows(page.pick([0, 0, 0], [1, 0, 0])) == [0, 1, 2]


def test_where_hides_at_the_start_only():
    with rb.view(ROW, port=0, where="kind == 'b'") as viewer, Client(viewer) as page:
        assert page.scene.arrays["hidden"].tolist() == [0b101]
        assert rows(page.pick([0, 0, 0], [1, 0, 0])) == [1]
        assert viewer.click([0, 0, 0], [1, 0, 0]).ids.tolist() == ["middle"]
        page.receive("hits")
        page.set_mask([True] * 3)
        assert rows(page.pick([0, 0, 0], [1, 0, 0])) == [0, 1, 2]


# Pages as files


def test_a_page_is_saved_with_its_state_and_its_table(page):
    page.set_mask([False, True, True])
    page.receive("table")
    state = {"version": 1, "hidden": [0, 0], "note": "</script>"}
    answer = page.request("save", state=state)
    assert answer.header["name"] == "scene.html"
    text = answer.arrays["content"].tobytes().decode()
    assert '"note": "\\u003c/script>"' in text


# Python


def test_a_click_of_python_is_shown_on_all_pages(viewer, page):
    with Client(viewer) as other:
        found = viewer.click([0, 0, 0], [1, 0, 0])
        assert found.equals(viewer._content.stage.scene.all(rb.Rays([0, 0, 0], [1, 0, 0])))
        assert (found.ids.tolist(), found.t.tolist()) == (["near", "middle", "far"], [2, 5, 8])
        for one in (page, other):
            answer = one.receive("hits")
            assert (answer.header["seq"], rows(answer)) == (0, [0, 1, 2])
    assert viewer.click([0, 0, 0], [-1, 0, 0]).index.size == 0


@pytest.mark.parametrize(
    "ray", [([math.nan, 0, 0], [1, 0, 0]), ([0, 0], [1, 0]), ([[0, 0, 0]] * 2, [1, 0, 0])]
)
def test_invalid_clicks_are_refused(viewer, ray):
    with pytest.raises(rb.InvalidInput):
        viewer.click(*ray)


def test_another_file_replaces_the_scene_of_all_pages():
    table = b"id,min_x,min_y,min_z,max_x,max_y,max_z\nalone,0,0,0,1,1,1\n"
    with rb.view(ROW, RAYS, port=0) as viewer, Client(viewer) as page:
        viewer.open("one.csv", table)
        (scene,) = page.receive_scene()
        assert (scene.header["name"], scene.header["ids"]) == ("one.csv", ["alone"])
        assert viewer.selection == {}
        with pytest.raises(rb.FileFormatError, match=r"bad\.csv"):
            viewer.open("bad.csv", b"\xff\xfe")
        assert viewer._content.stage.name == "one.csv"
        assert rows(page.pick([0.5, 0.5, 5], [0, 0, -1])) == [0]


# Pictures


PNG = b"\x89PNG" + bytes(range(256)) * 10


def answer_picture(page, *parts):
    """Answer a request for a picture, as a page does; return the requested scale."""
    request = page.receive("picture")
    for part in (*parts, b""):
        page.line.send(b"\3" + part)
    return request.header["scale"]


def test_a_picture_is_that_of_an_open_page(tmp_path, in_thread):
    with rb.view(ROW, port=0) as viewer:
        with pytest.raises(rb.RayboxError, match="no browser has the page open to draw the picture"):
            viewer.screenshot(tmp_path / "view.png")
        with Client(viewer) as page:
            saved = in_thread(viewer.screenshot, tmp_path / "view.png", scale=4)
            assert answer_picture(page, PNG[:1000], PNG[1000:]) == 4
            assert saved.result() == (tmp_path / "view.png").read_bytes() == PNG
            shown = in_thread(viewer.screenshot)
            assert answer_picture(page, PNG) == 2
            assert shown.result() == PNG
            assert rows(page.pick([0, 0, 0], [1, 0, 0])) == [0, 1, 2]


@pytest.mark.parametrize("scale", [0.9, 4.1, math.nan, 0])
def test_the_scale_of_a_picture_has_a_range(viewer, scale):
    with pytest.raises(rb.InvalidInput, match="scale must be from 1 to 4; got"):
        viewer.screenshot(scale=scale)


def test_two_pictures_at_a_time_follow_each_other(tmp_path, in_thread):
    with rb.view(ROW, port=0) as viewer, Client(viewer) as page:
        paths = tmp_path / "one.png", tmp_path / "two.png"
        saved = [in_thread(viewer.screenshot, path) for path in paths]
        answer_picture(page, b"first")
        answer_picture(page, b"second")
        for one in saved:
            one.result()
        assert sorted(path.read_bytes() for path in paths) == [b"first", b"second"]


@pytest.mark.parametrize("how", ["none", "too many bytes", "gone", "gone half way"])
def test_a_page_without_a_picture_is_an_error(tmp_path, in_thread, monkeypatch, how):
    monkeypatch.setattr("raybox.viewer.session.MAX_PICTURE", len(PNG))
    with rb.view(ROW, port=0) as viewer, Client(viewer) as page:
        saved = in_thread(viewer.screenshot, tmp_path / "view.png")
        if how.startswith("gone"):
            page.receive("picture")
            if how == "gone half way":
                page.line.send(b"\3" + PNG)
            page.line.close()
        else:
            answer_picture(page, *([] if how == "none" else [PNG, PNG]))
        with pytest.raises(rb.RayboxError, match="the page has drawn no picture"):
            saved.result()
    assert not list(tmp_path.iterdir())


# Messages that are none


def pick_text(**fields) -> str:
    """Return the text of a message that picks, with some fields wrong."""
    return json.dumps({"kind": "pick", "seq": 1, **RIGHT, "t_min": 0, "t_max": None, **fields})


@pytest.mark.parametrize(
    "text",
    [
        *("", "[]", "NaN", "{" * 100_000, '{"kind": "pick"}', pick_text(seq=True), pick_text(origin=[0, 0])),
        *(pick_text(origin=[0, 0, wrong]) for wrong in ("0", True, math.nan)),
        pick_text(origin=[0, 0, 7.5]).replace("7.5", "1e999"),
        *(pick_text(t_min="0"), pick_text(x=1)),
        *(f'{{"kind": "ray", "seq": 1, "row": {row}}}' for row in ("-1", "0.5", "9" * 5000)),
        *('{"kind": "upload", "seq": 1}', '{"kind": "save", "seq": 1, "state": []}'),
        '{"kind": "save", "seq": 1, "state": {"version": 2}}',
        '{"kind": "upload", "seq": 1, "name": "", "size": 1}',
        '{"kind": "upload", "seq": 1, "name": "a.csv", "size": 1.5}',
        *(f'{{"kind": {kind}, "seq": 1}}' for kind in ('"__init__"', '"picked"', '["pick"]')),
        json.dumps({"kind": "ray", "seq": 1, "row": 0, "x": "x" * 2**19}),
        *(b"", b"\1", b"\1\0\0", b"\4", b"\4\0\0", b"\7\0"),
    ],
)
def test_a_message_that_fits_no_schema_is_one_error(page, text):
    page.line.send(text)
    assert page.receive("error").header["text"]
    assert rows(page.pick([0, 0, 0], [1, 0, 0])) == [0, 1, 2]


@pytest.mark.parametrize("text", ["[" * 100_000, "x" * 2**20, '"\ud800"'])
def test_text_that_no_socket_lets_through_is_an_error_too(text):
    with pytest.raises(rb.InvalidInput, match="a message must fit the schema of the page"):
        messages.parse(text)


def test_a_state_may_be_long():
    state = {"version": 1, "hidden": list(range(40_000))}
    assert messages.parse(json.dumps({"kind": "save", "seq": 1, "state": state}))["state"] == state


def test_an_answer_that_breaks_is_a_message(page, monkeypatch):
    monkeypatch.setattr("raybox.viewer.session.hits_frame", lambda *_, **__: 1 / 0)
    answer = page.request("pick", **RIGHT, t_min=0, t_max=None)
    assert answer.header["text"] == "that did not work: ZeroDivisionError"
    monkeypatch.undo()
    assert rows(page.pick([0, 0, 0], [1, 0, 0])) == [0, 1, 2]


def test_many_masks_at_once_cast_the_rays_of_the_last(monkeypatch):
    """The casts wait until all masks have arrived: one table is on its way, and then one of the last mask."""
    casts, allowed = [], []
    table_frame = content.table_frame

    def cast(stage, rays, mask=None):
        casts.append(mask)
        wait_until(lambda: allowed or mask is None, "all masks have arrived")
        return table_frame(stage, rays, mask)

    shown = make_content(make_stage(ROW), RAYS)
    monkeypatch.setattr(content, "table_frame", cast)
    with Viewer(shown, "127.0.0.1", 0) as viewer, Client(viewer) as page:
        for k in range(8):
            page.set_mask([k == 7, True, True])
        assert page.pick([0, 0, 0], [1, 0, 0]).kind == "hits"  # so that all masks have arrived
        allowed.append(True)
        while page.receive("table").arrays["object"].tolist() != [0, -1, 0]:
            pass
    assert len(casts) <= 3


PAGE = Path(__file__).parents[2] / "page"


class Pair(TypedDict):
    low: float
    high: float | None


@pytest.mark.skipif(not PAGE.exists(), reason="the sources of the page are in the repository alone")
def test_the_types_of_the_page_are_those_of_python():
    made = runpy.run_path(str(PAGE / "schema.py"))["schema"]()
    assert (PAGE / "src" / "schema.ts").read_text(encoding="utf-8") == made, "run page/schema.py"


@pytest.mark.parametrize(
    ("form", "valid", "invalid"),
    [
        (int, [0, 2**53], [-1, 2**53 + 1, True, 1.0, None, "1"]),
        (float, [0, -1.5, 10**308], [True, None, "1", 10**309]),
        (str, ["", "a"], [1, None]),
        (float | None, [None, 1], ["", False]),
        (Annotated[str, 3], ["a", "abc"], ["", "abcd", 1]),
        (Literal["a", "b"], ["a"], ["c", 1, None]),
        (Literal[1], [1], [True, 1.0, 2]),
        (tuple[float, float], [[1, 2]], [[1], [1, 2, 3], [1, "2"], (1, 2), None]),
        (Pair, [{"low": 1, "high": None}, {"low": 1, "high": 2, "more": []}], [{"high": 1}, [], None]),
    ],
)
def test_json_is_checked_against_a_type(form, valid, invalid):
    assert [is_valid(value, form) for value in valid] == [True] * len(valid)
    assert [is_valid(value, form) for value in invalid] == [False] * len(invalid)
