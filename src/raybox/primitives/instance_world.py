"""Primitives of instances in world coordinates, where bounds in the instance's leave them undecided.

Most undecided pairs truly touch: cells side by side, rays along an edge, instances on a grid. There matrices
are simple (translations, reflections, quarter turns, powers of two), and the corners of a primitive's image
are exactly floats. Then `raybox.primitives.box` and `triangle` decide the image exactly. The image of a box
must be a box, too: each axis maps to an axis.
"""

from collections.abc import Callable
from typing import cast

import numpy as np

from raybox.compiler.decorators import Namesakes, declare, device
from raybox.exact import double_double
from raybox.exact.double_double import Vector3, is_moderate
from raybox.geometry import BoxRows, InstanceRows, PrimitiveRows, TriangleRows
from raybox.primitives import box, triangle
from raybox.primitives.instance_ray import InstanceRay, world_ray
from raybox.primitives.protocol import Primitive
from raybox.primitives.ray import Ray
from raybox.primitives.status import HIT, MISS, UNDECIDED
from raybox.validation import Floats


@device
def _image(rows: InstanceRows, instance: int, k: int, point: Vector3) -> tuple[bool, float]:
    """Return (whether it is a float, coordinate k of a tame point's image)."""
    m = rows.placed
    x, y, z = (
        double_double.mul(double_double.lift(m[instance, k, 0]), double_double.lift(point[0])),
        double_double.mul(double_double.lift(m[instance, k, 1]), double_double.lift(point[1])),
        double_double.mul(double_double.lift(m[instance, k, 2]), double_double.lift(point[2])),
    )
    image = double_double.add(
        double_double.add(x, y), double_double.add(z, double_double.lift(m[instance, k, 3]))
    )
    return image.tail == 0.0 and image.slack == 0.0, image.head


@device
def _write_image(rows: InstanceRows, instance: int, point: Vector3, out: Floats) -> bool:
    """Write a point's image under a tame matrix; return whether it is three floats."""
    if not is_moderate(point):
        return False
    exact_x, out[0] = _image(rows, instance, 0, point)
    exact_y, out[1] = _image(rows, instance, 1, point)
    exact_z, out[2] = _image(rows, instance, 2, point)
    return exact_x and exact_y and exact_z


@device
def _keeps_axes(rows: InstanceRows, instance: int) -> bool:
    """Return whether each axis maps to an axis; no matrix is singular."""
    count = 0
    for k in range(9):
        count += rows.placed[instance, k // 3, k % 3] != 0.0
    return count == 3


@device
def _keeps_each_axis(rows: InstanceRows, instance: int) -> bool:
    """Return whether each axis maps to itself."""
    m = rows.placed
    return (
        _keeps_axes(rows, instance)
        and m[instance, 0, 0] != 0.0
        and m[instance, 1, 1] != 0.0
        and m[instance, 2, 2] != 0.0
    )


@device
def _orientation(rows: InstanceRows, instance: int) -> int:
    """Return the sign of the determinant: -1 for a reflection; 0 if uncertain."""
    m = rows.placed
    x, y, z = (
        double_double.lift3((m[instance, 0, 0], m[instance, 0, 1], m[instance, 0, 2])),
        double_double.lift3((m[instance, 1, 0], m[instance, 1, 1], m[instance, 1, 2])),
        double_double.lift3((m[instance, 2, 0], m[instance, 2, 1], m[instance, 2, 2])),
    )
    det = double_double.inner(x, double_double.cross(y, z))
    if not double_double.certain(det):
        return 0
    return 1 if det.head > 0.0 else -1


@device
def _box_to_world(
    inner: BoxRows, scratch: BoxRows, rows: InstanceRows, instance: int, i: int, place: int
) -> bool:
    low, up = inner.lower, inner.upper
    lower, upper = scratch.lower[place], scratch.upper[place]
    if not (
        _keeps_axes(rows, instance)
        and _write_image(rows, instance, (low[i, 0], low[i, 1], low[i, 2]), lower)
        and _write_image(rows, instance, (up[i, 0], up[i, 1], up[i, 2]), upper)
    ):
        return False
    for k in range(3):
        lower[k], upper[k] = min(lower[k], upper[k]), max(lower[k], upper[k])
    return True


@device
def _triangle_to_world(
    inner: TriangleRows, scratch: TriangleRows, rows: InstanceRows, instance: int, i: int, place: int
) -> bool:
    corners, orientation = inner.corners, _orientation(rows, instance)
    for k in range(3):
        to = k if orientation > 0 or k == 0 else 3 - k  # a reflection swaps two corners
        point = corners[i, k, 0], corners[i, k, 1], corners[i, k, 2]
        if not _write_image(rows, instance, point, scratch.corners[place, to]):
            return False
    return orientation != 0


_TO_WORLD: dict[type, object] = {BoxRows: _box_to_world, TriangleRows: _triangle_to_world}
_to_world: Callable[[PrimitiveRows, PrimitiveRows, InstanceRows, int, int, int], bool] = declare(
    "to_world", _TO_WORLD.get
)
"""(inner, scratch, rows, instance, i, place): write the image of row i to row `place` of the scratch rows;
return whether it is exact."""
_SCRATCH = cast("Primitive[PrimitiveRows, Ray]", Namesakes({BoxRows: box, TriangleRows: triangle}))
_intersect, _tie, _span, _normal = _SCRATCH.intersect, _SCRATCH.tie, _SCRATCH.span, _SCRATCH.normal


@device
def intersect(rows: InstanceRows, ray: InstanceRay, i: int) -> tuple[int, float]:
    """Return (status, first contact); undecided if the image is not exact."""
    if not _to_world(rows.rows, rows.scratch, rows, ray.instance, i, 0):
        return UNDECIDED, np.nan
    hit, t = _intersect(rows.scratch, world_ray(ray), 0)
    return HIT if hit else MISS, t


@device
def tie(
    rows: InstanceRows, ray: Ray, instances: tuple[int, int], primitives: tuple[int, int]
) -> tuple[bool, int]:
    """Return (certain, order of the first contacts with two primitives, both hit: -1, 0 or 1)."""
    for place in range(2):
        if not _to_world(rows.rows, rows.scratch, rows, instances[place], primitives[place], place):
            return False, 0
    return True, _tie(rows.scratch, ray, 0, 1)


@device
def span(rows: InstanceRows, ray: InstanceRay, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves a primitive that it hits, or NaN."""
    if not _to_world(rows.rows, rows.scratch, rows, ray.instance, i, 0):
        return np.nan, np.nan
    return _span(rows.scratch, world_ray(ray), 0)


@device
def normal(rows: InstanceRows, ray: InstanceRay, i: int) -> Vector3:
    """Return the unit normal at the first contact, or NaN; an edge belongs to the instance's first axis."""
    if not (
        _keeps_each_axis(rows, ray.instance) and _to_world(rows.rows, rows.scratch, rows, ray.instance, i, 0)
    ):
        return np.nan, np.nan, np.nan
    return _normal(rows.scratch, world_ray(ray), 0)
