"""Colours of primitives: bytes of red, green, blue and alpha, (n, 4); four zeros where a file states none."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raybox.errors import InvalidInput
from raybox.validation import Array, Ints

Colors: TypeAlias = NDArray[np.uint8]
COLORS = ("red", "green", "blue", "alpha")


def checked_colors(colors: Array | None, rows: int) -> Colors | None:
    """Return colours; raise `InvalidInput` unless there is one for each row."""
    if colors is not None and (colors.dtype != np.uint8 or colors.shape != (rows, 4)):
        got = f"{colors.dtype} of shape {colors.shape}"
        raise InvalidInput(f"colors must be uint8 of shape ({rows}, 4); got {got}. Correct them.")
    return None if colors is None else colors.astype(np.uint8, copy=False)


def joined_colors(parts: Sequence[Colors | None], rows: Sequence[int]) -> Colors | None:
    """Return the colours of several geometries, zeros for one without; None if none has any."""
    if all(part is None for part in parts):
        return None
    pairs = zip(parts, rows, strict=True)
    return np.concatenate([np.zeros((n, 4), np.uint8) if part is None else part for part, n in pairs])


def color_bytes(numbers: ArrayLike) -> Colors:
    """Return numbers from 0 to 1 as bytes, the nearest; others are clipped, and NaN is 0."""
    clipped = np.clip(np.nan_to_num(np.asarray(numbers, np.float64)), 0.0, 1.0)
    return np.rint(255.0 * clipped).astype(np.uint8)


def most_frequent(colors: Colors, groups: Ints) -> Colors:
    """Return the colour that most rows of each group have; groups: from 0 on, none empty."""
    keys = groups << 32 | np.ascontiguousarray(colors).view(np.uint32)[:, 0]
    keys, counts = np.unique(keys, return_counts=True)
    keys = keys[np.lexsort((counts, keys >> 32))]
    found: Colors = keys[np.diff(keys >> 32, append=-1) != 0].astype(np.uint32).view(np.uint8).reshape(-1, 4)
    return found
