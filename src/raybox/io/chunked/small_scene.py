"""Compile a query, and the reader of its rays, before the time of a cast begins."""

from contextlib import suppress

import numpy as np

from raybox.errors import RayboxError
from raybox.geometry import Boxes, Grid, Mesh, Rays
from raybox.io.chunked import chunks
from raybox.io.chunked.chunks import RayFile
from raybox.io.chunked.result_columns import run_query
from raybox.scene.scene import Scene
from raybox.traversal.ray_groups import SMALL_BATCH

_RAYS = 2 * SMALL_BATCH  # more than are traversed one by one


def compile_cast(source: RayFile, size: int, query: str, kind: str, workers: int) -> None:
    """Compile what a cast of a file in chunks of a size runs; kind: of `run_in_small_scene`.

    Rays that are few are traversed one by one, by code that is compiled already.
    """
    rays = size if source.total is None else min(size, source.total)
    if rays > SMALL_BATCH:
        run_in_small_scene(query, source.dimension, kind, workers)
        with suppress(RayboxError):  # the cast raises it again, once the rays before are done
            chunks.read_first_rows(source)


def run_in_small_scene(query: str, dimension: int, kind: str, workers: int = 1) -> None:
    """Run a query for some rays; kind: what the scene is made of, "boxes", "grid" or "mesh"."""
    small = Scene(_small(dimension, kind), workers=1)
    starts = np.random.default_rng(0).integers(-3, 6, (_RAYS, dimension))
    t_max = np.full(_RAYS, 2.0)
    rays = Rays(starts, 1.0 - starts, t_min=np.zeros(_RAYS), t_max=t_max)
    for results in run_query(small, query, rays, 0, workers):
        results.columns({})


def _small(dimension: int, kind: str) -> Boxes | Grid | Mesh:
    """Return a small geometry of a kind."""
    origin, shape = [0] * dimension, (3,) * dimension
    if kind == "grid":
        return Grid.uniform(origin, 1, shape, occupied=np.arange(3**dimension) % 2 == 0)
    cells = Boxes.of_voxels(np.ones(shape, int), origin=origin, pitch=1)
    return cells if kind == "boxes" else Mesh(cells.lower, np.arange(len(cells) // 3 * 3).reshape(-1, 3))
