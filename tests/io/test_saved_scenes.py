"""Scenes that `Scene.save` writes and `Scene.open` maps: the same results, without a build."""

import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from processes import output_of
from raybox.geometry import with_facts
from raybox.io import scene_files
from raybox.scene import geometry_parts
from raybox.scene.scene import state_of
from scenes import as_rays, random_scene

PAIRS = random_scene(9, 150, 200, size=0.3)
LABELS = {
    "class": ["wall", None, "Tür"] * 50,
    "cost": [1.5, np.nan, -0.0] * 50,
    "n": [1, None, 2**60 + 1] * 50,
}
RNG = np.random.default_rng(4)
BOXES = rb.Boxes(*PAIRS[4:], ids=range(150), labels=LABELS)
CORNERS = RNG.random((150, 3, 3)) * 0.3 + RNG.random((150, 1, 3))
MESH = rb.Mesh(
    CORNERS.reshape(-1, 3),
    np.arange(450).reshape(-1, 3),
    objects=RNG.permutation(150) // 3 + 10,
    ids=[f"object {k}" for k in range(150)],
    labels=LABELS,
)
TRIANGLES = rb.Mesh(MESH.vertices, MESH.faces, labels=LABELS)
BARE = with_facts(rb.Mesh(MESH.vertices, MESH.faces, objects=MESH.objects), {"ä": 3}, units="foot", up="y")
EDGES = np.linspace(-0.2, 1.2, 12)
GRID = rb.Grid(EDGES, EDGES, EDGES[:8], occupied=RNG.random((11, 11, 7)) < 0.2, ids=range(847))
PLANES = rb.Planes([[0, 0, 1], [1, 2, 0]], [0.5, 0.25], labels={"a": ["x", None]})
COPIES = rb.Instances(MESH, [np.eye(3, 4), 2 * np.eye(3, 4) + RNG.random((3, 4))], ids=["a", "b"])
FLAT = rb.Boxes(BOXES.lower[:, :2], BOXES.upper[:, :2], ids=[str(k) for k in range(150)])
SQUARES = rb.Instances(FLAT, RNG.random((3, 2, 3)))
LINES = rb.Planes([[0, 1], [1, -1]], [0.5, 0.1])
GEOMETRIES = {
    "boxes": BOXES,
    "mesh": MESH,
    "triangles": TRIANGLES,
    "bare": BARE,
    "grid": GRID,
    "full grid": rb.Grid(EDGES, EDGES, [0, 1.0]),
    "empty grid": rb.Grid(EDGES, EDGES, [0, 1.0], occupied=np.zeros((11, 11, 1), bool)),
    "planes": PLANES,
    "copies": COPIES,
    "list": [BOXES, MESH, PLANES, COPIES, GRID],
    "list of one": [BARE],
    "flat boxes": FLAT,
    "flat grid": rb.Grid(EDGES, EDGES[2:], occupied=RNG.random((11, 9)) < 0.4),
    "flat list": [LINES, SQUARES, FLAT, rb.Grid([0, 1.0], [0, 1.0])],
    "huge": rb.Boxes(BOXES.lower * 2.0**1000, BOXES.upper * 2.0**1000),
    "tiny": rb.Boxes(BOXES.lower * 2.0**-1060, BOXES.upper * 2.0**-1060),
    "no boxes": rb.Boxes(np.empty((0, 3)), np.empty((0, 3))),
    "no triangles": MESH[:0],
    "no planes": PLANES[:0],
    "no copies": COPIES[:0],
    "copies of nothing": rb.Instances(BOXES[:0], np.eye(4)),
}
every = pytest.mark.parametrize("name", GEOMETRIES)
SUMS = "boxes", "grid", "full grid", "flat boxes", "flat grid", "no boxes"


def rays_for(scene):
    rays = as_rays(PAIRS)
    return rays if len(scene.bounds[0]) == 3 else rb.Rays(rays.origins[:, :2], rays.directions[:, :2])


def results(scene, name):
    """Return the results of every query that the scene has, as arrays."""
    rays, found = rays_for(scene), []
    for hits in (scene.nearest(rays), scene.first(rays, 3), scene.all(rays)):
        found += [hits.geometry, hits.index, hits.primitive, hits.object, hits.t, hits.t_exit, hits.points]
    found += [scene.occluded(rays), scene.count(rays), scene.nearest(rays, workers=1).normals]
    if name in SUMS:
        values = np.linspace(0.5, 2.0, len(scene))
        found.append(scene.integrate(rays, values, reproducible=True))
        found.append(scene.deposit(rays, reproducible=True))
    if "grid" in name:
        segments = scene.segments(rays)
        found += [segments.offsets, segments.index, segments.t]
    return found


def assert_same(found, wanted, name):
    for one, other in zip(results(found, name), results(wanted, name), strict=True):
        np.testing.assert_array_equal(one, other)


