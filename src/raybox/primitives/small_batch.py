"""Small batches of pairs in integers: the same bits as the kernels', without Numba."""

import sys

from raybox.exact import definition, paths
from raybox.exact.definition import Ratio, Ray1, Vector
from raybox.geometry import RayRows, Rows
from raybox.primitives.exact_table import TABLE, ExactFunctions, FirstContact

MAX_PAIRS = 16  # about 10 us each
_MAX_PAIRS_UNLOADED = 1000  # while Numba is not loaded: that costs 300 ms, and seconds if it compiles


def ray_at(rays: RayRows, i: int) -> Ray1:
    """Return one ray as plain numbers."""
    low = rays.t_min[i if rays.t_min.size > 1 else 0]
    high = rays.t_max[i if rays.t_max.size > 1 else 0]
    origin, direction = rays.origins[i].tolist(), rays.directions[i].tolist()
    return Ray1(tuple(origin), tuple(direction), float(low), float(high))


def is_small(rows: Rows, pairs: int) -> bool:
    """Return whether this many pairs with these rows are decided here."""
    return pairs <= max_pairs() and TABLE.get(type(rows)) is not None


def max_pairs() -> int:
    """Return how many pairs cost less in Python than loading and compiling kernels."""
    return MAX_PAIRS if "numba" in sys.modules else _MAX_PAIRS_UNLOADED


def first_contact(rows: Rows, ray: Ray1, i: int) -> FirstContact | None:
    """Return the first contact of a ray with primitive i, or None."""
    functions = _functions_of(rows)
    return functions.contact(rows, ray, i, functions.points(rows, i))


def exact_time(rows: Rows, ray: Ray1, i: int) -> Ratio | None:
    """Return the exact time of the first contact with primitive i, or None."""
    functions = _functions_of(rows)
    return functions.time(rows, ray, i, functions.points(rows, i))


def path_length(rows: Rows, ray: Ray1, i: int) -> float | None:
    """Return the length of a ray inside of primitive i, by exact times; None if these are not known."""
    functions = TABLE.get(type(rows))
    span = functions and functions.span(rows, ray, i, functions.points(rows, i))
    return span and paths.length(ray, *span)


def contact_point(rows: Rows, ray: Ray1, i: int) -> Vector | None:
    """Return the point of first contact with primitive i, each coordinate rounded once; None if unknown."""
    functions = TABLE.get(type(rows))
    time = functions and functions.time(rows, ray, i, functions.points(rows, i))
    return time and paths.point(ray, time)


def compare_contacts(one: tuple[Ratio, int], other: tuple[Ratio, int]) -> int:
    """Compare first contacts by time, exactly, then by number."""
    return definition.order(one[0], other[0]) or one[1] - other[1]


def _functions_of(rows: Rows) -> ExactFunctions:
    functions = TABLE[type(rows)]
    assert functions is not None  # as scenes of several geometries check
    return functions
