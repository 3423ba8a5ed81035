"""raybox.adapters.rtree: its documented forms of input and results, rational arithmetic, and rtree itself."""

import copy
import math
import pickle
from collections import Counter
from fractions import Fraction
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rtree import index as peer

import raybox as rb
import strategies
from raybox.adapters import rtree as index

INF = np.inf
NAMED = object()
ROWS = [(10, (0, 0, 1, 1), NAMED), (30, (2, 0, 3, 1), None), (20, (5, 5, 6, 6), "c"), (10, (1, 1, 1, 1), 0)]
IDS, BOUNDS = np.array([10, 30, 20, 10]), np.array([row[1] for row in ROWS], float)


def ids(found):
    return [item.id for item in found]


def deinterleaved(rows):
    return [(number, index.Index.deinterleave(bounds), obj) for number, bounds, obj in rows]


MADE = {
    "list": lambda: index.Index(ROWS),
    "generator": lambda: index.Index(row for row in ROWS),
    "arrays of a row": lambda: index.Index((k, np.array(box), obj) for k, box, obj in ROWS),
    "others": lambda: index.Index(
        ROWS, pagesize=3, overwrite=True, properties=index.Property(fill_factor=0.5)
    ),
    "rtree's properties": lambda: index.Index(ROWS, properties=peer.Property(dimension=2)),
    "any properties": lambda: index.Index(ROWS, properties=SimpleNamespace(dimension=2)),
    "pickled": lambda: pickle.loads(pickle.dumps(index.Index(ROWS))),
    "copied": lambda: copy.deepcopy(copy.copy(index.Index(ROWS))),
    "one thread": lambda: index.Index(ROWS, workers=1),
}


@pytest.mark.parametrize("made", MADE)
def test_forms_of_a_stream(made):
    idx = MADE[made]()
    assert list(idx.intersection((1, 0.5, 2, 0.5))) == [10, 30]
    assert (len(idx), idx.get_size(), idx.count((0, 0, 9, 9))) == (4, 4, 4)
    assert idx.bounds == idx.get_bounds(True) == [0.0, 0.0, 6.0, 6.0]
    assert idx.get_bounds(coordinate_interleaved=False) == [0.0, 6.0, 0.0, 6.0]
    assert idx.interleaved is True
    assert idx.properties.dimension == 2
    assert repr(idx) == "raybox.adapters.rtree.Index(bounds=[0.0, 0.0, 6.0, 6.0], size=4)"


def test_order_of_coordinates():
    idx = index.Index(deinterleaved(ROWS), interleaved=False)
    assert list(idx.intersection((1, 2, 0.5, 0.5))) == [10, 30]
    assert list(idx.nearest((1, 2, 0.25, 0.5), 1)) == [10, 30]
    assert list(idx.contains((0, 3, 0, 1))) == [10, 30, 10]
    assert idx.interleaved is False
    assert idx.bounds == [0.0, 6.0, 0.0, 6.0]
    (item,) = idx.intersection((2.5, 2.75, 0.5, 0.5), objects=True)
    assert (item.bounds, item.bbox) == ([2.0, 3.0, 0.0, 1.0], [2.0, 0.0, 3.0, 1.0])
    assert list(copy.copy(idx).intersection((2.5, 2.75, 0.5, 0.5))) == [30]


def test_arrays():
    idx = index.Index((IDS, BOUNDS[:, :2], BOUNDS[:, 2:]))
    assert list(idx.intersection((1, 1))) == [10, 10]
    assert list(idx.intersection((1, 1), objects="raw")) == [None, None]
    solid = index.Index(
        ([7, 8], [[0, 0, 0], [1, 2, 3]], [[1, 1, 1], [1, 2, 3]]), properties=index.Property(dimension=3)
    )
    assert list(solid.nearest((1, 2, 2.75), 1)) == [8]
    assert list(solid.nearest((1, 1.5, 2), 2)) == list(solid.intersection((1, 1, 1, 1, 2, 3))) == [7, 8]
    assert solid.bounds == [0.0, 0.0, 0.0, 1.0, 2.0, 3.0]


def test_arrays_as_arguments():
    assert list(index.Index(IDS, BOUNDS[:, :2], BOUNDS[:, 2:]).intersection((1, 1))) == [10, 10]