def refuse_builds(monkeypatch):
    """Fail where a tree, or anything else of the size of a scene, is built from now on."""

    def refuse(*_args, **_options):
        raise AssertionError("a tree is built")

    monkeypatch.setattr(geometry_parts.RefitPolicy, "build", refuse)
    monkeypatch.setattr(geometry_parts.own_tree(GRID._rows()), "build", refuse)
    for name in ("make", "_instance_arrays", "frame_of", "bounds"):
        monkeypatch.setattr(geometry_parts, name, refuse)


def saved(tmp_path, geometry, **how):
    scene = rb.Scene(geometry, **how)
    scene.save(tmp_path / "a.scene")
    return scene


@pytest.mark.core
@every
def test_a_scene_comes_back(tmp_path, name):
    geometry = GEOMETRIES[name]
    scene = saved(tmp_path, geometry, quality="best")
    assert [item.name for item in tmp_path.iterdir()] == ["a.scene"]
    for check in (False, True):
        found = rb.Scene.open(tmp_path / "a.scene", check=check)
        for one in (found.geometry, rb.load(tmp_path / "a.scene")):
            assert isinstance(one, list | tuple) == isinstance(geometry, list)
            pairs = zip(one, geometry, strict=True) if isinstance(geometry, list) else [(one, geometry)]
            for own, other in pairs:
                assert own.equals(other)
                assert (own.skipped, own.units, own.up) == (other.skipped, other.units, other.up)
        assert (repr(found), len(found), found.stats()) == (repr(scene), len(scene), scene.stats())
        np.testing.assert_array_equal(found.bounds, scene.bounds)
        found.check()
        assert_same(found, scene, name)
        assert_same(pickle.loads(pickle.dumps(found)), scene, name)


@every
def test_nothing_is_built(tmp_path, monkeypatch, name):
    saved(tmp_path, GEOMETRIES[name])
    refuse_builds(monkeypatch)
    scene = rb.Scene.open(tmp_path / "a.scene")
    monkeypatch.undo()
    for part in scene._parts:
        for array in [*part.tree[:3], *(one for one in part.rows if isinstance(one, np.ndarray))][:-4]:
            assert not array.flags.writeable


@pytest.mark.parametrize("name", ["boxes", "mesh", "copies", "list"])
def test_ids_labels_and_expressions(tmp_path, name):
    scene = saved(tmp_path, GEOMETRIES[name])
    rays = rays_for(scene)
    found, wanted = rb.Scene.open(tmp_path / "a.scene").all(rays), scene.all(rays)
    assert len(wanted.index) > 10
    assert found.ids.tolist() == wanted.ids.tolist()
    if name != "list":
        for label in LABELS:
            np.testing.assert_array_equal(found.labels(label), wanted.labels(label))
    if name in ("boxes", "mesh"):
        counts = rb.Scene.open(tmp_path / "a.scene").count(rays, where="n == 1")
        assert counts.tolist() == scene.count(rays, where="n == 1").tolist()
        assert counts.any()


@pytest.mark.parametrize("name", ["boxes", "mesh", "planes", "copies", "list"])
def test_an_update_leaves_the_folder_as_it_is(tmp_path, name):
    geometry = GEOMETRIES[name][:4] if name == "list" else GEOMETRIES[name]
    scene = saved(tmp_path, geometry)
    before = {path: path.read_bytes() for path in (tmp_path / "a.scene").iterdir()}
    found, other = (rb.Scene.open(tmp_path / "a.scene") for _ in range(2))

    def moved(one, step):
        if isinstance(one, list | tuple):
            return [moved(each, step) for each in one]
        if isinstance(one, rb.Boxes):
            return one.translated(np.full((len(one), 3), step / 50))
        if isinstance(one, rb.Planes):
            return rb.Planes(one.normals, one.offsets + step / 50)
        if isinstance(one, rb.Instances):
            return rb.Instances(one.geometry, one.transforms + step / 99)
        return rb.Mesh(one.vertices + step / 50, one.faces, objects=one.objects)

    for step in (1, 2, 30):
        scene.update(moved(geometry, step))
        found.update(moved(found.geometry if step == 1 else geometry, step))
        assert_same(found, scene, name)
    assert_same(other, rb.Scene(geometry), name)
    assert {path: path.read_bytes() for path in (tmp_path / "a.scene").iterdir()} == before
    scene.save(tmp_path / "moved.scene")
    found = rb.Scene.open(tmp_path / "moved.scene", check=True)
    assert_same(found, scene, name)
    for one in (found, scene):
        one.update(moved(geometry, 3))
    assert found.stats() == scene.stats()


