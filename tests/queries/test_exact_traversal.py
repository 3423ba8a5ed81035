"""The exact single-ray traversal at the limits of floats and of memory."""

import numpy as np
import pytest

import exact
import exact_surfaces as surfaces
import raybox as rb
from aim import INF
from compare import assert_hits
from raybox.bvh.build import build
from raybox.queries.all_hits.run import ExactAllHits
from raybox.queries.hit_sorting import HitArrays
from raybox.traversal.job import Job
from raybox.traversal.single import RaySpan, make_scratch, traverse_rays
from scenes import random_scene

MAX = 1.7976931348623157e308
N = 300  # so many pairs use compiled code


def rows(*numbers) -> np.ndarray:
    return np.tile(numbers, (N, 1)).astype(float)


@pytest.mark.parametrize("room", [0, 1, 5, 6, 7, 30])
def test_nothing_is_written_past_the_end_of_the_arrays(room):
    pairs = random_scene(81, 60, 50, size=1.5)
    boxes = rb.Boxes(*pairs[4:])._rows()
    job = Job(build(*boxes), boxes, rb.Rays(*pairs[:2])._rows(), np.zeros(0, np.bool_))
    count = [len(row) for row in exact.along(*pairs)]
    memory = np.full((2, 100), -7), np.full((2, 100), -7.0)
    parts = HitArrays(memory[0][0, :room], memory[1][0, :room], memory[0][1, :room], memory[1][1, :room])
    counts, begin = np.empty(50, np.int64), 0
    while begin < 50:
        needed, used = np.zeros(1, np.int64), np.zeros(1, np.int64)
        recorder = ExactAllHits(parts, used, counts, needed)
        stop = traverse_rays(job, RaySpan(begin, 50), make_scratch(), recorder)
        assert all((x[:, room:] == -7).all() for x in memory)
        assert used[0] == sum(count[begin:stop]) <= room
        assert stop == 50 or needed[0] == count[stop] > room - used[0]
        begin = max(stop, begin + 1)
    assert max(count) > 7
    assert 1 in count


def test_times_half_way_between_the_largest_floats():
    rng = np.random.default_rng(82)
    lower = rng.integers(2**52, 2**53 - 1, N) * 2.0**971  # up to the largest float
    origin = -np.where(np.arange(N) % 3, 2.0**970, np.nextafter(2.0**970, rng.choice([0, INF], N)))
    pairs = [rows(0, 0, 0), rows(1, 0, 0), np.zeros(N), np.full(N, INF), rows(0, -1, -1), rows(INF, 1, 1)]
    pairs[0][:, 0], pairs[4][:, 0] = origin, lower
    want = exact.box_rows(*pairs)
    assert_hits(rb.intersect(rb.Rays(*pairs[:2]), rb.Boxes(*pairs[4:])), want, np.arange(N))
    assert 50 < (want.t == lower).sum() < 250


def test_the_normal_of_the_largest_triangle():
    faces = np.arange(3 * N).reshape(N, 3)
    corners = np.tile([[-MAX, -MAX, 0.0], [MAX, -MAX, 0.0], [0.0, MAX, 0.0]], (N, 1))
    hits = rb.intersect(rb.Rays(rows(0, 0, 1), rows(0, 0, -1)), rb.Mesh(corners, faces))
    assert hits.t.tolist() == [1.0] * N
    assert hits.normals.tolist() == [[0.0, 0.0, 1.0]] * N


def test_a_later_entry_counts_where_an_earlier_one_overflows():
    late = np.random.default_rng(83).uniform(4e298, 9e298, N)
    for k in range(3):
        one, other = np.arange(3) == k, np.arange(3) == (k + 1) % 3
        lower = np.where(one, MAX, np.where(other, late[:, None], -1.0))
        pairs = rows(*one * -MAX), rows(*(one * 1e10 + other)), np.zeros(N), np.full(N, INF)
        upper = np.where(one | other, INF, rows(1, 1, 1))
        hits = rb.intersect(rb.Rays(*pairs[:2]), rb.Boxes(lower, upper))
        assert_hits(hits, exact.box_rows(*pairs, lower, upper), np.arange(N))
        assert (hits.t == late).all()


SMALL = {"direction": (-1093, 2.0**-190), "origin": (-248, 0.0)}


@pytest.mark.parametrize("what", SMALL)
def test_rays_so_slow_or_near_that_sums_lose_bits(what):
    """The surfaces alone are in the range of error-free sums: products with the ray's numbers are not."""
    slow, height = SMALL[what]
    rng = np.random.default_rng(84)
    whole = rng.integers(2**40, 2**53, (2, N)).astype(float)
    d, o = np.zeros((N, 3)), np.zeros((N, 3))
    d[:, 2] = -np.ldexp(whole[0], slow + rng.integers(0, 8, N))
    o[:, 2] = np.ldexp(whole[1], -1093) if what == "origin" else 0.0
    corners = rng.uniform(1, 2, (N, 3, 3)) * np.array([[-1, -1, 0], [1, -1, 0], [0, 1, 0]])
    corners[:, :, 2] = -height
    mesh = rb.Mesh(corners.reshape(-1, 3), np.arange(3 * N).reshape(N, 3))
    normals, offsets = rng.uniform(1, 2, (N, 3)), np.full(N, -height)
    for surface, each, oracle in (
        (mesh, corners.swapaxes(0, 1).tolist(), surfaces.triangle_by_signs),
        (rb.Planes(normals, offsets), (normals.tolist(), offsets.tolist()), surfaces.plane),
    ):
        hits = rb.intersect(rb.Rays(o, d), surface)
        pairs = zip(o.tolist(), d.tolist(), *each, strict=True)
        want = [oracle(*pair[:2], (0.0, INF), *pair[2:]) for pair in pairs]
        np.testing.assert_array_equal(hits.t, [INF if x is None else exact.rounded(x.t) for x in want])
        assert hits.hit.sum() > 250
