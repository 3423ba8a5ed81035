"""Folders of scenes keep objects, ids and labels, and any geometry."""

import zipfile

import numpy as np
import pytest

import raybox as rb
from raybox.geometry import with_facts
from raybox.io import manifest, scene_files
from scenes import as_rays, random_scene

PAIRS = random_scene(9, 150, 200, size=0.3)
RAYS = as_rays(PAIRS)
LABELS = {
    "class": ["wall", None, "Tür"] * 50,
    "cost": [1.5, np.nan, -0.0] * 50,
    "n": [1, None, 2**60 + 1] * 50,
}
BOXES = rb.Boxes(*PAIRS[4:], ids=range(150), labels=LABELS)
CORNERS = np.random.default_rng(4).random((150, 3, 3)) * 0.3 + np.random.default_rng(5).random((150, 1, 3))
MESH = rb.Mesh(
    CORNERS.reshape(-1, 3),
    np.arange(450).reshape(-1, 3),
    objects=np.random.default_rng(6).permutation(150) // 3 + 10,
    ids=[f"object {k}" for k in range(150)],
    labels=LABELS,
)
TRIANGLES = rb.Mesh(MESH.vertices, MESH.faces, labels=LABELS)
BARE = rb.Mesh(MESH.vertices, MESH.faces, objects=MESH.objects)
INSIDE = rb.Rays([[0.5, 0.5, 2]] * 100, np.random.default_rng(7).random((100, 3)) - [0.5, 0.5, 2])
GEOMETRIES = {"boxes": (BOXES, RAYS), "mesh": (MESH, INSIDE), "triangles": (TRIANGLES, INSIDE)}


@pytest.mark.core
@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_split_scene_keeps_objects_ids_and_labels(tmp_path, name):
    geometry, rays = GEOMETRIES[name]
    whole = rb.Scene(geometry)
    rb.SplitScene(geometry, parts=4, folder=tmp_path / "parts")
    split = rb.SplitScene.open(tmp_path / "parts")
    split.check()
    for query in ("nearest", "all"):
        wanted, found = getattr(whole, query)(rays), getattr(split, query)(rays)
        assert len(wanted.index[wanted.index >= 0]) > 10
        assert found.index.tolist() == wanted.index.tolist()
        assert found.object.tolist() == wanted.object.tolist()
        if geometry.ids is not None:
            assert found.ids.tolist() == wanted.ids.tolist()
        for label in LABELS:
            np.testing.assert_array_equal(found.labels(label), wanted.labels(label))
    assert split.count(rays, where="n == 1").tolist() == whole.count(rays, where="n == 1").tolist()


def test_objects_alone_and_nothing_load_again(tmp_path):
    rb.SplitScene(BARE, parts=2, folder=tmp_path / "bare")
    found = rb.SplitScene.open(tmp_path / "bare").nearest(INSIDE)
    assert found.object.tolist() == rb.Scene(BARE).nearest(INSIDE).object.tolist()
    assert found.object.max() > 9
    rb.SplitScene(rb.Boxes(BOXES.lower, BOXES.upper), parts=2, folder=tmp_path / "plain")
    assert not list((tmp_path / "plain").glob("*.npz"))
    with pytest.raises(rb.InvalidInput, match="geometry with ids"):
        _ = rb.SplitScene.open(tmp_path / "plain").nearest(RAYS).ids
    rb.SplitScene(MESH[:0], parts=2, folder=tmp_path / "empty")
    assert not rb.SplitScene.open(tmp_path / "empty").count(INSIDE).any()


@pytest.mark.parametrize(
    "geometry",
    [
        BOXES,
        MESH,
        TRIANGLES,
        BARE,
        rb.Grid([0, 1, 2], [0, 3.5], [0, 2], occupied=[True, False], ids=["u", "v"]),
        rb.Planes([[0, 0, 1]], [0.5], labels={"a": ["x"]}),
        rb.Instances(MESH, [np.eye(3, 4)] * 2, ids=["a", "b"]),
        [BOXES, MESH, rb.Planes([[0, 0, 1]], [0.5])],
    ],
)
def test_a_scene_of_any_geometry_is_read_from_its_folder(tmp_path, geometry):
    scene = rb.Scene(geometry, quality="best")
    scene_files.write_scene(tmp_path, scene)
    found = scene_files.read_scene(tmp_path)
    pairs = zip(found.geometry, geometry, strict=True) if isinstance(geometry, list) else ()
    assert all(one.equals(other) for one, other in pairs or ((found.geometry, geometry),))
    assert found.nearest(INSIDE).equals(scene.nearest(INSIDE))
    assert len(found) == len(scene)


