"""Edges of a grid's cells: one increasing array an axis; checked, uniform, or halfway between centres."""

from math import prod
from typing import TypeAlias

import numpy as np

from raybox import validation
from raybox.compiler.huge_pages import machine_bytes
from raybox.errors import InvalidInput, OutOfMemory
from raybox.validation import ArrayInput, Floats

MAX_CELLS = 2**62
"""Numbers of cells and their doubles fit into int64."""

Edges: TypeAlias = tuple[Floats, ...]
"""An array for each of 2 or 3 axes; cell i of an axis is from number i to number i + 1."""


def of_axes(edges: tuple[ArrayInput, ...]) -> Edges:
    """Return checked copies of the edges of each axis."""
    if len(edges) not in (2, 3):
        raise InvalidInput(
            f"a Grid has 2 or 3 axes, with an array of edges for each; got {len(edges)}. "
            f"Pass each axis as an argument of its own: Grid(x, y, z)."
        )
    found = tuple(_axis(values, f"edges[{axis}]") for axis, values in enumerate(edges))
    check_count(tuple(len(values) - 1 for values in found))
    return found


def uniform(lower: ArrayInput, pitch: ArrayInput, shape: ArrayInput) -> Edges:
    """Return the edges ``lower + pitch * arange`` of so many cells an axis."""
    start, step = validation.floats(lower, "lower"), validation.floats(pitch, "pitch")
    counts = _shape(shape)
    check_start("lower", start, step, f"shape has {len(counts)} numbers", len(counts))
    return increasing("lower", start, step, (0,) * len(counts), counts)


def increasing(
    name: str, start: Floats, step: Floats, first: tuple[int, ...], shape: tuple[int, ...]
) -> Edges:
    """Return `spaced` edges; raise `InvalidInput` if neighbours are rounded to one number."""
    check_count(shape)
    edges = spaced(name, start, step, first, shape)
    for axis, values in enumerate(edges):
        way_out = f"Choose a larger pitch, or a {name} near zero"
        _require_increasing(values, f"{name} + pitch * arange on axis {axis}", way_out)
    return edges


def spaced(name: str, start: Floats, step: Floats, first: tuple[int, ...], shape: tuple[int, ...]) -> Edges:
    """Return the edges ``start + step * k`` of each axis, rounded to float64.

    first: the number k of the first edge of each axis.
    """
    steps = np.broadcast_to(step, start.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        edges = tuple(
            o + p * np.arange(k, k + n + 1, dtype=np.int64)
            for o, p, k, n in zip(start, steps, first, shape, strict=True)
        )
    if not all(np.isfinite(values).all() for values in edges):
        raise InvalidInput(
            f"{name} + pitch * {shape} must be finite; got {name} = {start.tolist()}, "
            f"pitch = {step.tolist()}. Choose a smaller pitch or another unit."
        )
    return edges


def check_start(name: str, start: Floats, step: Floats, reason: str, dims: int) -> None:
    """Raise `InvalidInput` unless a corner and a pitch fit to so many axes.

    reason: why there are so many.
    """
    if start.shape != (dims,) or step.shape not in ((), (dims,)):
        raise InvalidInput(
            f"{name} must have shape ({dims},), and pitch must be a scalar or have shape ({dims},), as "
            f"{reason}; got shapes {start.shape} and {step.shape}. Give one number for each axis."
        )
    validation.require_finite(start, name, "point", "Pass finite numbers")
    if not ((step > 0) & np.isfinite(step)).all():
        raise InvalidInput(
            f"pitch must be finite and above zero on every axis; got {step.tolist()}. "
            f"If an axis runs the other way, start at its other end, and flip the cells: x[::-1]."
        )


def check_count(shape: tuple[int, ...]) -> None:
    """Raise `InvalidInput` for more than 2**62 cells, or more edges than fit into the machine's memory."""
    size, edge_bytes = " x ".join(map(str, shape)), 8 * sum(shape)
    if prod(shape) > MAX_CELLS:
        raise InvalidInput(f"a Grid has up to 2**62 cells; got {size}. Split it by space.")
    if edge_bytes > machine_bytes():
        raise OutOfMemory(
            f"the edges of {size} cells need {edge_bytes:,} bytes of memory, more than there is. "
            f"Split the grid by space."
        )


def between(centers: Floats, name: str) -> Floats:
    """Return the edges of cells around centres.

    They are halfway between neighbours; the first and the last are as far from their centre as the edge on
    its other side, all rounded to float64.
    """
    if centers.ndim != 1 or centers.size < 2:
        raise InvalidInput(
            f"{name} must be two centres or more in one dimension, as edges lie halfway between them; got "
            f"shape {centers.shape}. Pass the edges themselves: Grid(x, y, z)."
        )
    _require_finite(centers, name)
    if (centers[1:] < centers[:-1]).all():
        raise InvalidInput(
            f"{name} must increase; it decreases from {centers[0]} to {centers[-1]}. "
            f"Sort the object first, and take its values from that: obj.sortby({name!r})."
        )
    _require_increasing(centers, name, f"Sort the object, and drop repeated rows: obj.sortby({name!r})")
    with np.errstate(over="ignore"):
        middle = (centers[1:] + centers[:-1]) / 2
        first = centers[0] - (middle[0] - centers[0])
        last = centers[-1] + (centers[-1] - middle[-1])
    return np.concatenate([[first], middle, [last]])


def _axis(values: ArrayInput, name: str) -> Floats:
    """Return a checked copy of the edges of one axis."""
    found = validation.floats(values, name)
    if found.ndim != 1:
        raise InvalidInput(
            f"{name} must have one dimension; got shape {found.shape}. Pass the edges along this axis alone."
        )
    if found.size < 2:
        raise InvalidInput(
            f"{name} must have two numbers or more, as a cell has two edges; got {found.size}. "
            f"Give the lower and the upper edge of a single cell."
        )
    _require_finite(found, name)
    flipped = (found[1:] < found[:-1]).all()
    way_out = "Flip the axis: x[::-1], and masks and values with it" if flipped else "Sort them: np.unique(x)"
    _require_increasing(found, name, way_out)
    return found


def _require_finite(values: Floats, name: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        way_out = "Drop those numbers; the cells of a grid have finite sizes"
        validation.refuse_rows(bad, f"{name} must be finite", {name: values}, "number", way_out)


def _require_increasing(values: Floats, name: str, way_out: str) -> None:
    bad = np.flatnonzero(~(values[1:] > values[:-1])) + 1
    if bad.size:
        k = int(bad[0])
        raise InvalidInput(
            f"{name} must be strictly increasing; {bad.size} of {values.size} break this, first number {k}: "
            f"{values[k]} after {values[k - 1]}. {way_out}."
        )


def _shape(shape: ArrayInput) -> tuple[int, ...]:
    """Return a checked shape of a grid."""
    found = validation.integers(shape, "shape")
    if found.ndim != 1 or found.size not in (2, 3) or (found < 1).any():
        raise InvalidInput(
            f"shape must be 2 or 3 whole numbers above zero, of cells along each axis; got {found.tolist()}. "
            f"Give one number for each axis."
        )
    return tuple(found.tolist())
