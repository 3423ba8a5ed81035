"""Regions and frusta: arrays, points inside, the picture of a camera, and the text of every error."""

import copy
import pickle
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybox as rb
import strategies
from refusals import refusal

pytestmark = pytest.mark.core

CORNER = ([[-1, 0, 0], [0, -1, 0], [0, 0, -1], [1, 2, 3]], [0, 0, 0, 6])
PICTURE = {"width": 7, "height": 5}


def is_inside(region, point):
    """Return whether a point is in a region, in rational numbers."""
    rows = zip(region.normals.tolist(), region.offsets.tolist(), strict=True)
    return all(
        sum(Fraction(a) * Fraction(x) for a, x in zip(normal, point, strict=True)) <= Fraction(offset)
        for normal, offset in rows
    )


def test_a_region_of_arrays_and_of_planes():
    region = rb.Region(*CORNER)
    planes = rb.Planes(*CORNER, ids=list("abcd"))
    assert region.equals(rb.Region(planes))
    assert not region.equals(rb.Region(planes[:3]))
    np.testing.assert_array_equal(region.normals, CORNER[0])
    np.testing.assert_array_equal(region.offsets, CORNER[1])
    assert region.planes.equals(rb.Planes(*CORNER))
    assert (len(region), region.ndim_space, repr(region)) == (4, 3, "Region(4, D=3)")
    assert rb.Region(np.zeros((0, 2)), []).contains([3, 4])
    for values in (region.normals, region.offsets):
        with pytest.raises(ValueError, match="read-only"):
            values[...] = 0


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_regions(again):
    view = rb.Frustum.pinhole([0, 0, 0], [0, 5, 0], up=[0, 0, 1], fov=90, near=1, far=9, **PICTURE)
    for region in (rb.Region(*CORNER), rb.Region([[1, 2]], [3]), view):
        assert again(region).equals(region)
        assert type(again(region)) is type(region)
    assert not view.equals(rb.Region(view.planes))


def test_points_inside():
    region = rb.Region(*CORNER)
    points = [[[0, 0, 0], [6, 0, 0]], [[1, 1, 1], [1, 1, np.nextafter(1, 2)]]]
    np.testing.assert_array_equal(region.contains(points), [[True, True], [True, False]])
    assert region.contains([0, 0, 2]).shape == ()
    assert region.contains(np.empty((0, 3))).shape == (0,)


def test_points_inside_are_exact():
    inside = ties = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        dim = 2 + seed % 2
        normals = rng.normal(size=(3, dim)) * 10.0 ** rng.integers(-150, 150)
        points = rng.normal(size=(20, dim)) * 10.0 ** rng.integers(-150, 150)
        offsets = (normals * points[0]).sum(axis=1)  # rounded: the point is next to all planes
        region = rb.Region(normals, offsets)
        points = np.concatenate([points, points[:1] * (1 + 2.0**-52 * rng.integers(-2, 3, (20, 1)))])
        want = [is_inside(region, point) for point in points.tolist()]
        np.testing.assert_array_equal(region.contains(points), want)
        inside += sum(want)
        lattice = rb.Region(rng.integers(1, 3, (2, dim)), [4, 4])
        places = rng.integers(-1, 4, (30, dim))
        np.testing.assert_array_equal(
            lattice.contains(places), [is_inside(lattice, p) for p in places.tolist()]
        )
        ties += int(((places @ lattice.normals.T) == 4).any(axis=1).sum())
    assert inside > 200
    assert ties > 200


@given(st.data())
def test_any_points_and_planes(data):
    dim = data.draw(st.sampled_from([2, 3]))
    normals = data.draw(strategies.related((3, dim)))
    normals[~normals.any(axis=1)] = 1.0
    region = rb.Region(normals, data.draw(strategies.related((3,))))
    points = data.draw(strategies.related((4, dim)))
    assert region.contains(points).tolist() == [is_inside(region, point) for point in points.tolist()]


