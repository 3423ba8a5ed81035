"""`integrate` and `deposit` against Fractions, within the bounds that their docstrings state."""

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import families
import path_truth
import raybox as rb
import strategies
from exact import INF
from path_truth import assert_sums, count_cases, deposits, integrals, paths
from raybox.queries.path_sums import copies
from raybox.queries.path_sums.fixed_point import FixedPoint, sums_of
from scenes import as_rays, random_scene
from sorting import sort_more_than

MIXED = [0.0, 1.0, -1.0, 3.5, -0.1]


@pytest.fixture(params=["one by one", "sorted"])
def batches(request, monkeypatch):
    """Traverse few rays one by one, or in sorted groups as many rays are."""
    if request.param == "sorted":
        sort_more_than(monkeypatch, 16)


def numbers(rng, shape):
    """Return numbers of full mantissas, and some special ones."""
    return np.where(rng.random(shape) < 0.3, rng.choice(MIXED, shape), rng.normal(size=shape))


def check(rays, boxes, seed=0, where=None, counts=None) -> Counter:
    """Compare both queries, with and without factors, with Fractions."""
    counts = Counter() if counts is None else counts
    rng, scene, size = np.random.default_rng(seed), rb.Scene(boxes), len(boxes)
    rows = paths(rays, boxes, where=None if where is None else [where])
    count_cases(rows, counts)
    values, weights = numbers(rng, size), numbers(rng, rays.shape)
    for reproducible in (False, True):
        how = {"where": where, "reproducible": reproducible}
        lengths = scene.integrate(rays, **how)
        assert not (lengths < 0.0).any()
        assert_sums(lengths, integrals(rows, [None]), counts)
        assert_sums(scene.integrate(rays, values, **how), integrals(rows, [values]), counts)
    how = {"where": where}
    assert_sums(scene.deposit(rays, **how), deposits(rows, np.ones(len(rows)), [size])[0], counts)
    (want,) = deposits(rows, weights.reshape(-1), [size])
    assert_sums(scene.deposit(rays, weights, **how), want, counts)
    (want,) = deposits(rows, weights.reshape(-1), [size], per_hit=True)
    for reproducible in (False, True):
        assert_sums(scene.deposit(rays, weights, per="hit", reproducible=reproducible, **how), want, counts)
    return counts


@pytest.mark.long
@pytest.mark.parametrize("name", families.FAMILIES)
def test_families(name, batches):
    pairs = families.scene(name, 7, 48, 48)
    counts = check(as_rays(pairs), rb.Boxes(*pairs[4:]))
    assert counts["hit"] > 10, counts


def test_families_have_every_case():
    counts = Counter()
    for name in families.FAMILIES:
        pairs = families.scene(name, 8, 24, 24)
        check(as_rays(pairs), rb.Boxes(*pairs[4:]), counts=counts)
    cases = ("hit", "miss", "touch", "zero", "inside", "tie", "inf", "endless", "exact", "near")
    assert min(counts[case] for case in cases) > 15, counts


@given(strategies.scenes())
def test_any_scene(pairs):
    check(as_rays(pairs), rb.Boxes(*pairs[4:]))


@pytest.mark.parametrize("dim", [2, 3])
def test_full_mantissas(dim, batches):
    pairs = random_scene(3, 60, 70, dim, size=0.8)
    where = np.random.default_rng(4).random(60) < 0.7
    counts = check(as_rays(pairs), rb.Boxes(*pairs[4:]), where=where)
    assert counts["hit"] > 40, counts
    assert counts["near"] > 200, counts


def turned(seed, count) -> np.ndarray:
    """Return matrices (count, 3, 4): moves by whole numbers, quarter turns, and any maps."""
    rng = np.random.default_rng(seed)
    matrices = np.zeros((count, 3, 4))
    for k, matrix in enumerate(matrices):
        plain = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0, 2.0], 3)
        matrix[:, :3] = plain if k % 2 else np.eye(3) + rng.normal(size=(3, 3)) / 4
        matrix[:, 3] = rng.integers(-3, 4, 3) if k % 2 else rng.uniform(-3, 3, 3)
    return matrices