SHARED = """
import sys, numpy as np, raybox as rb
scene = rb.Scene.open(sys.argv[1])
print(int(scene.geometry.lower.view(np.uint8).sum()))
private = shared = 0
for line in open("/proc/self/smaps"):
    if "-" in line.split()[0] and ":" not in line.split()[0]:
        ours = sys.argv[1] in line
    elif ours:
        private += int(line.split()[1]) if line.startswith(("Private_Dirty", "Anonymous")) else 0
        shared += int(line.split()[1]) if line.startswith("Rss") else 0
print(private, shared)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/smaps"), reason="no /proc here")
def test_processes_share_the_memory(tmp_path):
    boxes = rb.Boxes.from_centers(np.random.default_rng(3).random((100_000, 3)), 0.01)
    rb.Scene(boxes).save(tmp_path / "a.scene")
    opened = rb.Scene.open(tmp_path / "a.scene").geometry  # in this process, too
    total = int(opened.lower.view(np.uint8).sum())
    found, numbers = output_of("-c", SHARED, tmp_path / "a.scene").splitlines()
    assert int(found) == total
    private, shared = map(int, numbers.split())
    assert private == 0
    assert shared > 2000  # KiB: those of `lower`


def test_a_folder_that_was_moved(tmp_path):
    scene = saved(tmp_path, BOXES)
    found = rb.Scene.open(tmp_path / "a.scene")
    (tmp_path / "a.scene").rename(tmp_path / "elsewhere")
    assert_same(found, scene, "boxes")  # open files stay what they are
    assert_same(rb.Scene.open(tmp_path / "elsewhere", check=True), scene, "boxes")
    shutil.copytree(tmp_path / "elsewhere", tmp_path / "b.scene")
    rb.Scene.open(str(tmp_path / "b.scene")).save(tmp_path / "c.scene")
    assert_same(rb.Scene.open(tmp_path / "c.scene", check=True), scene, "boxes")


NAMES = dict.fromkeys(("a.scene", "file.scene", "link.scene"), "exists already; remove it first")
NAMES |= {
    "a.npz": "unsupported extension '.npz'",
    "a": "unsupported extension '' of a saved scene; name it a.scene",
}
NAMES["none/a.scene"] = "cannot be written: No such file or directory"


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_exists_or_ends_otherwise(tmp_path, name):
    scene = saved(tmp_path, BOXES)
    (tmp_path / "file.scene").write_bytes(b"")
    if os.name == "posix":
        (tmp_path / "link.scene").symlink_to("nothing")
    elif name == "link.scene":
        pytest.skip("links")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(rb.FileFormatError) as caught:
        scene.save(tmp_path / name)
    assert NAMES[name] in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / name))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_left_of_a_save_that_fails(tmp_path, monkeypatch, error):
    scene, save, calls = rb.Scene(BOXES), np.save, []

    def fail(path, array):
        calls.append(path)
        if len(calls) == 4:
            raise error
        save(path, array)

    monkeypatch.setattr(np, "save", fail)
    is_disk = isinstance(error, OSError)
    words = r"a\.scene: cannot be written: No space left" if is_disk else None
    with pytest.raises(rb.FileFormatError if is_disk else KeyboardInterrupt, match=words):
        scene.save(tmp_path / "a.scene")
    assert not [*tmp_path.iterdir()]


def test_what_archives_do_not_hold_is_refused(tmp_path):
    scene = rb.Scene(rb.Boxes([[0, 0]], [[1, 1]], ids=[2**70]))
    with pytest.raises(rb.InvalidInput, match="ids"):
        scene.save(tmp_path / "a.scene")
    assert not [*tmp_path.iterdir()]


def test_other_files_and_folders(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file or directory; check the path"):
        rb.Scene.open(tmp_path / "none.scene")
    rb.save(tmp_path / "boxes.npz", BOXES)
    (tmp_path / "empty.scene").mkdir()
    (tmp_path / "file.scene").write_bytes(b"x")
    for read, name, words in (
        (rb.Scene.open, "boxes.npz", "is a file, .*; make a scene of the file: Scene"),
        (rb.Scene.open, "empty.scene", "holds no scene; give a folder that Sce"),
        (rb.load, "empty.scene", "holds no scene; give a folder that Sce"),
        (rb.load, "file.scene", "is not a folder; give a raybox scene folder"),
    ):
        with pytest.raises(rb.FileFormatError, match=rf"{name}: {words}"):
            read(tmp_path / name)


def test_load_returns_boxes_of_objects(tmp_path):
    rb.save(tmp_path / "mesh.npz", MESH)
    saved(tmp_path, MESH)
    assert rb.load(tmp_path / "a.scene", boxes=True).equals(rb.load(tmp_path / "mesh.npz", boxes=True))


def test_a_scene_that_casts_map(tmp_path):
    scene = rb.Scene(BOXES)
    scene_files.write_scene(tmp_path, scene)
    found = scene_files.read_scene(Path(tmp_path), large_pages=True)
    assert_same(found, scene, "boxes")


def test_triangles_of_nodes_are_mapped(tmp_path):
    """Else each process would have 60 bytes of its own for each triangle; of a copied mesh, none has any."""
    scene = rb.Scene(MESH)
    scene.save(tmp_path / "mesh.scene")
    mapped = state_of(rb.Scene.open(tmp_path / "mesh.scene")).part.triangles()
    assert not mapped.flags.owndata
    np.testing.assert_array_equal(mapped, np.load(tmp_path / "mesh.scene" / "triangles.npy"))
    np.testing.assert_array_equal(mapped, state_of(scene).part.triangles())
    assert mapped.any()
    rb.Scene(COPIES).save(tmp_path / "copies.scene")
    assert not list((tmp_path / "copies.scene").glob("*triangles*"))