def test_points():
    points = index.Index([(1, (2, 2), None), (2, (3, 3), None)])
    assert list(points.intersection((2, 2, 2.5, 3))) == [1]
    assert list(points.intersection((3, 3))) == list(points.contains((3, 3))) == [2]
    assert list(points.nearest((2.5, 2.5))) == [1, 2]


def test_objects():
    idx = index.Index(ROWS)
    raw = list(idx.intersection((0, 0, 9, 9), objects="raw"))
    assert raw[0] is NAMED
    assert raw[1:] == [None, "c", 0]
    items = list(idx.intersection((0, 0, 9, 9), objects=True))
    assert [(item.id, item.object) for item in items] == [(k, obj) for k, _, obj in ROWS]
    assert [item.bbox for item in items] == BOUNDS.tolist()
    assert ids(sorted(items)) == [10, 10, 20, 30]
    assert items[1] > items[0]
    assert ids(idx.nearest((5, 5), 1, objects=True)) == ids(idx.contains((5, 5, 7, 7), True)) == [20]
    assert next(idx.intersection((5.5, 5.5), objects="raw")) == "c"


def test_nearest_of_a_point_and_of_a_box():
    idx = index.Index(ROWS)
    assert list(idx.nearest((1, 1), 1)) == [10, 10]  # both touch it
    assert list(idx.nearest((1.5, 0.5), 1)) == [10, 30]  # each 1/2 away
    assert list(idx.nearest((0, 0, 0.25, 0.25), 2)) == [10, 10]
    assert list(idx.nearest((4, 0, 4, 4), 1)) == [30]
    assert list(idx.nearest((4, 0, 4, 4), 2)) == [30, 20]
    assert list(idx.nearest((0, 0), 99)) == [10, 10, 30, 20]
    squares = index.Index((k, (x, y), None) for k, (x, y) in enumerate([(5, 0), (3, 4), (0, 5), (6, 0)]))
    assert list(squares.nearest((0, 0), 1)) == list(squares.nearest((0, 0), 3)) == [0, 1, 2]
    assert list(squares.nearest((0, 0), 4)) == [0, 1, 2, 3]


def test_many_at_once():
    idx = index.Index(ROWS)
    found, counts = idx.intersection_v([[1, 0], [9, 9], [5, 5]], [[2, 1], [9, 9], [6, 6]])
    assert (found.tolist(), counts.tolist()) == ([10, 30, 10, 20], [3, 0, 1])
    assert (found.dtype, counts.dtype) == (np.int64, np.uint64)
    mins, maxs = [[1, 1], [9, 9], [4, 0]], [[1, 1], [9, 9], [4, 4]]
    found, counts, dists = idx.nearest_v(mins, maxs, num_results=1, return_max_dists=True)
    assert (found.tolist(), counts.tolist()) == ([10, 10, 20, 30], [2, 1, 1])
    assert dists.tolist() == [0.0, math.sqrt(18), 1.0]
    strict, counts = idx.nearest_v(mins, maxs, num_results=1, strict=True)
    assert (strict.tolist(), counts.tolist()) == ([10, 20, 30], [1, 1, 1])
    assert idx.intersection_v([1, 0], [2, 1])[0].tolist() == [10, 30, 10]


def test_largest_distances_are_closed_and_zero_is_no_limit():
    idx, limits = index.Index(ROWS), np.array([1.0, 0.5, 0.0])
    query = [[4, 0]] * 3
    found, counts, dists = idx.nearest_v(query, query, num_results=2, max_dists=limits, return_max_dists=True)
    assert (found.tolist(), counts.tolist()) == ([30, 30, 10], [1, 0, 2])
    assert dists.tolist() == [1.0, 0.0, 3.0]
    assert limits.tolist() == [1.0, 0.5, 0.0]  # rtree writes to it
    want = peer.Index((IDS, BOUNDS[:, :2], BOUNDS[:, 2:])).nearest_v(
        query, query, num_results=2, max_dists=limits
    )
    assert want[0].tolist() == [30, 30, 10]


def test_ties_are_exact():
    """Numbers that float64 rounds to one distance, or that differ before they are rounded."""
    near = 2.0**-60  # sqrt(1 + 2^-120) is 1, rounded
    idx = index.Index([(0, (1, near), None), (1, (1, 0), None), (2, (0, 1), None), (3, (-1, near / 2), None)])
    assert list(idx.nearest((0, 0), 1)) == [1, 2]
    assert list(idx.nearest((0, 0), 3)) == [1, 2, 3]
    assert list(idx.nearest((0, 0), 4)) == [1, 2, 3, 0]
    _, _, dists = idx.nearest_v([[0, 0]], [[0, 0]], num_results=4, return_max_dists=True)
    assert dists.tolist() == [1.0]


