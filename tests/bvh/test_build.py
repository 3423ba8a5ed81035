"""Builds: sound trees for any boxes, the same for any number of threads, of known cost."""

import itertools

import numpy as np
import pytest

import raybox as rb
from raybox.bvh import build as build_module
from raybox.bvh import hilbert_build, hilbert_curve, sah_parallel
from raybox.bvh.build import QUALITIES, build
from raybox.bvh.build_threads import TaskRunner
from raybox.bvh.frame import FramedBoxes, choose_frame, frozen
from raybox.bvh.node import CHILD, EMPTY, MAX_DEPTH, WIDTH
from raybox.bvh.validate import check, cost, depth_of, stats

INF = np.inf


def uniform(n, seed=1, size=0.05, dim=3):
    rng = np.random.default_rng(seed)
    lower = rng.random((n, dim))
    return lower, lower + rng.random((n, dim)) * size


def clustered(n, seed=2):
    rng = np.random.default_rng(seed)
    place = rng.random((20, 3))[rng.integers(0, 20, n)] * 1000
    lower = place + rng.standard_normal((n, 3)) * rng.random((n, 1)) ** 8
    return lower, lower + 0.01 * rng.random((n, 3))


def unbounded(n, seed=3):
    lower, upper = uniform(n, seed)
    low, up = np.random.default_rng(seed).random((2, n, 3)) < 0.05
    lower, upper = np.where(low, -INF, lower), np.where(up, INF, upper)
    lower[0], upper[0] = -INF, INF
    lower[1] = upper[1] = INF
    lower[2] = upper[2] = -INF
    return lower, upper


def doubling(n):
    lower = np.ldexp(1.0, np.linspace(-1000, 1000, n).astype(int))[:, None] * np.array([1.0, -1.0, -1.0])
    return np.minimum(lower, 1.5 * lower), np.maximum(lower, 1.5 * lower)


def grid(n):
    """Boxes of one size on a grid, sorted: ties on every axis."""
    side = round(n ** (1 / 3)) + 1
    lower = np.array(list(itertools.product(range(side), repeat=3))[:n], float)
    return lower, lower + 1


def flat(n):
    lower, upper = uniform(n)
    lower[:, 2] = upper[:, 2] = 0.0
    return lower, upper


def concentric(n):
    size = np.linspace(0.1, 10, n)[:, None] * np.ones(3)
    return -size, size


FAMILIES = {
    "uniform": uniform,
    "clustered": clustered,
    "unbounded": unbounded,
    "doubling": doubling,
    "grid": grid,
    "flat": flat,
    "concentric": concentric,
    "identical": lambda n: (np.zeros((n, 3)), np.ones((n, 3))),
    "points": lambda n: (uniform(n)[0],) * 2,
    "one point": lambda n: (np.full((n, 3), 7.5),) * 2,
    "huge": lambda n: tuple(1e300 * x for x in uniform(n)),
    "largest": lambda n: tuple(np.where(x < 0.5, -1.7e308, 1.7e308) for x in (uniform(n)[0],) * 2),
    "denormal": lambda n: tuple(1e-310 * x for x in uniform(n)),
    "sorted": lambda n: tuple(np.sort(x, axis=0) for x in uniform(n)),
    "line": lambda n: tuple(np.arange(n)[:, None] * np.array([1.0, 0, 0]) + k for k in (0, 1)),
    "all unbounded": lambda n: (np.full((n, 3), -INF), np.full((n, 3), INF)),
    "one far away": lambda n: tuple(np.vstack([x[1:], x[:1] + 1e15]) for x in uniform(n)),
}


def assert_same_tree(one, other):
    np.testing.assert_array_equal(one.nodes, other.nodes)
    np.testing.assert_array_equal(one.root, other.root)
    np.testing.assert_array_equal(one.parts, other.parts)
    assert (one.scale, one.exponent) == (other.scale, other.exponent)


@pytest.fixture
def small_tasks(monkeypatch):
    """Make threads share scenes of a few thousand boxes, as they share those of a million."""
    for module, name, value in [
        (build_module, "_CHUNK", 100),
        (build_module, "_TASK", 64),
        (sah_parallel, "_CHUNK", 150),
        (hilbert_build, "_SORT_CHUNK", 100),
        (hilbert_build, "_CHUNK", 24),
    ]:
        monkeypatch.setattr(module, name, value)


# Soundness


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("name", FAMILIES)
def test_trees_of_any_boxes_are_sound(name, quality, small_tasks):
    lower, upper = FAMILIES[name](2500)
    tree = build(lower, upper, quality=quality)
    check(tree, lower, upper)
    assert depth_of(tree) <= MAX_DEPTH
    assert len(tree.nodes) < len(lower)
    assert tree.nodes.ctypes.data % 64 == 0
    assert not any(x.flags.writeable for x in (tree.nodes, tree.root, tree.center, tree.parts))


