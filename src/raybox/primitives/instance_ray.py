"""A ray as a moved copy sees it: o' = inv(A) (o - b), d' = inv(A) d, with bounds of what was lost.

First in float64: ``local`` and ``heading`` are off by at most ``blur`` and ``sway`` on each axis, so small
that nearly every decision is sure all the same. Then in double-double, for times that are to be rounded
once. What neither can tell is left to `raybox.exact.instance_definition`, in whole numbers.

**The bounds.** inv(A) is held as high + low, off by less than 2^-90 of high. A term of the sum
sum_l high[k, l] (o - b)[l] takes three roundings (of the inverse, the difference, the product), the sum two
more: together below 6 * 2^-53 of S = sum_l abs(high[k, l] (o - b)[l]); 2^-49 S is taken, which covers one
more sum of the user's. No product underflows, because a copy and a ray are `tame`: a number is 0, or
between 2^-200 and 2^60. Where no term is left (S = 0) the coordinate is 0, exactly.
"""

from typing import Any, NamedTuple

from raybox.compiler.decorators import device
from raybox.exact import double_double
from raybox.exact.double_double import DD, is_moderate, with_underflow
from raybox.primitives.ray import Ray

_LOST = 2.0**-49
_INVERSE = 2.0**-90  # of an entry of the inverse: more than high + low is off


class Seen(NamedTuple):
    """A ray, and how copy number `copy` sees it."""

    origin: Any
    direction: Any
    t_min: float
    t_max: float
    local: Any  # where it starts, in the copy's coordinates
    heading: Any  # its direction there
    blur: Any  # how far off `local` may be, on each axis
    sway: Any  # how far off `heading` may be
    copy: int
    base: int  # the number of the copy's first primitive
    sure: bool  # do the bounds hold


@device
def plainly(ray: Any) -> Ray:
    """Return a ray without what it is seen by."""
    return Ray(ray.origin, ray.direction, ray.t_min, ray.t_max)


@device
def _image(inverse: Any, copy: int, k: int, v: Any) -> tuple[float, float]:
    """Return one coordinate of inv(A) v in float64, and how far it may be off."""
    x, y, z = inverse[copy, k, 0] * v[0], inverse[copy, k, 1] * v[1], inverse[copy, k, 2] * v[2]
    return (x + y) + z, (abs(x) + abs(y) + abs(z)) * _LOST


@device
def look(rows: Any, ray: Ray, copy: int) -> Seen:
    """Return a ray as a copy sees it."""
    o, d, placed, high = ray.origin, ray.direction, rows.placed, rows.high
    v = o[0] - placed[copy, 0, 3], o[1] - placed[copy, 1, 3], o[2] - placed[copy, 2, 3]
    local_x, blur_x = _image(high, copy, 0, v)
    local_y, blur_y = _image(high, copy, 1, v)
    local_z, blur_z = _image(high, copy, 2, v)
    heading_x, sway_x = _image(high, copy, 0, d)
    heading_y, sway_y = _image(high, copy, 1, d)
    heading_z, sway_z = _image(high, copy, 2, d)
    return Seen(
        o,
        d,
        ray.t_min,
        ray.t_max,
        (local_x, local_y, local_z),
        (heading_x, heading_y, heading_z),
        (blur_x, blur_y, blur_z),
        (sway_x, sway_y, sway_z),
        copy,
        copy * rows.size,
        bool(rows.tame[copy]) and is_moderate(o) and is_moderate(d),
    )


@device
def _entry(rows: Any, copy: int, k: int, j: int) -> DD:
    head = rows.high[copy, k, j]
    return DD(head, rows.low[copy, k, j], abs(head) * _INVERSE)


@device
def _sharp(rows: Any, copy: int, k: int, v: Any) -> DD:
    """Return one coordinate of inv(A) v in double-double."""
    x = double_double.mul(_entry(rows, copy, k, 0), v[0])
    y = double_double.mul(_entry(rows, copy, k, 1), v[1])
    z = double_double.mul(_entry(rows, copy, k, 2), v[2])
    return double_double.add(double_double.add(x, y), z)


@device
def sharp_origin(rows: Any, ray: Any, copy: int, k: int) -> DD:
    """Return coordinate k of where a ray starts in a copy, in double-double."""
    placed, o = rows.placed, ray.origin
    b = placed[copy, 0, 3], placed[copy, 1, 3], placed[copy, 2, 3]
    return _sharp(rows, copy, k, double_double.diff3(o, b))


@device
def sharp_heading(rows: Any, ray: Any, copy: int, k: int) -> DD:
    """Return coordinate k of a ray's direction in a copy, in double-double."""
    return _sharp(rows, copy, k, double_double.lift3(ray.direction))


@device
def sharp3(rows: Any, ray: Any, copy: int) -> tuple[Any, Any]:
    """Return where a ray starts in a copy, and its direction there, in double-double."""
    origin = (
        sharp_origin(rows, ray, copy, 0),
        sharp_origin(rows, ray, copy, 1),
        sharp_origin(rows, ray, copy, 2),
    )
    heading = (
        sharp_heading(rows, ray, copy, 0),
        sharp_heading(rows, ray, copy, 1),
        sharp_heading(rows, ray, copy, 2),
    )
    return origin, heading


@device
def order(num1: DD, den1: DD, num2: DD, den2: DD) -> int:
    """Compare num1/den1 with num2/den2: -1 or 1 where that is sure, else 0; signs of both den are sure."""
    cross_product = double_double.sub(double_double.mul(num1, den2), double_double.mul(num2, den1))
    difference = with_underflow(cross_product)
    if not double_double.certain(difference):
        return 0
    positive = (difference.head > 0.0) == ((den1.head > 0.0) == (den2.head > 0.0))
    return 1 if positive else -1
