"""The adapters where float64 does not resolve two times, or lies between two float32: against Fractions."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import exact_surfaces
import raybox as rb
from raybox.adapters.open3d import RaycastingScene
from raybox.adapters.trimesh import RayMeshIntersector

INF = np.inf
CORNERS = np.array([[x, y, z] for z in (0, 1) for x, y in ((0, 0), (1, 0), (1, 1), (0, 1))], float)
FACES = np.array(
    [
        *([0, 2, 1], [0, 3, 2], [4, 5, 6], [4, 6, 7], [0, 1, 5], [0, 5, 4]),
        *([1, 2, 6], [1, 6, 5], [2, 3, 7], [2, 7, 6], [3, 0, 4], [3, 4, 7]),
    ]
)


def boxes(*spans):
    """Return a watertight mesh of boxes of x and y from -100 to 100, one for each span of z."""
    vertices = [np.where([1, 1, 0], 200 * CORNERS - 100, low + (high - low) * CORNERS) for low, high in spans]
    for one, (low, high) in zip(vertices, spans, strict=True):
        one[:, 2] = np.where(CORNERS[:, 2] > 0, high, low)
    faces = np.concatenate([FACES + 8 * k for k in range(len(spans))])
    return SimpleNamespace(vertices=np.concatenate(vertices), faces=faces)


# Equal times


@pytest.mark.long
def test_faces_nearer_than_float64_resolves_are_two_crossings():
    mesh = RayMeshIntersector(boxes((1e-18, 1.0), (-1.0, 0.0)))
    points = [[0.1, 0.2, 0.5], [0.1, 0.2, 0.5e-18], [0.1, 0.2, -0.5], [0.1, 0.2, 1.5], [0.1, 0.2, 1e-18]]
    assert mesh.contains_points(points).tolist() == [True, False, True, False, True]
    triangle, ray = mesh.intersects_id([[0.1, 0.2, -3.0]], [[0.0, 0.0, 1.0]])
    assert len(ray) == 4
    assert mesh.intersects_id([[0.1, 0.2, -3.0]], [[0.0, 0.0, 1.0]], max_hits=3)[0].tolist() == [
        *triangle[:3]
    ]
    assert len(mesh.intersects_location([[0.0, 0.0, -3.0]], [[0.0, 0.0, 1.0]])[1]) == 4  # on diagonals


def exact_rows(mesh, origins, directions):
    """Return ray and lowest triangle of each hit point, sorted, and the numbers of two kinds of ties."""
    rows, same, alike = [], 0, 0
    corners = np.asarray(mesh.vertices)[mesh.faces]
    for r, row in enumerate(exact_surfaces.triangles_along(rb.Rays(origins, directions), corners)):
        first = {hit.t: hit.index for hit in reversed(row)}
        same += len(row) - len(first)
        alike += len(first) - len({float(t) for t in first})
        rows += [(r, i) for _, i in sorted(first.items())]
    return rows, same, alike


@pytest.mark.parametrize("seed", range(4))
def test_hit_points_are_those_of_different_exact_times(seed):
    rng = np.random.default_rng(seed)
    layers = rng.uniform(-1, 1, 3) * 1e-18
    base = np.concatenate([layers, layers[:1], [1.0, 1.0 + 2.0**-52]])
    v = np.concatenate([np.where([1, 1, 0], 2 * CORNERS[:4] - 1, [0, 0, z]) for z in base])
    v[4:8, 2] += np.array([0, 1e-19, 0, -1e-19])  # four corners not in a plane
    v[16:20] += rng.normal(size=(4, 3)) * 2.0**-54 * [0, 0, 1]
    mesh = SimpleNamespace(vertices=v, faces=np.concatenate([FACES[:2] + 4 * k for k in range(len(base))]))
    origins = np.concatenate([rng.uniform(-1, 1, (60, 2)), rng.integers(-2, 3, (60, 2)) / 2])
    origins = np.column_stack([origins, rng.choice([-1.0, -3.0, -1 / 3], 120)])
    tilt = rng.choice([0.0, 0.25, 1 / 3], (120, 2)) * (rng.random((120, 1)) < 0.5)
    directions = np.column_stack([tilt, np.ones(120)]) * rng.choice([1.0, 3.0, 0.1], (120, 1))
    want, same, alike = exact_rows(mesh, origins, directions)
    triangle, ray = RayMeshIntersector(mesh).intersects_id(origins, directions)
    assert list(zip(ray.tolist(), triangle.tolist(), strict=True)) == want
    assert same > 80
    assert alike > 150


@pytest.mark.parametrize("scale", [1.0, 2.0**-1000])
def test_a_point_nearer_to_the_surface_than_the_smallest_float_is_not_on_it(scale):
    mesh = boxes((-1.0, 0.0))
    mesh.vertices[4:, 2] = np.array([0, -5e-324, -5e-324, 0])  # falls by the smallest float along x
    mesh.vertices[:, :2] *= scale
    x = np.linspace(-99, 99, 45) * scale
    points = np.array([[a, b, z] for a in x for b in (0.0, 50 * scale) for z in (0.0, -5e-324)])
    got = RayMeshIntersector(mesh).contains_points(points)
    slope = Fraction(-5e-324) / Fraction(200 * scale)
    top = [slope * (Fraction(a) + 100 * Fraction(scale)) for a in points[:, 0].tolist()]
    want = [Fraction(z) <= t for z, t in zip(points[:, 2].tolist(), top, strict=True)]
    assert got.tolist() == want
    assert 60 < sum(want) < 120


# float32


def nearest_float32(x):
    """Return a Fraction rounded to float32, ties to even."""
    if abs(x) >= Fraction(float.fromhex("0x1.ffffffp+127")):
        return np.float32(INF if x > 0 else -INF)
    with np.errstate(all="ignore"):
        near = np.float32(float(x))
    near = np.clip(near, *(np.finfo(np.float32).max * s for s in (np.float32(-1), np.float32(1))))
    with np.errstate(over="ignore"):
        around = [near, *(np.nextafter(near, np.float32(end)) for end in (-INF, INF))]
    finite = [y for y in around if np.isfinite(y)]
    return min(finite, key=lambda y: (abs(Fraction(float(y)) - x), int(y.view(np.uint32)) & 1))


def compare(vertices, rays):
    """Compare t and uv, cast and listed, with exact ones; return how many rounding twice would change."""
    scene = RaycastingScene()
    scene.add_triangles(vertices, np.uint32([[0, 1, 2]]))
    cast, listed = scene.cast_rays(rays), scene.list_intersections(rays)
    want, twice = [], 0
    for ray in rays.astype(float).tolist():
        hit = exact_surfaces.triangle(ray[:3], ray[3:], (0.0, INF), *vertices.astype(float).tolist())
        if hit is None:
            want.append((np.float32(INF), np.float32(0), np.float32(0)))
            continue
        numbers = hit[0].t, hit[1], hit[2]
        want.append(tuple(map(nearest_float32, numbers)))
        with np.errstate(all="ignore"):
            twice += any(np.float32(float(x)) != y for x, y in zip(numbers, want[-1], strict=True))
    t, u, v = np.array(want, np.float32).T
    np.testing.assert_array_equal(cast["t_hit"], t)
    np.testing.assert_array_equal(cast["primitive_uvs"], np.stack([u, v], -1))
    hit = np.isfinite(t) | cast["primitive_uvs"].any(axis=-1)
    np.testing.assert_array_equal(listed["t_hit"], t[hit])
    np.testing.assert_array_equal(listed["primitive_uvs"], np.stack([u, v], -1)[hit])
    assert cast["t_hit"].dtype == listed["primitive_uvs"].dtype == np.float32
    return twice


def test_a_time_between_two_float32_is_rounded_once():
    scene = RaycastingScene()
    scene.add_triangles(np.float32([[-4, -4, 9], [9, -4, -4], [-4, 9, -4]]), np.uint32([[0, 1, 2]]))
    ray = np.float32([[-(2.0**-24), -(2.0**-60), 0, 0, 0, 1]])
    assert float(scene.cast_rays(ray)["t_hit"][0]).hex() == "0x1.0000020000000p+0"
    assert float(scene.list_intersections(ray)["t_hit"][0]).hex() == "0x1.0000020000000p+0"
    assert float(scene.cast_rays(ray.astype(float))["t_hit"][0]).hex() == "0x1.0000010000000p+0"


@pytest.mark.parametrize("power", [0, 40, -126, -127, 126, 127])
def test_times_around_the_middle_of_two_float32(power):
    rng = np.random.default_rng(power + 200)
    n = np.concatenate([rng.integers(0, 2**23, 150), [0, 1, 2, 2**23 - 2, 2**23 - 1]])
    side = rng.integers(-1, 2, len(n))
    side[-2:] = 0, -1
    # t = (1 + n 2^-23 + 2^-24 + side 2^-60) 2^power in the plane x + y + z = 1
    rays = np.zeros((len(n), 6))
    rays[:, 0], rays[:, 1], rays[:, 2], rays[:, 5] = -n * 2.0**-23, -side * 2.0**-60, -(2.0**-24), 1.0
    rays = rays.astype(np.float32)
    rays[:, 3:] *= np.float32(2.0 ** -max(power, -126))
    vertices = np.float32([[-4, -4, 9], [9, -4, -4], [-4, 9, -4]])
    if power == -127:  # times below the normal numbers of float32
        rays[:, 5] *= 2
        rays[:, :3] *= np.float32(2.0**-18)
        vertices *= np.float32(2.0**-18)
    twice = compare(vertices, rays)
    assert twice > 20 or power == -127


def test_weights_around_the_middle_of_two_float32():
    rng = np.random.default_rng(9)
    n, side = rng.integers(0, 2**21, 200), rng.integers(-1, 2, 200)
    total = 0
    for k in (-1, 0, 1):
        # u = x - k 2^-60 y, where x is between two float32
        rays = np.zeros((200, 6))
        rays[:, 0], rays[:, 1], rays[:, 2] = 0.5 + n * 2.0**-24, 0.25 + side * 2.0**-10, -1.0
        rays[:, 3], rays[:, 5] = 2.0**-25, 1.0
        vertices = np.float32([[0, 0, 0], [1, 0, 0], [k * 2.0**-60, 1, 0]])
        total += compare(vertices, rays.astype(np.float32))
    assert total > 100