def test_more_ties_and_more_rows_than_there_is_room_for_at_first():
    count = 3000
    same = index.Index(
        (np.arange(count), np.tile([3, 4], (count, 1)), np.tile([4, 4], (count, 1))), workers=1
    )
    assert list(same.intersection((0, 0, 3, 4))) == list(range(count))
    assert list(same.nearest((0, 0), 2)) == list(same.nearest((3.5, 4), 1)) == list(range(count))
    assert same.nearest_v([0, 0], [0, 0], num_results=5, strict=True)[0].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("empty", [None, [], (), iter(())])
def test_no_boxes(empty):
    idx = (
        index.Index(empty)
        if empty != ()
        else index.Index((np.empty(0, int), np.empty((0, 2)), np.empty((0, 2))))
    )
    assert (len(idx), idx.count((0, 0)), list(idx.nearest((0, 0), 3, objects=True))) == (0, 0, [])
    assert idx.bounds == peer.Index().bounds
    assert [found.tolist() for found in idx.nearest_v([[0, 0]], [[1, 1]], return_max_dists=True)] == [
        [],
        [0],
        [0.0],
    ]
    none = np.empty((0, 2))
    assert [found.size for found in index.Index(ROWS).intersection_v(none, none)] == [0, 0]
    assert [found.size for found in index.Index(ROWS).nearest_v(none, none)] == [0, 0]


def test_scene_of_an_index():
    idx = index.Index(ROWS)
    assert idx.scene.nearest(rb.Rays([-1, 0.5], [1, 0])).index == 0
    assert len(idx.scene) == 4


