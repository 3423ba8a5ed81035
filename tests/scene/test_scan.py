"""The results of a scan of one ray equal those of a scene, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings

import families
import raybox as rb
import strategies
from processes import output_of
from raybox.scene.scan import scan


def as_rays(pairs):
    return rb.Rays(pairs.origins, pairs.directions, t_min=pairs.t_min, t_max=pairs.t_max)


def assert_same_as_scene(pairs, boxes):
    everything = rb.Scene(boxes).all(as_rays(pairs))
    found = 0
    for k, ray in enumerate(as_rays(pairs)):
        scanned, expected = scan(ray, boxes), everything[k]
        np.testing.assert_array_equal(scanned.index, expected.index)
        np.testing.assert_array_equal(scanned.t, expected.t)
        np.testing.assert_array_equal(scanned[0].lengths, expected.lengths)
        found += scanned.index.size
    return found


@pytest.mark.parametrize("name", sorted(families.FAMILIES))
def test_a_scan_equals_a_scene(name):
    pairs = families.scene(name, 5, n_boxes=100, n_rays=30)
    assert assert_same_as_scene(pairs, rb.Boxes(pairs.lower, pairs.upper)) > 20


@given(strategies.scenes(max_boxes=12))
@settings(max_examples=60)
def test_any_scan_equals_a_scene(pairs):
    assert_same_as_scene(pairs, rb.Boxes(pairs.lower, pairs.upper))


def test_a_scan_of_triangles_equals_a_scene():
    rng = np.random.default_rng(3)
    vertices = np.concatenate([rng.integers(-2, 3, (30, 3)).astype(float), rng.random((60, 3))])
    mesh = rb.Mesh(vertices, rng.integers(0, 90, (400, 3)))
    rays = rb.Rays(
        rng.integers(-4, 5, (60, 3)), np.where(rng.random((60, 3)) < 0.5, 1.0, rng.random((60, 3)))
    )
    everything = rb.Scene(mesh).all(rays)
    for k, ray in enumerate(rays):
        np.testing.assert_array_equal(scan(ray, mesh).index, everything[k].index)
        np.testing.assert_array_equal(scan(ray, mesh).t, everything[k].t)
    assert len(everything.index) > 60


@pytest.mark.parametrize("rays", [rb.Rays([0, 0], [1, 0]), rb.Rays(np.zeros((2, 3)), np.ones(3))])
def test_many_rays_or_another_dimension_are_refused(rays):
    with pytest.raises(rb.InvalidInput, match=r"one ray of the scene's D = 3; got rays of shape"):
        scan(rays, rb.Boxes([0, 0, 0], [1, 1, 1]))


def test_an_invalid_ray_hits_nothing():
    ray = rb.Rays([np.nan, 0, 0], [1, 0, 0], invalid="miss")
    assert scan(ray, rb.Boxes([0, 0, 0], [1, 1, 1])).index.size == 0


def test_a_scan_loads_no_compiler():
    code = (
        "import sys, raybox as rb; from raybox.scene.scan import scan; import numpy as np;"
        "b = rb.Boxes(np.zeros((500, 3)), np.ones((500, 3)));"
        "a = scan(rb.Rays([-1, .5, .5], [1, 0, 0]), b); assert len(a[0].t) == 500;"
        "assert 'numba' not in sys.modules"
    )
    output_of("-c", code)