def cameras(count):
    """Yield the arguments of a camera, with the rays, and the method that both have."""
    for seed in range(count):
        rng = np.random.default_rng(seed)
        size = {"width": int(rng.integers(1, 30)), "height": int(rng.integers(1, 30))}
        if seed % 2:
            eye, target, up = rng.normal(size=(3, 3)) * [[1e3], [1e3], [1.0]]
            yield "pinhole", (eye, target), {"up": up, "fov": rng.uniform(5, 150), **size}
            continue
        K = np.diag([*rng.uniform(5, 50, 2), 1.0])
        K[0, 1:], K[1, 2] = rng.uniform(-8, 40, 2), rng.uniform(-20, 40)
        R, _ = np.linalg.qr(rng.normal(size=(3, 3)))
        R *= np.sign(np.linalg.det(R))
        convention = ("opencv", "opengl")[seed // 2 % 2]
        yield "from_camera", (K, R, rng.normal(size=3) * 100), {**size, "convention": convention}


def moved(rays, columns, rows):
    """Return directions of a camera at other pixel coordinates: those of the first pixels, extrapolated."""
    first, right, below = rays.directions[0, 0], rays.directions[0, 1], rays.directions[1, 0]
    return first + np.multiply.outer(columns, right - first) + np.multiply.outer(rows, below - first)


def test_a_frustum_is_what_rays_see():
    for name, given_, options in cameras(40):
        rays = getattr(rb.Rays, name)(*given_, **options)
        near, far = 0.5, 40.0
        view = getattr(rb.Frustum, name)(*given_, **options, near=near, far=far)
        endless = getattr(rb.Frustum, name)(*given_, **options, near=0, far=inf)
        assert (len(view), len(endless)) == (6, 4)
        for depth in (near * 1.001, 3.0, far * 0.999):
            assert view.contains(at(rays, depth)).all()
        for depth in (near * 0.99, far * 1.01, 0.0, -1.0):
            assert not view.contains(at(rays, depth)).any()
        assert endless.contains(at(rays, 1e6)).all()
        assert not endless.contains(at(rays, -1e3)).any()


def at(rays, depth):
    return rays.origins + depth * rays.directions


def test_a_frustum_ends_half_a_pixel_around_the_outer_centres():
    checked = 0
    for name, given_, options in cameras(40):
        if min(options["width"], options["height"]) < 2:
            continue
        rays = getattr(rb.Rays, name)(*given_, **options)
        view = getattr(rb.Frustum, name)(*given_, **options, near=0.5, far=40.0)
        right, below = options["width"] - 1, options["height"] - 1
        for step, inside in ((0.49, True), (0.51, False)):
            middle = np.linspace(-0.4, 0.4, 5)
            for columns, rows in (
                (-step, middle * below / 0.8 + below / 2),
                (right + step, middle * below / 0.8 + below / 2),
                (middle * right / 0.8 + right / 2, -step),
                (middle * right / 0.8 + right / 2, below + step),
            ):
                directions = moved(rays, *np.broadcast_arrays(columns, rows))
                found = view.contains(rays.origins[0, 0] + 3.0 * directions)
                assert (found == inside).all()
                checked += 1
    assert checked > 200


def test_errors_of_regions():
    assert "Write raybox.Region(normals, offsets)" in refusal(rb.Region, [[0, 1]])
    assert "got one list" in refusal(rb.Region, [[0, 1]])
    assert "Write raybox.Region(planes)" in refusal(rb.Region, rb.Planes(*CORNER), [1.0])
    assert "normals must not be zero" in refusal(rb.Region, [[0, 0]], [1])
    assert "offsets must be finite" in refusal(rb.Region, [[0, 1]], [inf])
    assert "points must be finite" in refusal(rb.Region(*CORNER).contains, [[0, 0, nan]])
    assert "points must have shape" in refusal(rb.Region(*CORNER).contains, [[0, 0]])


def test_errors_of_frusta():
    def pinhole(**options):
        given_ = {"up": [0, 0, 1], "fov": 60, **PICTURE, "near": 1, "far": 2} | options
        return refusal(rb.Frustum.pinhole, [0, 0, 0], [0, 1, 0], **given_)

    for near, far in ((-1, 2), (2, 2), (3, 2), (inf, inf), (nan, 2), (0, nan), (0, -inf)):
        assert "0 <= near < far" in pinhole(near=near, far=far)
    assert "near must be a depth" in pinhole(near="close")
    assert "fov must be an angle" in pinhole(fov=180)
    assert "width must be a whole number" in pinhole(width=0)
    eye = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    options = {**PICTURE, "near": 1, "far": 2}
    assert "K must be" in refusal(rb.Frustum.from_camera, np.zeros((3, 3)), eye, [0, 0, 0], **options)
    assert "convention must be" in refusal(
        rb.Frustum.from_camera, eye, eye, [0, 0, 0], convention="up", **options
    )
    K = [[1, 0, 1e308], [0, 1, 0], [0, 0, 1]]
    assert "planes must be finite" in refusal(rb.Frustum.from_camera, K, eye, [0, 0, 1e10], **options)
