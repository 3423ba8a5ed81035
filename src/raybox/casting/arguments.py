"""What a cast passes to its query besides rays: values of primitives, weights of rays, options."""

import mmap
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import Grid
from raybox.hits.file_columns import Argument
from raybox.io.formats.common import file_error, missing_file
from raybox.queries.table import GROUPS
from raybox.scene import file_queries as table
from raybox.scene.file_queries import arguments_of
from raybox.scene.groups import COMMON, RULE, WAY_OUT
from raybox.scene.scene import Scene, masks_of
from raybox.store import checksum
from raybox.store.checksum import Facts
from raybox.validation import Array, ArrayInput, Bools, MaskInput

Value: TypeAlias = Array | list[Bools | None] | str
"""An array, masks of several geometries, or an option."""
Arguments = dict[str, Value]

_ROWS = 1 << 20  # rows of an array that are checked at once: arrays may be mapped, and larger than memory


def checked(scene: Scene, query: str, where: MaskInput, **given: ArrayInput | None) -> Arguments:
    """Return the arguments that were given, of those that a cast of the query takes, and `where`.

    Arrays are copied, so that they do not change during the cast; but those of rays, which parts state.
    """
    kinds, arguments = arguments_of(query), Arguments()
    for name, value in given.items():
        if value is None:
            continue
        if name not in kinds:
            takers = [other for other in table.file_queries() if name in arguments_of(other)]
            queries = " or ".join(map(repr, takers))
            raise InvalidInput(f"{name} is for query {queries}; got it with {query!r}. Leave it out.")
        if kinds[name] is Argument.OPTION or (name == GROUPS and isinstance(value, str)):
            arguments[name] = value  # type: ignore[assignment]  # a text
            continue
        array = validation.array(value, name)
        if kinds[name] is Argument.NUMBER:
            _check_number(array, name)
        if kinds[name] is Argument.PER_RAY:
            _check_per_ray(array, name)
        else:
            array = _by_rows(scene, rows_at(array, 0, len(array)) if array.ndim else array)
        arguments[name] = array if array.ndim else array.copy()
    if where is not None:
        found = masks_of(scene, where)
        is_list = isinstance(found, list)
        copies = [None if mask is None else mask.copy() for mask in (found if is_list else [found])]
        arguments["where"] = copies if is_list else copies[0]  # type: ignore[assignment]
    return arguments


def _by_rows(scene: Scene, array: Array) -> Array:
    """Return an array in the shape of a grid, with or without channels, as one row for each cell."""
    shape = getattr(scene, "geometry", None)
    shape = shape.shape if isinstance(shape, Grid) else ()
    of_cells = shape and array.shape[: len(shape)] == shape and array.ndim <= len(shape) + 1
    return array.reshape(-1, *array.shape[len(shape) :]) if of_cells else array


def _check_number(array: Array, name: str) -> None:
    """Raise `InvalidInput` unless `k`, or `max_distance`, is one number for all points."""
    if array.ndim or array.dtype.kind not in "fiu":
        raise InvalidInput(f"{name} of a cast must be one number; got {array.dtype} of shape {array.shape}.")


def _check_per_ray(array: NDArray[Any], name: str) -> None:
    """Raise `InvalidInput` unless an array holds finite numbers, in rows; or groups, or one for all rays."""
    if name == GROUPS:
        if array.ndim > 1 or (array.size and array.dtype.kind not in "iu"):
            raise InvalidInput(
                "groups must be integers of shape (N,), a row for each row of the file, one integer for all, "
                f"or the name of a column; got shape {array.shape} of {array.dtype}."
            )
        array = array.reshape(-1)
    elif array.ndim not in (1, 2) or array.dtype.kind not in "fiub" or 0 in array.shape[1:]:
        raise InvalidInput(
            f"{name} must be numbers of shape (N,) or (N, C), a row for each ray of the file; got shape "
            f"{array.shape} of {array.dtype}. Repeat a single number with np.full."
        )
    for begin in range(0, len(array), _ROWS):
        _check_rows(rows_at(array, begin, begin + _ROWS), name, begin)


def _check_rows(rows: Array, name: str, begin: int) -> None:
    bad: Bools = np.less(rows, COMMON) if name == GROUPS else ~np.isfinite(rows).reshape(-1, *rows.shape[1:])
    if bad.any():
        row = int(np.argwhere(bad)[0, 0])
        rule = RULE if name == GROUPS else f"{name} must be finite"
        way_out = WAY_OUT if name == GROUPS else "Replace it: np.nan_to_num(x)"
        raise InvalidInput(f"{rule}; row {begin + row} is {rows[row].tolist()}. {way_out}.")


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
    kinds = arguments_of(query)
    return {
        name: value
        for name, value in arguments.items()
        if kinds.get(name) is Argument.PER_RAY and isinstance(value, np.ndarray) and value.ndim
    }


def rows_of_block(array: Array, name: str, first: int, rays: int) -> Array:
    """Return a copy of the rows of a block of rays; raise unless they are there, and valid."""
    if first + rays > len(array):
        raise _wrong_count(array, name, f"{first + rays:,} rays or more")
    rows = rows_at(array, first, first + rays)
    _check_rows(rows, name, first)
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


def facts(query: str, arguments: Arguments) -> Facts:
    """Return what identifies each argument, but for those of rays, which parts state."""
    varying, found = per_ray(query, arguments), Facts()
    for name, value in arguments.items():
        if name in varying:
            continue
        arrays: list[Any] = value if isinstance(value, list) else [value]
        found[name] = ", ".join(
            f"checksum {checksum.of_arrays(one)[:16]}"
            if isinstance(one, np.ndarray) and one.ndim
            else str(one)
            for one in arrays
        )
    return found
