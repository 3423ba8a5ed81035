"""Boxes that share a point with a convex region, against what rational arithmetic says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybox as rb
import region_families as families
import strategies
from raybox.bvh import cell_tree
from raybox.bvh.build import build
from raybox.bvh.forest import TreeGroups, build_forest
from raybox.exact.feasibility import is_feasible
from raybox.spatial import region_boxes
from raybox.spatial.region_search import rows_in
from raybox.spatial.target import TargetPart
from raybox.validation import NO_MASK
from region_truth import region_planes, shared

pytestmark = pytest.mark.core

INF = np.inf
ROOT = np.zeros(1, np.int64)


def part_of(geometry, allowed=NO_MASK):
    rows = geometry._rows()
    tree = cell_tree.build(rows) if isinstance(geometry, rb.Grid) else build(*rows)
    return TargetPart(rows, tree, allowed, 0)


def found_in(case, allowed=NO_MASK):
    """Return the rows that the search finds."""
    rows = rows_in(case.region, part_of(rb.Boxes(case.lower, case.upper), allowed), ROOT)
    assert rows.dtype == np.int64
    return rows


def true_of(case):
    """Return what each box shares with the region."""
    region = region_planes(case.region.normals, case.region.offsets)
    return [shared(region, *box) for box in zip(case.lower, case.upper, strict=True)]


class Counts:
    """How many boxes are found, missed, just touched, and missed though no single plane separates them."""

    def __init__(self):
        self.found = self.missed = self.touched = self.passed = 0

    def add(self, truths):
        self.found += sum(one.found for one in truths)
        self.missed += sum(not one.found for one in truths)
        self.touched += sum(one.touch for one in truths)
        self.passed += sum(one.passes and not one.found for one in truths)


def compare(make, seeds, count=40, **options):
    counts = Counts()
    for seed in range(seeds):
        case = make(np.random.default_rng(seed), count, **options)
        truths = true_of(case)
        np.testing.assert_array_equal(
            found_in(case), np.flatnonzero([one.found for one in truths]), str(seed)
        )
        counts.add(truths)
    return counts


def test_boxes_at_the_edges_of_frusta():
    counts = compare(families.at_edges, 60, 60)
    assert min(counts.found, counts.missed) > 600
    assert counts.passed > 200


def test_boxes_around_frusta():
    counts = compare(families.around, 20)
    assert min(counts.found, counts.missed) > 100


@pytest.mark.parametrize("dim", [2, 3])
def test_boxes_of_a_lattice(dim):
    counts = compare(families.lattice, 60, dim=dim)
    assert min(counts.found, counts.missed, counts.touched) > 100
    assert counts.passed > 20
    counts = compare(families.next_to_lattice, 40, dim=dim)
    assert min(counts.found, counts.missed) > 150


@pytest.mark.parametrize("dim", [2, 3])
def test_boxes_without_bounds(dim):
    counts = compare(families.unbounded, 40, dim=dim)
    assert min(counts.found, counts.missed) > 150
    assert min(counts.touched, counts.passed) > 20


@pytest.mark.parametrize("dim", [2, 3])
def test_numbers_of_all_magnitudes(dim):
    counts = compare(families.far_out, 60, dim=dim)
    assert min(counts.found, counts.missed) > 150
    assert min(counts.touched, counts.passed) > 10


def test_regions_without_a_point_or_without_a_volume():
    counts = compare(families.empty, 12)
    assert counts.found == 0
    assert counts.passed > 20
    counts = compare(families.flat, 20)
    assert min(counts.touched, counts.missed) > 60


def test_no_planes_and_no_boxes():
    everything = rb.Region(rb.Planes(np.zeros((0, 3)), []))
    lower = np.array([[0.0, 0, 0], [-INF, 1, 2], [INF, 0, 0], [-INF, -INF, -INF]])
    upper = np.array([[1.0, 0, 0], [INF, 1, 2], [INF, 0, 0], [-INF, INF, INF]])
    assert found_in(families.Case(everything, lower, upper)).tolist() == [0, 1]
    nothing = np.empty((0, 3))
    assert found_in(families.Case(everything, nothing, nothing)).size == 0


def test_nodes_inside_of_a_region_and_large_trees():
    """Whole subtrees are inside; masks and trees of groups leave out the same boxes."""
    rng = np.random.default_rng(5)
    centers, sizes = rng.uniform(-8, 8, (6000, 3)), rng.uniform(0, 0.2, (6000, 3))
    sizes[::50] = 0.0
    boxes = rb.Boxes(centers - sizes, centers + sizes)
    region = rb.Frustum.pinhole(
        [-9, 0, 0], [0, 0.5, 0], up=[0, 0, 1], fov=70, width=4, height=3, near=2, far=12
    )
    truths = true_of(families.Case(region, boxes.lower, boxes.upper))
    want = np.array([one.found for one in truths])
    case = families.Case(region, boxes.lower, boxes.upper)
    np.testing.assert_array_equal(found_in(case), np.flatnonzero(want))
    assert want.sum() > 800
    allowed = rng.random(len(boxes)) < 0.5
    np.testing.assert_array_equal(found_in(case, allowed), np.flatnonzero(want & allowed))

    groups = rng.integers(0, 3, len(boxes))
    tree = build_forest(*boxes._rows(), TreeGroups(groups, 2), quality="balanced", threads=1)
    part = TargetPart(boxes._rows(), tree, NO_MASK, 0)
    for group in range(3):
        first, count = tree.starts[group]
        rows = rows_in(region, part, first + np.arange(count))
        np.testing.assert_array_equal(rows, np.flatnonzero(want & (groups == group)))


def test_many_planes():
    """A ball of 300 planes, whose edges are not searched, and of 60."""
    rng = np.random.default_rng(2)
    for planes, count in ((60, 400), (300, 60)):
        normals = rng.normal(size=(planes, 3))
        region = rb.Region(normals, np.linalg.norm(normals, axis=1))
        centers = rng.normal(size=(count, 3))
        centers *= rng.uniform(1, 1.5, (count, 1)) / np.linalg.norm(centers, axis=1, keepdims=True)
        sizes = rng.uniform(0, 0.2, (count, 3))
        rows = found_in(families.Case(region, centers - sizes, centers + sizes))
        inside = region.contains(np.clip(0.0, centers - sizes, centers + sizes))
        assert np.isin(np.flatnonzero(inside), rows).all()  # the nearest points of the boxes
        planes_in_integers = region_boxes.region_planes(region).exact
        for row in range(0, count, 10):
            bounds = region_boxes._inequalities(centers[row] - sizes[row], centers[row] + sizes[row])
            assert is_feasible([*planes_in_integers, *bounds], 3) == (row in rows)
        assert 0 < rows.size < count


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("is_full", [True, False])
def test_cells_of_a_grid(dim, is_full):
    counts = Counts()
    for seed in range(10):
        rng = np.random.default_rng(seed)
        shape = rng.integers(1, 11 if dim == 3 else 30, dim)
        edges = [np.cumsum(rng.integers(1, 3, n + 1) / 2.0) - 5 for n in shape]
        occupied = np.ones(shape, np.bool_) if is_full else rng.random(shape) < 0.4
        grid = rb.Grid(*edges, occupied=occupied)
        region = families.lattice(rng, 0, dim).region if seed % 2 or dim == 2 else families.frustum(rng, 3.0)
        boxes = grid.boxes()
        truths = true_of(families.Case(region, boxes.lower, boxes.upper))
        want = np.array([one.found for one in truths]) & occupied.ravel()
        np.testing.assert_array_equal(rows_in(region, part_of(grid), ROOT), np.flatnonzero(want))
        allowed = rng.random(len(grid)) < 0.5
        rows = rows_in(region, part_of(grid, allowed), ROOT)
        np.testing.assert_array_equal(rows, np.flatnonzero(want & allowed))
        counts.add(truths)
    assert min(counts.found, counts.missed) > 100
    assert counts.touched > 20


def test_a_large_grid_of_which_little_is_occupied():
    edges = np.arange(2.0**7 + 1)
    occupied = np.zeros((128, 128, 128), np.bool_)
    occupied[np.arange(128), np.arange(128), np.arange(128)] = True
    grid = rb.Grid(edges, edges, edges, occupied=occupied)
    rows = rows_in(rb.Region([[1, 0, 0], [-1, 0, 0]], [50.0, -40.0]), part_of(grid), ROOT)
    numbers = np.arange(39, 51)
    np.testing.assert_array_equal(rows, np.ravel_multi_index((numbers,) * 3, grid.shape))


def test_how_many_boxes_are_decided_in_integers(monkeypatch):
    """Golden numbers: none of 20,000 random boxes, and of 8,000 cells none that touch a plane or an edge."""
    calls = []
    monkeypatch.setattr(region_boxes, "is_feasible", lambda *given: calls.append(1) or is_feasible(*given))
    rng = np.random.default_rng(3)
    centers, sizes = rng.uniform(-3, 3, (20_000, 3)), rng.uniform(0, 0.2, (20_000, 3))
    case = families.Case(families.frustum(np.random.default_rng(8)), centers - sizes, centers + sizes)
    assert found_in(case).size > 200
    assert len(calls) == 1  # whether the region is empty
    edges = np.arange(-10.0, 11.0)
    region = rb.Region([[1, 1, 0], [-1, 0, 0], [0, -1, 0]], [6.0, 0.0, 0.0])
    assert rows_in(region, part_of(rb.Grid(edges, edges, edges)), ROOT).size == 860
    assert len(calls) == 2


@st.composite
def regions_and_boxes(draw):
    dim, planes = draw(st.sampled_from([2, 3])), draw(st.integers(0, 6))
    pool = st.sampled_from(draw(st.lists(strategies.coordinates, min_size=1, max_size=6)))
    normals = draw(strategies.related((planes, dim), st.one_of(pool, strategies.grid)))
    normals[~normals.any(axis=1)] = 1.0
    offsets = draw(strategies.related((planes,), st.one_of(pool, strategies.grid)))
    return families.Case(rb.Region(normals.reshape(-1, dim), offsets), *draw(strategies.boxes(6, dim, pool)))


@given(regions_and_boxes())
def test_any_region_and_boxes(case):
    want = [one.found for one in true_of(case)]
    assert found_in(case).tolist() == np.flatnonzero(want).tolist()
