"""Commands that take a folder of `Scene.save` as SCENE."""

import json

import numpy as np
import pytest

import raybox as rb
from commands import raybox
from raybox.scene import geometry_parts
from streaming import with_column

RNG = np.random.default_rng(2)
CORNERS = RNG.random((60, 1, 3)) + 0.3 * RNG.random((60, 3, 3))
MESH = rb.Mesh(
    CORNERS.reshape(-1, 3),
    np.arange(180).reshape(-1, 3),
    objects=np.arange(60) // 2,
    ids=[f"object {k}" for k in range(30)],
    labels={"kind": ["wall", "door"] * 15},
)
BOXES = rb.Boxes.from_centers(RNG.random((60, 3)), 0.2, ids=range(60))
GRID = rb.Grid(*[np.linspace(0, 1, 6)] * 3, occupied=RNG.random((5, 5, 5)) < 0.5)
GEOMETRIES = {"boxes": BOXES, "mesh": MESH, "list": [BOXES, MESH], "grid": GRID}
every = pytest.mark.parametrize("name", GEOMETRIES)
RAYS = rb.Rays(RNG.random((50, 3)) * 3 - 1, RNG.normal(size=(50, 3)))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rb.save("rays.npz", RAYS)
    for name, geometry in GEOMETRIES.items():
        rb.save(f"{name}.npz", geometry)
        rb.Scene(geometry).save(f"{name}.scene")
    return tmp_path


def printed(*arguments, status=0):
    return raybox(*arguments, code=status).output


PICK = "--from", "-1,0.4,0.4", "--to", "2,0.6,0.5"


@every
def test_pick(folder, name):
    for more in ((), ("--json",)):
        wanted = printed("pick", f"{name}.npz", *PICK, *more).replace(".npz", ".scene")
        assert printed("pick", f"{name}.scene", *PICK, *more) == wanted
    assert json.loads(wanted)["hits"] or name == "mesh"


def test_pick_of_some_objects_or_boxes(folder):
    for more in (("--where", "kind == 'door'"), ("--boxes",), ("--boxes", "--where", "kind == 'wall'")):
        assert printed("pick", "mesh.scene", *PICK, *more) == printed("pick", "mesh.npz", *PICK, *more)


@every
def test_cast_without_a_build(folder, monkeypatch, name):
    printed("cast", f"{name}.npz", "rays.npz", "-o", "wanted.npy")

    def refuse(*_arguments):
        raise AssertionError("a tree is built")

    monkeypatch.setattr(geometry_parts, "make", refuse)
    summary = printed("cast", f"{name}.scene", "rays.npz", "-o", "found.npy", "--json")
    assert (folder / "found.npy").read_bytes() == (folder / "wanted.npy").read_bytes()
    assert json.loads(summary)["scene"] == f"{name}.scene"


GROUPS, OWN = RNG.integers(-1, 3, 60), RNG.integers(-1, 4, 50)
NEAR = rb.Rays(RAYS.origins, CORNERS[:50].mean(axis=1) - RAYS.origins)
OF_OBJECTS = rb.Mesh(MESH.vertices, MESH.faces, objects=MESH.objects, labels={"group": GROUPS[:30]})
WORLDS = {
    "boxes": (BOXES, GROUPS),
    "mesh": (OF_OBJECTS, np.repeat(GROUPS[:30], 2)),
    "list": ([BOXES, GRID], [GROUPS, None]),
}


@pytest.mark.parametrize("name", WORLDS)
def test_cast_of_groups(folder, name):
    """Groups of a saved scene; and of the label, also that of saved boxes."""
    geometry, groups = WORLDS[name]
    scene = rb.Scene(geometry, groups=groups)
    scene.save("worlds.scene")
    for ending in ("npz", "csv", "parquet")[: 3 if name == "boxes" else 1]:
        rb.save(f"worlds.{ending}", scene)
    with_column(folder / "rays.csv", NEAR, "world", OWN)
    hits = scene.nearest(NEAR, groups=OWN)
    assert 5 < hits.hit.sum() < 50
    rb.save("wanted.csv", hits)
    for path in folder.glob("worlds.*"):
        printed("cast", path.name, "rays.csv", "-o", "found.csv", "--group-column", "world", "--force")
        assert (folder / "found.csv").read_bytes() == (folder / "wanted.csv").read_bytes()
    if name == "boxes":
        np.testing.assert_array_equal(rb.load("worlds.npz").labels["group"], GROUPS)


@every
def test_info(folder, name):
    wanted, found = (json.loads(printed("info", f"{name}.{kind}", "--json")) for kind in ("npz", "scene"))
    assert found.pop("bytes") == sum(path.stat().st_size for path in (folder / f"{name}.scene").iterdir())
    del wanted["bytes"], wanted["file"], found["file"]
    assert found == wanted


@every
def test_view(folder, name):
    printed("view", f"{name}.scene", "--html", "page.html")
    assert "raybox" in (folder / "page.html").read_text(encoding="utf-8")


def test_errors_are_one_line(folder):
    (folder / "empty.scene").mkdir()
    assert "empty.scene: holds no scene; give a folder that Scene.save" in printed(
        "info", "empty.scene", status=2
    )
    assert "No such file" in printed("pick", "none.scene", *PICK, status=2)
    (folder / "x.scene").write_bytes(b"x")
    assert "is a file, not the folder" in printed("pick", "x.scene", *PICK, status=2)
    rb.Scene(BOXES, groups=GROUPS).save("worlds.scene")
    rb.save("text.npz", rb.Boxes(BOXES.lower, BOXES.upper, labels={"group": ["a"] * 60}))
    cast = "rays.npz", "-o", "out.csv", "--group-column", "world"
    for scene, more, problem in (
        ("worlds.scene", cast[:-2], "SCENE has groups. Pass --group-column"),
        ("boxes.scene", cast, "SCENE has no groups. Save one"),
        ("mesh.npz", cast, "SCENE has no label group"),
        ("text.npz", cast, "label group of SCENE is not an integer"),
        ("worlds.scene", cast, "has no named columns of groups; give rays in .csv or .parquet"),
    ):
        assert problem in printed("cast", scene, *more, status=2)
    text = printed("cast", "boxes.scene", "rays.npz", "-o", "boxes.scene/upper.npy", "--force", status=2)
    assert "must not be an input" in text or "is also an input" in text
