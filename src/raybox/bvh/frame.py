"""Choose tree coordinates for a scene and take its boxes there."""

from typing import Any

import numpy as np

from raybox.bvh.layout import FAR, outward_down, outward_up
from raybox.kernels.jit import device, entry

_SAMPLE = 4096


def choose_frame(lower: Any, upper: Any) -> tuple[Any, int]:
    """Return (center, exponent of the scale) from a sample of the boxes.

    The center is the median, so that one stray box far away (a survey's forgotten origin) does
    not cost the others their resolution. Infinite bounds do not count.
    """
    step = max(1, len(lower) // _SAMPLE)
    low, up = lower[::step], upper[::step]
    points = np.concatenate([low, up])
    center = np.zeros(3)
    reach = 0.0
    for k in range(3):
        finite = points[np.isfinite(points[:, k]), k]
        if finite.size:
            center[k] = np.partition(finite, finite.size // 2)[finite.size // 2]
            with np.errstate(over="ignore"):
                spread = np.abs(finite - center[k])
            reach = max(reach, float(np.partition(spread, finite.size * 9 // 10)[finite.size * 9 // 10]))
    if not 0.0 < reach < np.inf:
        reach = float(np.abs(center).max()) if reach == 0.0 else 1e308
    exponent = int(np.frexp(reach)[1]) if reach > 0.0 else 0
    return center, int(np.clip(-exponent, -1000, 1000))


@device
def to_tree_down(x: float, center: float, scale: float) -> Any:
    """Take a plane to tree coordinates, rounded outward; a subtraction's rounding is below float32's."""
    shifted = (x - center) * scale
    return outward_down(shifted - abs(shifted) * 2.0**-50 if shifted < FAR else shifted)


@device
def to_tree_up(x: float, center: float, scale: float) -> Any:
    """Take a plane to tree coordinates, rounded outward upwards."""
    shifted = (x - center) * scale
    return outward_up(shifted + abs(shifted) * 2.0**-50 if shifted > -FAR else shifted)


@entry
def to_tree(lower: Any, upper: Any, center: Any, scale: float, out: Any) -> None:
    """Write boxes as rows of six float32 in tree coordinates, rounded outward."""
    for i in range(lower.shape[0]):
        for k in range(3):
            out[i, k] = to_tree_down(lower[i, k], center[k], scale)
            out[i, 3 + k] = to_tree_up(upper[i, k], center[k], scale)
