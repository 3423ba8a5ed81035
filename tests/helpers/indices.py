"""Indices of every kind, for containers that are indexed as NumPy arrays."""

from math import prod

import numpy as np

SHAPES = [(), (6,), (4, 5), (2, 3, 4)]


def indices(shape):
    """Return indices of every kind over a shape whose axes have a row or more."""
    random = np.random.default_rng(prod(shape))
    found = [..., None, np.zeros(shape, bool), random.random(shape) < 0.5, np.ones(shape, bool)]
    if not shape:
        return [*found, ()]
    size, last = shape[0], tuple(n - 1 for n in shape)
    found += [0, -1, np.int64(size - 1), slice(1, 3), slice(None, None, -2), slice(size, None), [0, 0, -1]]
    found += [[[-1], [0]], np.arange(size) % 2 == 0, (None, -1), (..., 0), last]
    if len(shape) > 1:
        found += [(0, -1), (slice(1, 2), -1), (slice(None), [-1, 0]), ([-1, 0], [0, -1]), (..., slice(0, 0))]
    return found
