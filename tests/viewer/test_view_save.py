"""The page as one file, and files as scenes: it needs no server, and no name in it is markup."""

import base64
import gzip
import json
import re
import struct

import pytest

import raybox as rb
from needs import package
from raybox.viewer import stage as stages
from raybox.viewer.content import built_page, make_content
from raybox.viewer.stage import make_stage
from real_data import HOUSE
from view_client import decoded

ROW = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]], ids=["<b>", "</script>"])
RAYS = rb.Rays([[0, 0, 0], [0, 0, 9]], [1, 0, 0])


def parts_of(page: bytes):
    """Return the frames and the state in a saved page."""
    scene = re.search(rb'<script type="text/plain" id="raybox-scene">([^<]*)</script>', page)[1]
    state = re.search(rb'<script type="application/json" id="raybox-state">([^<]*)</script>', page)[1]
    content = gzip.decompress(base64.b64decode(scene))
    frames, offset = [], 0
    while offset < len(content):
        (size,) = struct.unpack_from("<Q", content, offset)
        frames.append(content[offset + 8 : offset + 8 + size])
        offset += 8 + size
    return frames, json.loads(state)


def test_a_saved_page_is_the_built_one_with_the_frames_of_its_scene():
    content = make_content(make_stage(ROW, "row"), RAYS)
    page = content.saved()
    frames, state = parts_of(page)
    assert tuple(frames) == content.frames
    assert state is None
    template = built_page().partition(b"<head>")[2].rpartition(b"</body>")[0]
    assert re.sub(rb"<title>.*?</title>", b"", template) in re.sub(rb"<title>.*?</title>", b"", page)
    assert page == content.saved()


def test_it_has_the_state_of_a_page_and_what_its_rays_hit_then():
    content = make_content(make_stage(ROW), RAYS)
    state = {"version": 1, "note": "</script><script>alert(1)</script>", "hidden": [0, 0]}
    frames, found = parts_of(content.saved(state, ~ROW.lower[:, 0].astype(bool) | (ROW.lower[:, 0] > 3)))
    assert found == state
    assert decoded(frames[-1]).arrays["object"].tolist() == [1, -1]


def test_no_name_is_markup():
    evil = "<img src=x onerror=alert(1)></title>"
    page = make_content(make_stage(ROW, evil)).saved({"version": 1, "note": evil})
    assert b"<img" not in page.replace(built_page(), b"")
    assert b"<title>&lt;img src=x onerror=alert(1)&gt;&lt;/title&gt;</title>" in page


def test_it_requests_nothing_of_the_network():
    page = make_content(make_stage(ROW)).saved()
    policy = re.search(rb'<head>\n<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)[1]
    assert b"connect-src 'none'" in policy
    assert b"default-src 'none'" in policy
    assert b"unsafe-eval" not in policy


def test_a_viewer_writes_the_page_that_it_serves(tmp_path):
    pytest.importorskip("websockets")
    with rb.view(ROW, RAYS, port=0) as viewer:
        viewer.save_html(tmp_path / "row.html")
        text = viewer.html()
    assert (tmp_path / "row.html").read_text(encoding="utf-8") == text
    assert len(parts_of(text.encode())[0]) == 3


# Files


def test_files_and_geometries_are_one_scene(tmp_path):
    rb.save(tmp_path / "boxes.csv", ROW)
    rb.save(tmp_path / "two.npz", [ROW, rb.Planes([1, 0, 0], [7])])
    stage = stages.make_stage(tmp_path / "two.npz")
    assert (stage.name, [part.objects for part in stage.parts]) == ("two.npz", [2, 1])
    stage = stages.make_stage([tmp_path / "boxes.csv", str(tmp_path / "two.npz"), ROW])
    assert (stage.name, [part.objects for part in stage.parts]) == ("boxes.csv, two.npz", [2, 2, 1, 2])
    assert stages.make_stage(stage) is stage
    made = make_content(stage).stage
    assert (made.scene is stage.scene, made.labels is stage.labels) == (True, True), "they are made once"


def test_a_filter_that_a_geometry_cannot_answer_is_an_error():
    with pytest.raises(rb.InvalidInput, match="there is no label 'kind'"):
        make_stage([ROW, rb.Planes([1, 0, 0], 5)], where="kind == 'x'")


def test_what_is_no_scene_is_refused(tmp_path):
    rb.save(tmp_path / "rays.csv", RAYS)
    with pytest.raises(rb.FileFormatError, match=r"holds .*rays|contains rays"):
        stages.make_stage(tmp_path / "rays.csv")
    for wrong in (7, [], [ROW, 7], None):
        with pytest.raises(rb.InvalidInput, match="scene must be a path, Boxes, a Grid"):
            stages.make_stage(wrong)


def test_spaces_and_openings_of_a_building_are_read_and_hidden(monkeypatch):
    package("ifcopenshell")
    stage = stages.make_stage(HOUSE, boxes=True)
    hidden = set(stage.labels["ifc_class"][~stage.visible])
    assert len(stage.visible) == 286
    assert hidden == {"IfcSpace", "IfcOpeningElement"}
    monkeypatch.setattr(stages, "geometries_in", lambda *_, **__: [part.geometry for part in stage.parts])
    assert stages.make_stage(HOUSE, boxes=True, hides_spaces=False).visible.all()
