"""Plain compiled loops over hits, in float64: the peers of `Hits.points` and `Hits.normals`."""

from typing import Any

import numba
import numpy as np

_compiled = numba.njit(nogil=True, error_model="numpy")


@_compiled
def points(origins: Any, directions: Any, t: Any, out: Any) -> None:
    """Write o + t d of each ray; NaN or infinite for a miss."""
    for r in range(len(t)):
        for a in range(3):
            out[r, a] = origins[r, a] + t[r] * directions[r, a]


@_compiled
def triangle_normals(vertices: Any, faces: Any, index: Any, out: Any) -> None:
    """Write the unit normal of each triangle that is hit; NaN for a miss."""
    for r in range(len(index)):
        out[r, 0] = out[r, 1] = out[r, 2] = np.nan
        if index[r] >= 0:
            i, j, k = faces[index[r], 0], faces[index[r], 1], faces[index[r], 2]
            x, u = vertices[j, 0] - vertices[i, 0], vertices[k, 0] - vertices[i, 0]
            y, v = vertices[j, 1] - vertices[i, 1], vertices[k, 1] - vertices[i, 1]
            z, w = vertices[j, 2] - vertices[i, 2], vertices[k, 2] - vertices[i, 2]
            a, b, c = y * w - z * v, z * u - x * w, x * v - y * u
            length = np.sqrt(a * a + b * b + c * c)
            out[r, 0], out[r, 1], out[r, 2] = a / length, b / length, c / length


@_compiled
def box_normals(lower: Any, upper: Any, origins: Any, directions: Any, index: Any, out: Any) -> None:
    """Write the normal of the face by which each ray enters its box; zero inside, NaN for a miss."""
    for r in range(len(index)):
        out[r, 0] = out[r, 1] = out[r, 2] = np.nan
        if index[r] >= 0:
            axis, latest = -1, 0.0
            for a in range(3):
                d = directions[r, a]
                plane = lower[index[r], a] if d > 0.0 else upper[index[r], a]
                entry = (plane - origins[r, a]) / d
                if entry > latest:
                    axis, latest = a, entry
            out[r, 0] = out[r, 1] = out[r, 2] = 0.0
            if axis >= 0:
                out[r, axis] = -1.0 if directions[r, axis] > 0.0 else 1.0
