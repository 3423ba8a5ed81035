"""rb.intersect against the truth: adversarial families, Hypothesis, broadcasting, both of its paths."""

import numpy as np
import pytest
from hypothesis import given, settings

import exact
import exact_surfaces
import families
import families_surfaces
import raybox as rb
import strategies
from aim import Pairs
from compare import EPS, assert_hits, assert_normals, assert_points
from core_marks import with_core

N = 3000
TIMES = ("hit", "t", "t_enter", "t_exit")
INF = np.inf


def as_rays(pairs) -> rb.Rays:
    return rb.Rays(*pairs[:2], t_min=pairs[2], t_max=pairs[3])


def intersect(pairs: Pairs):
    return rb.intersect(as_rays(pairs), rb.Boxes(*pairs[4:]))


def rows(pairs, part):
    return type(pairs)(*(x[part] for x in pairs))


# Boxes


@pytest.mark.parametrize("name", with_core(families.FAMILIES, "voxel_grid"))
def test_a_family_is_exact(name):
    pairs = families.make(name, 1, N)
    want = exact.box_rows(*pairs)
    hits = intersect(pairs)
    assert_hits(hits, want, np.arange(N))
    assert_normals(hits, want, pairs.directions)
    assert_points(hits, *pairs[:2])
    counts = {"hits": want.hit.sum(), "misses": (~want.hit).sum(), "touches": want.touch.sum()}
    assert min(counts["hits"], counts["misses"]) > N // 25, counts
    assert counts["touches"] > N // 10 or name == "generic", counts


@pytest.mark.parametrize("name", families.FAMILIES)
def test_small_and_large_batches_give_the_same_bits(name):
    pairs = families.make(name, 2, N)
    many = intersect(pairs)
    for i in range(0, N, 75):
        assert_part(intersect(rows(pairs, slice(i, i + 1))), many, i, (*TIMES, "normals", "points"))


@given(strategies.pairs())
@settings(max_examples=300)
def test_any_pair_is_exact(pairs):
    want = exact.box_rows(*pairs)
    assert_hits(intersect(pairs), want, np.zeros(1, dtype=int))
    many = rows(pairs, np.zeros(300, dtype=int))
    hits, want = intersect(many), exact.Answers(*(np.repeat(x, 300) for x in want))
    assert_hits(hits, want, np.arange(300))
    assert_normals(hits, want, many.directions)


def test_float32_arrays_are_used_exactly():
    pairs = families.make("float32_values", 4, N)
    narrow = Pairs(*(x.astype(np.float32) for x in pairs))
    assert_hits(intersect(narrow), exact.box_rows(*pairs), np.arange(N))


def test_lists_are_accepted():
    hits = rb.intersect(rb.Rays([[-1, 0.5, 0.5]], [[1, 0, 0]]), rb.Boxes([[0, 0, 0]], [[1, 1, 1]]))
    assert (hits.hit.tolist(), hits.t.tolist(), hits.t_exit.tolist()) == ([True], [1.0], [2.0])
    assert hits.normals.tolist() == [[-1, 0, 0]]
    assert hits.points.tolist() == [[0, 0.5, 0.5]]


# Broadcasting


def all_pairs(pairs: Pairs) -> tuple[exact.Answers, np.ndarray]:
    """Return the truth of each ray against each box, row by row, and the directions of the rows."""
    n, m = len(pairs.origins), len(pairs.lower)
    each = Pairs(*(np.repeat(x, m, axis=0) for x in pairs[:4]), *(np.tile(x, (n, 1)) for x in pairs[4:]))
    return exact.box_rows(*each), each.directions


def test_all_pairs():
    pairs = families.scene("touching_edges", 5, n_boxes=40, n_rays=30)
    want, directions = all_pairs(pairs)
    hits = rb.intersect(as_rays(pairs)[..., None], rb.Boxes(*pairs[4:]))
    assert hits.t.shape == (30, 40)
    assert_hits(hits, want, np.arange(40))
    assert_normals(hits, want, directions)
    assert hits.points.shape == hits.normals.shape == (30, 40, 3)


def test_rays_of_any_shape_broadcast_against_boxes():
    pairs = families.scene("touching_corners", 6, n_boxes=5, n_rays=20)
    boxes, rays = rb.Boxes(*pairs[4:]), as_rays(pairs).reshape(4, 5)
    want, _ = all_pairs(pairs)
    deep = rb.intersect(rays[..., None], boxes)
    assert deep.t.shape == (4, 5, 5)
    assert_hits(deep, want, np.arange(5))
    flat = rb.intersect(rays, boxes)
    assert flat.t.shape == (4, 5)
    np.testing.assert_array_equal(flat.t, np.take_along_axis(deep.t, np.arange(5)[None, :, None], 2)[..., 0])
    np.testing.assert_array_equal(flat.index, np.where(flat.hit, np.arange(5), -1))


