"""Scenes of a saved page's kinds, with rays through their faces, edges and corners."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import families_surfaces
import grids
import raybox as rb

MAP = np.array([5e5, 4e6, 50.0])
SCENES: dict[str, Callable[[np.random.Generator], "Case"]] = {}


class Case(NamedTuple):
    """Geometries and rays."""

    geometries: list
    rays: rb.Rays


def scene(function):
    """Add a scene."""
    SCENES[function.__name__] = function
    return function


def make(name: str, seed: int) -> Case:
    """Return a scene, the same for the same seed."""
    return SCENES[name](np.random.default_rng([seed, *name.encode()]))


def rays_through(rng, points, count: int) -> rb.Rays:
    """Return rays of small whole directions through points, some of them without a motion or a start."""
    directions = rng.integers(-3, 4, (count, 3)).astype(float)
    steps = rng.choice([0.0, 0.5, 1.0, 2.0, 3.0], (count, 1))
    origins = points[rng.integers(0, len(points), count)] - steps * directions
    t_min = rng.choice([0.0, -np.inf, 0.5, 1.0], count, p=[0.4, 0.3, 0.15, 0.15])
    t_max = rng.choice([np.inf, 1.0, 2.5], count, p=[0.7, 0.15, 0.15])
    return rb.Rays(origins, directions, t_min=t_min, t_max=np.maximum(t_min, t_max))


def whole_boxes(rng, count: int, span: int = 6) -> rb.Boxes:
    """Return boxes with small whole bounds, some flat: faces, edges and corners coincide."""
    lower = rng.integers(-span, span, (count, 3)).astype(float)
    return rb.Boxes(lower, lower + rng.integers(0, 4, (count, 3)))


def terrain(rng, size: int, scale: float = 1.0, shift=0.0) -> rb.Mesh:
    """Return a surface of triangles that share edges, in steps of whole heights: parts of it are planes."""
    x, y = np.meshgrid(np.arange(size), np.arange(size), indexing="ij")
    vertices = np.stack([x, y, rng.integers(0, 2, (size, size))], axis=-1).reshape(-1, 3) * scale + shift
    number = np.arange(size * size).reshape(size, size)
    corners = number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]
    faces = np.concatenate([np.stack(corners[:3], axis=-1), np.stack(corners[3:0:-1], axis=-1)]).reshape(
        -1, 3
    )
    return rb.Mesh(vertices, faces, objects=np.arange(len(faces)) % 11)


def whole_matrices(rng, count: int) -> np.ndarray:
    """Return regular matrices of small whole numbers: sheared, mirrored, scaled."""
    linear = rng.integers(-2, 3, (20 * count, 3, 3)).astype(float)
    regular = linear[np.abs(np.linalg.det(linear)) > 0.5][:count]
    return np.concatenate([regular, rng.integers(-6, 7, (len(regular), 3, 1))], axis=2)


def rotations(rng, count: int, shift=0.0) -> np.ndarray:
    """Return rotations with full mantissas, scaled, and half of them mirrored."""
    turns = np.linalg.qr(rng.normal(size=(count, 3, 3)))[0] * rng.choice(
        [1.0, -1.0, 2.0, 0.37], (count, 1, 3)
    )
    return np.concatenate([turns, (rng.uniform(-8, 8, (count, 3)) + shift)[:, :, None]], axis=2)


def odd(rng, *shape: int) -> np.ndarray:
    """Return odd numbers of 53 bits, of both signs: three, five or seven times one of them is no float64."""
    return (2.0 * rng.integers(2**51, 2**52, shape) + 1) * rng.choice([-1.0, 1.0], shape)


def images(instances: rb.Instances, points) -> np.ndarray:
    """Return the images of points under all matrices, rounded."""
    matrices = instances.transforms[:, :3]
    moved = np.einsum("nij,mj->nmi", matrices[:, :, :3], points) + matrices[:, None, :, 3]
    return moved.reshape(-1, 3)


@scene
def boxes_with_ties(rng):
    boxes = whole_boxes(rng, 200)
    return Case([boxes], rays_through(rng, boxes.lower, 1000))


@scene
def boxes_of_a_map(rng):
    lower = np.round(MAP + rng.uniform(-30, 30, (2000, 3)), 3)
    boxes = rb.Boxes(lower, lower + rng.integers(0, 6, (2000, 3)))
    return Case([boxes], rays_through(rng, boxes.upper, 1000))


@scene
def boxes_at_rounded_times(rng):
    """Rays from -c to edges at 4 c, or from c to 8 c: t is 5 or 7 units, but 5 c and 7 c are rounded."""
    c, times = odd(rng, 300, 3), rng.choice([5.0, 7.0], (300, 1))
    start = times - 6
    size, unit = np.moveaxis(np.array([(-53, 0), (-1040, -1075), (900, 1010)])[rng.integers(0, 3, 300)], 1, 0)
    place = np.ldexp(1.0, size)[:, None]
    edge = (times + start) * c * place
    bounds = edge, edge + rng.choice([-1, 1], (300, 3)) * c * place
    directions = np.ldexp(c, (size - unit)[:, None])
    return Case([rb.Boxes(np.minimum(*bounds), np.maximum(*bounds))], rb.Rays(start * c * place, directions))


@scene
def triangles(rng):
    pairs = families_surfaces.triangles(int(rng.integers(1000)), 400)
    mesh = rb.Mesh(pairs.corners.reshape(-1, 3), np.arange(1200).reshape(-1, 3), objects=np.arange(400) // 3)
    return Case([mesh], rb.Rays(pairs.origins, pairs.directions, t_min=pairs.t_min, t_max=pairs.t_max))


@scene
def terrain_of_whole_numbers(rng):
    mesh = terrain(rng, 24)
    return Case([mesh], rays_through(rng, mesh.vertices, 1500))


@scene
def terrain_of_a_map(rng):
    mesh = terrain(rng, 24, 0.1, MAP)
    return Case([mesh], rays_through(rng, mesh.triangles.mean(axis=1), 800))


@scene
def triangles_of_all_sizes(rng):
    vertices = rng.normal(size=(300, 3)) * 10.0 ** rng.integers(-300, 300, (300, 1))
    mesh = rb.Mesh(vertices, rng.integers(0, 300, (100, 3)))
    return Case([mesh], rays_through(rng, vertices, 120))


@scene
def sheared_boxes(rng):
    copies = rb.Instances(whole_boxes(rng, 5, 2), whole_matrices(rng, 60))
    return Case([copies], rays_through(rng, images(copies, copies.geometry.lower), 1000))


@scene
def sheared_meshes(rng):
    copies = rb.Instances(terrain(rng, 5), whole_matrices(rng, 60))
    return Case([copies], rays_through(rng, images(copies, copies.geometry.vertices), 1000))


def _rounded_images(rng, base) -> Case:
    """Return copies that move (3, 0, 0) to 2 a, where 3 a is no float64, and rays through it."""
    a = odd(rng, 40, 3) * 2.0**-53
    linear = np.stack([a, *rng.normal(size=(2, 40, 3))], axis=2)
    copies = rb.Instances(base, np.concatenate([linear, -a[:, :, None]], axis=2))
    directions = np.eye(3)[rng.integers(0, 3, 40)] * rng.choice([-1.0, 1.0], (40, 1))
    return Case([copies], rb.Rays(np.where(directions != 0, 0.0, 2 * a), directions, t_min=-np.inf))


@scene
def triangles_at_rounded_images(rng):
    others = rng.integers(-2, 3, (16, 3))
    faces = [[0, k, k + 1] for k in range(1, 16, 2)]
    return _rounded_images(rng, rb.Mesh([[3, 0, 0], *others], faces))


@scene
def boxes_at_rounded_images(rng):
    to = np.array([3, 0, 0]) + rng.choice([-1, 1], (8, 3))
    return _rounded_images(rng, rb.Boxes(np.minimum([3, 0, 0], to), np.maximum([3, 0, 0], to)))


@scene
def rotated_boxes(rng):
    copies = rb.Instances(whole_boxes(rng, 4, 2), rotations(rng, 100))
    return Case([copies], rays_through(rng, images(copies, copies.geometry.upper), 1000))


@scene
def rotated_meshes_of_a_map(rng):
    copies = rb.Instances(terrain(rng, 6), rotations(rng, 40, MAP))
    return Case([copies], rays_through(rng, images(copies, copies.geometry.triangles.mean(axis=1)), 1000))


@scene
def copies_of_all_sizes(rng):
    base = whole_boxes(rng, 4, 2)
    matrices = rotations(rng, 30) * 10.0 ** rng.integers(-305, 300, (30, 1, 1))
    copies = rb.Instances(base, matrices)
    return Case([copies], rays_through(rng, images(copies, base.upper), 120))


@scene
def coincident_geometries(rng):
    """Boxes, their copies, their triangles and cells: the same faces several times."""
    boxes = whole_boxes(rng, 30, 3)
    grid = rb.Grid(*[np.arange(-3.0, 4.0)] * 3, occupied=rng.random((6, 6, 6)) < 0.4)
    twice = np.eye(4)[None].repeat(2, axis=0)
    floor = rb.Mesh([[-9, -9, 0], [9, -9, 0], [0, 9, 0]], [[0, 1, 2], [2, 1, 0]], objects=[0, 0])
    found = [boxes, grid, rb.Instances(boxes, twice), floor, rb.Boxes(boxes.lower[::-1], boxes.upper[::-1])]
    return Case(found, rays_through(rng, boxes.lower, 800))


def _grid(kind: str, share: float | None, shape) -> None:
    def case(rng) -> Case:
        grid = grids.random_grid(kind, rng, shape, share)
        return Case([grid], grids.random_rays(rng, grid, 500))

    SCENES[f"grid_{kind}_{'full' if share is None else 'holes'}"] = case


for kind in grids.KINDS:
    _grid(kind, None, (4, 5, 6))
    _grid(kind, 0.3, (30, 2, 41))
