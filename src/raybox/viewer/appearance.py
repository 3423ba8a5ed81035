"""Which boxes the viewer draws, their colours, and the first camera position."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.geometry import Boxes, Mesh
from raybox.validation import Bools, Floats
from raybox.viewer.stage import Stage, finite_bounds

Colors = NDArray[np.uint8]
FOV = math.radians(50.0)  # vertical
ASPECT = 1.1  # of the narrowest picture that everything fits at first
_FROM = np.array([1.0, -1.35, 0.85])
KINDS = 24  # a column with more distinct words gets no legend
# Nine colours that colour-blind people can distinguish (P. Tol's "muted" and "bright"), none near the orange
# of the picked box; all other kinds are grey.
_APART = np.array(
    [
        (136, 204, 238),
        (51, 34, 136),
        (68, 170, 153),
        (170, 68, 153),
        (17, 119, 51),
        (187, 187, 220),
        (136, 34, 85),
        (153, 153, 51),
        (68, 119, 170),
        (190, 190, 190),
    ],
    np.uint8,
)
_LOW, _MIDDLE, _HIGH = (np.array(c, np.float64) for c in ((46, 84, 120), (94, 158, 150), (232, 220, 170)))
_NEIGHBOURS = [(axis, step) for axis in range(3) for step in (-1, 1)]


def colors(stage: Stage, middles: Floats) -> Colors:
    """Return a colour for each row, (N, 3) uint8: by kind, else by height.

    The kind comes from a column of the file with at most `KINDS` distinct words.
    """
    kinds, kind = _kinds(stage)
    if kinds:
        return _APART[np.minimum(kind, len(_APART) - 1)]
    z = middles[:, 2]
    low, high = float(z.min(initial=np.inf)), float(z.max(initial=-np.inf))
    share = ((z - low) / (high - low) if high > low else np.full(len(z), 0.5))[:, None]
    ramp = np.where(
        share < 0.5, _LOW + 2 * share * (_MIDDLE - _LOW), _MIDDLE + (2 * share - 1) * (_HIGH - _MIDDLE)
    )
    return np.asarray(ramp, np.uint8)


def legend(stage: Stage) -> list[tuple[str, tuple[int, ...]]]:
    """Return names and colours of the kinds, commonest first; the rest is "others"."""
    kinds, _ = _kinds(stage)
    names = kinds if len(kinds) <= len(_APART) else [*kinds[: len(_APART) - 1], "others"]
    return [(name, tuple(color)) for name, color in zip(names, _APART.tolist(), strict=False)]


def _kinds(stage: Stage) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct words of a label column, commonest first, and each row's word.

    The first column with 2 to `KINDS` distinct words; both empty if there is none.
    """
    if isinstance(stage.drawn, Mesh):  # drawn in one colour
        return [], np.zeros(0, np.int64)
    for words in stage.labels.values():
        kinds, kind, count = np.unique(np.array(words), return_inverse=True, return_counts=True)
        if 1 < len(kinds) <= KINDS:
            order = np.argsort(-count, kind="stable")
            return kinds[order].tolist(), np.argsort(order)[kind]
    return [], np.zeros(0, np.int64)


def camera_position(low: Floats, high: Floats) -> Floats:
    """Return an eye position from which a whole box just fits the picture.

    The eye looks down on the box's front right corner, with the angle of view `FOV`. A corner at (x, y, z),
    measured along the picture's sides and towards an eye at distance d, is visible if |x| and |y| are at most
    (d - z) times the tangent of half the angle of view.
    """
    towards = _FROM / np.linalg.norm(_FROM)
    right = np.cross([0.0, 0.0, 1.0], towards)
    right /= np.linalg.norm(right)
    axes = np.stack([right, np.cross(towards, right), towards])
    half = np.array([[x, y, z] for x in (-0.5, 0.5) for y in (-0.5, 0.5) for z in (-0.5, 0.5)]) * (high - low)
    projected = half @ axes.T
    slope = math.tan(FOV / 2)
    x, y, z = np.abs(projected[:, 0]), np.abs(projected[:, 1]), projected[:, 2]
    needed = z + np.maximum(x / (ASPECT * slope), y / slope)
    distance = 1.08 * float(needed.max()) or 4.0
    return np.asarray((low + high) / 2 + distance * towards)


class DrawnBoxes(NamedTuple):
    """Finite corners of all boxes, and which of these to draw."""

    lower: Floats
    upper: Floats
    visible: Bools


def drawable(boxes: Boxes, shown: Bools | None = None) -> DrawnBoxes:
    """Return finite corners of each box, and which boxes to draw, of those shown.

    Unbounded sides are cut a little outside all finite bounds. Boxes without any point are not drawn, nor are
    voxels (equal boxes on a grid) that are hidden behind six neighbours.
    """
    low, high = finite_bounds(boxes)
    pad = 0.5 * max(float((high / 2 - low / 2).max()), 1e-300)
    lower, upper = np.maximum(boxes.lower, low - pad), np.minimum(boxes.upper, high + pad)
    there = ((boxes.lower < np.inf) & (boxes.upper > -np.inf)).all(axis=1)
    shown = np.ones(len(boxes), np.bool_) if shown is None else shown
    return DrawnBoxes(lower, upper, there & shown & ~_buried(boxes, shown))


def _buried(boxes: Boxes, shown: Bools) -> Bools:
    """Return which voxels have neighbours that are shown on all six sides; none if boxes are no voxels."""
    nothing: Bools = np.zeros(len(boxes), np.bool_)
    if not shown.any():
        return nothing
    with np.errstate(invalid="ignore", over="ignore"):
        sizes, corner = boxes.upper - boxes.lower, boxes.lower.min(axis=0)
    if not (np.isfinite(sizes).all() and (sizes == sizes[0]).all() and (sizes[0] > 0).all()):
        return nothing
    cells = (boxes.lower - corner) / sizes[0]
    if (cells != np.floor(cells)).any() or (cells.max(axis=0) > 2**20 - 4).any():
        return nothing
    keys = _key(cells.astype(np.int64))
    known = np.unique(keys[shown])
    buried = np.ones(len(boxes), np.bool_)
    for axis, step in _NEIGHBOURS:
        wanted = keys + step * (1 << (20 * axis))
        place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
        buried &= known[place] == wanted
    return buried


def _key(cells: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return cell keys of 20 bits an axis: neighbours differ by a fixed step."""
    return np.asarray(((cells + 1) << np.array([0, 20, 40])).sum(axis=1))
