"""Where boxes' centres lie along a Hilbert curve of 2048 cells an axis, and sorting by it.

The curve's rule is that of Hamilton, "Compact Hilbert Indices" (2006), section 2: in each cube of an
octree a state says in what order its eight cubes are visited. There are 24 states, so two levels at
once are one table of 24 x 64 entries.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from raybox.bvh import bins, lanes
from raybox.bvh.crew import Each, chunks
from raybox.bvh.frame import Boxes, choose_frame, find_bulk, frozen
from raybox.kernels.jit import entry

_DIGIT = 11  # bits of the code that one pass sorts by: three passes
_INDEX = 31  # low bits of a key: the box's number
_CHUNK = 2**16  # boxes that a thread takes at once
BITS = 33  # of a place along the curve


def _turn(bits: int, by: int) -> int:
    """Rotate three bits to the left."""
    by %= 3
    return (bits << by | bits >> (3 - by)) & 7


def _step(entry_corner: int, way: int, octant: int) -> tuple[int, int, int]:
    """Return (place of an octant along the curve, and the corner and direction in which it is entered)."""
    gray = _turn(octant ^ entry_corner, -(way + 1))
    place = gray ^ gray >> 1 ^ gray >> 2
    before = 2 * ((place - 1) // 2)
    corner = before ^ before >> 1 if place else 0
    even = place - 1 if place % 2 == 0 else place
    ones = (~even & even + 1).bit_length() - 1 if place else 0
    return place, entry_corner ^ _turn(corner, way + 1), (way + ones + 1) % 3


@cache
def make_table() -> Any:
    """Return for each state and two levels of octants: next state * 64 + two digits of the code."""
    table = np.empty((24, 64), np.int32)
    for state in range(24):
        for octants in range(64):
            first, corner, way = _step(state // 3, state % 3, octants >> 3)
            second, corner, way = _step(corner, way, octants & 7)
            table[state, octants] = (corner * 3 + way) * 64 + first * 8 + second
    table.flags.writeable = False
    return table.reshape(-1)


@entry
def _make_keys(boxes: Boxes, span: Any, grid: Any, table: Any, keys: Any) -> None:
    """Write the place of each box on the curve, and its number, as one key."""
    over = lanes.load(grid, 0)
    for i in range(span[0], span[1]):
        row = lanes.outward(boxes.lower, boxes.upper, i, boxes.center, boxes.scale)
        keys[i] = bins.along_curve(row, over, table) >> 3 << _INDEX | i


@entry
def _count_digits(keys: Any, span: Any, shift: int, counts: Any) -> None:
    """Count some keys by their digit."""
    for i in range(span[0], span[1]):
        counts[keys[i] >> shift & (1 << _DIGIT) - 1] += 1


@entry
def _scatter(keys: Any, span: Any, shift: int, places: Any, to: Any) -> None:
    """Write some keys to the next place of their digit."""
    for i in range(span[0], span[1]):
        key = keys[i]
        digit = key >> shift & (1 << _DIGIT) - 1
        to[places[digit]] = key
        places[digit] += 1


def order_along(each: Each, boxes: Boxes) -> Any:
    """Return keys sorted along the curve; their low 31 bits are the boxes' numbers."""
    number = len(boxes.lower)
    keys, other = np.empty(number, np.int64), np.empty(number, np.int64)
    spans = chunks(0, number, _CHUNK)
    grid, table = _grid(boxes), make_table()
    each(_make_keys, [(boxes, span, grid, table, keys) for span in spans])
    for turn in range(3):
        shift = _INDEX + turn * _DIGIT
        counts = np.zeros((len(spans), 1 << _DIGIT), np.int64)
        each(_count_digits, [(keys, span, shift, row) for span, row in zip(spans, counts, strict=True)])
        # keys of one digit stand in the order of their chunks: no thread can change it
        ends = np.cumsum(counts.T.ravel()).reshape(counts.T.shape).T
        places = np.ascontiguousarray(ends - counts)
        each(_scatter, [(keys, span, shift, row, other) for span, row in zip(spans, places, strict=True)])
        keys, other = other, keys
    return keys


def _grid(boxes: Boxes) -> Any:
    """Return (low x, y, z, _, cells per length x, y, z, _) for doubled centres: cubes over the bulk.

    Boxes far from the bulk share the cells at its rim.
    """
    center, reach = find_bulk(boxes.lower, boxes.upper)
    step = max(1, len(boxes.lower) // 4096)
    with np.errstate(over="ignore", invalid="ignore"):  # boxes may be unbounded
        away = np.abs(0.5 * boxes.lower[::step] + 0.5 * boxes.upper[::step] - center)
        half = min(float(away[np.isfinite(away)].max(initial=0.0)), 4.0 * reach)
        length = 4.0 * half * boxes.scale
        low = (center - half - boxes.center) * boxes.scale
    ratio = 2.0**12 / length if 2.0**-100 < length < np.inf else 0.0
    grid = np.concatenate([2.0 * low, [0.0], [ratio] * 3, [0.0]])
    return np.clip(grid, -1e38, 1e38).astype(np.float32).reshape(1, 8)


class Curve(NamedTuple):
    """The curve, laid over boxes that need not be in memory."""

    center: Any
    scale: float
    grid: Any

    def places(self, lower: Any, upper: Any) -> Any:
        """Return where along the curve boxes are: uint64, of 33 bits."""
        keys = np.empty(len(lower), np.int64)
        boxes = Boxes(frozen(lower), frozen(upper), self.center, self.scale)
        _make_keys(boxes, (0, len(lower)), self.grid, make_table(), keys)
        return keys.view(np.uint64) >> np.uint64(_INDEX)


def lay(lower: Any, upper: Any) -> Curve:
    """Lay the curve over boxes, of which a sample is enough."""
    center, exponent = choose_frame(lower, upper)
    center.flags.writeable = False
    return Curve(center, 2.0**exponent, _grid(Boxes(lower, upper, center, 2.0**exponent)))
