"""What a cast passes to its query besides rays: values of primitives, weights of rays, options."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox import validation
from raybox.casting.scenes import AnyScene
from raybox.errors import InvalidInput
from raybox.geometry import Grid, row_mask
from raybox.queries import table
from raybox.queries.query import Argument
from raybox.scene.scene import Scene, masks_of
from raybox.store import checksum
from raybox.validation import Array, ArrayInput, Bools, MaskInput

Value: TypeAlias = Array | list[Bools | None] | str
"""An array, masks of several geometries, or an option."""
Arguments = dict[str, Value]

_ROWS = 1 << 20  # rows of an array that are checked at once: arrays may be mapped, and larger than memory


def checked(scene: AnyScene, query: str, rays: int | None, **given: ArrayInput | None) -> Arguments:
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
        arguments[name] = _by_rows(scene, array) if kinds[name] is Argument.PER_PRIMITIVE else array
        if kinds[name] is Argument.PER_RAY:
            _check_per_ray(array, name, rays)
    return arguments


def masks(scene: AnyScene, where: MaskInput) -> Arguments:
    """Return which primitives may be hit, as the argument `where`; nothing for all."""
    if where is None:
        return {}
    if isinstance(scene, Scene):
        return {"where": masks_of(scene, where)}
    return {"where": row_mask(where, scene._objects, len(scene))}


def _unused(name: str, query: str) -> InvalidInput:
    takers = [other for other in table.file_queries() if name in table.columns_of(other).arguments]
    return InvalidInput(
        f"{name} is for query {' or '.join(map(repr, takers))}; got it with {query!r}. Leave it out."
    )


def _by_rows(scene: AnyScene, array: Array) -> Array:
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
        bad = ~np.isfinite(array[begin : begin + _ROWS]).reshape(-1, *array.shape[1:])
        if bad.any():
            row = begin + int(np.argwhere(bad)[0, 0])
            raise InvalidInput(
                f"{name} must be finite; row {row} is {array[row].tolist()}. Replace it: np.nan_to_num(x)."
            )


def per_ray(query: str, arguments: Arguments) -> dict[str, Array]:
    """Return the arguments that have a row for each ray."""
    kinds = table.columns_of(query).arguments
    per_ray = [name for name in arguments if kinds.get(name) is Argument.PER_RAY]
    return {name: array for name in per_ray if isinstance(array := arguments[name], np.ndarray)}


def of_chunk(array: Array, name: str, first: int, rays: int) -> Array:
    """Return the rows of a chunk of rays."""
    if first + rays > len(array):
        raise _wrong_count(array, name, f"{first + rays:,} rays or more")
    return array[first : first + rays]


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


def facts(arguments: Arguments) -> Iterator[tuple[str, str]]:
    """Yield what identifies each argument: casts of equal arguments resume each other."""
    for name, value in arguments.items():
        arrays = value if isinstance(value, list) else [value]
        yield name, ", ".join(map(_fact, arrays))


def _fact(value: Array | str | None) -> str:
    return f"checksum {checksum.of_arrays(value)[:16]}" if isinstance(value, np.ndarray) else str(value)
