"""Scenes in which every ray ties with, touches or contains many primitives; see `benchmarks/hard_scenes.py`.

A family is a function of (random generator, number of rays, number of primitives) that returns rays and a
geometry.
"""

from collections.abc import Callable

import numpy as np

import raybox as rb

FAMILIES: dict[str, Callable[[np.random.Generator, int, int], tuple[rb.Rays, object]]] = {}
ULP = 2.0**-52


def family(function):
    """Add a family."""
    FAMILIES[function.__name__.replace("_", " ")] = function
    return function


def at_face(rng, rays):
    """Return rays from around x = -1.5 through the face x = 1, -1 < y, z < 1."""
    origins = np.column_stack([-1 - rng.random(rays), rng.uniform(-0.5, 0.5, (rays, 2))])
    points = np.column_stack([np.ones(rays), rng.uniform(-0.9, 0.9, (rays, 2))])
    return rb.Rays(origins, points - origins)


def entered_at(rng, near):
    """Return boxes of all sizes that rays of `at_face` enter at x = near."""
    size = 1 + rng.random((3, near.size, 2))
    lower, upper = np.column_stack([near, -size[0]]), np.column_stack([near + size[2, :, 0], size[1]])
    return rb.Boxes(lower, upper)


@family
def identical_boxes(rng, rays, number):
    return at_face(rng, rays), rb.Boxes(*(np.tile(x, (number, 1)) for x in ([1.0, -1, -1], [2.0, 1, 1])))


@family
def one_entering_face(rng, rays, number):
    return at_face(rng, rays), entered_at(rng, np.ones(number))


@family
def near_equal_faces(rng, rays, number):
    return at_face(rng, rays), entered_at(rng, 1 + ULP * rng.permutation(number))


def nested(rng, number):
    """Return boxes around 0, each inside of the next."""
    size = rng.permutation(1 + np.arange(number) / number)[:, None] * np.ones(3)
    return rb.Boxes(-size, size)


@family
def nested_boxes(rng, rays, number):
    origins, directions = rng.uniform(-0.5, 0.5, (rays, 3)), rng.normal(size=(rays, 3))
    return rb.Rays(origins, directions), nested(rng, number)


@family
def nested_boxes_from_outside(rng, rays, number):
    origins = rng.normal(size=(rays, 3))
    origins *= 9 / np.linalg.norm(origins, axis=1, keepdims=True)
    return rb.Rays(origins, rng.uniform(-0.5, 0.5, (rays, 3)) - origins), nested(rng, number)


def on_ray(rng, rays, number):
    """Return corners at d, 2 d, ..., sizes of boxes there, and rays of direction d from -d, -2 d, ..."""
    d = np.array([3.0, -5.0, 7.0])
    size = rng.random((number, 3)).astype(np.float32) + 1.0
    return np.arange(1.0, number + 1)[:, None] * d, size, rb.Rays(-rng.integers(1, 1000, (rays, 1)) * d, d)


@family
def lower_corners_on_ray(rng, rays, number):
    corners, size, hitting = on_ray(rng, rays, number)
    return hitting, rb.Boxes(corners, corners + size)


@family
def upper_corners_on_ray(rng, rays, number):
    corners, size, hitting = on_ray(rng, rays, number)
    return hitting, rb.Boxes(corners - size, corners)


@family
def corners_beside_ray(rng, rays, number):
    """Corners are up to two floats beside the ray: of hits and misses, differences are mostly no floats."""
    corners, size, hitting = on_ray(rng, rays, number)
    corners += rng.integers(-2, 3, corners.shape) * np.spacing(corners)
    return rb.Rays(hitting.origins + 0.1, hitting.directions), rb.Boxes(corners + 0.1, corners + 0.1 + size)


def across(rng, near):
    """Return triangles across the x axis, which rays of `at_face` hit at x = near."""
    corners = np.tile([[1.0, -9, -9], [1, 9, -9], [1, 0, 9]], (near.size, 1))
    corners[:, 0] = np.repeat(near, 3)
    corners[:, 1:] *= rng.uniform(1, 2, (3 * near.size, 1))
    return rb.Mesh(corners, np.arange(3 * near.size).reshape(-1, 3))


@family
def identical_triangles(rng, rays, number):
    corners = np.tile([[1.0, -9, -9], [1, 9, -8], [2, 0, 9]], (number, 1))
    return at_face(rng, rays), rb.Mesh(corners, np.arange(3 * number).reshape(-1, 3))


@family
def triangles_in_one_plane(rng, rays, number):
    return at_face(rng, rays), across(rng, np.ones(number))


@family
def triangles_in_near_planes(rng, rays, number):
    return at_face(rng, rays), across(rng, 1 + ULP * rng.permutation(number))


def oblique(rng, number):
    """Return triangles in the plane x = 1 + y / 2 - z / 4, exactly; rays of `at_face` hit them."""
    corners = np.tile([[0.0, -9, -9], [0, 9, -9], [0, 0, 9]], (number, 1))
    corners[:, 1:] = np.round(corners[:, 1:] * rng.uniform(1, 2, (3 * number, 1)) * 2.0**40) * 2.0**-40
    corners[:, 0] = 1 + corners[:, 1] / 2 - corners[:, 2] / 4
    return corners


@family
def triangles_in_one_oblique_plane(rng, rays, number):
    return at_face(rng, rays), rb.Mesh(oblique(rng, number), np.arange(3 * number).reshape(-1, 3))


@family
def triangles_in_near_oblique_planes(rng, rays, number):
    """As a matrix leaves them that turns triangles of one plane: each number is rounded."""
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    cast, corners = at_face(rng, rays), oblique(rng, number) @ turn
    rays = rb.Rays(cast.origins @ turn, cast.directions @ turn)
    return rays, rb.Mesh(corners, np.arange(3 * number).reshape(-1, 3))


@family
def identical_instances(rng, rays, number):
    where = np.tile(np.column_stack([np.eye(3), [1.0, 0, 0]]), (number, 1, 1))
    return at_face(rng, rays), rb.Instances(rb.Boxes([0, -1, -1], [1, 1, 1]), where)


@family
def cells_beside_rays(rng, rays, number):
    edges = np.arange(np.ceil(number ** (1 / 3)) + 1)
    origins = rng.integers(1, edges.size - 1, (rays, 3)) * [0.0, 1, 1] + [-1.0, 0, 0]
    return rb.Rays(origins, [1.0, 0, 0]), rb.Grid(edges, edges, edges)
