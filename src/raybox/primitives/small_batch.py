"""One ray and one primitive in integers: the same bits as the kernels', without Numba."""

from raybox.exact import definition, paths
from raybox.exact.definition import Ratio, Ray1, Vector
from raybox.geometry import RayRows, Rows
from raybox.primitives.exact_table import TABLE


def ray_at(rays: RayRows, i: int) -> Ray1:
    """Return one ray as plain numbers."""
    low = rays.t_min[i if rays.t_min.size > 1 else 0]
    high = rays.t_max[i if rays.t_max.size > 1 else 0]
    origin, direction = rays.origins[i].tolist(), rays.directions[i].tolist()
    return Ray1(tuple(origin), tuple(direction), float(low), float(high))


def exact_time(rows: Rows, ray: Ray1, i: int) -> Ratio | None:
    """Return the exact time of the first contact with primitive i, or None."""
    functions = TABLE[type(rows)]
    assert functions is not None  # as scenes of several geometries check
    return functions.time(rows, ray, i)


def path_length(rows: Rows, ray: Ray1, i: int) -> float | None:
    """Return the length of a ray inside of primitive i, by exact times; None if these are not known."""
    functions = TABLE.get(type(rows))
    span = functions and functions.span(rows, ray, i)
    return span and paths.length(ray, *span)


def contact_point(rows: Rows, ray: Ray1, i: int) -> Vector | None:
    """Return the point of first contact with primitive i, each coordinate rounded once; None if unknown."""
    functions = TABLE.get(type(rows))
    time = functions and functions.time(rows, ray, i)
    return time and paths.point(ray, time)


def compare_contacts(one: tuple[Ratio, int], other: tuple[Ratio, int]) -> int:
    """Compare first contacts by time, exactly, then by number."""
    return definition.order(one[0], other[0]) or one[1] - other[1]