def grid_rays(seed, count) -> rb.Rays:
    """Return rays between points of a grid, some without direction, with any ranges, and any rays."""
    rng = np.random.default_rng(seed)
    origins = rng.integers(-8, 9, (count, 3)) / 2
    ways = rng.integers(-2, 3, (count, 3)) * np.where(rng.random((count, 1)) < 0.1, 0.0, 1.0)
    free = rng.random((count, 1)) < 0.5
    origins = np.where(free, rng.uniform(-4, 4, (count, 3)), origins)
    ways = np.where(free, rng.uniform(-2, 2, (count, 3)) - origins, ways)
    low = rng.choice([0.0, 0.5, 1.0, -INF, -1.0], count)
    return rb.Rays(origins, ways, t_min=low, t_max=np.maximum(low, rng.choice([INF, 1.0, 2.0], count)))


CUBES = rb.Boxes([[-1, -1, -1], [0, 0, 0], [1, -1, 0]], [[0, 0, 0], [1, 1, 1], [1, 1, 2]])


def test_instances_of_boxes():
    copies, rays, counts = rb.Instances(CUBES, turned(5, 6)), grid_rays(6, 250), Counter()
    scene, rows = rb.Scene(copies), paths(rays, copies)
    count_cases(rows, counts)
    rng = np.random.default_rng(7)
    values, weights = numbers(rng, 6), numbers(rng, 250)
    for reproducible in (False, True):
        sums = scene.integrate(rays, values, reproducible=reproducible)
        assert_sums(sums, integrals(rows, [values]), counts)
    (want,) = deposits(rows, weights, [6])
    assert_sums(scene.deposit(rays, weights), want, counts)
    finite = rays[np.isfinite(rays.t_min) & np.isfinite(rays.t_max)]
    (want,) = deposits(paths(finite, copies), np.ones(len(finite)), [6])
    assert_sums(scene.deposit(finite, reproducible=True), want, counts)
    cases = "hit", "miss", "touch", "zero", "inside", "near", "exact"
    assert min(counts[case] for case in cases) > 4, counts


def test_rays_that_float64_cannot_decide_at_instances():
    """Python decides them; no other part of such a ray may count twice."""
    copies = rb.Instances(CUBES, turned(5, 6)[::2])
    corners = (
        np.einsum("kij,mj->kmi", copies.transforms[:, :, :3], CUBES.upper) + copies.transforms[:, None, :, 3]
    )
    goals = corners.reshape(-1, 3)
    rays = rb.Rays(np.array([[9.0, 8.0, 7.0]]), goals - [9.0, 8.0, 7.0])
    scene, rows, counts = rb.Scene(copies), paths(rays, copies), Counter()
    assert_sums(scene.integrate(rays), integrals(rows, [None]), counts)
    assert_sums(scene.deposit(rays), deposits(rows, np.ones(len(rows)), [3])[0], counts)
    far = rb.Rays(np.array([[9e18, 8.0, 7.0]]), np.array([[-9e18, -7.5, -6.5]]))
    assert_sums(scene.integrate(far), integrals(paths(far, copies), [None]), counts)
    assert counts["near"] + counts["exact"] > 10, counts


def test_several_geometries_are_lists(batches):
    pairs = random_scene(9, 40, 50, size=0.9)
    parts = [
        rb.Boxes(*pairs[4:]),
        rb.Boxes(pairs[4] + 0.1, pairs[5] + 0.2),
        rb.Instances(CUBES, turned(8, 3)),
    ]
    scene, rays, counts = rb.Scene(parts), as_rays(pairs), Counter()
    rng = np.random.default_rng(10)
    where = [None, rng.random(40) < 0.5, None]
    rows = paths(rays, *parts, where=where)
    values, weights = [numbers(rng, (40, 2)), None, numbers(rng, (3, 2))], numbers(rng, (50, 2))
    sums = scene.integrate(rays, values, where=where, reproducible=True)
    assert sums.shape == (50, 2)
    found = scene.deposit(rays, weights, where=where)
    assert [one.shape for one in found] == [(40, 2), (40, 2), (3, 2)]
    for channel in range(2):
        assert_sums(sums[:, channel], integrals(rows, values, channel), counts)
        for mine, want in zip(found, deposits(rows, weights[:, channel], [40, 40, 3]), strict=True):
            assert_sums(mine[:, channel], want, counts)
    assert counts["near"] > 150, counts
    assert scene.deposit(rays)[0].shape == (40,)


