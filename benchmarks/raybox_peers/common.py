"""Shared by the adapters: boxes as triangles, calls on threads."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybox.bench.data import BoxSet, RaySet
from raybox.validation import Floats, Ints

Singles = NDArray[np.float32]
QUERIES = ("nearest", "occluded", "count", "all")

# Corner k of a box has its upper bound on axis 0, 1, 2 where bit 4, 2, 1 of k is set; two triangles a face.
_CORNERS = "013 032 467 475 045 051 237 276 026 064 157 173"
_FACES = np.array([[int(corner) for corner in face] for face in _CORNERS.split()])
TRIANGLES = len(_FACES)


def singles(rays: RaySet) -> tuple[Singles, Singles]:
    """Return origins and directions in float32."""
    return rays.origins.astype(np.float32), rays.directions.astype(np.float32)


def corners(boxes: BoxSet) -> Singles:
    """Return the eight corners of each box, (8 N, 3)."""
    upper = np.array([[k >> 2 & 1, k >> 1 & 1, k & 1] for k in range(8)], dtype=bool)
    made = np.where(upper, boxes.upper[:, None].astype(np.float32), boxes.lower[:, None].astype(np.float32))
    return made.reshape(-1, 3)


def faces(boxes: BoxSet, kind: type) -> NDArray[Any]:
    """Return twelve triangles for each box: (12 N, 3) corner numbers of this dtype."""
    first: NDArray[Any] = 8 * np.arange(len(boxes.lower), dtype=kind)
    made: NDArray[Any] = (first[:, None, None] + _FACES.astype(kind)).reshape(-1, 3)
    return made


def box_of(triangles: NDArray[Any]) -> Ints:
    """Return the box of each triangle, -1 for -1."""
    numbers: Ints = triangles.astype(np.int64)
    return np.where(numbers < 0, -1, numbers // TRIANGLES)


def on_threads(call: Callable[[int, int], Any], total: int, threads: int) -> list[Any]:
    """Return the results of ``call(begin, end)`` for equal parts, each on its own thread."""
    if threads == 1:
        return [call(0, total)]
    marks = [total * k // threads for k in range(threads + 1)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(call, marks[:-1], marks[1:]))


def times(ray_directions: Floats, origins: Floats, points: Floats) -> Floats:
    """Return t of points on rays, in lengths of the directions."""
    along: Floats = ((points - origins) * ray_directions).sum(axis=1) / (ray_directions**2).sum(axis=1)
    return along
