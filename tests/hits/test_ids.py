"""`hits.ids`: the names of what is hit, against a loop over index and primitive; None for a miss."""

import numpy as np
import pytest

import raybox as rb

LOWER, UPPER, NAMES = [[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [7, 1, 1]], ["door", "wall"]
BOXES = rb.Boxes(LOWER, UPPER, ids=NAMES)
TRIANGLES = rb.Mesh([[9, -9, -9], [9, 9, -9], [9, 0, 9]], [[0, 1, 2]], ids=[7])
RAYS = rb.Rays([[[0, 0, 0], [0, 9, 0]], [[4, 0, 0], [6, 0, 0.5]]], [2, 0, 0])
PLAIN = rb.Boxes(LOWER, UPPER)


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


def test_ids_without_a_scene():
    assert rb.intersect(RAYS[..., None], BOXES).ids.tolist()[0] == [NAMES, [None, None]]
    moving = rb.Boxes([[0, 0, 0], [0, 5, 0]], [[1, 1, 1], [1, 6, 1]])
    assert rb.sweep(moving, [9, 0, 0], rb.Scene(BOXES)).ids.tolist() == ["door", None]


def test_ids_of_tables():
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