def test_shapes_of_rays_and_factors():
    pairs = random_scene(12, 30, 24, size=0.9)
    boxes, rays = rb.Boxes(*pairs[4:]), as_rays(pairs).reshape(2, 3, 4)
    scene, rng = rb.Scene(boxes), np.random.default_rng(13)
    values = rng.random((30, 3))
    sums = scene.integrate(rays, values)
    assert scene.integrate(rays).shape == (2, 3, 4)
    assert sums.shape == (2, 3, 4, 3)
    for channel in range(3):
        np.testing.assert_array_equal(sums[..., channel], scene.integrate(rays, values[:, channel]))
    assert scene.integrate(rays[0, 0, 0]).shape == ()
    assert scene.integrate(rays, values[:, :1]).shape == (2, 3, 4, 1)
    weights = rng.random((3, 1))
    np.testing.assert_array_equal(
        scene.deposit(rays, weights), scene.deposit(rays, np.broadcast_to(weights, (2, 3, 4)))
    )
    channels = rng.random((4, 5))[None, None]
    found = scene.deposit(rays, channels)
    assert found.shape == (30, 5)
    for channel in range(5):
        np.testing.assert_array_equal(found[:, channel], scene.deposit(rays, channels[..., channel]))
    np.testing.assert_array_equal(scene.deposit(rays, 2.0), 2.0 * scene.deposit(rays))
    np.testing.assert_array_equal(scene.integrate(rays, values[:, 0].tolist()), sums[..., 0])
    empty = rb.Rays(np.empty((0, 3)), np.empty((0, 3)))
    assert scene.integrate(empty, values).shape == (0, 3)
    assert not scene.deposit(empty, reproducible=True).any()
    none = rb.Scene(boxes[:0])
    assert not none.integrate(rays).any()
    assert none.deposit(rays, channels, reproducible=True).shape == (0, 5)


def test_input_is_not_written_to():
    pairs = random_scene(14, 30, 40, size=0.9)
    scene, rays = rb.Scene(rb.Boxes(*pairs[4:])), as_rays(pairs)
    values, weights = np.random.default_rng(15).random((2, 30)), np.arange(40.0)
    copied = values.copy()
    sums = scene.integrate(rays, values[0])
    for other in (values[0].tolist(), values[::-1][1], np.asfortranarray(values)[0], values.astype(">f8")[0]):
        np.testing.assert_array_equal(scene.integrate(rays, other), sums)
    scene.deposit(rays, weights)
    np.testing.assert_array_equal(values, copied)
    np.testing.assert_array_equal(weights, np.arange(40.0))
    assert values.flags.writeable
    assert weights.flags.writeable


