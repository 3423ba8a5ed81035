"""Hits of one ray, in plain Python, against those of many, in compiled code: all numbers of a hit."""

import numpy as np
import pytest

import raybox as rb

RNG = np.random.default_rng(130)
CORNERS = RNG.uniform(-1, 1, (20, 3))
GEOMETRIES = {
    "boxes": rb.Boxes(CORNERS, CORNERS + 0.5),
    "planes": rb.Planes(RNG.uniform(-1, 1, (20, 3)), RNG.uniform(-1, 1, 20)),
    "mesh": rb.Mesh(CORNERS, RNG.permuted(np.tile(np.arange(20), (30, 1)), axis=1)[:, :3]),
}


@pytest.mark.parametrize("kind", GEOMETRIES)
def test_one_ray_has_the_normal_weights_and_times_of_many(kind):
    rng, scene = np.random.default_rng(131), rb.Scene(GEOMETRIES[kind])
    rays = rb.Rays(rng.uniform(-2, 2, (600, 3)), rng.uniform(-1, 1, (600, 3)))
    many = scene.nearest(rays)
    hits = np.flatnonzero(many.hit)
    assert len(hits) > 20
    for k in hits:
        one = scene.nearest(rays[k])
        assert (one.index, one.t) == (many.index[k], many.t[k])
        np.testing.assert_array_equal([one.t_enter, one.t_exit], [many.t_enter[k], many.t_exit[k]])
        np.testing.assert_allclose(one.normals, many.normals[k], rtol=0, atol=1e-15)
        if kind == "mesh":
            np.testing.assert_allclose(one.uv, many.uv[k], rtol=0, atol=1e-15)
    assert kind == "boxes" or (np.linalg.norm(many.normals[hits], axis=1) > 0.99).all()
