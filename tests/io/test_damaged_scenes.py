"""Damaged folders of scenes end in one clear error: no crash, no foreign exception, no wrong result."""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

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
    manifest.write(folder / "scene.json", facts, sorted(path.name for path in folder.glob("*.np[yz]")))


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
    "corner": ("faces", (5, 1), 300, None, MESH),
    "corner below 0": ("faces", (5, 1), -1, None, MESH),
    "vertex": ("vertices", (5, 1), np.inf, None, MESH),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_tree_that_cannot_be_followed(tmp_path, name):
    """Its checksums are right: only the numbers are wrong."""
    array, place, value, kind, *geometry = BROKEN[name]
    folder = whole(tmp_path / "scene", *geometry)
    if name == "row twice":
        value = np.load(folder / "nodes.npy")[-1, CHILD]
    change(folder, array, place, value, kind)
    problem = "a (face|vertex)" if geometry else ".*"
    with pytest.raises(rb.FileFormatError, match=rf"scene: holds no valid scene \({problem}.*\); {AGAIN}"):
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


CHANGES = {
    "size of a face": ("mesh", "rows-corners", (0, 0, 0), 0.5, None, "other corners"),
    "triangle of a node": ("mesh", "triangles", (0, 3), 0.5, None, "other triangles"),
    "frame": ("boxes", "frame", 9, 0.125, None, "another frame"),
    "frame that is no number": ("boxes", "frame", 16, np.nan, None, "another frame"),
    "rows in 2D": ("flat", "rows-lower", (3, 2), 1.0, None, "other rows than boxes"),
    "normal": ("planes", "normals", 1, 0.0, None, "a normal is zero"),
    "offset": ("planes", "offsets", 1, np.inf, None, "a plane is not finite"),
    "matrix": ("copies", "placed", (1, 2, 3), np.nan, None, "a matrix is not finite"),
    "flag": ("copies", "rows-tame", 1, 7, np.uint8, "a flag is neither 0 nor 1"),
    "box of copies": ("copies", "of-lower", (0, 1), -np.inf, None, "a box of instances is not finite"),
    "node of copies": ("copies", "nodes", (0, CHILD), 99, None, "parent"),
    "inner node": ("copies", "of-nodes", (0, CHILD), 99, None, "parent"),
    "edge": ("grid", "x_edges", 3, 0.0, None, "edges do not increase"),
    "block": ("grid", "rows-blocks", (0, 0), 0, None, "a mask of another number of words"),
    "first word": ("grid", "rows-blocks", (0, 1), 3, None, "a mask of another number of words"),
    "cell": ("grid", "rows-words", -1, -1, None, "a cell that does not exist"),
    "word": ("grid", "rows-words", 0, 5, None, "another tree than its cells"),
    "first node": ("grid", "nodes", (0, 1), 9**9, None, "another tree than its cells"),
    "plane": ("grid", "planes", 3, 0.7, None, "another tree than its cells"),
    "start": ("grid", "starts", (0, 0, 0), 9**9, None, "another tree than its cells"),
    "object": ("objects", "objects", 5, -1, None, "an object below 0"),
}
KINDS = {
    "boxes": BOXES,
    "mesh": MESH,
    "flat": rb.Boxes(BOXES.lower[:, :2], BOXES.upper[:, :2]),
    "planes": rb.Planes(np.eye(3), 0.5),
    "copies": rb.Instances(BOXES[:60], [np.eye(3, 4), 2 * np.eye(3, 4)]),
    "grid": rb.Grid(*[np.linspace(0, 1, 14)] * 3, occupied=np.random.default_rng(1).random((13,) * 3) < 0.3),
    "objects": rb.Mesh(MESH.vertices, MESH.faces, objects=np.arange(100) // 2),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_number_that_compiled_code_relies_on(tmp_path, name):
    """Its checksums are right: check=True refuses the number, and check=False does not read it."""
    kind, array, place, value, view, words = CHANGES[name]
    folder = whole(tmp_path / "scene", KINDS[kind])
    change(folder, array, place, value, view)
    rb.Scene.open(folder)
    with pytest.raises(rb.FileFormatError, match=rf"scene: holds no valid scene \(.*{words}.*\); {AGAIN}"):
        rb.Scene.open(folder, check=True)


@pytest.mark.parametrize("kind", KINDS)
def test_each_byte_of_each_file_is_checked(tmp_path, kind):
    """A bit of the header is refused always, one of the data by check=True; a size is refused always."""
    folder = whole(tmp_path / "scene", KINDS[kind])
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        for position, checks in ((9, (False, True)), (len(data) - 1, (True,))):
            damaged = bytearray(data)
            damaged[position] ^= 4
            path.write_bytes(damaged)
            for check in checks:
                with pytest.raises(rb.FileFormatError, match=rf"{path.name}: .*; {AGAIN}"):
                    rb.Scene.open(folder, check=check)
        for other in (data[:-1], data + b"\0", b""):
            path.write_bytes(other)
            with pytest.raises(rb.FileFormatError, match=rf"{path.name}: .*; {AGAIN}"):
                rb.Scene.open(folder)
        path.unlink()
        with pytest.raises(rb.FileFormatError, match=r"is missing|holds no scene"):
            rb.Scene.open(folder)
        path.write_bytes(data)
    rb.Scene.open(folder, check=True)


def changed(path, **columns):
    """Write an archive again with other arrays."""
    with np.load(path) as archive:
        arrays = dict(archive) | columns
    np.savez(path, **arrays)


NAMED = rb.Mesh(MESH.vertices, MESH.faces, objects=np.arange(100) // 2, ids=range(50))


@pytest.mark.parametrize(
    ("name", "damage", "words"),
    [
        ("objects.npy", lambda path: np.save(path, NAMED.objects[1:]), "another array"),
        ("objects.npy", lambda path: np.save(path, NAMED.objects + 50), "without ids or labels"),
        ("objects.npy", lambda path: np.save(path, NAMED.objects * 1.0), "another array"),
        ("attributes.npz", lambda path: changed(path, id=np.array(["a"])), "without ids or labels"),
        ("attributes.npz", lambda path: changed(path, **{"skipped/count": np.ones(2)}), "skipped must have"),
        ("attributes.npz", lambda path: path.write_bytes(b"PK"), "its archive is damaged or cut off"),
    ],
)
@pytest.mark.parametrize("signed", [True, False])
def test_damaged_attributes_are_refused(tmp_path, name, damage, words, signed):
    folder = whole(tmp_path / "scene", NAMED)
    damage(folder / name)
    if signed:  # damage that the checksums do not show
        sign_again(folder)
    with pytest.raises(rb.FileFormatError) as error:
        rb.Scene.open(folder, check=True)
    assert "\n" not in str(error.value)
    assert (words if signed else name) in str(error.value)


@pytest.mark.parametrize("before", [1, 2, 3, 5])
def test_a_folder_of_another_version(tmp_path, before):
    """As raybox wrote it before manifests had checksums, before records, and as a later one may."""
    path = whole(tmp_path / "scene") / "scene.json"
    facts = {"kind": "boxes", "size": 500, "parts": 4, "dimension": 3, "digest": "0" * 32}
    texts = {
        1: json.dumps({"format": 1, **facts}).encode(),
        2: json.dumps({"checksum": "0" * 32, "content": {"facts": {"format": 2, **facts}}}).encode(),
        3: record.encode(manifest.MANIFEST._replace(version=3), content_of(path)),
        5: record.encode(manifest.MANIFEST._replace(version=5), content_of(path)),
    }
    path.write_bytes(texts[before])
    with pytest.raises(rb.FileFormatError) as caught:
        rb.Scene.open(tmp_path / "scene")
    problem = "was written by another version" if before > 2 else "is damaged, or is no record"
    assert str(caught.value) == f"{path}: {problem} of raybox; {AGAIN}"


DENIED = PermissionError(13, "Permission denied"), "cannot be read: Permission denied; check its permissions"


@pytest.mark.parametrize(("error", "text"), [DENIED, (MemoryError(), "does not fit into memory; free some")])
def test_files_that_the_system_does_not_read(tmp_path, monkeypatch, error, text):
    folder = whole(tmp_path / "scene")

    def refuse(_path, _mode):
        raise error

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(rb.FileFormatError, match=text):
        rb.Scene.open(folder)


FILES = [3, {"a": [1]}, {"a": [-1, [1], "<f8", "", ""]}, {"a": [8, ["x"], "<f8", "", ""]}]
FILES.append({"a": [8, [1], "nothing", "", ""]})


@pytest.mark.parametrize("content", [{}, *({"facts": {}, "files": files} for files in FILES)])
def test_manifests_that_raybox_does_not_write(tmp_path, content):
    write_content(tmp_path / "scene.json", content)
    with pytest.raises(rb.FileFormatError, match=rf"scene\.json: is no scene manifest of raybox; {AGAIN}"):
        scene_files.read_scene(tmp_path)


def test_manifests_of_no_scene(tmp_path):
    part = ["boxes", 1, 3, 0, None]
    facts = {"quality": "best", "is_list": False, "parts": [part]}
    wrong_parts = [[], [part] * 2, [part[1:]], [["tubes", *part[1:]]], [["boxes", "1", 3, 0, None]], 5]
    wrong_parts += [[["boxes", -1, 3, 0, None]], [["boxes", 1, 4, 0, None]], [["instances", *part[1:]]]]
    wrong_parts += [[[*part[:4], part]], [["instances", 1, 3, 0, ["planes", 1, 3, 0, None]]]]
    wrong = [{}, {"quality": "best"}, facts | {"quality": "good"}, facts | {"quality": []}]
    wrong += [facts | {"parts": parts} for parts in wrong_parts]
    wrong.append(facts | {"is_list": True, "parts": [part, ["boxes", 1, 2, 0, None]]})
    for one in [*wrong, facts]:
        manifest.write(tmp_path / "scene.json", one, [])
        problem = (
            r"lower\.npy: holds another array than a scene"
            if one == facts
            else "is the manifest of no scene; "
        )
        with pytest.raises(rb.FileFormatError, match=problem):
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
