"""Instances at the ends of float64's range: singular matrices, and products that underflow and then grow."""

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import exact_instances
import exact_surfaces
import raybox as rb
from exact import rounded
from out_of_range import contacts

CUBE = rb.Boxes([0, 0, 0], [1, 1, 1])
SINGULAR = np.array([[1e300, 1e-170, 0], [1e300, 1e-170, 0], [0, 0, 1e-170]])


def shifted(linear):
    return np.concatenate([linear, np.zeros((*linear.shape[:-1], 1))], axis=-1)


def test_a_singular_matrix_whose_products_underflow():
    with pytest.raises(rb.InvalidInput, match="the determinant must not be 0; 1 of 1 break this"):
        rb.Instances(CUBE, shifted(SINGULAR))
    regular = SINGULAR.copy()
    regular[1, 1] = 1.5e-170
    assert len(rb.Instances(CUBE, shifted(regular))) == 1


def test_determinants_of_all_scales_against_fractions():
    counts, rng = Counter(), np.random.default_rng(4)
    for _ in range(400):
        linear = rng.integers(-2, 3, (3, 3)) * 2.0 ** rng.choice([-1074, -560, -300, 0, 300, 1000], (3, 3))
        linear[:, 1] = np.where(rng.random() < 0.5, linear[:, 1], linear[:, 0] * 2.0**-40)
        try:
            exact_instances.solved(linear.tolist(), [0.0] * 3)
            kind = "regular"
        except StopIteration:
            kind = "singular"
        counts[kind] += 1
        try:
            rb.Instances(CUBE, shifted(linear))
            assert kind == "regular"
        except rb.InvalidInput:
            assert kind == "singular"
    assert min(counts["regular"], counts["singular"]) > 50, counts


def test_triangles_whose_edges_have_denormal_products():
    """Such a product loses digits, and is then multiplied by a long direction."""
    counts = Counter()
    for seed in range(6):
        rng = np.random.default_rng(seed)
        size = 2.0 ** rng.integers(-537, -525)
        corners = rng.integers(-9, 10, (6, 3)) * rng.uniform(0.9, 1.1, (6, 3)) * size
        copies = rb.Instances(rb.Mesh(corners, [[0, 1, 2], [3, 4, 5]]), np.eye(3, 4) * 2.0**-59)
        shares = rng.dirichlet([1, 1, 1], 30)
        shares[rng.random(30) < 0.7, 0] = 0.0
        shares /= shares.sum(axis=1, keepdims=True)
        goals = (shares[:, :, None] * corners.reshape(2, 3, 3)[rng.integers(2, size=30)]).sum(axis=1)
        rays = rb.Rays(np.zeros((30, 3)), goals / size * 2.0**54)
        hits = rb.Scene(copies).all(rays)
        truth = contacts(rays, copies)
        assert np.diff(hits.offsets).tolist() == [len(row) for _, row in truth]
        assert hits.t.tolist() == [rounded(hit.t) for _, row in truth for hit in row]
        counts["hits"] += len(hits.t)
        counts["misses"] += sum(not row for _, row in truth)
    assert min(counts["hits"], counts["misses"]) > 30, counts


def test_rays_that_overflow_in_an_instance():
    """No box of the instance's own tree may be lost, whatever the ray becomes in its coordinates."""
    scale = 2.0**-1000
    corners = np.arange(20.0)[:, None] * [3.0, 0.0, 0.0]
    copies = rb.Instances(rb.Boxes(corners, corners + 1.0), np.eye(3, 4) * scale)
    rays = rb.Rays(np.array([[-scale, 0.5 * scale, 0.5 * scale]] * 2), [[2.0**900, 0, 0], [2.0**-1000, 0, 0]])
    hits = rb.Scene(copies).all(rays)
    assert hits.primitive.tolist() == [*range(20)] * 2
    truth = contacts(rays, copies)
    assert hits.t.tolist() == [rounded(hit.t) for _, row in truth for hit in row]
    want = float(Fraction(scale))
    assert hits.lengths.tolist() == pytest.approx([want] * 40, rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("copies", [1, 1500])
def test_normals_whose_local_parts_are_lost(copies):
    """Parts of a local normal below the smallest float matter where the matrix is as uneven."""
    rng, counts = np.random.default_rng(5), Counter()
    for _ in range(40):
        sizes = 2.0 ** rng.integers(-600, 500, 3)
        corners = rng.normal(size=(3, 3)) * sizes
        matrix = (np.diag(rng.choice([-1.0, 1.0], 3)) + np.triu(rng.normal(size=(3, 3)), 1)) / sizes
        a, b, c = (
            [
                sum(Fraction(m) * Fraction(x) for m, x in zip(row, corner, strict=True))
                for row in matrix.tolist()
            ]
            for corner in corners.tolist()
        )
        mirrored = np.prod(np.sign(np.diag(matrix))) < 0
        exact = exact_surfaces.normal(a, c, b) if mirrored else exact_surfaces.normal(a, b, c)
        normal = np.array([float(x / max(map(abs, exact))) for x in exact])
        normal /= np.linalg.norm(normal)
        middle = np.array([float(sum(part) / 3) for part in zip(a, b, c, strict=True)])
        rays = rb.Rays(np.tile(middle + 10 * normal, (copies, 1)), -normal)
        hits = rb.Scene(rb.Instances(rb.Mesh(corners, [[0, 1, 2]]), shifted(matrix)[None])).nearest(rays)
        counts["hit"] += int(hits.hit.all())
        counts["mirrored"] += int(mirrored)
        counts["lost"] += int(sizes.min() / sizes.max() < 2.0**-538)
        if hits.hit.all():
            np.testing.assert_allclose(hits.normals, np.tile(normal, (copies, 1)), rtol=0, atol=2.0**-40)
    assert counts["hit"] > 30, counts
    assert min(counts["mirrored"], counts["lost"]) > 10, counts
