"""``raybox join``: the pairs of `Scene.join`, with ids and labels of both, in every format."""

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from cities import City
from commands import cast, raybox
from streaming import get, pq

RNG = np.random.default_rng(43)
FIRST = rb.Boxes.from_centers(
    RNG.random((60, 3)),
    0.2,
    ids=[f"a{k}" for k in range(60)],
    labels={"name": [f"duct {k}" if k % 3 else None for k in range(60)], "cost": np.arange(60)},
)
SECOND = rb.Boxes.from_centers(RNG.random((50, 3)), 0.1, labels={"name": [f"beam {k}" for k in range(50)]})
APART = 0.1


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with two files of boxes."""
    monkeypatch.chdir(tmp_path)
    rb.save("a.parquet", FIRST)
    rb.save("b.csv", SECOND)
    return tmp_path


def rows(*arguments, **how):
    """Return the rows that `raybox join` writes to stdout."""
    return list(csv.DictReader(io.StringIO(raybox("join", *arguments, "-o", "-", **how).stdout)))


def pairs_in(found):
    return np.stack([np.asarray(found[name]).astype(np.int64) for name in ("index_a", "index_b")], axis=-1)


@pytest.mark.parametrize("ending", ["parquet", "csv", "npz", "npy"])
def test_every_format_has_the_pairs_of_two_scenes(folder, monkeypatch, ending):
    """Also of several blocks, some without pairs."""
    monkeypatch.setattr("raybox.spatial.join.CHUNK", 7)
    done = raybox("join", "a.parquet", "b.csv", "-o", f"out.{ending}", "--distance", APART, "--json")
    want, found = rb.Scene(FIRST).join(rb.Scene(SECOND), distance=APART), get(Path(f"out.{ending}"))
    assert list(found) == ["index_a", "index_b", "id_a", "id_b", "name_a", "name_b"]
    np.testing.assert_array_equal(pairs_in(found), want)
    assert 60 < len(want) < 3000
    assert set(range(60)) - set(want[:, 0])
    assert found["id_a"].tolist() == [f"a{i}" for i in want[:, 0]]
    missing = None if ending == "parquet" else ""
    assert found["name_a"].tolist() == [f"duct {i}" if i % 3 else missing for i in want[:, 0]]
    assert found["name_b"].tolist() == [f"beam {j}" for j in want[:, 1]]
    summary = json.loads(done.stdout)
    assert summary.pop("seconds") > 0
    counts = {"a": "a.parquet", "size_a": 60, "b": "b.csv", "size_b": 50, "distance": APART}
    assert summary == {**counts, "pairs": len(want), "out": f"out.{ending}"}
    assert sorted(path.name for path in folder.iterdir()) == sorted(["a.parquet", "b.csv", f"out.{ending}"])


def test_pairs_within_one_scene(folder):
    want = rb.Scene(FIRST).join()
    found = rows("a.parquet", "--labels", "cost")
    assert [(int(row["index_a"]), int(row["index_b"])) for row in found] == [*map(tuple, want.tolist())]
    assert [*found[0]] == ["index_a", "index_b", "id_a", "id_b", "cost_a", "cost_b"]
    assert all(int(row["cost_a"]) == int(row["index_a"]) < int(row["cost_b"]) for row in found)


def test_filters_and_exit_codes(folder):
    scene, other = rb.Scene(FIRST), rb.Scene(SECOND)
    filters = {"where": "cost > 20", "other_where": "name != 'beam 3'"}
    found = rows("a.parquet", "b.csv", "--where", filters["where"], "--where-b", filters["other_where"])
    assert len(found) == len(scene.join(other, **filters)) < len(scene.join(other))
    none = "join", "a.parquet", "-o", "none.parquet", "--where", "cost > 58", "--exit-status"
    assert "60 boxes: 0 pairs, in" in raybox(*none, code=1).stderr
    empty = pq.read_table("none.parquet")
    assert empty.num_rows == 0
    assert empty.column_names == ["index_a", "index_b", "id_a", "id_b", "name_a", "name_b"]
    raybox("join", "a.parquet", "b.csv", "-o", "some.npy", "--exit-status")


def test_objects_are_compared_by_their_boxes(folder):
    """A clash of two objects of many triangles is one pair."""
    town = City()
    for name, x in (("house", 0), ("shed", 1), ("barn", 5)):
        town.add(name, "Building", town.body("2.2", x, 2.0, size=1), name=name)
    Path("town.city.json").write_text(json.dumps(town.document()))
    mesh = rb.load("town.city.json")
    rb.Scene(mesh).save("town.scene")
    rb.Scene(rb.load("town.city.json", boxes=True)).save("boxes.scene")
    assert len(mesh) > 3
    for given in ("town.city.json", "town.scene", "boxes.scene"):
        (row,) = rows(given)
        assert (row["id_a"], row["id_b"], row["name_a"]) == ("house", "shed", "house")
        near = rows(given, "town.city.json", "--distance", 3, "--labels", "all")
        assert [row["id_b"] for row in near if row["id_a"] == "barn"] == ["shed", "barn"]
        assert near[0]["type_a"] == "Building"


def test_cells_patterns_and_stdin(folder):
    cells = np.zeros((3, 1, 1), dtype=bool)
    cells[[0, 2]] = True
    np.save("cells.npy", cells)
    assert rows("--grid", "cells.npy") == []
    assert len(rows("--grid", "cells.npy", "cells.npy")) == 2
    rb.save("b2.csv", SECOND)
    assert len(rows("b*.csv", "a.parquet")) == 2 * len(rb.Scene(SECOND).join(rb.Scene(FIRST)))
    assert rows("a.parquet", "-", stdin=Path("b.csv").read_text()) == rows("a.parquet", "b.csv")


def test_what_is_refused(folder):
    rb.Scene(FIRST, groups=np.zeros(60, int)).save("worlds.scene")
    rb.save("flat.csv", rb.Boxes([[0, 0]], [[1, 1]]))
    Path("there.csv").write_text("")
    for arguments, text in (
        (["a.parquet", "-o", "out.zarr"], "supported: .parquet .csv .npz .npy"),
        (["a.parquet", "-o", "there.csv"], "there.csv exists already; pass --force"),
        (["a.parquet", "b.csv", "-o", "b.csv", "--force"], "is also an input"),
        (["a.parquet", "-o", "-", "--json"], "both write to stdout"),
        (["a.parquet", "-o", "out.csv", "--where-b", "cost > 1"], "--where-b is of B"),
        (["-", "-", "-o", "out.csv"], "can be read once"),
        (["a.parquet", "b.csv", "-o", "out.csv", "--labels", "lost"], "there is no label 'lost'"),
        (["worlds.scene", "-o", "out.csv"], "has groups"),
        (["a.parquet", "flat.csv", "-o", "out.csv"], "2"),
        (["a.parquet", "-o", "out.csv", "--distance", "-1"], "--distance"),
    ):
        assert text in raybox("join", *arguments, code=2).stderr, arguments
    assert not Path("out.csv").exists()


# cast of points and boxes


def test_cast_finds_boxes_of_points(folder):
    points = RNG.random((40, 3))
    np.savetxt("points.csv", points, fmt="%.17g", delimiter=",", header="x,y,z", comments="")
    scene = rb.Scene(FIRST)
    near = cast("a.parquet", "points.csv", "--query", "closest", "--k", 2, "--max-distance", 0.1)
    want = scene.closest(points, 2, max_distance=0.1).index
    assert [int(row["index"]) for row in near] == want.ravel().tolist()
    done = raybox("cast", "a.parquet", "points.csv", "-o", "out.csv", "--query", "containing")
    found = scene.containing(points, count=True).sum()
    assert f"40 points in a scene of 60: {found} boxes found, in" in done.stderr
    done = raybox("cast", "a.parquet", "b.csv", "-o", "o.npy", "--query", "overlapping", "--json")
    assert json.loads(done.stdout)["hit_count"] == len(scene.join(rb.Scene(SECOND)))
    far = "cast", "b.csv", "points.csv", "-o", "far.csv", "--query", "containing", "--exit-status"
    np.savetxt("points.csv", points + 9, delimiter=",", header="x,y,z", comments="")
    raybox(*far, code=1)
    raybox("cast", "a.parquet", "points.csv", "-o", "near.npy", "--query", "closest", "--k", "2")
    rb.save("mesh.npz", rb.Mesh(np.eye(3), [[0, 1, 2]]))
    mesh = "cast", "mesh.npz", "points.csv", "-o", "m.csv", "--query", "closest"
    assert "Pass --boxes, for boxes around its objects." in raybox(*mesh, code=2).stderr
    raybox(*mesh, "--boxes")
    assert "results of closest: 80 rows of points, " in raybox("info", "near.npy").stdout
    wrong = "cast", "a.parquet", "points.csv", "-o", "x.csv", "--query"
    for arguments, text in (
        (["closest", "--origin", "0,0,0"], "--origin turns points into rays, and closest takes points"),
        (["containing", "--k", "2"], "--k is for query 'closest'"),
        (["overlapping"], "points.csv: holds points, not boxes; give a file of boxes here"),
    ):
        assert text in raybox(*wrong, *arguments, code=2).stderr
    Path("points.csv").write_text("x,y,z\n0,0,0\n1,nan,0\n")
    text = "points.csv, line 3, column y: nan is not a finite number; correct or remove the row, or pass"
    assert f"{text} --invalid miss" in raybox(*wrong, "closest", code=2).stderr
    raybox(*wrong, "closest", "--invalid", "miss")
