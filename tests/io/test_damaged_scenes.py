"""Damaged folders of scenes end in one clear error: no crash, no foreign exception, no wrong result."""

import dataclasses
import json
import shutil
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from raybox.split import partition

import raybox as rb
from raybox.bvh.node import CHILD, EMPTY
from raybox.bvh.validate import broken_rule
from raybox.io import manifest, scene_files
from raybox.scene.scene import state_of
from raybox.store import record
from scenes import as_rays, random_scene
from stored import content_of, write_content

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import damaged_scenes  # in benchmarks/

PAIRS = random_scene(5, 500, 300, size=0.2)
BOXES, RAYS = rb.Boxes(*PAIRS[4:]), as_rays(PAIRS)
MESH = rb.Mesh(np.random.default_rng(3).random((300, 3)), np.arange(300).reshape(-1, 3))
AGAIN = "write the folder again"


@pytest.mark.long
def test_a_small_campaign(tmp_path):
    reader = damaged_scenes.Reader()
    try:
        found = list(damaged_scenes.campaign(tmp_path, 88, 7, reader.outcome))
    finally:
        reader.close()
    assert [one for one in found if one[1] not in damaged_scenes.FINE] == []
    kinds = Counter(kind for _, kind in found)
    assert kinds["refused"] > 70
    assert {damage for damage, _ in found} == {damage.__name__ for damage in damaged_scenes.DAMAGES}


def whole(folder, geometry=BOXES):
    folder.mkdir()
    scene_files.write_scene(folder, rb.Scene(geometry))
    return folder


def sign_again(folder):
    """Write the manifest of a scene's folder for the files as they are now."""
    facts = manifest.read(folder / "scene.json").facts
    manifest.write(folder / "scene.json", facts, sorted(path.name for path in folder.glob("*.npy")))


def change(folder, name, place, value, kind=None):
    """Change one number of an array, and the checksums, too."""
    array = np.load(folder / f"{name}.npy")
    (array.view(kind) if kind else array)[place] = value
    np.save(folder / f"{name}.npy", array)
    sign_again(folder)


