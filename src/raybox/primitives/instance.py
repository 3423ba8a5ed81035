"""Instances: the table of primitives that can be instanced, and the kernels of instances.

A primitive's number is ``instance * size + row``. If error bounds leave a pair undecided, it may still be
decided in world coordinates (`raybox.primitives.instance_world`). If not, `intersect` and `tie` set
``rows.undecided``, and `raybox.queries.exact_fallback` decides the ray; the other kernels return NaN.
"""

from typing import Protocol, cast

import numpy as np

from raybox.compiler.decorators import Namesakes, device, inlined
from raybox.exact import double_double
from raybox.exact.double_double import Vector3
from raybox.geometry import BoxRows, InstanceRows, PrimitiveRows, TriangleRows
from raybox.primitives import instance_box, instance_triangle, instance_world
from raybox.primitives.instance_ray import InstanceRay, to_instance, world_ray
from raybox.primitives.ray import Ray
from raybox.primitives.status import HIT, UNDECIDED
from raybox.validation import Floats

FILLS_BOXES = False


class InnerPrimitive(Protocol):
    """The kernels of a primitive that can be instanced; i, j: rows of the inner geometry."""

    def decide(
        self, inner: PrimitiveRows, rows: InstanceRows, local: InstanceRay, i: int, /
    ) -> tuple[int, float]:
        """Return (status, first contact rounded once)."""
        ...

    def tie(
        self,
        inner: PrimitiveRows,
        rows: InstanceRows,
        one: InstanceRay,
        i: int,
        other: InstanceRay,
        j: int,
        /,
    ) -> tuple[bool, int]:
        """Return (certain, order of the first contacts with i and j, both hit: -1, 0 or 1)."""
        ...

    def span(
        self, inner: PrimitiveRows, rows: InstanceRows, local: InstanceRay, i: int, /
    ) -> tuple[float, float]:
        """Return where the whole line enters and leaves row i, which it hits."""
        ...

    def normal(self, inner: PrimitiveRows, rows: InstanceRows, local: InstanceRay, i: int, /) -> Vector3:
        """Return the normal at the first contact, in the instance's coordinates."""
        ...

    def weights(
        self, inner: PrimitiveRows, rows: InstanceRows, local: InstanceRay, i: int, /
    ) -> tuple[float, float]:
        """Return the barycentric weights at the first contact."""
        ...


_INNER = cast(InnerPrimitive, Namesakes({BoxRows: instance_box, TriangleRows: instance_triangle}))
_decide, _tie, _span = _INNER.decide, _INNER.tie, _INNER.span
_normal, _weights = _INNER.normal, _INNER.weights


def bounds(rows: InstanceRows) -> tuple[Floats, Floats]:
    """Return the bounds of the instances."""
    return rows.lower, rows.upper


@inlined
def intersect(rows: InstanceRows, ray: InstanceRay, number: int) -> tuple[bool, float]:
    """Return (hit, first contact) of a primitive of the ray's instance; undecided pairs miss."""
    if ray.bounded:
        status, t = _decide(rows.rows, rows, ray, number - ray.base)
        if status == UNDECIDED:
            status, t = instance_world.intersect(rows, ray, number - ray.base)
        if status != UNDECIDED:
            return status == HIT, t if status == HIT else np.inf
    rows.undecided[0] = True
    return False, np.inf


@device
def _is_same(placed: Floats, one: int, other: int) -> bool:
    """Return whether two instances have the same matrix."""
    same = True
    for k in range(12):
        same = same and placed[one, k // 4, k % 4] == placed[other, k // 4, k % 4]
    return same


@device
def tie(rows: InstanceRows, ray: Ray | InstanceRay, one: int, other: int) -> int:
    """Compare first contacts with two primitives, both hit, exactly: -1, 0 or 1."""
    i, j = one // rows.size, other // rows.size
    row_i, row_j = one - i * rows.size, other - j * rows.size
    if row_i == row_j and _is_same(rows.placed, i, j):
        return 0
    plain = world_ray(ray)
    local_i, local_j = to_instance(rows, plain, i), to_instance(rows, plain, j)
    certain, first = _tie(rows.rows, rows, local_i, row_i, local_j, row_j)
    if not certain:
        certain, first = instance_world.tie(rows, plain, (i, j), (row_i, row_j))
    if not certain:
        rows.undecided[0] = True
    return first


@device
def span(rows: InstanceRows, ray: Ray, number: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves a primitive that it hits."""
    local = to_instance(rows, ray, number // rows.size)
    if not local.bounded:
        return np.nan, np.nan
    near, far = _span(rows.rows, rows, local, number - local.base)
    if np.isnan(near) or np.isnan(far):
        near, far = instance_world.span(rows, local, number - local.base)
    return near, far


@device
def normal(rows: InstanceRows, ray: Ray, number: int) -> Vector3:
    """Return the unit normal at the first contact: the inner normal times the transposed inverse."""
    local = to_instance(rows, ray, number // rows.size)
    if not local.bounded:
        return np.nan, np.nan, np.nan
    x, y, z = _normal(rows.rows, rows, local, number - local.base)
    if np.isnan(x):
        return instance_world.normal(rows, local, number - local.base)
    m, i = rows.high, local.instance
    return double_double.unit(
        (
            x * m[i, 0, 0] + y * m[i, 1, 0] + z * m[i, 2, 0],
            x * m[i, 0, 1] + y * m[i, 1, 1] + z * m[i, 2, 1],
            x * m[i, 0, 2] + y * m[i, 1, 2] + z * m[i, 2, 2],
        )
    )


@device
def weights(rows: InstanceRows, ray: Ray, number: int) -> tuple[float, float]:
    """Return the barycentric weights at the first contact."""
    local = to_instance(rows, ray, number // rows.size)
    return _weights(rows.rows, rows, local, number - local.base) if local.bounded else (np.nan, np.nan)


@device
def finish_ray(rows: InstanceRows, k: int) -> None:
    """Write whether anything about ray k is undecided."""
    rows.undecided_rays[k] = rows.undecided[0]
    rows.undecided[0] = False
