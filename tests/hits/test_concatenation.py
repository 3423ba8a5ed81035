"""`concatenate`: what is joined equals what is made or asked at once."""

import numpy as np
import pytest

import raybox as rb
from raybox.geometry import with_facts, without_ids

RNG = np.random.default_rng(4)
BOXES = rb.Boxes.from_centers(
    RNG.random((50, 3)), 0.2, ids=range(50), labels={"n": np.arange(50), "t": list("ab" * 25)}
)
RAYS = rb.Rays(2 * RNG.random((30, 4, 3)), RNG.normal(size=(30, 4, 3)), t_max=RNG.random((30, 4)) * 9)
SQUARE, FACES = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]]


def cut(whole):
    return [whole[:7], whole[7:7], whole[7:20], whole[20:]]


@pytest.mark.core
def test_parts_of_rays_and_boxes_are_joined():
    assert rb.concatenate(cut(RAYS)).equals(RAYS)
    assert rb.concatenate(cut(BOXES)).equals(BOXES)
    assert rb.concatenate([BOXES]).equals(BOXES)
    assert not rb.concatenate(cut(RAYS)).origins.flags.writeable
    lossy = with_facts(BOXES, {"bad": 2})
    assert dict(rb.concatenate([lossy, BOXES, with_facts(BOXES, {"bad": 1, "odd": 4})]).skipped) == {
        "bad": 3,
        "odd": 4,
    }


@pytest.mark.core
@pytest.mark.parametrize("method", ["nearest", "all", "first"])
def test_hits_of_parts_are_those_of_all_rays(method):
    scene = rb.Scene([BOXES, rb.Planes([1, 0, 0], [0.3])])
    for one in (scene, rb.Scene(BOXES)):
        query = (lambda rays, one=one: one.first(rays, 3)) if method == "first" else getattr(one, method)
        whole = query(RAYS)
        for joined in (rb.concatenate([query(part) for part in cut(RAYS)]), rb.concatenate(cut(whole))):
            assert joined.equals(whole)
            if method == "first" and joined.shape != whole.shape:
                raise AssertionError
            if method != "first":
                assert joined.to_dict()["ray"].tolist() == whole.to_dict()["ray"].tolist()
    hits = rb.concatenate([rb.Scene(BOXES).nearest(RAYS[:3]), rb.Scene(BOXES[:]).nearest(RAYS[3:5])])
    assert hits.labels("n").tolist() == rb.Scene(BOXES).nearest(RAYS[:5]).labels("n").tolist()


def test_hits_of_pairs_are_joined():
    whole = rb.intersect(RAYS[..., None], BOXES)
    joined = rb.concatenate(cut(whole))
    assert joined.equals(whole)
    chosen = [whole[whole.hit], whole[whole.hit][3:5]]
    assert rb.concatenate(chosen).points[-2:].tolist() == chosen[1].points.tolist()


def test_meshes_keep_their_objects():
    one = rb.Mesh(SQUARE, FACES, objects=[2, 0], ids=["a", "b", "c"], labels={"x": [1, 2, 3]})
    other = rb.Mesh(SQUARE, FACES[:1], ids=["d"], labels={"y": ["u"]})
    joined = rb.concatenate([one, other, one[:0]])
    assert joined.objects.tolist() == [2, 0, 3]
    assert joined.ids.tolist() == ["a", "b", "c", "d", "a", "b", "c"]
    assert joined.labels["x"].tolist() == [1, 2, 3, None, 1, 2, 3]
    assert joined.labels["y"].tolist() == [None, None, None, "u", None, None, None]
    assert joined.triangles.tolist() == np.concatenate([one.triangles, other.triangles]).tolist()
    assert rb.concatenate([other, rb.Mesh(SQUARE, [])]).ids.tolist() == ["d"]
    plain = rb.Mesh(SQUARE, FACES)
    both = rb.concatenate([plain, plain])
    assert both.objects.tolist() == [0, 1, 2, 3]
    assert "object" not in rb.Scene(both).nearest(rb.Rays([[0.2, 0.1, 1]], [0, 0, -1])).to_dict()
    assert rb.concatenate([plain, one[1:]._with(plain._attributes)]).objects.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([], "of one kind; got none"),
        ([BOXES, RAYS], "of one kind; got Boxes, Rays"),
        ([rb.Planes([0, 0, 1], [1])], "got Planes"),
        (["a"], "got str"),
        ([BOXES, rb.Boxes([0, 0], [1, 1])], r"same D; got \[2, 3\]"),
        ([BOXES, rb.Boxes([0, 0, 0], [1, 1, 1])], "all geometries have ids or none"),
        ([RAYS, RAYS.reshape(-1)], r"other axes must agree; got shapes \(30, 4\), \(120,\)"),
        ([RAYS[0, 0], RAYS[0, 0]], r"got shapes \(\), \(\)"),
        (
            [rb.Scene(BOXES).nearest(RAYS), rb.Scene(BOXES[1:]).nearest(RAYS)],
            "hits of one scene; got those of several",
        ),
        (
            [rb.Scene(one).nearest(RAYS) for one in (BOXES, without_ids(BOXES))],
            "hits of one scene; got those of several",
        ),
    ],
)
def test_what_does_not_fit_is_refused(parts, words):
    with pytest.raises(rb.InvalidInput, match=words):
        rb.concatenate(parts)