REFUSED = {
    "a file": (lambda: index.Index("name"), "in memory"),
    "a file and rows": (lambda: index.Index("name", ROWS), "got 2 values. An index is in memory"),
    "a storage": (lambda: index.Index(7), "in memory"),
    "a row": (lambda: index.Index([(1, (0, 0))]), r"\(id, coordinates, object\)"),
    "two arrays": (lambda: index.Index((IDS, BOUNDS)), r"\(ids, mins, maxs\)"),
    "lengths": (lambda: index.Index((IDS[:2], BOUNDS[:, :2], BOUNDS[:, 2:])), r"ids must have shape \(4,\)"),
    "an id of text": (lambda: index.Index([("a", (0, 0), None)]), "ids must be of an integer type"),
    "a broken id": (lambda: index.Index([(1.5, (0, 0), None)]), "ids must be of an integer type"),
    "NaN": (lambda: index.Index([(1, (0, np.nan), None)]), "NaN"),
    "inverted": (lambda: index.Index([(1, (0, 0, -1, 1), None)]), "must not exceed"),
    "D = 4": (lambda: index.Index(properties=index.Property(dimension=4)), "dimension must be 2 or 3; got 4"),
    "a TPR-tree": (lambda: index.Index(properties=peer.Property(type=peer.RT_TPRTree)), "RT_RTree"),
    "arrays of D = 3": (lambda: index.Index(([1], [[0, 0, 0]], [[1, 1, 1]])), r"Property\(dimension=3\)"),
    "three numbers": (
        lambda: index.Index(ROWS).intersection((1, 2, 3)),
        "4 numbers of a box, or 2 of a point",
    ),
    "two boxes": (lambda: index.Index(ROWS).count([(1, 2, 3, 4)] * 2), "intersection_v"),
    "a NaN query": (lambda: index.Index(ROWS).intersection((0, 0, 1, np.nan)), "NaN"),
    "an inverted query": (lambda: index.Index(ROWS).nearest((0, 5, 1, 1)), "must not exceed"),
    "queries of D = 3": (
        lambda: index.Index(ROWS).intersection_v([[1, 1, 1]], [[2, 2, 2]]),
        "D = 2; got D = 3",
    ),
    "shapes": (lambda: index.Index(ROWS).nearest_v([[1, 1]], [[2, 2], [3, 3]]), "same shape"),
    "no neighbours": (lambda: index.Index(ROWS).nearest((1, 1), 0), "num_results must be a whole number"),
    "a distance": (
        lambda: index.Index(ROWS).nearest_v([1, 1], [1, 1], max_dists=[-1]),
        "max_dists must be at least 0",
    ),
    "distances": (
        lambda: index.Index(ROWS).nearest_v([1, 1], [1, 1], max_dists=[1, 2]),
        "max_dists must be a number",
    ),
    "insert": (lambda: index.Index().insert(1, (0, 0), obj=3), "scene.update"),
    "add": (lambda: index.Index().add(1, (0, 0)), "Index\\(stream\\)"),
    "delete": (lambda: index.Index().delete(1, (0, 0)), "at once"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case):
    call, text = REFUSED[case]
    with pytest.raises(rb.InvalidInput, match=text):
        call()


def test_exceptions_of_a_stream_pass():
    def rows():
        yield ROWS[0]
        raise LookupError("its own")

    with pytest.raises(LookupError, match="its own"):
        index.Index(rows())


def square(low, up, lower, upper):
    """Return the squared distance of two boxes."""
    gaps = (
        Fraction(max(a, u)) - Fraction(min(b, v)) if max(a, u) > min(b, v) else Fraction(0)
        for a, b, u, v in zip(low, up, lower, upper, strict=True)
    )
    return sum(gap * gap for gap in gaps)


def is_rounded_root(root, exact):
    """Return whether a number is the square root of another, rounded once."""
    if root == INF:
        return exact >= (Fraction(2) ** 1024 - Fraction(2) ** 970) ** 2
    below, above = math.nextafter(root, -INF), math.nextafter(root, INF)
    if above == INF:
        return True
    low = (Fraction(below) + Fraction(root)) / 2 if root else Fraction(0)
    return low * low <= exact <= ((Fraction(root) + Fraction(above)) / 2) ** 2


def check(lower, upper, low, up, k):
    """Compare all queries with their definition; count what is found."""
    dim, found = lower.shape[1], Counter()
    idx = index.Index((np.arange(len(lower)), lower, upper), properties=index.Property(dimension=dim))
    overlapping, sizes = idx.intersection_v(low, up)
    nearest, counts, dists = idx.nearest_v(low, up, num_results=k, return_max_dists=True)
    strict, fewer = idx.nearest_v(low, up, num_results=k, strict=True)
    ends, places, stops = np.cumsum(sizes), np.cumsum(counts), np.cumsum(fewer)
    for q in range(len(low)):
        a, b = low[q].tolist(), up[q].tolist()
        squares = [square(a, b, *box) for box in zip(lower.tolist(), upper.tolist(), strict=True)]
        meets = [i for i, x in enumerate(squares) if x == 0]
        assert overlapping[ends[q] - sizes[q] : ends[q]].astype(int).tolist() == meets
        order = sorted(range(len(squares)), key=lambda i: (squares[i], i))
        last = squares[order[min(k, len(order)) - 1]]
        want = [i for i in order if squares[i] <= last]
        assert nearest[places[q] - counts[q] : places[q]].tolist() == want
        assert strict[stops[q] - fewer[q] : stops[q]].tolist() == want[:k]
        assert is_rounded_root(dists[q], last)
        coordinates = (*a, *b)
        assert list(idx.intersection(coordinates)) == meets
        assert idx.count(coordinates) == len(meets)
        assert list(idx.nearest(coordinates, k)) == want
        inside = [i for i in meets if (lower[i] >= low[q]).all() and (upper[i] <= up[q]).all()]
        assert list(idx.contains(coordinates)) == inside
        touch = (lower == up[q]) | (upper == low[q])
        found.update(hits=len(meets), misses=len(squares) - len(meets), inside=len(inside))
        found.update(touches=int(touch[meets].any(axis=1).sum()), ties=(len(want) > k) * (last > 0))
        found.update(ties_at_0=(len(want) > k) * (last == 0), near=(len(want) <= k) * (last > 0))
    return found


def random_boxes(rng, family, count, dim):
    """Return boxes of a family: a lattice, or full mantissas of some magnitude."""
    if family == "lattice":
        lower = rng.integers(-4, 5, (count, dim)).astype(float)
        return lower, lower + rng.integers(0, 3, (count, dim))
    if family == "thirds":
        lower = rng.integers(-4, 5, (count, dim)) / 3
        return lower, lower + rng.integers(0, 3, (count, dim)) / 3
    scale = {"full": 1.0, "huge": 1e300, "tiny": 1e-310}[family]
    center = rng.standard_normal((count, dim))
    size = rng.random((count, dim)) * 0.5
    return (center - size) * scale, (center + size) * scale


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("family", ["lattice", "thirds", "full", "huge", "tiny"])
def test_rational_arithmetic(family, dim):
    rng, found = np.random.default_rng(20251), Counter()
    for k in (1, 2, 3, 8):
        lower, upper = random_boxes(rng, family, 30, dim)
        found += check(lower, upper, *random_boxes(rng, family, 12, dim), k)
        found += check(lower, upper, *2 * [random_boxes(rng, family, 12, dim)[0]], k)
    assert min(found["hits"], found["misses"], found["near"]) > 0
    if family in ("lattice", "thirds"):
        assert min(found["ties"], found["ties_at_0"], found["touches"], found["inside"]) > 0


@settings(max_examples=100)
@given(st.data(), st.sampled_from([2, 3]), st.integers(1, 4))
def test_any_boxes(data, dim, k):
    """Boxes without some bounds among them, neighbouring floats, and numbers of all magnitudes."""
    pool = st.sampled_from(data.draw(st.lists(strategies.coordinates, min_size=1, max_size=6)))
    lower, upper = data.draw(strategies.boxes(data.draw(st.integers(1, 10)), dim, pool))
    low, up = data.draw(strategies.boxes(2, dim, pool))
    check(lower, upper, low, up, k)


def grouped(found, counts):
    """Return what each query found, sorted."""
    return [sorted(part) for part in np.split(found, np.cumsum(counts)[:-1].astype(int))]


numbers = st.integers(-4, 4)


@settings(max_examples=100)
@given(st.data(), st.sampled_from([2, 3]), st.integers(1, 5), st.booleans())
def test_rtree_itself(data, dim, k, interleaved):
    """On a lattice, where float64 has all distances that rtree compares."""

    def boxes(most):
        corner = st.lists(numbers, min_size=dim, max_size=dim)
        ends = np.array(data.draw(st.lists(st.tuples(corner, corner), min_size=1, max_size=most)), float)
        return ends.min(axis=1), ends.max(axis=1)

    (lower, upper), (low, up) = boxes(12), boxes(4)
    joined = (
        np.hstack([lower, upper]) if interleaved else np.stack([lower, upper], axis=2).reshape(len(lower), -1)
    )
    rows = [(100 - i, tuple(row), str(i)) for i, row in enumerate(joined.tolist())]
    own = index.Index(rows, properties=index.Property(dimension=dim), interleaved=interleaved)
    its = peer.Index(rows, properties=peer.Property(dimension=dim), interleaved=interleaved)
    assert (own.bounds, len(own)) == (its.bounds, len(its))
    assert grouped(*own.intersection_v(low, up)) == grouped(*its.intersection_v(low, up))
    options = {
        "num_results": k,
        "return_max_dists": True,
        "max_dists": data.draw(st.none() | st.just([1.0] * len(low))),
    }
    mine, theirs = own.nearest_v(low, up, **options), its.nearest_v(low, up, **options)
    assert grouped(*mine[:2]) == grouped(*theirs[:2])
    np.testing.assert_array_equal(mine[2], theirs[2])
    for query in np.hstack([low, up]) if interleaved else np.stack([low, up], axis=2).reshape(len(low), -1):
        for name, *more in (["intersection"], ["contains"], ["nearest", k]):
            for objects in (False, "raw"):
                call = [sorted(getattr(each, name)(query, *more, objects=objects)) for each in (own, its)]
                assert call[0] == call[1]
        assert own.count(query) == its.count(query)
        bounds = [
            [(i.id, i.bounds, i.bbox) for i in sorted(each.intersection(query, True))] for each in (own, its)
        ]
        assert bounds[0] == bounds[1]


def test_results_do_not_depend_on_threads():
    """More queries than are searched in the order given; all neighbours of a lattice tie."""
    cells = np.array([*product(range(12), repeat=3)], float)
    query = np.random.default_rng(3).integers(0, 25, (3000, 3)) / 2
    made = [
        index.Index(
            (np.arange(len(cells)), cells, cells + 0.5), properties=index.Property(dimension=3), workers=n
        )
        for n in (1, 2)
    ]
    one, two = (idx.nearest_v(query, query + 0.25, num_results=2, return_max_dists=True) for idx in made)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    assert (one[1] > 2).any()
    for q in range(0, 3000, 97):
        assert (
            list(made[0].nearest((*query[q], *(query[q] + 0.25)), 2))
            == np.split(one[0], np.cumsum(one[1])[:-1].astype(int))[q].tolist()
        )
