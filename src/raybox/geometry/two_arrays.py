"""Constructors of two arrays that get one: the error, with the line to write."""

from collections.abc import Callable
from inspect import signature
from typing import Any, NoReturn, TypeVar

from raybox import validation
from raybox.errors import InvalidInput

F = TypeVar("F", bound=Callable[..., None])


def of_two_arrays(constructor: F) -> F:
    """Return a constructor that gets None for a missing second array, which it refuses itself.

    The signature, for help and type checkers, stays that of two arrays.
    """
    function: Any = constructor
    function.__signature__ = signature(function)
    function.__defaults__ = (None,)
    return constructor


def refuse_one_of_boxes(value: Any) -> NoReturn:
    """Raise `InvalidInput` for one array in place of lower and upper."""
    _refuse("Boxes", ("lower", "upper"), value, _line_of_pairs(value, "from_bounds"))


def refuse_one_of_rays(value: Any) -> NoReturn:
    """Raise `InvalidInput` for one array in place of origins and directions."""
    _refuse("Rays", ("origins", "directions"), value, _line_of_pairs(value, "from_array"))


def refuse_one_of_mesh(value: Any) -> NoReturn:
    """Raise `InvalidInput` for one array in place of vertices and faces."""
    line = ""
    if hasattr(value, "vertices") and hasattr(value, "faces"):
        line = ".from_trimesh(mesh)"
    elif _shape(value)[1:] == (3, 3):
        line = "(array.reshape(-1, 3), numpy.arange(3 * len(array)).reshape(-1, 3))"
    _refuse("Mesh", ("vertices", "faces"), value, line)


def refuse_one_of_planes(value: Any) -> NoReturn:
    """Raise `InvalidInput` for one array in place of normals and offsets."""
    has_offsets = _shape(value)[1:] in ((3,), (4,))
    _refuse("Planes", ("normals", "offsets"), value, "(array[:, :-1], array[:, -1])" if has_offsets else "")


def _line_of_pairs(value: Any, constructor: str) -> str:
    """Return how two vectors a row are passed: side by side, by columns, or stacked."""
    if validation.names_of(value) is not None:
        return f".{constructor}(table)"
    shape = _shape(value)
    if shape[-1:] in ((4,), (6,)):
        return f".{constructor}(array)"
    if len(shape) > 1 and shape[0] == 2:
        return "(array[0], array[1])"
    return "(array[..., 0, :], array[..., 1, :])" if shape[-2:-1] == (2,) else ""


def _shape(value: Any) -> tuple[int, ...]:
    """Return the shape of an array; () of anything else."""
    try:
        return validation.array(value, "array").shape
    except InvalidInput:
        return ()


def _refuse(name: str, arrays: tuple[str, str], value: Any, line: str) -> NoReturn:
    first, second = arrays
    columns, shape = validation.names_of(value), _shape(value)
    got = f"one {type(value).__name__}" + (f" of shape {shape}" if shape else "")
    if columns is not None:
        got = f"one table of {len(columns)} columns"
    line = line or f"({first}, {second})"
    raise InvalidInput(
        f"{name} needs two arrays, {first} and {second}; got {got}. Write raybox.{name}{line}."
    )