BROKEN = {
    "child out of range": ("nodes", (0, CHILD), 10**6, None),
    "cycle": ("nodes", (1, CHILD), 0, None),
    "row out of range": ("nodes", (-1, CHILD), ~(10**6), None),
    "row twice": ("nodes", (-1, CHILD + 1), None, None),
    "no number": ("nodes", (0, 3), np.nan, np.float32),
    "infinite and free": ("nodes", (0, 3), np.inf, np.float32),
    "center": ("center", 0, np.nan, None),
    "root": ("root", (0, 0), -7.0, None),
    "box": ("lower", (4, 1), np.nan, None),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_tree_that_cannot_be_followed(tmp_path, name):
    """Its checksums are right: only the numbers are wrong."""
    folder = whole(tmp_path / "scene")
    array, place, value, kind = BROKEN[name]
    if name == "row twice":
        value = np.load(folder / "nodes.npy")[-1, CHILD]
    change(folder, array, place, value, kind)
    with pytest.raises(rb.FileFormatError, match=rf"scene: holds no valid scene \(.*\); {AGAIN}"):
        scene_files.read_scene(folder)


@pytest.mark.parametrize(("name", "value"), [("faces", 300), ("faces", -1), ("vertices", np.inf)])
def test_a_mesh_of_vertices_that_do_not_exist(tmp_path, name, value):
    folder = whole(tmp_path / "scene", MESH)
    change(folder, name, (5, 1), value)
    with pytest.raises(rb.FileFormatError, match=r"holds no valid scene \(a (face|vertex)"):
        scene_files.read_scene(folder)


def test_sound_trees_break_no_rule():
    rng = np.random.default_rng(2)
    lower = rng.random((40_000, 3))
    for boxes in (rb.Boxes(lower, lower + 0.1), rb.Boxes(np.empty((0, 3)), np.empty((0, 3))), BOXES[:1]):
        for quality in ("fast", "balanced", "best"):
            scene = rb.Scene(boxes, quality=quality)
            assert broken_rule(state_of(scene).part.tree, len(boxes)) == ""
            scene.update(rb.Boxes(boxes.lower[::-1] * [1, 3, 1], boxes.lower[::-1] * [1, 3, 1] + 0.2))
            assert broken_rule(state_of(scene).part.tree, len(boxes)) == ""
    infinite = rb.Boxes([[-np.inf] * 3, [np.inf] * 3, [0] * 3], [[np.inf] * 3, [np.inf] * 3, [1e300] * 3])
    assert broken_rule(state_of(rb.Scene(infinite)).part.tree, 3) == ""
    tree = state_of(rb.Scene(BOXES)).part.tree
    nodes = tree.nodes.copy()
    nodes[0, CHILD + np.argmax(nodes[0, CHILD:] != EMPTY)] = EMPTY
    assert "exactly one" in broken_rule(tree._replace(nodes=nodes), len(BOXES))
    assert "coordinates" in broken_rule(tree._replace(exponent=5000), len(BOXES))
    assert "parts" in broken_rule(tree._replace(parts=np.array([0])), len(BOXES))


def split(folder, **how):
    return rb.SplitScene(BOXES, folder=folder, parts=4, **how)


@pytest.mark.parametrize("before", [1, 2, 4])
def test_a_folder_of_another_version(tmp_path, before):
    """As raybox wrote it before manifests had checksums, before records, and as a later one may."""
    split(tmp_path / "parts")
    path = tmp_path / "parts" / "split.json"
    facts = {"kind": "boxes", "size": 500, "parts": 4, "dimension": 3, "digest": "0" * 32}
    texts = {
        1: json.dumps({"format": 1, **facts}).encode(),
        2: json.dumps({"checksum": "0" * 32, "content": {"facts": {"format": 2, **facts}}}).encode(),
        4: record.encode(dataclasses.replace(manifest.MANIFEST, version=4), content_of(path)),
    }
    path.write_bytes(texts[before])
    with pytest.raises(rb.FileFormatError) as caught:
        rb.SplitScene.open(tmp_path / "parts")
    assert str(caught.value) == f"{path}: was written by another version of raybox; {AGAIN}"


def test_sizes_are_checked_at_once_and_data_when_a_part_is_opened(tmp_path):
    split(tmp_path / "parts")
    path = tmp_path / "parts" / "part-00002" / "upper.npy"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    scene = rb.SplitScene.open(tmp_path / "parts")
    scene._open_parts.get(0)
    with pytest.raises(rb.FileFormatError, match=rf"part-00002/upper\.npy: is damaged: .*; {AGAIN}"):
        scene.count(RAYS)
    path.write_bytes(data[:-1])
    with pytest.raises(rb.FileFormatError, match=r"upper\.npy: has [\d,]+ bytes in place of"):
        rb.SplitScene.open(tmp_path / "parts")


def test_a_part_that_changed_while_it_was_closed_is_checked_again(tmp_path, monkeypatch):
    largest = max(split(tmp_path / "parts")._open_parts.bytes)
    scene = rb.SplitScene.open(tmp_path / "parts", memory=largest)
    checked, check = [], manifest.Manifest.check_data
    monkeypatch.setattr(
        manifest.Manifest, "check_data", lambda self, name: checked.append(name) or check(self, name)
    )
    want = scene.count(RAYS)
    assert len(checked) == 4 * 7
    np.testing.assert_array_equal(scene.count(RAYS), want)
    assert len(checked) == 4 * 7, "data is checked once"
    lower = np.load(tmp_path / "parts" / "part-00001" / "lower.npy")
    scene._open_parts.get(0)
    np.save(tmp_path / "parts" / "part-00001" / "lower.npy", lower - 0.5)
    with pytest.raises(rb.FileFormatError, match=r"lower\.npy: is damaged"):
        scene.count(RAYS)


def test_numbers_that_are_no_rows(tmp_path):
    place = tmp_path / "parts"
    split(place)
    part = place / "part-00001"
    change(part, partition.NUMBERS.removesuffix(".npy"), -1, 500)
    content = content_of(place / "split.json")
    content["facts"]["parts"][1] = manifest.read(part / "scene.json").checksum
    write_content(place / "split.json", content)
    with pytest.raises(rb.FileFormatError, match=r"numbers\.npy: does not number the rows of the part"):
        rb.SplitScene.open(place).count(RAYS)


def test_a_part_of_another_scene(tmp_path):
    split(tmp_path / "parts")
    rb.SplitScene(rb.Boxes(BOXES.lower, BOXES.upper + 1), folder=tmp_path / "other", parts=4)
    shutil.rmtree(tmp_path / "parts" / "part-00001")
    shutil.copytree(tmp_path / "other" / "part-00001", tmp_path / "parts" / "part-00001")
    with pytest.raises(
        rb.FileFormatError, match=rf"part-00001/scene\.json: belongs to another scene; {AGAIN}"
    ):
        rb.SplitScene.open(tmp_path / "parts")


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (
            PermissionError(13, "Permission denied"),
            "cannot be read: Permission denied; check its permissions",
        ),
        (MemoryError(), "does not fit into memory; free some"),
    ],
)
def test_files_that_the_system_does_not_read(tmp_path, monkeypatch, error, text):
    rb.SplitScene(rb.Boxes([[0, 0, 0]], [[1, 1, 1]]), parts=1, folder=tmp_path / "parts")

    def refuse(_path, _mode):
        raise error

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(rb.FileFormatError, match=text):
        rb.SplitScene.open(tmp_path / "parts")


