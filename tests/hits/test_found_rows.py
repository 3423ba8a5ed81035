"""`Rows` and `Neighbors`: NumPy's indexing, copies, names of boxes, and tables, against their arrays."""

import copy
import pickle
from collections import Counter

import numpy as np
import pytest

import raybox as rb
from indices import SHAPES, indices
from refusals import refusal
from test_tables import assert_columns

INF = np.inf
RNG = np.random.default_rng(91)
LOWER = RNG.integers(-3, 4, (30, 3)).astype(float)
LABELS = {"kind": ["wall", "door", None] * 10, "cost": np.arange(30) / 2}
NAMED = rb.Boxes(
    LOWER, LOWER + RNG.integers(0, 3, (30, 3)), ids=[f"box {k}" for k in range(30)], labels=LABELS
)
GRID = rb.Grid([-2, 0, 2], [-1, 1], [-1, 3])
SCENES = {"boxes": rb.Scene(rb.Boxes(NAMED.lower, NAMED.upper)), "list": rb.Scene([NAMED, GRID])}
RESULTS = ("rows", "neighbors")


def found(scene: str, kind: str, shape):
    """Return what points of a shape find: a few of them nothing."""
    points = RNG.integers(-4, 5, (*shape, 3)) + RNG.choice([0.0, 0.5, 30.0], (*shape, 1), p=[0.6, 0.3, 0.1])
    if kind == "rows":
        return SCENES[scene].within_distance(points, 1.0)
    return SCENES[scene].closest(points, 4, max_distance=2.5)


def named(kind: str, geometry: np.ndarray, index: np.ndarray) -> list:
    """Return ids or labels of boxes of the list, by a loop."""
    values = {"id": [f"box {k}" for k in range(30)], **LABELS}[kind]
    return [values[i] if g == 0 else None for g, i in zip(geometry.flat, index.flat, strict=True)]


@pytest.mark.core
@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_are_indexed_as_arrays_of_their_queries(scene, shape):
    rows, counts = found(scene, "rows", shape), Counter()
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    for index in indices(shape):
        chosen, part = numbers[index], rows[index]
        each = [np.arange(*rows.offsets[q : q + 2]) for q in np.ravel(chosen).tolist()]
        if not isinstance(chosen, np.ndarray):
            np.testing.assert_array_equal(part, rows.index[each[0]])
            assert not part.flags.writeable
            continue
        places = np.concatenate([np.empty(0, np.int64), *each])
        assert part.shape == chosen.shape
        np.testing.assert_array_equal(part.offsets, np.cumsum([0, *map(len, each)]))
        np.testing.assert_array_equal(part.row, np.repeat(np.arange(len(each)), [len(one) for one in each]))
        for name in ("index", "geometry", "object"):
            np.testing.assert_array_equal(getattr(part, name), getattr(rows, name)[places], err_msg=name)
        counts.update(hits=len(places), misses=sum(len(one) == 0 for one in each))
    assert counts["hits"] > 0 or shape == ()


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_neighbors_are_indexed_as_their_arrays(scene, shape):
    neighbors, counts = found(scene, "neighbors", shape), Counter()
    assert neighbors.shape == (*shape, 4)
    np.testing.assert_array_equal(neighbors.row[..., 0], np.arange(np.prod(shape, dtype=int)).reshape(shape))
    for index in indices(neighbors.shape):
        part = neighbors[index]
        for name in ("index", "distance", "geometry", "object", "row"):
            got, want = getattr(part, name), getattr(neighbors, name)[index]
            np.testing.assert_array_equal(got, want, err_msg=name)
            assert not got.flags.writeable, name
        assert part.shape == np.shape(neighbors.distance[index])
        counts.update((part.index >= 0).ravel().tolist())
    assert counts[True] > 0 < counts[False]


@pytest.mark.parametrize("kind", RESULTS)
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_are_equal_and_read_only(kind, again):
    result = found("list", kind, (20,))
    twin = again(result)
    assert type(twin) is type(result)
    assert twin.equals(result)
    assert twin[1:].equals(result[1:])
    assert not twin[1:].equals(result[:-1])
    assert not twin.equals(found("boxes", kind, (20,)))
    for name in ("index", "row", "geometry", "ids", *(["offsets"] if kind == "rows" else ["distance"])):
        np.testing.assert_array_equal(getattr(twin, name), getattr(result, name))
        assert not getattr(twin, name).flags.writeable, name
    assert repr(twin) == repr(result)


@pytest.mark.parametrize("kind", RESULTS)
def test_names_of_what_is_found(kind):
    result = found("list", kind, (40,))
    want = named("id", result.geometry, result.index)
    assert result.ids.ravel().tolist() == want
    assert len({*want} - {None}) > 5
    assert {0, 1} <= {*result.geometry.ravel().tolist()}
    np.testing.assert_array_equal(result.object, result.index)
    for label in LABELS:
        got = result.labels(label).ravel().tolist()
        expected = named(label, result.geometry, result.index)
        assert [None if x != x else x for x in got] == expected


@pytest.mark.parametrize("kind", RESULTS)
def test_tables_have_a_row_for_each_box(kind):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    result = found("list", kind, (4, 5))
    want = {name: getattr(result, name).ravel() for name in ("row", "index", "geometry")}
    want |= {"id": result.ids.ravel()}
    want |= {"distance": result.distance.ravel()} if kind == "neighbors" else {}
    assert_columns(result.to_dict(), want)
    assert list(result.to_pandas()) == list(want)
    assert result.to_pandas()["index"].tolist() == want["index"].tolist()
    assert result.to_arrow()["row"].to_pylist() == want["row"].tolist()
    assert list(result.to_dict(labels="kind")) == [*want, "kind"]
    for one in (result, result[:0], result[0, 1:1], result[..., None]):
        assert "<th>index</th>" in one._repr_html_()
    assert set(found("boxes", kind, (3,)).to_dict()) == {*want} - {"geometry", "id"}
    named_arrays = (
        "rows.index and rows.offsets" if kind == "rows" else "neighbors.index and neighbors.distance"
    )
    assert named_arrays in refusal(np.asarray, result)


@pytest.mark.parametrize("kind", RESULTS)
def test_length_truth_and_iteration(kind):
    result = found("boxes", kind, (6,))
    assert len(result) == 6
    each = list(result)
    assert len(each) == 6
    for k, one in enumerate(each):
        index = one if kind == "rows" else one.index
        np.testing.assert_array_equal(index, result[k] if kind == "rows" else result.index[k])
    assert "is ambiguous. Use " in refusal(bool, result)
    assert "is ambiguous" in refusal(bool, result[:0])
    alone = found("boxes", kind, ()) if kind == "rows" else found("boxes", kind, ())[0]
    with pytest.raises(TypeError, match=r"len\(\) of a single"):
        len(alone)
    with pytest.raises(IndexError):
        result[6]
