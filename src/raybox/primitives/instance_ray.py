"""A ray in an instance's coordinates: o' = inv(A) (o - b), d' = inv(A) d, with bounds of the errors.

First in float64, with bounds of the errors on each axis, so small that nearly every decision is certain. Then
in double-double, for times that are rounded once. `raybox.exact.instance_definition` decides in integers what
both leave undecided.

**The bounds.** inv(A) is stored as high + low, off by less than 2^-90 of high. A term of the sum
sum_l high[k, l] (o - b)[l] has three roundings (of the inverse, the difference, the product), the sum two
more: in all below 6 * 2^-53 of S = sum_l abs(high[k, l] (o - b)[l]). The bound is 2^-49 S, which includes one
more sum in a caller. No product underflows, because an instance and a ray are `tame`: a number is 0, or
between 2^-200 and 2^60. If all terms are 0 (S = 0), the coordinate is 0, exactly.
"""

from typing import NamedTuple, TypeAlias

from raybox.compiler.decorators import device
from raybox.exact import double_double
from raybox.exact.double_double import DD, DDVector3, Vector3, is_moderate, with_underflow
from raybox.geometry import InstanceRows
from raybox.primitives.ray import Mover, Ray
from raybox.validation import Floats

_LOST = 2.0**-49
_INVERSE = 2.0**-90  # relative to an entry of the inverse: above the error of high + low


class InstanceRay(NamedTuple):
    """A ray, and its image in the coordinates of one instance."""

    origin: Vector3
    direction: Vector3
    t_min: float
    t_max: float
    local_origin: Vector3
    local_direction: Vector3
    origin_error: Vector3  # of `local_origin`, on each axis, at most
    direction_error: Vector3
    instance: int
    base: int  # the number of the instance's first primitive
    bounded: bool  # whether the errors are bounded so


AnyRay: TypeAlias = Ray | Mover | InstanceRay


@device
def world_ray(ray: Ray | InstanceRay) -> Ray:
    """Return the ray in world coordinates."""
    return Ray(ray.origin, ray.direction, ray.t_min, ray.t_max)


@device
def _image(inverse: Floats, instance: int, k: int, v: Vector3) -> tuple[float, float]:
    """Return one coordinate of inv(A) v in float64, and a bound of its error."""
    x, y, z = inverse[instance, k, 0] * v[0], inverse[instance, k, 1] * v[1], inverse[instance, k, 2] * v[2]
    return (x + y) + z, (abs(x) + abs(y) + abs(z)) * _LOST


@device
def to_instance(rows: InstanceRows, ray: Ray, instance: int) -> InstanceRay:
    """Return a ray in the coordinates of an instance."""
    o, d, placed, high = ray.origin, ray.direction, rows.placed, rows.high
    v = o[0] - placed[instance, 0, 3], o[1] - placed[instance, 1, 3], o[2] - placed[instance, 2, 3]
    o_x, o_error_x = _image(high, instance, 0, v)
    o_y, o_error_y = _image(high, instance, 1, v)
    o_z, o_error_z = _image(high, instance, 2, v)
    d_x, d_error_x = _image(high, instance, 0, d)
    d_y, d_error_y = _image(high, instance, 1, d)
    d_z, d_error_z = _image(high, instance, 2, d)
    return InstanceRay(
        o,
        d,
        ray.t_min,
        ray.t_max,
        (o_x, o_y, o_z),
        (d_x, d_y, d_z),
        (o_error_x, o_error_y, o_error_z),
        (d_error_x, d_error_y, d_error_z),
        instance,
        instance * rows.size,
        bool(rows.tame[instance]) and is_moderate(o) and is_moderate(d),
    )


@device
def _entry(rows: InstanceRows, instance: int, k: int, j: int) -> DD:
    head = rows.high[instance, k, j]
    return DD(head, rows.low[instance, k, j], abs(head) * _INVERSE)


@device
def _twofold(rows: InstanceRows, instance: int, k: int, v: DDVector3) -> DD:
    """Return one coordinate of inv(A) v in double-double."""
    x = double_double.mul(_entry(rows, instance, k, 0), v[0])
    y = double_double.mul(_entry(rows, instance, k, 1), v[1])
    z = double_double.mul(_entry(rows, instance, k, 2), v[2])
    return double_double.add(double_double.add(x, y), z)


@device
def twofold_origin(rows: InstanceRows, ray: Ray | InstanceRay, instance: int, k: int) -> DD:
    """Return coordinate k of a ray's origin in an instance, in double-double."""
    placed, o = rows.placed, ray.origin
    b = placed[instance, 0, 3], placed[instance, 1, 3], placed[instance, 2, 3]
    return _twofold(rows, instance, k, double_double.diff3(o, b))


@device
def twofold_direction(rows: InstanceRows, ray: Ray | InstanceRay, instance: int, k: int) -> DD:
    """Return coordinate k of a ray's direction in an instance, in double-double."""
    return _twofold(rows, instance, k, double_double.lift3(ray.direction))


@device
def twofold_ray(rows: InstanceRows, ray: Ray | InstanceRay, instance: int) -> tuple[DDVector3, DDVector3]:
    """Return a ray's origin and direction in an instance, in double-double."""
    origin = (
        twofold_origin(rows, ray, instance, 0),
        twofold_origin(rows, ray, instance, 1),
        twofold_origin(rows, ray, instance, 2),
    )
    direction = (
        twofold_direction(rows, ray, instance, 0),
        twofold_direction(rows, ray, instance, 1),
        twofold_direction(rows, ray, instance, 2),
    )
    return origin, direction


@device
def order(num1: DD, den1: DD, num2: DD, den2: DD) -> int:
    """Compare num1/den1 with num2/den2: -1 or 1, 0 if uncertain; signs of both den are certain."""
    cross_product = double_double.sub(double_double.mul(num1, den2), double_double.mul(num2, den1))
    difference = with_underflow(cross_product)
    if not double_double.certain(difference):
        return 0
    positive = (difference.head > 0.0) == ((den1.head > 0.0) == (den2.head > 0.0))
    return 1 if positive else -1
