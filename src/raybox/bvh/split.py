"""Split a part of the boxes in two where it costs a ray least.

Cost: the sum over both halves of surface area times number of boxes (Goldsmith and Salmon 1987),
over 15 cuts between 16 bins on each axis (Wald 2007).
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.kernels.jit import device

BINS = 16
_CLAMP = np.float32(2.0**20)  # bounds in cost sums: an infinite box must not make costs infinite
_INF = np.float32(np.inf)


class Work(NamedTuple):
    """Boxes being sorted into nodes: rows of six float32, and the number that each had."""

    boxes: Any
    numbers: Any


class Bins(NamedTuple):
    """Counts and bounds by bin of one axis, and the costs of the suffixes."""

    count: Any
    bounds: Any
    suffix: Any


def make_bins() -> Bins:
    """Make the scratch memory of splits, outside of compiled code (which so compiles faster)."""
    return Bins(np.zeros(BINS, np.int64), np.empty((BINS, 6), np.float32), np.empty(BINS))


@device
def _center(boxes: Any, i: int, axis: int) -> Any:
    """Return what stands for a box's place on an axis: its centre, or its only finite face."""
    low = boxes[i, axis]
    up = boxes[i, 3 + axis]
    if low == -_INF:
        return up if up != _INF else np.float32(0.0)
    return low if up == _INF else np.float32(0.5) * low + np.float32(0.5) * up


@device
def _area(bounds: Any) -> Any:
    """Return half the surface area of bounds, clamped to finite sizes."""
    x = max(min(bounds[3], _CLAMP) - max(bounds[0], -_CLAMP), np.float32(0.0))
    y = max(min(bounds[4], _CLAMP) - max(bounds[1], -_CLAMP), np.float32(0.0))
    z = max(min(bounds[5], _CLAMP) - max(bounds[2], -_CLAMP), np.float32(0.0))
    return x * y + y * z + z * x


@device
def _grow(bounds: Any, other: Any) -> None:
    """Grow bounds to hold others."""
    for k in range(3):
        bounds[k] = min(bounds[k], other[k])
        bounds[3 + k] = max(bounds[3 + k], other[3 + k])


@device
def _reset(bounds: Any) -> None:
    """Make bounds hold nothing."""
    for k in range(3):
        bounds[k] = _INF
        bounds[3 + k] = -_INF


@device
def part_area(work: Work, begin: int, end: int, bounds: Any) -> Any:
    """Return the area of a part's bounds; `bounds` is scratch."""
    _reset(bounds)
    for i in range(begin, end):
        _grow(bounds, work.boxes[i])
    return _area(bounds)


@device
def _bin_of(center: Any, low: Any, ratio: Any) -> int:
    return min(BINS - 1, max(0, int((center - low) * ratio)))


@device
def _axis_range(work: Work, begin: int, end: int, axis: int) -> tuple[Any, Any]:
    """Return the range of the centres of a part on an axis."""
    low = _INF
    up = -_INF
    for i in range(begin, end):
        c = _center(work.boxes, i, axis)
        low = min(low, c)
        up = max(up, c)
    return low, up


@device
def _fill_bins(work: Work, begin: int, end: int, place: tuple[int, Any, Any], bins: Bins) -> None:
    """Count boxes and gather bounds by bin."""
    axis, low, ratio = place
    for b in range(BINS):
        bins.count[b] = 0
        _reset(bins.bounds[b])
    for i in range(begin, end):
        b = _bin_of(_center(work.boxes, i, axis), low, ratio)
        bins.count[b] += 1
        _grow(bins.bounds[b], work.boxes[i])


@device
def _cheapest(bins: Bins, scratch: Any) -> tuple[Any, int]:
    """Return (cost, last bin of the left side) of the cheapest cut between two bins."""
    _reset(scratch)
    number = 0
    for b in range(BINS - 1, 0, -1):
        number += bins.count[b]
        _grow(scratch, bins.bounds[b])
        bins.suffix[b] = np.inf if number == 0 else np.float64(_area(scratch)) * number
    _reset(scratch)
    number = 0
    best = np.inf
    cut = -1
    for b in range(BINS - 1):
        number += bins.count[b]
        _grow(scratch, bins.bounds[b])
        if number > 0:
            cost = np.float64(_area(scratch)) * number + bins.suffix[b + 1]
            if cost < best:
                best = cost
                cut = b
    return best, cut


@device
def _partition(work: Work, begin: int, end: int, place: tuple[int, Any, Any], cut: int) -> int:
    """Move boxes of the bins up to `cut` to the front; return where the others begin."""
    axis, low, ratio = place
    i = begin
    j = end - 1
    while i <= j:
        if _bin_of(_center(work.boxes, i, axis), low, ratio) <= cut:
            i += 1
        else:
            for k in range(6):
                work.boxes[i, k], work.boxes[j, k] = work.boxes[j, k], work.boxes[i, k]
            work.numbers[i], work.numbers[j] = work.numbers[j], work.numbers[i]
            j -= 1
    return i


@device
def split(work: Work, begin: int, end: int, bins: Bins, scratch: Any) -> int:
    """Reorder a part and return where its second half begins, at the least cost over the axes."""
    best = np.inf
    best_cut = -1
    best_place = (0, np.float32(0.0), np.float32(0.0))
    for axis in range(3):
        low, up = _axis_range(work, begin, end, axis)
        ratio = np.float32(BINS) / (up - low)
        if not (ratio > 0.0 and ratio < _INF):
            continue
        _fill_bins(work, begin, end, (axis, low, ratio), bins)
        cost, cut = _cheapest(bins, scratch)
        if cost < best:
            best = cost
            best_cut = cut
            best_place = (axis, low, ratio)
    if best_cut < 0:
        return (begin + end) // 2
    return _partition(work, begin, end, best_place, best_cut)
