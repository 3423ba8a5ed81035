"""What a cast passes to its query besides rays: values of primitives, weights of rays, options."""

import mmap
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import Grid
from raybox.io.formats.common import file_error, missing_file
from raybox.queries import table
from raybox.queries.query import Argument
from raybox.scene.scene import Scene, masks_of
from raybox.store import checksum
from raybox.validation import Array, ArrayInput, Bools, MaskInput

Value: TypeAlias = Array | list[Bools | None] | str
"""An array, masks of several geometries, or an option."""
Arguments = dict[str, Value]

_ROWS = 1 << 20  # rows of an array that are checked at once: arrays may be mapped, and larger than memory


def checked(scene: Scene, query: str, rays: int | None, **given: ArrayInput | None) -> Arguments:
    """Return the arguments that were given, of those that a cast of the query takes.

    rays: how many the file has, if that is known.
    """
    kinds, arguments = table.columns_of(query).arguments, Arguments()
    for name, value in given.items():
        if value is None:
            continue
        if name not in kinds:
            raise _unused(name, query)
        if kinds[name] is Argument.OPTION:
            arguments[name] = value  # type: ignore[assignment]  # a text
            continue
        array = validation.array(value, name)
        if kinds[name] is Argument.PER_RAY:
            _check_per_ray(array, name, rays)
            arguments[name] = array
        else:  # copied: what is in memory does not change during the cast
            arguments[name] = _by_rows(scene, rows_at(array, 0, len(array)) if array.ndim else array)
    return arguments


def masks(scene: Scene, where: MaskInput) -> Arguments:
    """Return which primitives may be hit, as the argument `where`; nothing for all."""
    if where is None:
        return {}
    found = masks_of(scene, where)
    if isinstance(found, list):
        return {"where": [None if mask is None else mask.copy() for mask in found]}
    return {"where": found.copy()}


def _unused(name: str, query: str) -> InvalidInput:
    takers = [other for other in table.file_queries() if name in table.columns_of(other).arguments]
    return InvalidInput(
        f"{name} is for query {' or '.join(map(repr, takers))}; got it with {query!r}. Leave it out."
    )


def _by_rows(scene: Scene, array: Array) -> Array:
    """Return an array in the shape of a grid, with or without channels, as one row for each cell."""
    shape = getattr(scene, "geometry", None)
    shape = shape.shape if isinstance(shape, Grid) else ()
    of_cells = shape and array.shape[: len(shape)] == shape and array.ndim <= len(shape) + 1
    return array.reshape(-1, *array.shape[len(shape) :]) if of_cells else array


def _check_per_ray(array: NDArray[Any], name: str, rays: int | None) -> None:
    """Raise `InvalidInput` unless an array holds finite numbers, a row for each ray."""
    if array.ndim not in (1, 2) or array.dtype.kind not in "fiub" or 0 in array.shape[1:]:
        raise InvalidInput(
            f"{name} must be numbers of shape (N,) or (N, C), a row for each ray of the file; got shape "
            f"{array.shape} of {array.dtype}. Repeat a single number with np.full."
        )
    if rays is not None and rays != len(array):
        raise _wrong_count(array, name, f"{rays:,} rays")
    for begin in range(0, len(array), _ROWS):
        _check_finite(rows_at(array, begin, begin + _ROWS), name, begin)


def _check_finite(rows: Array, name: str, begin: int) -> None:
    bad = ~np.isfinite(rows).reshape(-1, *rows.shape[1:])
    if bad.any():
        row = int(np.argwhere(bad)[0, 0])
        raise InvalidInput(
            f"{name} must be finite; row {begin + row} is {rows[row].tolist()}. Replace it: np.nan_to_num(x)."
        )


def rows_at(array: Array, begin: int, end: int) -> Array:
    """Return a copy of some rows; of a mapped array, from its file: a map of a file that was cut is fatal."""
    end = min(end, len(array))
    mapped = mapped_from(array)
    if mapped is None:
        return array[begin:end].copy()
    try:
        if array.flags.c_contiguous:
            count, size = (end - begin) * prod(array.shape[1:]), prod(array.strides[:1])
            rows = np.fromfile(mapped.path, array.dtype, count, offset=mapped.start + begin * size)
            if len(rows) == count:
                return rows.reshape(-1, *array.shape[1:])
        elif mapped.path.stat().st_size >= mapped.size:
            return array[begin:end].copy()
    except FileNotFoundError as error:
        raise missing_file(mapped.path) from error
    raise file_error(mapped.path, "has become shorter while it was mapped", "restore it, and cast again")


class Mapped(NamedTuple):
    """The file of a mapped array."""

    path: Path
    start: int
    """Of the array, in bytes."""
    size: int
    """Of what is mapped, from the start of the file on."""


def mapped_from(array: object) -> Mapped | None:
    """Return the file that an array is mapped from; None for an array in memory."""
    owner = array
    while isinstance(owner, np.ndarray) and not isinstance(owner.base, mmap.mmap):
        owner = owner.base
    if not isinstance(owner, np.memmap) or not owner.filename or not isinstance(array, np.ndarray):
        return None
    start = array.ctypes.data - owner.ctypes.data + owner.offset
    return Mapped(Path(str(owner.filename)), start, owner.offset + owner.nbytes)


def per_ray(query: str, arguments: Arguments) -> dict[str, Array]:
    """Return the arguments that have a row for each ray."""
    kinds = table.columns_of(query).arguments
    per_ray = [name for name in arguments if kinds.get(name) is Argument.PER_RAY]
    return {name: array for name in per_ray if isinstance(array := arguments[name], np.ndarray)}


def rows_of_block(array: Array, name: str, first: int, rays: int) -> Array:
    """Return a copy of the rows of a block of rays; raise unless they are there, and finite."""
    if first + rays > len(array):
        raise _wrong_count(array, name, f"{first + rays:,} rays or more")
    rows = rows_at(array, first, first + rays)
    _check_finite(rows, name, first)
    return rows


def check_end(query: str, arguments: Arguments, rays: int) -> None:
    """Raise `InvalidInput` if arrays go on after the last ray of a file."""
    for name, array in per_ray(query, arguments).items():
        if len(array) != rays:
            raise _wrong_count(array, name, f"{rays:,} rays")


def _wrong_count(array: Array, name: str, rays: str) -> InvalidInput:
    return InvalidInput(
        f"{name} must have a row for each ray of the file; got {len(array):,} rows for {rays}. "
        "Use those that belong to it."
    )


def facts(query: str, arguments: Arguments) -> Iterator[tuple[str, str]]:
    """Yield what identifies each argument, but for those of rays, which parts state."""
    varying = per_ray(query, arguments)
    for name, value in arguments.items():
        if name in varying:
            continue
        arrays = value if isinstance(value, list) else [value]
        yield name, ", ".join(map(_fact, arrays))


def _fact(value: Array | str | None) -> str:
    return f"checksum {checksum.of_arrays(value)[:16]}" if isinstance(value, np.ndarray) else str(value)
