"""Why one ray hits or misses one primitive: its slabs in exact numbers, and the verdict."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from typing import NamedTuple

import numpy as np

from raybox.exact import definition, instance_definition
from raybox.exact.definition import Ratio, Ray1, Vector
from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes, Rays
from raybox.textbook.explain import examine, one_ray
from raybox.viewer.stage import Stage

_LONGEST = 40  # digits of a fraction that is shown


class AxisRow(NamedTuple):
    """The slab of one axis: the bounds, and t where the line enters and leaves it."""

    axis: str
    lower: str
    upper: str
    near: str
    far: str


class PairExplanation(NamedTuple):
    """The fields of the frame ``explain``."""

    text: str
    axes: tuple[AxisRow, ...]
    verdict: str
    t: str


def explain_pair(stage: Stage, ray: Rays, geometry: int, primitive: int) -> PairExplanation:
    """Return the explanation of one ray and one box, triangle, cell, copy or plane."""
    solid, one = stage.parts[geometry].geometry, one_ray(ray, 3)
    if isinstance(solid, Boxes | Grid):
        box = solid.boxes([primitive]) if isinstance(solid, Grid) else solid[primitive]
        corners = _corners(box, 0)
        return _of_box(str(examine(ray, box)), one, corners, corners)
    if isinstance(solid, Instances):
        return _of_copy(solid, one, primitive, _inner_row(stage, ray, geometry, primitive))
    if isinstance(solid, Planes):
        normal, offset = tuple(solid.normals[primitive].tolist()), float(solid.offsets[primitive])
        return _of_surface(f"plane {normal} . p = {offset!r}", definition.plane_time(one, normal, offset))
    return _of_triangle("triangle", one, _triangle(solid, primitive))


def _inner_row(stage: Stage, ray: Rays, geometry: int, copy: int) -> int:
    """Return the row of the copied geometry that a ray hits first in a copy; 0 for a miss."""
    hits = stage.scene.all(ray, workers=1)
    rows = np.flatnonzero((hits.geometry == geometry) & (hits.index == copy))
    return int(hits.primitive[rows[0]]) if rows.size else 0


def _of_copy(copies: Instances, ray: Ray1, copy: int, row: int) -> PairExplanation:
    """Return the explanation in the coordinates of the copied geometry, in which t is the same."""
    matrix = tuple(map(tuple, copies.rows()[copy].tolist()))
    inner = copies.geometry
    points = _corners(inner, row) if isinstance(inner, Boxes) else _triangle(inner, row)
    local, scaled = instance_definition.to_local(ray, matrix, points)
    where = f"copy {copy}, in the coordinates of what is copied"
    if isinstance(inner, Boxes):
        return _of_box(f"box {row} of {where}", local, scaled, points)
    return _of_triangle(f"triangle {row} of {where}", local, scaled)


def _of_box(text: str, ray: Ray1, corners: Sequence[Vector], shown: Sequence[Vector]) -> PairExplanation:
    """Return the explanation of a box; shown: its corners in numbers to show."""
    axes = tuple(_axis(k, ray, corners, shown) for k in range(3))
    return PairExplanation(text, axes, *_verdict(definition.box_time(ray, corners[0], corners[1])))


def _axis(k: int, ray: Ray1, corners: Sequence[Vector], shown: Sequence[Vector]) -> AxisRow:
    near, far = _slab(ray.origin[k], ray.direction[k], corners[0][k], corners[1][k])
    return AxisRow("xyz"[k], *(repr(float(corner[k])) for corner in shown[:2]), repr(near), repr(far))


def _slab(origin: float, direction: float, lower: float, upper: float) -> tuple[float, float]:
    """Return t at which a line enters and leaves the slab of one axis: exact, rounded once.

    Of a line parallel to it, -inf and inf inside, inf and -inf outside.
    """
    if direction == 0:
        return (-inf, inf) if lower <= origin <= upper else (inf, -inf)
    ends = sorted(_crossing(bound, origin, direction) for bound in (lower, upper))
    return ends[0], ends[1]


def _crossing(bound: float, origin: float, direction: float) -> float:
    if abs(bound) == inf:
        return bound if direction > 0 else -bound
    time = (Fraction(bound) - Fraction(origin)) / Fraction(direction)
    return definition.rounded((time.numerator, time.denominator))


def _of_triangle(text: str, ray: Ray1, corners: Sequence[Vector]) -> PairExplanation:
    found = definition.triangle_ratios(ray, corners[0], corners[1], corners[2], False)
    if found is None:
        return _of_surface(text, None)
    u, v = definition.rounded(found.u), definition.rounded(found.v)
    weights = f"weights of the corners: {1 - u - v:.17g}, {u!r}, {v!r}"
    return _of_surface(f"{text}\n{weights}", found.time)


def _of_surface(text: str, time: Ratio | None) -> PairExplanation:
    return PairExplanation(text, (), *_verdict(time))


def _verdict(time: Ratio | None) -> tuple[str, str]:
    """Return the verdict, and the exact t as a fraction and a decimal."""
    if time is None:
        return "miss", ""
    fraction, decimal = str(Fraction(*time)), repr(definition.rounded(time))
    is_short = len(fraction) <= _LONGEST and fraction != decimal
    return f"hit at t = {decimal}", f"{fraction} = {decimal}" if is_short else decimal


def _corners(boxes: Boxes, row: int) -> list[Vector]:
    return [tuple(boxes.lower[row].tolist()), tuple(boxes.upper[row].tolist())]


def _triangle(mesh: Mesh, row: int) -> list[Vector]:
    return [tuple(corner) for corner in mesh.vertices[mesh.faces[row]].tolist()]