@pytest.mark.parametrize("geometry", [BOXES, MESH, BARE, TRIANGLES, rb.Boxes(BOXES.lower, BOXES.upper)])
def test_folders_keep_counts_of_what_was_left_out(tmp_path, geometry):
    counts = {"faces of fewer than three corners": 3, 'nodes "ä"': 1}
    split = rb.SplitScene(with_facts(geometry, counts), parts=3, folder=tmp_path / "parts")
    assert dict(split.skipped) == dict(rb.SplitScene.open(tmp_path / "parts").skipped) == counts
    (tmp_path / "whole").mkdir()
    scene_files.write_scene(tmp_path / "whole", rb.Scene(with_facts(geometry, counts)))
    found = scene_files.read_scene(tmp_path / "whole").geometry
    assert found.equals(geometry)
    assert dict(found.skipped) == counts
    rb.SplitScene(geometry, parts=3, folder=tmp_path / "none")
    assert not rb.SplitScene.open(tmp_path / "none").skipped


@pytest.mark.parametrize("geometry", [rb.Planes([[0, 0, 1]], [0.5]), rb.Instances(MESH, [np.eye(3, 4)])])
def test_folders_of_arrays_keep_counts_of_what_was_left_out(tmp_path, geometry):
    scene_files.write_scene(tmp_path, rb.Scene([with_facts(geometry, {"one": 1}), BOXES]))
    found = scene_files.read_scene(tmp_path).geometry
    assert [dict(one.skipped) for one in found] == [{"one": 1}, {}]


def changed(path, **columns):
    """Write an archive again with other arrays."""
    with np.load(path) as archive:
        arrays = dict(archive) | columns
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("objects.npy", lambda path: np.save(path, MESH.objects[1:]), "does not number the objects"),
        ("objects.npy", lambda path: np.save(path, -MESH.objects), "does not number the objects"),
        ("objects.npy", lambda path: np.save(path, MESH.objects + 150), "without ids or labels"),
        ("objects.npy", lambda path: np.save(path, MESH.objects * 1.0), "another array"),
        ("attributes.npz", lambda path: changed(path, id=np.array(["a"])), "one id for each object"),
        ("attributes.npz", lambda path: changed(path, **{"skipped/count": np.ones(2)}), "skipped must have"),
        ("attributes.npz", lambda path: path.write_bytes(b"PK"), "its archive is damaged or cut off"),
    ],
)
@pytest.mark.parametrize("signed", [True, False])
def test_damaged_attributes_are_refused(tmp_path, name, change, words, signed):
    folder = tmp_path / "parts"
    rb.SplitScene(MESH, parts=2, folder=folder)
    change(folder / name)
    if signed:  # damage that the checksums do not show
        facts = manifest.read(folder / "split.json")
        manifest.write(folder / "split.json", facts.facts, [*facts.files])
    with pytest.raises(rb.FileFormatError) as error:
        rb.SplitScene.open(folder)
    assert "\n" not in str(error.value)
    assert (words if signed else name) in str(error.value)


def test_a_flipped_bit_of_attributes_is_refused(tmp_path):
    for name in ("objects.npy", "attributes.npz"):
        folder = tmp_path / name
        rb.SplitScene(MESH, parts=2, folder=folder)
        data = bytearray((folder / name).read_bytes())
        data[-100] ^= 4
        (folder / name).write_bytes(data)
        with pytest.raises(rb.FileFormatError, match="checksum differs"):
            rb.SplitScene.open(folder)


def test_a_folder_of_other_geometries_is_checked(tmp_path):
    scene_files.write_scene(tmp_path, rb.Scene([BOXES, MESH]))
    with zipfile.ZipFile(tmp_path / "geometry.npz") as archive:
        assert "1/objects.npy" in archive.namelist()
    facts = manifest.read(tmp_path / "scene.json").facts
    manifest.write(tmp_path / "scene.json", {**facts, "size": 7}, ["geometry.npz"])
    with pytest.raises(rb.FileFormatError, match="another number of rows"):
        scene_files.read_scene(tmp_path)
    manifest.write(tmp_path / "scene.json", facts, [])
    with pytest.raises(rb.FileFormatError, match="is missing"):
        scene_files.read_scene(tmp_path)
