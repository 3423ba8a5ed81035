"""What the page explains of a ray and a primitive: slabs and the exact t, by the definitions of raybox."""

from fractions import Fraction
from math import inf
from typing import NamedTuple

import raybox as rb
from raybox.exact import definition, instance_definition
from raybox.textbook.explain import one_ray


class PairTruth(NamedTuple):
    """t of a hit, exact and rounded, None of a miss; for each axis of a box its bounds, and the t of both."""

    fraction: Fraction | None
    t: float | None
    axes: list[tuple[float, float, float, float]]


def pair_truth(ray: rb.Rays, geometry, row: int, inner: int = 0) -> PairTruth:
    """Return the truth of a ray in 3D and a row; inner: of a copy, the row of what is copied."""
    one = one_ray(ray, 3)
    if isinstance(geometry, rb.Planes):
        return _of_time(
            definition.plane_time(one, tuple(geometry.normals[row]), float(geometry.offsets[row]))
        )
    if isinstance(geometry, rb.Instances):
        points = _points(geometry.geometry, inner)
        local, scaled = instance_definition.to_local(
            one, tuple(map(tuple, geometry._rows()[row].tolist())), points
        )
        is_box = isinstance(geometry.geometry, rb.Boxes)
        return _of_box(local, scaled, points) if is_box else _of_triangle(local, scaled)
    if isinstance(geometry, rb.Mesh):
        return _of_triangle(one, _points(geometry, row))
    points = _points(geometry.boxes([row]) if isinstance(geometry, rb.Grid) else geometry[row], 0)
    return _of_box(one, points, points)


def _of_time(time, axes=()) -> PairTruth:
    if time is None:
        return PairTruth(None, None, [*axes])
    return PairTruth(Fraction(*time) if time[1] else None, definition.rounded(time), [*axes])


def _of_box(ray, points, shown) -> PairTruth:
    """points: its lower and upper corner, shown: in the numbers of the geometry."""
    ends = (_slab(ray.origin[k], ray.direction[k], points[0][k], points[1][k]) for k in range(3))
    axes = [(shown[0][k], shown[1][k], *own) for k, own in enumerate(ends)]
    return _of_time(definition.box_time(ray, points[0], points[1]), axes)


def _slab(origin, direction, lower, upper) -> tuple[float, float]:
    """Return t at both ends of a slab; of a parallel line -inf and inf inside, else inf and -inf."""
    if direction == 0:
        return (-inf, inf) if lower <= origin <= upper else (inf, -inf)
    first, last = (lower, upper) if direction > 0 else (upper, lower)
    return _crossing(first, origin, direction), _crossing(last, origin, direction)


def _crossing(bound, origin, direction) -> float:
    if abs(bound) == inf:
        return bound if direction > 0 else -bound
    time = (Fraction(bound) - Fraction(origin)) / Fraction(direction)
    return definition.rounded((time.numerator, time.denominator))


def _of_triangle(ray, points) -> PairTruth:
    found = definition.triangle_ratios(ray, *points, False)
    return _of_time(found and found.time)


def _points(geometry, row: int) -> list[tuple]:
    """Return the lower and upper corner of a box, or the corners of a triangle."""
    if isinstance(geometry, rb.Boxes):
        return [tuple(geometry.lower[row].tolist()), tuple(geometry.upper[row].tolist())]
    return [tuple(corner) for corner in geometry.vertices[geometry.faces[row]].tolist()]
