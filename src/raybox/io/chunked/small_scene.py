"""Compile a query before the time of a cast begins, by rays in a small scene: no other is read for it."""

import numpy as np

from raybox.geometry import Boxes, Grid, Mesh, Rays
from raybox.io.chunked.result_columns import run_query
from raybox.scene.scene import Scene

_RAYS = 2048  # more than are traversed one by one


def run_in_small_scene(query: str, dimension: int, kind: str) -> None:
    """Run a query for some rays; kind: what the scene is made of, "boxes", "grid" or "mesh"."""
    small = Scene(_small(dimension, kind), workers=1)
    starts = np.random.default_rng(0).integers(-3, 6, (_RAYS, dimension))
    t_max = np.full(_RAYS, 2.0)
    rays = Rays(starts, 1.0 - starts, t_min=np.zeros(_RAYS), t_max=t_max)
    for results in run_query(small, query, rays, 0, 1):
        results.columns({})


def _small(dimension: int, kind: str) -> Boxes | Grid | Mesh:
    """Return a small geometry of a kind."""
    origin, shape = [0] * dimension, (3,) * dimension
    if kind == "grid":
        return Grid.uniform(origin, 1, shape, occupied=np.arange(3**dimension) % 2 == 0)
    cells = Boxes.of_voxels(np.ones(shape, int), origin=origin, pitch=1)
    return cells if kind == "boxes" else Mesh(cells.lower, np.arange(len(cells) // 3 * 3).reshape(-1, 3))
