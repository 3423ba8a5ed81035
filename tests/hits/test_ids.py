"""`hits.ids`: the names of what is hit, against a loop over index and primitive; None for a miss."""

import json
import pickle
from importlib.resources import files

import numpy as np
import pytest

import raybox as rb

LOWER, UPPER, NAMES = [[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [7, 1, 1]], ["door", "wall"]
BOXES = rb.Boxes(LOWER, UPPER, ids=NAMES)
TRIANGLES = rb.Mesh([[9, -9, -9], [9, 9, -9], [9, 0, 9]], [[0, 1, 2]], ids=[7])
RAYS = rb.Rays([[[0, 0, 0], [0, 9, 0]], [[4, 0, 0], [6, 0, 0.5]]], [2, 0, 0])
PLAIN = rb.Boxes(LOWER, UPPER)


def loop(hits, ids):
    """Return ids by a loop over hits; ids: a list for each geometry, or None."""
    numbers = zip(hits.geometry.ravel(), hits.primitive.ravel(), strict=True)
    return [None if g < 0 or ids[g] is None else ids[g][p] for g, p in numbers]


@pytest.mark.core
def test_ids_are_of_the_boxes_hit_and_none_for_a_miss():
    hits = rb.Scene(BOXES).nearest(RAYS)
    assert hits.ids.tolist() == [["door", None], ["wall", "wall"]]
    assert hits.ids.dtype == object
    assert not hits.ids.flags.writeable
    assert hits[0].ids.tolist() == ["door", None]
    assert hits[0, 0].ids.item() == "door"
    assert hits[hits.hit].ids.tolist() == ["door", "wall", "wall"]
    assert rb.Scene(BOXES).nearest(RAYS, where=[False, True]).ids.tolist() == [["wall", None], ["wall"] * 2]
    assert rb.Scene(BOXES).first(RAYS[0, 0], 3).ids.tolist() == ["door", "wall", None]


def test_ids_of_all_hits():
    hits = rb.Scene(BOXES).all(RAYS)
    assert hits.ids.tolist() == ["door", "wall", "wall", "wall"]
    assert hits[0, 0].ids.tolist() == NAMES
    assert hits[0, 0][1].ids.item() == "wall"
    assert hits[1].ids.tolist() == ["wall", "wall"]
    assert rb.Scene(BOXES).all(RAYS[:0]).ids.shape == (0,)


def test_ids_without_a_scene():
    assert rb.intersect(RAYS[..., None], BOXES).ids.tolist()[0] == [NAMES, [None, None]]
    moving = rb.Boxes([[0, 0, 0], [0, 5, 0]], [[1, 1, 1], [1, 6, 1]])
    assert rb.sweep(moving, [9, 0, 0], rb.Scene(BOXES)).ids.tolist() == ["door", None]


def test_several_geometries_and_copies():
    turned = np.array([[0.0, 1, 0, 0], [-1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    copies = rb.Instances(BOXES, [np.eye(4), turned])
    rays = rb.Rays([0, 0, 0], [[1, 0, 0], [0, -1, 0], [0, 1, 0], [-1, 0, 0], [0, 0, 1]])
    parts = [TRIANGLES, copies, rb.Planes([0, 0, 1], 5), PLAIN]
    found = rb.Scene(parts).all(rays)
    assert {*found.geometry.tolist()} == {0, 1, 2, 3}
    want = [[7], NAMES, None, None]
    assert found.ids.tolist() == loop(found, want)
    assert found.ids.tolist().count(7) == 1
    nearest = rb.Scene(parts).nearest(rays)
    assert nearest.ids.tolist() == loop(nearest, want) == ["door", "door", None, None, None]
    assert rb.Scene(copies).all(rays[1]).ids.tolist() == NAMES


def test_ids_go_with_slices_margins_pickles_and_tables():
    assert BOXES[1].ids.tolist() == ["wall"]
    assert BOXES[[1, 0]].ids.tolist() == ["wall", "door"]
    assert BOXES[np.array([False, True])].ids.tolist() == ["wall"]
    assert BOXES.expanded(1).ids.tolist() == NAMES
    assert PLAIN[1].ids is None
    for copy in (pickle.loads(pickle.dumps(BOXES)), rb.Boxes.from_centers(BOXES.centers, 1, ids=NAMES)):
        assert copy.ids.tolist() == NAMES
        assert not copy.ids.flags.writeable
    mesh = pickle.loads(pickle.dumps(TRIANGLES))
    assert mesh.ids.tolist() == [7]
    assert not mesh.ids.flags.writeable
    hits = pickle.loads(pickle.dumps(rb.Scene(BOXES).all(RAYS)))
    assert hits.ids.tolist() == ["door", "wall", "wall", "wall"]
    assert pickle.loads(pickle.dumps(rb.Scene(BOXES))).nearest(RAYS[0, 0]).ids.item() == "door"
    bounds = np.hstack([LOWER, UPPER])
    assert rb.Boxes.from_bounds(bounds, ids=NAMES).ids.tolist() == NAMES
    table = dict(zip(["min_x", "min_y", "min_z", "max_x", "max_y", "max_z"], bounds.T, strict=True))
    assert rb.Boxes.from_bounds(table).ids is None
    assert rb.Boxes.from_bounds(table | {"id": NAMES}).ids.tolist() == NAMES
    assert rb.Boxes.from_bounds(table | {"id": NAMES}, ids=[4, 5]).ids.tolist() == [4, 5]


def test_ids_are_stored_as_given():
    given = np.array(["a", "b"])
    boxes = rb.Boxes(LOWER, UPPER, ids=given)
    given[0] = "changed"
    assert boxes.ids.tolist() == ["a", "b"]
    whole = rb.Boxes(LOWER, UPPER, ids=[np.int32(4), 5]).ids
    assert [type(one) for one in whole] == [int, int]
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    for column in (pandas.Series(NAMES), arrow.array(NAMES)):
        assert rb.Boxes(LOWER, UPPER, ids=column).ids.tolist() == NAMES


def test_update_takes_the_ids_of_the_new_boxes():
    scene = rb.Scene(BOXES)
    before = scene.nearest(RAYS)
    scene.update(rb.Boxes(BOXES.lower + 1, BOXES.upper + 1, ids=["gate", "fence"]))
    assert scene.nearest(RAYS[0, 0]).ids.item() == "gate"
    assert before.ids[0, 0] == "door"


def test_columns_have_ids():
    hits = rb.Scene(BOXES).nearest(RAYS)
    assert list(hits.to_dict())[:3] == ["ray", "index", "id"]
    assert hits.to_dict()["id"].tolist() == ["door", None, "wall", "wall"]
    assert "<td>-1</td><td></td>" in hits._repr_html_()
    pytest.importorskip("pandas")
    assert hits.to_arrow()["id"].to_pylist() == ["door", None, "wall", "wall"]
    assert hits.to_pandas()["id"].isna().tolist() == [False, True, False, False]
    assert str(hits[0, 1:].to_arrow()["id"].type) == "string"
    both = rb.Scene([TRIANGLES, BOXES]).all(RAYS[0, 0])
    assert both.to_arrow()["id"].to_pylist() == ["door", "wall", "7"]
    assert rb.Scene(TRIANGLES).all(RAYS[0]).to_arrow()["id"].to_pylist() == [7]


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_files_keep_ids(suffix, tmp_path):
    if suffix == ".parquet":
        pytest.importorskip("pyarrow")
    rb.save(tmp_path / f"boxes{suffix}", BOXES)
    boxes = rb.load(tmp_path / f"boxes{suffix}")
    assert boxes.ids.tolist() == NAMES
    hits = rb.Scene(boxes).nearest(RAYS)
    assert hits.ids.tolist() == [["door", None], ["wall", "wall"]]
    rb.save(tmp_path / "hits.csv", hits)
    rows = (tmp_path / "hits.csv").read_text().splitlines()
    assert [row.split(",")[2] for row in rows] == ["id", "door", "", "wall", "wall"]


def test_ids_of_models(tmp_path):
    duplex = rb.load(files("raybox") / "data" / "duplex.npz")
    assert duplex.ids[0] == "2O2Fr$t4X7Zf8NOew3FNtn"
    (tmp_path / "two.obj").write_text(
        "o left\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\no right\nf 3 2 1\nf 1 2 3\n"
    )
    mesh = rb.load(tmp_path / "two.obj")
    assert (mesh.ids.tolist(), mesh.objects.tolist()) == (["left", "right"], [0, 1, 1])
    assert rb.Scene(mesh).all(rb.Rays([0.1, 0.1, 5], [0, 0, -1])).ids.tolist() == ["left", "right", "right"]
    assert rb.load(tmp_path / "two.obj", boxes=True).ids.tolist() == ["left", "right"]
    shape = {"type": "MultiSurface", "boundaries": [[[0, 1, 2]]]}
    city = {"type": "CityJSON", "version": "1.1", "vertices": [[0, 0, 0], [1, 1, 1], [1, 0, 0]]}
    city["CityObjects"] = {"hall": {"type": "Building", "geometry": [shape]}}
    (tmp_path / "town.city.json").write_text(json.dumps(city))
    assert rb.load(tmp_path / "town.city.json").ids.tolist() == ["hall"]


def test_a_scene_without_ids_says_so():
    for hits in (rb.Scene(PLAIN).nearest(RAYS), rb.Scene(PLAIN).all(RAYS), rb.intersect(RAYS, PLAIN[0])):
        with pytest.raises(rb.InvalidInput, match="need a geometry with ids"):
            hits.ids  # noqa: B018
        assert "id" not in hits.to_dict()


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["a"], "one id for each box: 2; got 1"),
        ("ab", "must be a sequence, one id for each box; got str"),
        (5, "must be a sequence, one id for each box; got int"),
        (["a", None], "all str or all int; the id of box 1 is None"),
        (["a", 5], "the id of box 1 is 5"),
        ([1.5, 2.5], "the id of box 0 is 1.5"),
        ([True, False], "the id of box 0 is True"),
    ],
)
def test_wrong_ids_are_refused(ids, words):
    with pytest.raises(rb.InvalidInput, match=words):
        rb.Boxes(LOWER, UPPER, ids=ids)
