"""Colours of primitives: bytes of red, green, blue and alpha, (n, 4); four zeros where a file states none."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raybox.errors import InvalidInput
from raybox.geometry.row_ids import RowIndex
from raybox.validation import Array, Ints, freeze

Colors: TypeAlias = NDArray[np.uint8]


def checked_colors(colors: Array | None, rows: int) -> Colors | None:
    """Return colours, read-only; raise `InvalidInput` unless there is one for each row."""
    if colors is None:
        return None
    if colors.dtype != np.uint8 or colors.shape != (rows, 4):
        got = f"{colors.dtype} of shape {colors.shape}"
        raise InvalidInput(f"colors must be uint8 of shape ({rows}, 4); got {got}. Correct them.")
    found: Colors = colors.astype(np.uint8, copy=False)
    freeze(found)
    return found


def chosen_colors(colors: Colors | None, index: RowIndex) -> Colors | None:
    """Return the colours of the rows at an index; None for None."""
    if colors is None:
        return None
    found = np.asarray(colors[index], order="C")
    freeze(found)
    return found


def joined_colors(parts: Sequence[Colors | None], rows: Sequence[int]) -> Colors | None:
    """Return the colours of several geometries, zeros for one without; None if none has any."""
    if all(part is None for part in parts):
        return None
    pairs = zip(parts, rows, strict=True)
    found = np.concatenate([np.zeros((n, 4), np.uint8) if part is None else part for part, n in pairs])
    freeze(found)
    return found


def color_bytes(numbers: ArrayLike) -> Colors:
    """Return numbers from 0 to 1 as bytes, the nearest; others are clipped, and NaN is 0."""
    clipped = np.clip(np.nan_to_num(np.asarray(numbers, np.float64)), 0.0, 1.0)
    return np.rint(255.0 * clipped).astype(np.uint8)


def most_frequent(colors: Colors, groups: Ints) -> Colors:
    """Return the colour that most rows of each group have; groups: from 0 on, none empty."""
    codes = np.ascontiguousarray(colors).view(np.uint32)[:, 0]
    pairs, counts = np.unique(np.stack([groups, codes.astype(np.int64)]), axis=1, return_counts=True)
    order = np.lexsort((counts, pairs[0]))
    last = np.diff(pairs[0][order], append=-1) != 0
    found: Colors = pairs[1][order[last]].astype(np.uint32).view(np.uint8).reshape(-1, 4)
    return found
