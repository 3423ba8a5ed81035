"""Points, boxes, distances and numbers of neighbours, as users pass them."""

from operator import index
from typing import Literal, NamedTuple, SupportsIndex

import numpy as np

from raybox import validation
from raybox.bvh.frame import frozen
from raybox.errors import InvalidInput
from raybox.geometry import Boxes
from raybox.geometry.rows import in_space
from raybox.hits import Rows
from raybox.spatial.query_boxes import QueryBoxes
from raybox.spatial.search import count_rows, find_rows
from raybox.spatial.target import RunSettings, SearchTarget
from raybox.validation import ArrayInput, Floats, Ints

Noun = Literal["point", "box"]
_PLURALS = {"point": "points", "box": "boxes"}
MOST_NEIGHBORS = 2**31


class CheckedPoints(NamedTuple):
    """Checked points: rows of three, and the shape in which they were given."""

    rows: Floats
    shape: tuple[int, ...]


def points_of(points: ArrayInput, dimension: int) -> CheckedPoints:
    """Return finite points (..., D)."""
    found = validation.finite_points(points, dimension)
    return CheckedPoints(frozen(in_space(found)), found.shape[:-1])


def check_boxes(boxes: object, dimension: int) -> Boxes:
    """Return boxes of D dimensions."""
    if not isinstance(boxes, Boxes):
        raise InvalidInput(
            f"boxes must be raybox.Boxes; got {type(boxes).__name__}. Make some: raybox.Boxes(lower, upper); "
            "of rows of both: raybox.Boxes.from_bounds(array)."
        )
    if boxes.ndim_space != dimension:
        raise InvalidInput(
            f"boxes must have the scene's dimensions, D = {dimension}; got D = {boxes.ndim_space}. Add or "
            "drop a coordinate."
        )
    return boxes


def distances_of(distance: ArrayInput, name: str, shape: tuple[int, ...], noun: Noun = "point") -> Floats:
    """Return distances, (1,) if there is one for all, else (N,)."""
    found = validation.floats(distance, name)
    wrong = np.asarray(~(found >= 0.0))
    if wrong.any():
        way_out = "Pass 0 or more; inf: all boxes"
        validation.refuse_rows(wrong, f"{name} must be at least 0", {name: found}, noun, way_out)
    if found.shape == ():
        return frozen(found.reshape(1))
    try:
        return frozen(np.broadcast_to(found, shape).reshape(-1))
    except ValueError:
        raise InvalidInput(
            f"{name} must be a number, or broadcast to the shape of the {_PLURALS[noun]}, {shape}; got shape "
            f"{found.shape}. Add or drop an axis, {name}[..., None], or give one number for all."
        ) from None


def neighbor_count(k: SupportsIndex, name: str = "k") -> int:
    """Return how many neighbours are wanted, at least 1."""
    try:
        count = 0 if isinstance(k, bool) else index(k)
    except TypeError:
        count = 0
    if count < 1:
        raise InvalidInput(f"{name} must be a whole number of boxes, at least 1; got {k!r}.")
    if count >= MOST_NEIGHBORS:
        raise InvalidInput(
            f"{name} must be less than 2**31; got {k!r}. Pass at most len(scene); for all boxes: "
            "within_distance."
        )
    return count


def found_by(
    target: SearchTarget, queries: QueryBoxes, shape: tuple[int, ...], how: RunSettings, *, count: bool
) -> Rows | Ints:
    """Return the boxes that queries of a shape find, or how many."""
    queries = queries._replace(starts=target.starts)
    if count:
        return count_rows(target, queries, how).reshape(shape)
    found = find_rows(target, queries, how)
    return Rows(target.scene, found.numbers, found.offsets, shape)
