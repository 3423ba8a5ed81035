"""Normals have the same bits in batches of all sizes, and the signs of exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest

import raybox as rb

RAYS = 1000
SIZES = (1, 16, 17)
RNG = np.random.default_rng(380)
LOWER = RNG.integers(-3, 3, (20, 3)).astype(float)
BOXES = rb.Boxes(LOWER, LOWER + RNG.integers(1, 3, (20, 3)))
CORNERS = RNG.integers(-3, 4, (20, 3)).astype(float)
MESH = rb.Mesh(CORNERS, RNG.permuted(np.tile(np.arange(20), (30, 1)), axis=1)[:, :3])
INNER = {"boxes": BOXES, "mesh": MESH}


def axes(rng):
    return np.eye(3)[rng.permutation(3)] * rng.choice([-2.0, -1.0, 1.0, 0.5], 3)


def turn_about_an_axis(rng):
    angle = rng.uniform(0, 6)
    return [[np.cos(angle), -np.sin(angle), 0.0], [np.sin(angle), np.cos(angle), 0.0], [0.0, 0.0, -1.0]]


def turn(rng):
    return np.linalg.qr(rng.normal(size=(3, 3)))[0]


def tiny(rng):
    return np.diag(rng.choice([-1.0, 1.0], 3)) * 2.0**-220


def instances(inner, matrix, seed=381):
    rng = np.random.default_rng(seed)
    placed = np.zeros((12, 3, 4))
    for one in placed:
        one[:, :3] = matrix(rng)
        one[:, 3] = rng.integers(-9, 9, 3) if matrix is not tiny else 0.0
    return rb.Instances(INNER[inner], placed)


def rays_at(scale=1.0):
    """Return rays of which half have integers for coordinates, many of these along an axis."""
    rng = np.random.default_rng(382)
    origins = rng.integers(-12, 12, (RAYS, 3)).astype(float)
    origins[::2] = rng.uniform(-12, 12, origins[::2].shape)
    directions = rng.integers(-2, 3, (RAYS, 3)).astype(float)
    directions[::3] = rng.uniform(-1, 1, directions[::3].shape)
    return rb.Rays(origins * scale, directions)


def bits(values):
    return np.ascontiguousarray(values).view(np.int64)


def exact_normals(geometry, hits):
    """Return parts of normals, as fractions, over any positive number."""
    for instance, row in zip(hits.index.tolist(), hits.primitive.tolist(), strict=True):
        m = [[Fraction(x) for x in line[:3]] for line in geometry.transforms[instance].tolist()]
        cofactors = [cross(m[1], m[2]), cross(m[2], m[0]), cross(m[0], m[1])]
        sign = 1 if sum(x * y for x, y in zip(m[0], cofactors[0], strict=True)) > 0 else -1
        a, b, c = (list(map(Fraction, corner)) for corner in CORNERS[MESH.faces[row]].tolist())
        normal = cross([y - x for x, y in zip(a, b, strict=True)], [y - x for x, y in zip(a, c, strict=True)])
        yield [sign * sum(x * y for x, y in zip(line, normal, strict=True)) for line in cofactors]


def cross(p, q):
    return [p[k - 2] * q[k - 1] - p[k - 1] * q[k - 2] for k in range(3)]


@pytest.mark.long
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("matrix", [axes, turn_about_an_axis, turn, tiny])
def test_every_query_returns_the_normals_of_a_large_batch(inner, matrix):
    scene, rays = rb.Scene(instances(inner, matrix)), rays_at(2.0**-222 if matrix is tiny else 1.0)
    many, first = scene.nearest(rays), scene.first(rays, 2)
    assert many.hit.sum() > 50
    for hits in (many, first):
        zero = hits.normals == 0.0
        assert zero.any() or matrix is turn
        assert not np.signbit(hits.normals[zero]).any()
    for size in SIZES:
        for begin in range(0, 40 * size, size):
            part = slice(begin, begin + size)
            np.testing.assert_array_equal(bits(scene.nearest(rays[part]).normals), bits(many.normals[part]))
            np.testing.assert_array_equal(bits(scene.first(rays[part], 2).normals), bits(first.normals[part]))


@pytest.mark.parametrize("matrix", [axes, turn_about_an_axis])
def test_signs_of_normals_are_those_of_exact_arithmetic(matrix):
    geometry = instances("mesh", matrix)
    hits = rb.Scene(geometry).nearest(rays_at())
    hits = hits[hits.hit]
    wanted = np.array([[np.sign(x) for x in normal] for normal in exact_normals(geometry, hits)])
    np.testing.assert_array_equal(np.signbit(hits.normals), wanted < 0)
    np.testing.assert_array_equal(hits.normals == 0.0, wanted == 0)
    assert (wanted == 0).any()


@pytest.mark.parametrize("geometry", [BOXES, MESH, rb.Planes([[0.0, -0.0, -2.0]] * 20, np.arange(20.0))])
def test_pairs_and_scans_return_the_normals_of_a_scene(geometry):
    rays = rays_at()
    pairs, many = rb.intersect(rays[:, None], geometry), rb.Scene(geometry).nearest(rays)
    hit = np.flatnonzero(many.hit)
    assert not np.signbit(pairs.normals[pairs.normals == 0.0]).any()
    np.testing.assert_array_equal(bits(pairs.normals[hit, many.index[hit]]), bits(many.normals[hit]))
    for k in hit[:20]:
        np.testing.assert_array_equal(bits(rb.intersect(rays[k], geometry).normals), bits(pairs.normals[k]))


@pytest.mark.parametrize("inner", INNER)
def test_all_hits_have_the_normals_of_each_single_hit(inner):
    """Those of `first`, whose hits are the first ones of each ray."""
    scene, rays = rb.Scene(instances(inner, axes)), rays_at()
    found, first = scene.all(rays), scene.first(rays, 2)
    assert found.normals.shape == (len(found.t), 3)
    assert not found.normals.flags.writeable
    ray, column = np.nonzero(first.hit)
    own = found.normals[found.offsets[ray] + column]
    assert len(own) > 50
    np.testing.assert_array_equal(bits(own), bits(first.normals[ray, column]))
    at = int(ray[0])
    np.testing.assert_array_equal(bits(found[at].normals), bits(found.normals[found.ray == at]))


def test_normals_of_all_hits_in_the_plane_are_outward_or_zero_inside():
    found = rb.Scene(rb.Boxes([[2, -1], [-1, -1]], [[3, 1], [1, 1]])).all(rb.Rays([[0, 0], [0, 9]], [1, 0]))
    assert found.normals.tolist() == [[0, 0], [-1, 0]]
    assert found[1].normals.shape == (0, 2)