def product(one, other) -> Fraction:
    """Return the exact inner product of two arrays."""
    pairs = zip(one.tolist(), other.tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


def transposed_bound(rows, values, weights) -> Fraction:
    """Return twice the bound of the sum of weight * value * length over all paths."""
    terms = [
        (Fraction(float(weights[k])) * Fraction(float(values[p.index])), p.length, p.reach)
        for k, row in enumerate(rows)
        for p in row
    ]
    return 2 * path_truth.exact_sum(terms, path_truth.plain).bound


@pytest.mark.core
@pytest.mark.parametrize("name", ["generic", "voxel_grid", "map_coordinates", "planar"])
def test_deposit_is_the_transpose_of_integrate(name, batches):
    pairs = families.scene(name, 17, 40, 40)
    boxes, rays = rb.Boxes(*pairs[4:]), as_rays(pairs)
    rng = np.random.default_rng(18)
    values, weights = rng.normal(size=(40, 2)), rng.normal(size=(40, 2))
    scene, rows = rb.Scene(boxes), paths(rays, boxes)
    ended = [k for k, row in enumerate(rows) if all(p.length != INF for p in row)]
    rays, rows, weights = rays[ended], [rows[k] for k in ended], weights[ended]
    sums, found = scene.integrate(rays, values), scene.deposit(rays, weights)
    for c in range(2):
        one = sum(
            Fraction(a) * Fraction(b)
            for a, b in zip(sums[:, c].tolist(), weights[:, c].tolist(), strict=True)
        )
        other = sum(
            Fraction(a) * Fraction(b)
            for a, b in zip(found[:, c].tolist(), values[:, c].tolist(), strict=True)
        )
        assert abs(one - other) <= transposed_bound(rows, values[:, c], weights[:, c])
        assert one != 0


def crowd(seed, boxes=2000, rays=6000):
    """Return a crowded scene, and rays of which each hits many boxes."""
    pairs = random_scene(seed, boxes, rays, size=0.4)
    return rb.Scene(rb.Boxes(*pairs[4:])), as_rays(pairs)


def test_reproducible_sums_have_the_same_bits(monkeypatch):
    """Whatever the workers, the order of the rays, and the traversal that takes them."""
    scene, rays = crowd(20)
    rng = np.random.default_rng(21)
    values, weights, order = rng.normal(size=(2000, 2)), rng.normal(size=6000), rng.permutation(6000)
    how = {"reproducible": True}
    sums, found = (
        scene.integrate(rays, values, workers=1, **how),
        scene.deposit(rays, weights, workers=1, **how),
    )
    for workers in (2, 4):
        np.testing.assert_array_equal(scene.integrate(rays, values, workers=workers, **how), sums)
        np.testing.assert_array_equal(
            scene.integrate(rays[order], values, workers=workers, **how), sums[order]
        )
        np.testing.assert_array_equal(
            scene.deposit(rays[order], weights[order], workers=workers, **how), found
        )
    for some in (slice(0, 3), slice(100, 700), order[:1500]):
        np.testing.assert_array_equal(scene.integrate(rays[some], values, **how), sums[some])
    # the sums of other orders have other bits, or nothing is shown
    assert (scene.integrate(rays, values, workers=1) != sums).any()
    monkeypatch.setattr(copies, "MAX_COPIED", 0)
    np.testing.assert_array_equal(scene.deposit(rays[order], weights[order], workers=2, **how), found)
    scene._parts = tuple(part._replace(frame=None) for part in scene._parts)
    np.testing.assert_array_equal(scene.integrate(rays, values, workers=1, **how), sums)
    np.testing.assert_array_equal(scene.deposit(rays, weights, workers=2, **how), found)


def test_many_rays_equal_the_hits_of_all(monkeypatch):
    """Copies for each thread, and one array that threads share."""
    scene, rays = crowd(22)
    rng = np.random.default_rng(23)
    values, weights = rng.random(2000), rng.random(6000)
    hits = scene.all(rays)
    assert len(hits.index) > 50_000
    want = np.bincount(hits.ray, hits.lengths * values[hits.index], 6000)
    np.testing.assert_allclose(scene.integrate(rays, values), want, rtol=1e-12, atol=1e-12)
    want = np.bincount(hits.index, hits.lengths * weights[hits.ray], 2000)
    times = np.bincount(hits.index, minlength=2000)
    for limit in (copies.MAX_COPIED, 0):
        monkeypatch.setattr(copies, "MAX_COPIED", limit)
        for workers in (1, 2, 4):
            found = scene.deposit(rays, weights, workers=workers)
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-12)
            np.testing.assert_array_equal(scene.deposit(rays, per="hit", workers=workers), times)


def test_atomic_sums_lose_nothing(monkeypatch):
    """All threads add to three numbers."""
    monkeypatch.setattr(copies, "MAX_COPIED", 0)
    scene = rb.Scene(rb.Boxes([[0, -1, -1], [1, -1, -1], [2, -1, -1]], [[1, 1, 1], [2, 1, 1], [3, 1, 1]]))
    rng = np.random.default_rng(24)
    count = 1_000_000
    rays = rb.Rays(np.column_stack([np.full(count, -1.0), rng.uniform(-1, 1, (count, 2))]), [1, 0, 0])
    for how in 3 * ({}, {"reproducible": True}):
        np.testing.assert_array_equal(scene.deposit(rays, 2.0, workers=4, **how), 2.0 * count)
        np.testing.assert_array_equal(scene.deposit(rays, per="hit", workers=4, **how), count)


def test_fixed_point_is_within_its_bound(batches):
    pairs = random_scene(25, 30, 60, size=0.9)
    boxes, rays, counts = rb.Boxes(*pairs[4:]), as_rays(pairs), Counter()
    weights = np.random.default_rng(26).normal(size=60) * 2.0 ** np.random.default_rng(27).integers(
        -60, 3, 60
    )
    rows = paths(rays, boxes)
    (want,) = deposits(rows, weights, [30], relative=lambda _count: Fraction(1, 1 << 49))
    largest = Fraction(float(np.abs(weights).max()))
    sizes = [
        path_truth.root(sum(Fraction(float(x)) ** 2 for x in size)) for size in boxes.upper - boxes.lower
    ]
    slack = [Fraction(len(rows) ** 3, 1 << 120) * largest * size for size in sizes]
    want = [one._replace(bound=one.bound + more) for one, more in zip(want, slack, strict=True)]
    assert_sums(rb.Scene(boxes).deposit(rays, weights, reproducible=True), want, counts)
    assert counts["near"] > 20, counts


