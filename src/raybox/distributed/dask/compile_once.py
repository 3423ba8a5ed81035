"""Compile a query once on a machine, whatever the number of worker processes."""

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from raybox.geometry import Boxes, Grid, Mesh, Rays
from raybox.io.chunked.file_lock import NoLocks, try_lock
from raybox.io.chunked.result_columns import run_query
from raybox.scene.scene import Scene

_SECONDS = 120.0  # to wait for another process that compiles
_RAYS = 2048  # more than are traversed one by one


def compile_query(query: str, dimension: int, kind: str) -> None:
    """Compile a query, or load its code.

    One process of this machine at a time.

    kind: what the scene is made of, "boxes", "grid" or "mesh".
    """
    small = Scene(_small(dimension, kind), workers=1)
    starts = np.random.default_rng(0).integers(-3, 6, (_RAYS, dimension))
    t_max = np.full(_RAYS, 2.0)
    rays = Rays(starts, 1.0 - starts, t_min=np.zeros(_RAYS), t_max=t_max)
    with _one_process():
        for results in run_query(small, query, rays, 0, 1):
            results.columns({})


def _small(dimension: int, kind: str) -> Boxes | Grid | Mesh:
    """Return a small geometry of a kind."""
    origin, shape = [0] * dimension, (3,) * dimension
    if kind == "grid":
        return Grid.uniform(origin, 1, shape, occupied=np.arange(3**dimension) % 2 == 0)
    cells = Boxes.of_voxels(np.ones(shape, int), origin=origin, pitch=1)
    return cells if kind == "boxes" else Mesh(cells.lower, np.arange(len(cells) // 3 * 3).reshape(-1, 3))


@contextmanager
def _one_process() -> Iterator[None]:
    """Lock out other processes of this machine and user, on systems with such locks."""
    user = os.getuid() if os.name == "posix" else "user"  # elsewhere, each user has a temporary folder
    try:
        file = (Path(tempfile.gettempdir()) / f"raybox-{user}.lock").open("a")
    except OSError:  # then several compile
        yield
        return
    with file:
        until = time.monotonic() + _SECONDS
        with suppress(NoLocks):
            while time.monotonic() < until and not try_lock(file.fileno()):
                time.sleep(0.05)
        yield