@pytest.mark.parametrize(("n", "m", "shape"), [(0, 0, (0,)), (0, 1, (0,)), (1, 0, (0,))])
def test_empty_inputs_give_empty_hits(n, m, shape):
    hits = rb.intersect(
        rb.Rays(np.zeros((n, 3)), np.ones((n, 3))), rb.Boxes(np.zeros((m, 3)), np.ones((m, 3)))
    )
    assert hits.t.shape == shape
    assert hits.points.shape == hits.normals.shape == (*shape, 3)


def test_a_range_without_real_t_misses():
    rays = rb.Rays(np.full((2, 3), 0.5), np.ones((2, 3)), t_min=[INF, -INF], t_max=[INF, -INF])
    assert not rb.intersect(rays, rb.Boxes([[0.0] * 3], [[1.0] * 3])).hit.any()


# Planes


@pytest.mark.core
@pytest.mark.parametrize("cull", [None, "back"])
@pytest.mark.parametrize("dim", [2, 3])
def test_planes_are_exact(dim, cull):
    pairs = families_surfaces.planes(1, 2000, dim)
    want = [
        exact_surfaces.plane(o, d, span, normal, offset, cull_back=cull == "back")
        for o, d, *span, normal, offset in zip(*(x.tolist() for x in pairs), strict=True)
    ]
    hits = rb.intersect(as_rays(pairs), rb.Planes(*pairs[4:]), cull=cull)
    assert_surfaces(hits, want)
    unit = pairs.normals / np.linalg.norm(pairs.normals, axis=1, keepdims=True)
    parallel = np.abs((hits.normals * unit).sum(axis=1)[hits.hit]) / np.linalg.norm(
        hits.normals[hits.hit], axis=1
    )
    assert np.abs(parallel - 1).max() < 1e-12
    for k in range(0, 2000, 40):
        some = rb.intersect(
            as_rays(pairs)[k : k + 5], rb.Planes(*(x[k : k + 5] for x in pairs[4:])), cull=cull
        )
        assert_part(some, hits, k, (*TIMES, "points", "normals"))
    assert 300 < hits.hit.sum() < 1700


def assert_part(some, many, start, fields) -> None:
    """Assert that hits of a few pairs equal those of the same pairs among many, bit for bit."""
    for field in fields:
        part = getattr(many, field)[start : start + len(some)]
        np.testing.assert_array_equal(getattr(some, field), part, err_msg=field)


def assert_surfaces(hits, want) -> None:
    t = [INF if contact is None else exact.rounded(contact.t) for contact in want]
    hit = np.array([contact is not None for contact in want])
    np.testing.assert_array_equal(hits.hit, hit)
    np.testing.assert_array_equal(hits.index, np.where(hit, np.arange(len(want)), -1))
    np.testing.assert_array_equal(hits.t, t)
    for line in (hits.t_enter, hits.t_exit):
        np.testing.assert_array_equal(line, np.where(hit, t, np.nan))


# Triangles


def as_mesh(corners) -> rb.Mesh:
    return rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def assert_triangles(hits, found) -> None:
    assert_surfaces(hits, [f and f[0] for f in found])
    uv = np.array([[exact.rounded(x) for x in f[1:]] for f in found if f is not None]).reshape(-1, 2)
    np.testing.assert_allclose(hits.uv[hits.hit], uv, rtol=0, atol=4 * EPS)


@pytest.mark.core
@pytest.mark.parametrize("cull", [None, "back"])
def test_triangles_are_exact(cull):
    pairs = families_surfaces.triangles(1, 2000)
    found = [
        exact_surfaces.triangle(o, d, span, *corners, cull_back=cull == "back")
        for o, d, *span, corners in zip(*(x.tolist() for x in pairs), strict=True)
    ]
    hits = rb.intersect(as_rays(pairs), as_mesh(pairs.corners), cull=cull)
    assert_triangles(hits, found)
    for k in range(0, 2000, 40):
        some = rb.intersect(as_rays(pairs)[k : k + 5], as_mesh(pairs.corners[k : k + 5]), cull=cull)
        assert_part(some, hits, k, (*TIMES, "points", "uv", "normals"))
    on_edge = sum(f is not None and min(f[1], f[2], 1 - f[1] - f[2]) == 0 for f in found)
    assert 300 < hits.hit.sum() < 1700
    assert on_edge > 200
    sides = pairs.corners[:, 1:] - pairs.corners[:, :1]
    normals = np.cross(sides[:, 0], sides[:, 1])[hits.hit]
    cosine = (hits.normals[hits.hit] * normals).sum(axis=1) / np.linalg.norm(normals, axis=1)
    assert np.abs(cosine - 1).max() < 1e-9
    from_behind = ((normals * pairs.directions[hits.hit]).sum(axis=1) > 0).sum()
    assert from_behind == 0 if cull else from_behind > 100


@given(strategies.triangles())
def test_any_triangle_is_exact(case):
    o, d, span, corners = case
    found = [exact_surfaces.triangle(o, d, span, *corners[0])]
    for n in (1, 300):
        rays = rb.Rays(np.tile(o, (n, 1)), np.tile(d, (n, 1)), t_min=span[0], t_max=span[1])
        assert_surfaces(
            rb.intersect(rays, as_mesh(np.tile(corners, (n, 1, 1)))), n * [f and f[0] for f in found]
        )