def test_terms_that_cancel_leave_no_rest_in_fixed_point():
    scene = rb.Scene(rb.Boxes([1, -1, -1], [4, 1, 1]))
    rays = rb.Rays(np.tile([0.0, 0.1, 0.2], (4, 1)), [1, 0.1, 0.3])
    weights = np.array([0.7, 1e-9, -0.7, -1e-9])
    for order in ([0, 1, 2, 3], [3, 0, 2, 1]):
        assert scene.deposit(rays[order], weights[order], reproducible=True) == 0.0


def test_boxes_without_end():
    scene = rb.Scene(rb.Boxes([[0, -INF], [-INF, 1], [5, -1]], [[INF, 0], [INF, 2], [6, INF]]))
    rays = rb.Rays([[-1, -1], [-1, 1.5], [5.5, 3]], [[2, 0], [2, 0], [0, 3]])
    assert scene.integrate(rays).tolist() == [INF, INF, INF]
    assert scene.integrate(rays, [0.0, 0.0, 3.0]).tolist() == [3.0, 3.0, INF]
    assert scene.integrate(rays, [1.0, -1.0, 0.0]).tolist() == [INF, -INF, 0.0]
    line = rb.Rays.lines([[5.5, 3]], [[1, 0]])
    assert scene.integrate(line, where=[False, False, True]).tolist() == [1.0]
    assert scene.deposit(rays, [0.0, 2.0, 1.0]).tolist() == [0.0, INF, INF]
    assert scene.deposit(rays, [0.0, 2.0, 1.0], per="hit", reproducible=True).tolist() == [0.0, 2.0, 3.0]
    both = rb.Scene(rb.Boxes([[0, -INF], [0, -INF]], [[INF, 0], [INF, 0]]))
    assert math.isnan(both.integrate(rays[0], [1.0, -1.0]))


def test_numbers_near_the_ends_of_float64():
    """Boxes at the largest floats, and planes past them: no path of a bounded box has no end."""
    top = float(np.finfo(float).max)
    boxes = rb.Boxes(
        [[-top, -1, -1], [0.5 * top, -top, -top], [1, -1, -1e-300]],
        [[top, 1, 1], [top, top, top], [2, 1, 1e-300]],
    )
    counts = Counter()
    for size in (1.0, 0.25, 2.0**-450, 1e-300, 5e-324, 1e200):
        ways = np.array([[1, 0, 0], [0.5, 1e-30, 0], [1, 0.5, 0.25], [-1, 0, 1e-300], [0, 1, 0]]) * size
        rays = rb.Rays(np.array([[0, 0.5, 0]]), ways)
        check(rays, boxes, counts=counts)
    assert counts["near"] > 50, counts
    assert counts["hit"] > 20, counts


RAYS = rb.Rays(np.zeros((4, 3)), [1, 0, 0])
MESH = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
PLANES = rb.Planes([[1, 0, 0]], [2])


@pytest.mark.parametrize(
    ("geometry", "found"),
    [
        (MESH, "a Mesh"),
        (PLANES, "Planes"),
        (rb.Instances(MESH, turned(1, 2)), "Instances of a Mesh"),
        ([CUBES, PLANES], "Planes"),
    ],
)
def test_what_has_no_inside_is_refused(geometry, found):
    scene = rb.Scene(geometry)
    for query, method in (("integrate", scene.integrate), ("deposit", scene.deposit)):
        with pytest.raises(rb.InvalidInput, match=f"{query} adds lengths inside of boxes; .* holds {found}"):
            method(RAYS)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1.0, np.nan, 2.0], r"values must be finite; 1 of 3 break this, first number 1: values\[1\] = nan"),
        ([[1.0, 2.0], [np.inf, 2.0], [3.0, -np.inf]], r"2 of 6 break this, first number \(1, 0\)"),
        ([1.0, 2.0], r"values must have shape \(3,\) or \(3, C\).*got shape \(2,\)"),
        (np.zeros((3, 0)), r"got shape \(3, 0\)"),
        (np.zeros((3, 1, 1)), r"got shape \(3, 1, 1\)"),
        (2.0, r"got shape \(\)"),
        (["a", "b", "c"], "values must be real numbers"),
    ],
)
def test_values_are_checked(values, message):
    with pytest.raises(rb.InvalidInput, match=message):
        rb.Scene(CUBES).integrate(RAYS, values)


