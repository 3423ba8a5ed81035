"""Objects and labels of scenes in parts: those of the whole scene."""

import pickle

import numpy as np
import pytest

import raybox as rb


def mesh_of(rng):
    numbers = rng.integers(0, 7, 120)
    labels = {
        "name": [f"part {k}" for k in range(7)],
        "area": [None, *range(1, 7)],
        "storey": list("1122334"),
    }
    vertices = rng.normal(size=(360, 3))
    ids = [f"id {k}" for k in range(7)]
    return rb.Mesh(vertices, np.arange(360).reshape(-1, 3), objects=numbers, ids=ids, labels=labels)


def boxes_of(rng):
    count = np.arange(90)
    return rb.Boxes.from_centers(
        rng.normal(size=(90, 3)), 0.5, ids=count, labels={"storey": list("123" * 30)}
    )


def test_ids_and_labels_of_an_iterable(tmp_path):
    rng = np.random.default_rng(5)
    whole = boxes_of(rng)
    parts = [whole[:40], whole[40:40], whole[40:]]
    rays = rb.Rays(2 * rng.normal(size=(60, 3)), rng.normal(size=(60, 3)))
    made = rb.SplitScene(iter(parts), parts=3, folder=tmp_path / "split")
    for split in (made, rb.SplitScene.open(tmp_path / "split")):
        hits = split.nearest(rays)
        assert hits.ids.tolist() == [None if k < 0 else int(whole.ids[k]) for k in hits.index]
        storeys = whole.labels["storey"]
        assert hits.labels("storey").tolist() == [None if k < 0 else storeys[k] for k in hits.index]
        assert hits.equals(rb.Scene(whole).nearest(rays))
        assert (hits.index >= 0).sum() > 10
    with pytest.raises(rb.InvalidInput, match="either all geometries have ids or none"):
        rb.SplitScene([whole[:3], rb.Boxes([[0, 0, 0]], [[1, 1, 1]])])


@pytest.mark.parametrize("make", [mesh_of, boxes_of])
def test_objects_and_labels_of_parts_are_those_of_the_whole(make):
    rng = np.random.default_rng(3)
    geometry = make(rng)
    rays = rb.Rays(2 * rng.normal(size=(30, 4, 3)), rng.normal(size=(30, 4, 3)))
    split, whole = rb.SplitScene(geometry, parts=5), rb.Scene(geometry)
    for where in (
        None,
        "storey != '1'",
        "id in (3, 5, 8) or storey == '2'" if make is boxes_of else "id != 'id 2'",
    ):
        for query in ("nearest", "all"):
            hits, wanted = (getattr(scene, query)(rays, where=where) for scene in (split, whole))
            assert hits.index.tolist() == wanted.index.tolist()
            assert hits.object.tolist() == wanted.object.tolist()
            assert hits.ids.tolist() == wanted.ids.tolist()
            for name in geometry.labels:
                assert repr(hits.labels(name).tolist()) == repr(wanted.labels(name).tolist())
            assert hits.equals(wanted)
            assert pickle.loads(pickle.dumps(hits)).equals(hits)
            assert hits.distances.tolist() == wanted.distances.tolist()
            assert repr(hits.to_dict(labels=True)) == repr(wanted.to_dict(labels=True))
        rows, wanted = split.all(rays, where=where).by_object(), whole.all(rays, where=where).by_object()
        assert rows.equals(wanted)
        assert len(rows) > 20
    none = split.nearest(rb.Rays([99, 99, 99], [1, 0, 0]), where="False")
    assert (none.object.item(), none.ids.item(), none.labels("storey").item()) == (-1, None, None)
