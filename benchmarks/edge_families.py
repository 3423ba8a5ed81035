"""Cases at the edges of float64: scenes of every primitive, at the scales of one kind of fault."""

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import edge_adapters
import edge_matrices
import edge_sweeps
import families
import families_surfaces
import grids
import raybox as rb
from edge_matrices import determinant
from edge_scales import KINDS, LARGEST, Scale, arranged, scaled, scaled_rays
from edge_truth import Case

RAYS = 16
BASES = (
    "generic",
    "touching_faces",
    "touching_edges",
    "touching_corners",
    "ulp_off_faces",
    "ulp_off_corners",
    "flat_boxes",
    "origins_inside",
    "range_ends",
    "segments",
    "voxel_grid",
    "exact_ties",
    "near_ties",
)
SHAPES = {2: ((1, 1), (2, 2), (5, 3)), 3: ((1, 1, 1), (2, 2, 2), (3, 1, 4))}


class Units(NamedTuple):
    """Rays of ordinary numbers: origins, directions and ranges."""

    origins: np.ndarray
    directions: np.ndarray
    t_min: np.ndarray
    t_max: np.ndarray


def _boxes(rng, dim: int, count: int, bases=BASES) -> tuple[Units, np.ndarray, np.ndarray]:
    name = "planar" if dim == 2 else str(rng.choice(bases))
    pairs = families.scene(name, int(rng.integers(1 << 31)), count, RAYS)
    return Units(*pairs[:4]), pairs.lower, pairs.upper


def _rays(rng, scale: Scale, units: Units) -> rb.Rays:
    origins, directions, low, high = scaled_rays(rng, scale, *units)
    return rb.Rays(origins, directions, t_min=low, t_max=high)


def boxes(rng, kind, dim, count=None) -> tuple[tuple, rb.Rays]:
    bases = (*BASES, "half_spaces", "signed_zeros")
    units, lower, upper = _boxes(rng, dim, count or int(rng.choice([1, 2, 5, 12, 24])), bases)
    scale = kind(rng, RAYS, dim)
    lower, upper = (scaled(x, scale.place) for x in arranged(rng, scale, lower, upper))
    return (rb.Boxes(lower, upper),), _rays(rng, scale, units)


def _corners(rng, count: int) -> tuple[Units, np.ndarray]:
    pairs = families_surfaces.triangles(int(rng.integers(1 << 31)), max(count, RAYS))
    return Units(*(x[:RAYS] for x in pairs[:4])), pairs.corners[:count]


def _mesh(corners) -> rb.Mesh:
    return rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def mesh(rng, kind, dim=3) -> tuple[tuple, rb.Rays]:
    units, corners = _corners(rng, int(rng.choice([1, 4, 12])))
    scale = kind(rng, RAYS, dim)
    (corners,) = arranged(rng, scale, corners)
    return (_mesh(scaled(corners, scale.place)),), _rays(rng, scale, units)


def planes(rng, kind, dim=3) -> tuple[tuple, rb.Rays]:
    count = int(rng.choice([1, 4, 12]))
    pairs = families_surfaces.planes(int(rng.integers(1 << 31)), max(count, RAYS), dim)
    scale = kind(rng, RAYS, dim)
    own = int(rng.integers(-40, 40))  # n . p = offset, with n of the inverse scale
    normals = scaled(pairs.normals[:count], np.clip(own - scale.place, -1074, 1016))
    normals[:, 0] = np.where(normals.any(axis=1), normals[:, 0], 1.0)
    offsets = scaled(pairs.offsets[:count], own)
    return (rb.Planes(normals, offsets),), _rays(rng, scale, Units(*(x[:RAYS] for x in pairs[:4])))


def _matrices(rng, dim: int, count: int) -> np.ndarray:
    """Return maps [A b] of ordinary numbers: quarter turns, shears, and any."""
    made = np.zeros((count, dim, dim + 1))
    for k in range(count):
        turn = np.eye(dim)[rng.permutation(dim)] * rng.choice([-1.0, 1.0, 2.0, 0.5], dim)
        shear = np.eye(dim) + np.triu(rng.integers(-2, 3, (dim, dim)), 1)
        made[k, :, :dim] = (turn, shear, np.eye(dim) + rng.normal(size=(dim, dim)) / 4)[rng.integers(3)]
        made[k, :, dim] = rng.integers(-3, 4, dim) if rng.random() < 0.6 else rng.uniform(-3, 3, dim)
    return made


