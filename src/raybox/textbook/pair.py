"""Why one ray hits or misses one primitive of any geometry: its slabs, and the exact t as a fraction."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from raybox.exact import definition, instance_definition
from raybox.exact.definition import Ratio, Ray1, Vector
from raybox.textbook.explain import examine, one_ray

if TYPE_CHECKING:
    from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes, Rays

_LONGEST = 40  # characters of a fraction that is shown


class AxisSlab(NamedTuple):
    """The bounds of one axis, and t where the line enters and leaves them, as text."""

    axis: str
    lower: str
    upper: str
    near: str
    far: str


class PairExplanation(NamedTuple):
    """A text, the slabs of a box (none of a surface), the verdict, and the exact t of a hit."""

    text: str
    axes: tuple[AxisSlab, ...]
    verdict: str
    t: str


def explain_pair(
    ray: "Rays", geometry: "Boxes | Grid | Mesh | Planes | Instances", row: int, inner: int = 0
) -> PairExplanation:
    """Return the explanation of one ray in 3D and one row of a geometry.

    Of a copy, numbers are in the coordinates of what is copied, in which t is the same.

    Parameters
    ----------
    inner : int
        Of `Instances`, the row of the geometry that is copied.

    Examples
    --------
    >>> import raybox as rb
    >>> explain_pair(rb.Rays([0, 0, 0], [3, 0, 0]), rb.Boxes([[5, -1, -1]], [[6, 1, 1]]), 0).t
    '5/3 = 1.6666666666666667'
    """
    from raybox.geometry import Boxes, Grid, Instances, Planes

    one = one_ray(ray, 3)
    if isinstance(geometry, Instances):
        return _of_copy(one, geometry, row, inner)
    if isinstance(geometry, Planes):
        normal, offset = tuple(geometry.normals[row].tolist()), float(geometry.offsets[row])
        time = definition.plane_time(one, normal, offset)
        return PairExplanation(f"the plane {normal} . p = {offset!r}", (), *_verdict(time))
    if isinstance(geometry, Boxes | Grid):
        box = geometry.boxes([row]) if isinstance(geometry, Grid) else geometry[row]
        points = _points(box, 0)
        return _of_box(str(examine(ray, box)), one, points, points)
    return _of_triangle("the triangle", one, _points(geometry, row))


def _of_copy(ray: Ray1, copies: "Instances", row: int, inner: int) -> PairExplanation:
    from raybox.geometry import Boxes

    points, matrix = _points(copies.geometry, inner), tuple(map(tuple, copies.rows()[row].tolist()))
    local, scaled = instance_definition.to_local(ray, matrix, points)
    where = f"{inner} of copy {row}, in the coordinates of what is copied"
    if isinstance(copies.geometry, Boxes):
        return _of_box(f"box {where}", local, scaled, points)
    return _of_triangle(f"triangle {where}", local, scaled)


def _of_box(text: str, ray: Ray1, points: Sequence[Vector], shown: Sequence[Vector]) -> PairExplanation:
    """Return the explanation of a box; points: its lower and upper corner, shown: in numbers to show."""
    slabs = []
    for k in range(3):
        near, far = _slab(ray.origin[k], ray.direction[k], points[0][k], points[1][k])
        slabs.append(AxisSlab("xyz"[k], *(repr(value) for value in (shown[0][k], shown[1][k], near, far))))
    return PairExplanation(text, tuple(slabs), *_verdict(definition.box_time(ray, points[0], points[1])))


def _slab(origin: float, direction: float, lower: float, upper: float) -> tuple[float, float]:
    """Return t at which a line enters and leaves the slab of one axis, rounded once.

    Of a line parallel to it, -inf and inf inside, inf and -inf outside.
    """
    if direction == 0:
        return (-inf, inf) if lower <= origin <= upper else (inf, -inf)
    first, last = (lower, upper) if direction > 0 else (upper, lower)
    return _crossing(first, origin, direction), _crossing(last, origin, direction)


def _crossing(bound: float, origin: float, direction: float) -> float:
    if abs(bound) == inf:
        return bound if direction > 0 else -bound
    time = (Fraction(bound) - Fraction(origin)) / Fraction(direction)
    return definition.rounded((time.numerator, time.denominator))


def _of_triangle(text: str, ray: Ray1, points: Sequence[Vector]) -> PairExplanation:
    found = definition.triangle_ratios(ray, points[0], points[1], points[2], False)
    if found is None:
        return PairExplanation(text, (), *_verdict(None))
    u, v = definition.rounded(found.u), definition.rounded(found.v)
    text += f"\nweights of its corners: {1.0 - u - v!r}, {u!r}, {v!r}"
    return PairExplanation(text, (), *_verdict(found.time))


def _verdict(time: Ratio | None) -> tuple[str, str]:
    """Return the verdict, and the exact t as a fraction and a decimal, or as a decimal alone."""
    if time is None:
        return "miss", ""
    if time[1] == 0:
        return f"hit at t = {definition.rounded(time)!r}", repr(definition.rounded(time))
    fraction, decimal = str(Fraction(*time)), repr(definition.rounded(time))
    return f"hit at t = {decimal}", f"{fraction} = {decimal}" if len(fraction) <= _LONGEST else decimal


def _points(geometry: "Boxes | Mesh", row: int) -> list[Vector]:
    """Return the lower and upper corner of a box, or the corners of a triangle."""
    from raybox.geometry import Boxes

    if isinstance(geometry, Boxes):
        return [tuple(geometry.lower[row].tolist()), tuple(geometry.upper[row].tolist())]
    return [tuple(corner) for corner in geometry.vertices[geometry.faces[row]].tolist()]
