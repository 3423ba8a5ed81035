"""Triangles of triangle strips, as files of meshes hold them."""

import numpy as np

from raybox.validation import Ints


def strip_triangles(strips: Ints) -> Ints:
    """Return the triangles of triangle strips, one array of vertices with -1 between strips.

    Every three vertices in a row are a triangle; every second one is turned round, so that all of a strip
    face the same side. Triangles that name a vertex twice only join strips: they are left out.
    """
    if not strips.size:
        return np.zeros((0, 3), dtype=np.int64)
    windows = np.lib.stride_tricks.sliding_window_view(np.append(strips, [-1, -1]), 3)
    at = np.arange(len(windows))
    begins = np.maximum.accumulate(np.where(strips == -1, at + 1, 0))
    triangles = windows.copy()
    turned = (at - begins) % 2 == 1
    triangles[turned, :2] = triangles[turned, 1::-1]
    first, second, third = triangles.T
    within = (triangles != -1).all(axis=-1)
    found: Ints = triangles[within & (first != second) & (second != third) & (first != third)]
    return found