def test_values_of_lists_are_checked():
    scene = rb.Scene([CUBES, CUBES])
    for values in ([1.0, 2.0, 3.0], np.ones((2, 3)), [np.ones(3)]):
        with pytest.raises(rb.InvalidInput, match="values must be a list of 2, an array or None for each"):
            scene.integrate(RAYS, values)
    with pytest.raises(rb.InvalidInput, match=r"same number of channels; got \(3,\), \(3, 2\)"):
        scene.integrate(RAYS, [np.ones(3), np.ones((3, 2))])
    with pytest.raises(rb.InvalidInput, match="reproducible must be True or False; got 1"):
        scene.integrate(RAYS, reproducible=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": [1.0, np.inf, 1.0, 1.0]}, "weights must be finite; 1 of 4 break this, first number 1"),
        (
            {"weights": [1.0, 2.0]},
            r"weights must broadcast to the shape of the rays, \(4,\).*got shape \(2,\)",
        ),
        ({"weights": np.ones((3, 4))}, r"got shape \(3, 4\)"),
        ({"weights": np.ones((4, 0))}, r"got shape \(4, 0\)"),
        ({"weights": np.ones((1, 4, 2))}, r"got shape \(1, 4, 2\)"),
        ({"per": "ray"}, "per must be one of 'length', 'hit'; got 'ray'"),
        ({"reproducible": None}, "reproducible must be True or False; got None"),
    ],
)
def test_weights_are_checked(options, message):
    with pytest.raises(rb.InvalidInput, match=message):
        rb.Scene(CUBES).deposit(RAYS, **options)


def test_fixed_point_needs_bounds():
    scene = rb.Scene(rb.Boxes([[1, -1, -1], [3, -1, -1]], [[2, 1, 1], [INF, 1, 1]]))
    with pytest.raises(rb.InvalidInput, match=r"needs a bound.*; 1 of 2 boxes break this, first box 1"):
        scene.deposit(RAYS, reproducible=True)
    assert scene.deposit(RAYS, reproducible=True, where=[True, False]).tolist() == [4.0, 0.0]
    ended = rb.Rays(np.zeros((4, 3)), [1, 0, 0], t_max=5.0)
    assert scene.deposit(ended, reproducible=True).tolist() == [4.0, 8.0]
    assert scene.deposit(RAYS, 0.0, reproducible=True).tolist() == [0.0, 0.0]
    bad = rb.Rays([[np.nan, 0, 0], [0, 0, 0]], [1, 0, 0], t_max=5.0, invalid="miss")
    assert scene.deposit(bad, reproducible=True).tolist() == [1.0, 2.0]


def test_words_of_unlike_signs_lose_no_digits():
    rng = np.random.default_rng(40)
    for bits in (2, 20, 45, 62):
        high = np.where(rng.random(200) < 0.5, rng.integers(-3, 4, 200), rng.integers(-(2**61), 2**61, 200))
        low = rng.integers(-(2**62), 2**62, 200) >> rng.integers(0, 63, 200)
        low[::3] = -np.sign(high[::3]) * ((1 << bits) - rng.integers(0, 4, 67))
        words, shifts = np.stack([high, low], axis=-1)[:, None], rng.integers(-40, 41, 200)
        exact = zip(high.tolist(), low.tolist(), shifts.tolist(), strict=True)
        want = [Fraction((a << bits) + b) / (1 << bits) / Fraction(2) ** s for a, b, s in exact]
        got = sums_of(words, FixedPoint(shifts, bits))[:, 0].tolist()
        for mine, true in zip(got, want, strict=True):
            assert abs(Fraction(mine) - true) <= abs(true) / (1 << 52)
        assert sum(abs(true) * Fraction(2) ** int(s) < 1 for true, s in zip(want, shifts, strict=True)) > 10