def _instances(rng, kind, dim: int, units: Units, make: Callable, *corners) -> tuple[tuple, rb.Rays]:
    """Return copies of a geometry, and its rays moved with one of the copies each."""
    scale, matrices = kind(rng, RAYS, dim), _matrices(rng, dim, int(rng.integers(1, 4)))
    which = rng.integers(len(matrices), size=RAYS)
    linear, moves = matrices[which, :, :dim], matrices[which, :, dim]
    origins, directions = (np.einsum("nij,nj->ni", linear, x) for x in units[:2])
    near = rng.random(dim) < 0.7
    own = np.where(near, scale.place, np.clip(scale.place + rng.integers(-900, 900, dim), -1060, 1010))
    matrices = np.concatenate(
        [
            scaled(matrices[..., :dim], scale.place[:, None] - own),
            scaled(matrices[..., dim:], scale.place[:, None]),
        ],
        axis=-1,
    )
    rays = _rays(rng, scale, Units(origins + moves, directions, *units[2:]))
    parts = [scaled(x, own) for x in arranged(rng, scale, *corners)]
    regular = [m for m in matrices if determinant(m[:, :dim].tolist()) != 0]
    return (rb.Instances(make(*parts), np.reshape(regular, (-1, dim, dim + 1))),), rays


def box_instances(rng, kind, dim=3) -> tuple[tuple, rb.Rays]:
    units, lower, upper = _boxes(rng, dim, 3)
    return _instances(rng, kind, dim, units, rb.Boxes, lower, upper)


def mesh_instances(rng, kind, dim=3) -> tuple[tuple, rb.Rays]:
    units, corners = _corners(rng, 3)
    return _instances(rng, kind, dim, units, _mesh, corners)


def grid(rng, kind, dim) -> tuple[tuple, rb.Rays]:
    shape = SHAPES[dim][rng.integers(3)]
    made = grids.random_grid(str(rng.choice(["integers", "steps", "random"])), rng, shape)
    rays, scale = grids.random_rays(rng, made, RAYS), kind(rng, RAYS, dim)
    press = int(rng.integers(dim)) if scale.pressed else -1
    edges = [scaled(x, scale.place[k] - scale.pressed * (k == press)) for k, x in enumerate(made.edges)]
    if scale.apart:
        edges[int(rng.integers(dim))][[0, -1]] = -LARGEST, LARGEST
    edges = [axis if (np.diff(axis) > 0).all() else np.array([-1.0, 1.0]) for axis in edges]
    mask = rng.random([len(axis) - 1 for axis in edges]) < 0.7 if rng.random() < 0.3 else None
    units = Units(
        rays.origins, rays.directions, *(np.broadcast_to(t, RAYS) for t in (rays.t_min, rays.t_max))
    )
    return (rb.Grid(*edges, occupied=mask),), _rays(rng, scale, units)


def several(rng, kind, dim=3) -> tuple[tuple, rb.Rays]:
    """Return boxes of one scene with other geometries at the same scale."""
    drawn = int(rng.integers(1 << 31))
    same = lambda _rng, n, d: kind(np.random.default_rng(drawn), n, d)  # noqa: E731
    makers = (boxes, box_instances, grid) if rng.random() < 0.6 else (boxes, mesh, planes, mesh_instances)
    chosen = [makers[i] for i in rng.permutation(len(makers))[:2]]
    made = [one(rng, same, dim) for one in chosen]
    return tuple(g for geometries, _ in made for g in geometries), made[int(rng.integers(2))][1]


class Maker(NamedTuple):
    """What makes geometries and rays of a primitive, and the share of cases that it gets."""

    make: Callable
    dim: int
    share: int


MAKERS = {
    "boxes 2D": Maker(boxes, 2, 4),
    "boxes 3D": Maker(boxes, 3, 6),
    "mesh": Maker(mesh, 3, 4),
    "planes 2D": Maker(planes, 2, 1),
    "planes 3D": Maker(planes, 3, 1),
    "instances of boxes 2D": Maker(box_instances, 2, 2),
    "instances of boxes 3D": Maker(box_instances, 3, 2),
    "instances of meshes": Maker(mesh_instances, 3, 1),
    "grid 2D": Maker(grid, 2, 4),
    "grid 3D": Maker(grid, 3, 3),
    "several": Maker(several, 3, 2),
    "saved boxes": Maker(boxes, 3, 1),
    "saved mesh": Maker(mesh, 3, 1),
}
OTHERS = {  # with the kinds that they belong to
    "sweep": (edge_sweeps.make, (1, 2, 3, 4, 5), 2),
    "contains_points": (edge_adapters.make_layers, (2,), 3),
    "float32": (edge_adapters.make_singles, (2,), 3),
    "matrices": (edge_matrices.make, (4,), 6),
}


def shares(kind: int) -> dict[str, float]:
    """Return the share of the cases of a kind that each primitive gets."""
    parts = {name: maker.share for name, maker in MAKERS.items()}
    parts |= {name: share for name, (_, kinds, share) in OTHERS.items() if kind in kinds}
    return {name: part / sum(parts.values()) for name, part in parts.items()}


def make(kind: int, primitive: str, seed: int):
    """Return a case, the same for the same seed."""
    rng = np.random.default_rng([37, kind, zlib.crc32(primitive.encode()), seed])
    with np.errstate(all="ignore"):
        if primitive in OTHERS:
            return OTHERS[primitive][0](rng, KINDS[kind])
        maker = MAKERS[primitive]
        geometries, rays = maker.make(rng, KINDS[kind], maker.dim)
    return Case(primitive, geometries, rays, sorted=bool(seed % 2))
