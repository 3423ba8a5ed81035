"""Checks of what path sums take beside rays: values of primitives, weights of rays, and the scene itself."""

from typing import Any

import numpy as np

from raybox import validation
from raybox.compiler.entry_points import entry
from raybox.errors import InvalidInput
from raybox.geometry import GridRows, InstanceRows, PlaneRows, Rays, TriangleRows
from raybox.primitives.table import has_lengths
from raybox.queries.query import Target
from raybox.threads.chunks import run_chunks
from raybox.validation import Floats

_NAMES = {TriangleRows: "a Mesh", PlaneRows: "Planes"}
_BOXES = (
    "Make a Scene of the boxes alone: Boxes, Instances of Boxes, or a list. rb.load(path, boxes=True) "
    "returns a box of each object of a file, Boxes.of_triangles one of each triangle."
)
_WAY_OUT = "Replace them, np.nan_to_num(x), or mask their rows by `where`"
_EXPONENT = 0x7FF << 52  # its bits are all 1 in infinities and NaN, and in no other number
_SMALL = 1 << 16  # numbers that NumPy tests before compiled code is loaded
_CHUNK = 1 << 20  # numbers, at least: 8 MB, which a thread reads in half a millisecond


def check_flag(value: Any, name: str) -> bool:
    """Return a flag, checked."""
    if not isinstance(value, bool | np.bool_):
        raise InvalidInput(f"{name} must be True or False; got {value!r}.")
    return bool(value)


def check_scene(target: Target, name: str) -> None:
    """Raise `InvalidInput` unless every geometry of the scene has an inside whose length is known."""
    for rows in target.rows:
        if not has_lengths(rows):
            inner = type(rows.rows if isinstance(rows, InstanceRows) else rows)
            found = _NAMES.get(inner, f"primitives of {inner.__name__}")
            found = f"Instances of {found}" if isinstance(rows, InstanceRows) else found
            raise InvalidInput(f"{name} adds lengths inside of boxes; this scene holds {found}. {_BOXES}")


def given_floats(value: Any, name: str, workers: int) -> Floats:
    """Return finite numbers as a read-only C-ordered float64 array; a copy only where that is needed."""
    found = validation.array(value, name)
    if found.dtype != np.float64:
        found = validation.floats(value, name)
    numbers = np.require(found, np.float64, ("C", "A")).view()
    numbers.flags.writeable = False
    if not is_finite(numbers, workers):
        bad = ~np.isfinite(numbers)
        validation.refuse_rows(bad, f"{name} must be finite", {name: numbers}, "number", _WAY_OUT)
    return numbers


def check_values(values: Any, target: Target) -> tuple[tuple[Floats, ...], int | None]:
    """Return the values of each geometry, (M, C), and C; None in its place if there is no axis of channels.

    A geometry of (0, C) has no values: all are 1.
    """
    if values is None:
        return tuple(_two_axes(None, count, ()) for count in target.counts), None
    if target.is_list and (not isinstance(values, list | tuple) or len(values) != len(target.counts)):
        raise InvalidInput(
            f"values must be a list of {len(target.counts)}, an array or None for each geometry of the "
            f"scene; got {type(values).__name__}. Split a long array: "
            "np.split(values, np.cumsum(lengths)[:-1])."
        )
    listed = values if target.is_list else [values]
    given = [None if one is None else given_floats(one, "values", target.workers) for one in listed]
    each = [_by_cells(one, rows) for one, rows in zip(given, target.rows, strict=True)]
    for one, count in zip(each, target.counts, strict=True):
        if one is not None and (one.ndim not in (1, 2) or len(one) != count or 0 in one.shape[1:]):
            raise InvalidInput(
                f"values must have shape ({count},) or ({count}, C), a number or C channels for each row of "
                f"the geometry; got shape {one.shape}."
            )
    tails = {one.shape[1:] for one in each if one is not None}
    if len(tails) > 1:
        shapes = ", ".join("None" if one is None else str(one.shape) for one in each)
        raise InvalidInput(
            f"values of all geometries must have the same number of channels; got {shapes}. "
            "Add an axis: x[:, None]."
        )
    (tail,) = tails or {()}
    made = tuple(_two_axes(one, count, tail) for one, count in zip(each, target.counts, strict=True))
    return made, tail[0] if tail else None


def _by_cells(values: Floats | None, rows: Any) -> Floats | None:
    """Return values in the shape of a grid, with or without channels, as one row for each cell."""
    if values is None or not isinstance(rows, GridRows):
        return values
    axes = 2 if rows.z_edges[0] == rows.z_edges[-1] else 3
    cells, channels = values.shape[:axes], values.shape[axes:]
    of_cells = cells == tuple(rows.shape[:axes].tolist()) and len(channels) <= 1
    return values.reshape(-1, *channels) if of_cells else values


def _two_axes(values: Floats | None, count: int, tail: tuple[int, ...]) -> Floats:
    """Return values as (M, C)."""
    channels = tail[0] if tail else 1
    if values is None:
        values = np.empty((0, 1)) if channels == 1 else np.ones((count, channels))
    made = values.reshape(-1, channels) if values.size else np.empty((0, channels))
    made.flags.writeable = False
    return made


def check_weights(weights: Any, rays: Rays, workers: int) -> tuple[Floats, int | None]:
    """Return the weights of all rays, (N, C), and C; None in its place if there is no axis of channels.

    (0, 1) if there are no weights: all are 1.
    """
    if weights is None:
        none = np.empty((0, 1))
        none.flags.writeable = False
        return none, None
    found, shape = given_floats(weights, "weights", workers), rays.shape
    channels = found.shape[-1] if found.ndim > len(shape) else None
    full = shape if channels is None else (*shape, channels)
    try:
        if channels == 0 or found.ndim > len(full):
            raise ValueError
        spread = np.broadcast_to(found, full)
    except ValueError as error:
        raise InvalidInput(
            f"weights must broadcast to the shape of the rays, {shape}, or to that with an axis of channels "
            f"behind; got shape {found.shape}. Add or drop an axis: weights[..., None]."
        ) from error
    made = np.ascontiguousarray(spread).reshape(-1, channels or 1)
    made.flags.writeable = False
    return made, channels


@entry
def _count_others(words: Any) -> int:
    """Count the numbers that are not finite. words: int64, their bits."""
    count = 0
    for k in range(words.size):
        count += (words[k] & _EXPONENT) == _EXPONENT
    return count


def is_finite(numbers: Floats, workers: int) -> bool:
    """Return whether all numbers of a C-ordered array are finite."""
    if numbers.size <= _SMALL:
        return bool(np.isfinite(numbers).all())
    words = numbers.reshape(-1).view(np.int64)
    counts = run_chunks(
        lambda begin, end: _count_others(words[begin:end]), words.size, workers=workers, min_chunk=_CHUNK
    )
    return not any(counts)