@pytest.mark.parametrize(
    "content",
    [
        {},
        {"facts": {}, "files": 3},
        {"facts": {}, "files": {"a": [1]}},
        {"facts": {}, "files": {"a": [-1, [1], "<f8", "", ""]}},
        {"facts": {}, "files": {"a": [8, ["x"], "<f8", "", ""]}},
        {"facts": {}, "files": {"a": [8, [1], "nothing", "", ""]}},
    ],
)
def test_manifests_that_raybox_does_not_write(tmp_path, content):
    write_content(tmp_path / "scene.json", content)
    with pytest.raises(rb.FileFormatError, match=rf"scene\.json: is no scene manifest of raybox; {AGAIN}"):
        scene_files.read_scene(tmp_path)
    scene_facts = {"kind": "boxes", "quality": "best"}
    for facts in ({}, {"kind": 99}, scene_facts, scene_facts | {"kind": ["boxes"]}):
        manifest.write(tmp_path / "scene.json", facts, [])
        with pytest.raises(rb.FileFormatError, match=AGAIN):
            scene_files.read_scene(tmp_path)
    manifest.write(tmp_path / "scene.json", scene_facts | {"size": 1, "scale": 1.0, "exponent": 0}, [])
    with pytest.raises(rb.FileFormatError, match=r"lower\.npy: holds another array than a scene has there"):
        scene_files.read_scene(tmp_path)


@pytest.mark.parametrize("name", ["../secret.npy", "/etc/passwd", "a/b.npy", "..\\secret.npy", "..", ""])
def test_a_manifest_that_names_a_file_outside_of_its_folder(tmp_path, name):
    folder = whole(tmp_path / "scene")
    np.save(tmp_path / "secret.npy", np.zeros(3))
    content = content_of(folder / "scene.json")
    content["files"][name] = [88, [3], "<f8", "", ""]
    write_content(folder / "scene.json", content)
    with pytest.raises(rb.FileFormatError, match=r"scene\.json: is no scene manifest of raybox"):
        manifest.read(folder / "scene.json")
