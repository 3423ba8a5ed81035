"""The cube of twelve triangles, two a side."""

import numpy as np

import raybox as rb

CORNERS = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
_SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
FACES = np.array([half for a, b, c, d in _SIDES for half in ((a, b, c), (a, c, d))])


def cubes(count: int = 1, **options) -> rb.Mesh:
    """Return the unit cube as one object, or so many of them at one place."""
    faces = np.concatenate([FACES + 8 * k for k in range(count)])
    return rb.Mesh(np.tile(CORNERS, (count, 1)), faces, objects=np.repeat(np.arange(count), 12), **options)