@pytest.mark.parametrize("quality", QUALITIES)
def test_trees_of_any_number_of_boxes_are_sound(quality):
    for n in [*range(20), 63, 64, 65, 511, 512, 513]:
        lower, upper = uniform(n)
        tree = build(lower, upper, quality=quality)
        check(tree, lower, upper)
        assert len(tree.nodes) == 1 or n > WIDTH
        used = tree.nodes[:, CHILD:] != EMPTY
        assert (used.sum(axis=1) >= 2)[used.any(axis=1)].all() or n < 10 or quality == "fast"


@pytest.mark.parametrize("quality", QUALITIES)
def test_two_dimensions(quality):
    lower, upper = uniform(500, dim=2)
    scene = rb.Scene(rb.Boxes(lower, upper), quality=quality)
    scene.check()
    goal = (lower[:100] + upper[:100]) / 2
    assert scene.nearest(rb.Rays(goal, [1.0, 0.0])).hit.all()


# Determinism


@pytest.mark.parametrize("quality", QUALITIES)
@pytest.mark.parametrize("name", ["uniform", "clustered", "grid", "unbounded", "doubling", "identical"])
def test_threads_do_not_change_the_tree(name, quality, small_tasks):
    lower, upper = FAMILIES[name](3000)
    tree = build(lower, upper, quality=quality, threads=1)
    for threads in (2, 3, 12):  # fewer than the parts of a level, which then have one each; and more
        assert_same_tree(build(lower, upper, quality=quality, threads=threads), tree)


@pytest.mark.parametrize("quality", QUALITIES)
def test_threads_do_not_change_a_large_tree(quality):
    boxes = uniform(70_000, size=0.01)
    assert_same_tree(build(*boxes, quality=quality, threads=4), build(*boxes, quality=quality))


def test_array_layouts_and_dtypes_give_the_same_tree():
    lower, upper = uniform(300)
    tree = build(lower, upper)
    assert_same_tree(build(np.asfortranarray(lower), upper[::-1][::-1].copy()), tree)
    whole = np.rint(lower * 100).astype(np.int64)
    assert_same_tree(build(whole, whole + 1), build(whole.astype(float), whole + 1.0))


def test_parallel_splits_cost_the_same_as_serial_ones(monkeypatch):
    """The parallel and the serial builder give trees of the same cost, in another order of nodes."""
    boxes = uniform(5000)
    serial = build(*boxes)
    monkeypatch.setattr(build_module, "_TASK", 100)
    monkeypatch.setattr(sah_parallel, "_CHUNK", 300)
    monkeypatch.setattr(build_module, "_CHUNK", 700)
    parallel = build(*boxes)
    assert len(parallel.nodes) == len(serial.nodes)
    assert cost(parallel, *boxes) == pytest.approx(cost(serial, *boxes), rel=1e-9)


# Cost and memory


@pytest.mark.parametrize(
    ("name", "quality", "golden"),
    [
        ("uniform", "balanced", (34.175, 42.48)),
        ("uniform", "fast", (40.989, 32.02)),
        ("uniform", "best", (32.141, 43.18)),
        ("clustered", "balanced", (1.311, 42.06)),
        ("clustered", "fast", (5.048, 32.02)),
        ("clustered", "best", (1.311, 38.39)),
        ("grid", "balanced", (29.684, 42.57)),
        ("unbounded", "balanced", (206.067, 43.77)),
    ],
)
def test_cost_and_memory(name, quality, golden):
    """Golden values; a change that lowers them puts its own here."""
    lower, upper = FAMILIES[name](20_000)
    result = stats(build(lower, upper, quality=quality), lower, upper)
    assert (round(result["cost"], 3), round(result["bytes_per_box"], 2)) == golden
    assert result["bytes_per_box"] <= 45


def test_a_stray_box_hardly_changes_the_cost():
    lower, upper = uniform(5000)
    base = cost(build(lower, upper), lower, upper)
    lower[17] += 1e9
    upper[17] += 1e9
    tree = build(lower, upper)
    assert cost(tree, lower, upper) < 1.5 * base + 8


def test_cost_is_the_number_of_nodes_a_random_line_hits():
    """Lines that hit the root are weighted by area."""
    lower, upper = uniform(3000, size=0.02)
    tree = build(lower, upper)
    planes = tree.nodes.view(np.float32)[:, :CHILD].reshape(-1, 6, WIDTH).astype(float)
    low, up = planes[:, :3].min(axis=2), planes[:, 3:].max(axis=2)
    rng = np.random.default_rng(5)
    way = rng.standard_normal((4000, 3))
    way /= np.linalg.norm(way, axis=1)[:, None]
    # lines of one direction, evenly over a disc that hides the root
    middle, radius = (low[0] + up[0]) / 2, np.linalg.norm(up[0] - low[0]) / 2
    side = np.cross(way, rng.standard_normal((4000, 3)))
    side /= np.linalg.norm(side, axis=1)[:, None]
    start = middle + side * (radius * np.sqrt(rng.random((4000, 1))))
    hit_count = np.zeros(4000)
    root = None
    for a, b in zip(low, up, strict=True):
        one, other = (a - start) / way, (b - start) / way
        hit = np.minimum(one, other).max(axis=1) <= np.maximum(one, other).min(axis=1)
        root = hit if root is None else root
        hit_count += hit
    assert hit_count[root].mean() == pytest.approx(cost(tree, lower, upper), rel=0.05)


# The curve


@pytest.mark.parametrize("cells", [128, 1])
def test_neighbours_along_the_curve_are_neighbours(cells, monkeypatch):
    """The curve visits every cell once, and each shares a face with the one before."""
    side = 16
    cell = np.array(list(itertools.product(range(side), repeat=3)), float)
    order = np.random.default_rng(6).permutation(len(cell))
    lower, upper = frozen(cell[order]), frozen(cell[order] + 1.0)
    center, exponent, reach = choose_frame(lower, upper)
    boxes = FramedBoxes(lower, upper, center, 2.0**exponent)
    over = np.concatenate([-2 * center * boxes.scale, [0], [cells / boxes.scale] * 3, [0]])
    monkeypatch.setattr(hilbert_build, "_SORT_CHUNK", 300)
    monkeypatch.setattr(hilbert_build, "make_grid", lambda *_: over.astype(np.float32).reshape(1, 8))
    with TaskRunner(1) as run_each:
        rows, keys = hilbert_build.sort_along_curve(run_each, boxes, reach)
    numbers = rows.view(np.int32)[keys & (2**31 - 1), 3]
    assert np.array_equal(np.sort(numbers), np.arange(side**3))
    grid = hilbert_build.make_grid()
    places = places_of(lower[numbers], upper[numbers], boxes.center, boxes.scale, grid)
    assert (places[1:] > places[:-1]).all()
    assert (np.abs(np.diff(lower[numbers], axis=0)).sum(axis=1) == 1).all()


def places_of(lower, upper, center, scale, grid):
    """Return the places of boxes along a curve: uint64 of 33 bits."""
    places = np.empty(len(lower), np.int64)
    boxes = FramedBoxes(frozen(lower), frozen(upper), center, scale)
    workspace = hilbert_curve.make_curve_workspace(grid)
    hilbert_curve.find_places(
        boxes, (0, len(lower)), workspace, hilbert_curve.BITS, places, np.zeros(1, np.int64)
    )
    return places.view(np.uint64)


def along_the_curve(lower, upper):
    """Return the boxes' numbers in their order along the curve, ties by number."""
    frame = choose_frame(lower, upper)
    boxes = FramedBoxes(frozen(lower), frozen(upper), frame.center, 2.0**frame.exponent)
    grid = hilbert_curve.make_grid(boxes, frame.reach)
    return np.argsort(places_of(lower, upper, frame.center, boxes.scale, grid), kind="stable")


def in_leaves(tree):
    children = tree.nodes[:, CHILD:].ravel()
    return ~children[(children < 0) & (children != EMPTY)]


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("number", [9, 300, 2500])
def test_a_fast_tree_is_packed_along_the_curve(name, number, small_tasks):
    lower, upper = FAMILIES[name](number)
    for threads in (1, 3):
        tree = build(lower, upper, quality="fast", threads=threads)
        np.testing.assert_array_equal(in_leaves(tree), along_the_curve(lower, upper))
        inner = tree.nodes[:, CHILD:].ravel()
        np.testing.assert_array_equal(inner[inner >= 0], np.arange(1, len(tree.nodes)))
        assert len(tree.nodes) == sum(-(-number // WIDTH**k) for k in range(1, 1 + depth_of(tree)))


@pytest.mark.parametrize("boxes", [uniform, clustered])
def test_many_boxes_are_packed_along_the_curve(boxes):
    lower, upper = boxes(300_000)
    tree = build(lower, upper, quality="fast", threads=2)
    check(tree, lower, upper)
    np.testing.assert_array_equal(in_leaves(tree), along_the_curve(lower, upper))


# Errors and threads


@pytest.mark.parametrize("quality", ["", "Balanced", "worst", None, 3, ["fast"]])
def test_an_unknown_quality_is_refused(quality):
    with pytest.raises(rb.InvalidInput, match=r"quality must be one of 'fast', 'balanced', 'best'; got"):
        rb.Scene(rb.Boxes([0, 0], [1, 1]), quality=quality)


@pytest.mark.parametrize("workers", [0, -2, 1.5, True])
def test_an_impossible_number_of_threads_is_refused(workers):
    with pytest.raises(rb.InvalidInput, match="workers must be"):
        rb.Scene(rb.Boxes([0, 0], [1, 1]), workers=workers)


def test_the_largest_runs_first_and_results_keep_their_order():
    started = []

    def record(k):
        started.append(k)
        return -k

    with TaskRunner(1) as run_each:
        assert run_each.largest_first(record, [(k,) for k in (4, 9, 2, 9)], [4, 9, 2, 9]) == [-4, -9, -2, -9]
    assert started == [9, 9, 4, 2]


def test_an_exception_in_a_thread_is_raised():
    def fail(k):
        if k == 3:
            raise KeyError(k)
        return k

    for threads in (1, 3):
        with TaskRunner(threads) as run_each:
            assert run_each(fail, [(k,) for k in (5, 1, 2)]) == [5, 1, 2]
        with pytest.raises(KeyError), TaskRunner(threads) as run_each:
            run_each(fail, [(k,) for k in range(6)])
