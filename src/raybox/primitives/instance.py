"""Moved copies of primitives: the table of what can be copied, and what a question asks of a copy.

A primitive's number is ``copy * size + row``. Where bounds cannot tell, it may stand in the world as one of
floats (`raybox.primitives.instance_world`). If not, `intersect` and `tie` set ``rows.undecided``, and the ray
is answered in whole numbers (`raybox.queries.exact_fallback`); the others return NaN.
"""

from types import ModuleType
from typing import Any

import numpy as np

from raybox.compiler.decorators import device, dispatch_named, inlined
from raybox.exact import double_double
from raybox.geometry import BoxRows, TriangleRows
from raybox.primitives import instance_box, instance_triangle, instance_world
from raybox.primitives.instance_ray import Seen, look, plainly
from raybox.primitives.ray import Ray

FILLS_BOXES = False
_TABLE: dict[type, ModuleType] = {BoxRows: instance_box, TriangleRows: instance_triangle}


def _decide(inner: Any, rows: Any, seen: Seen, i: int) -> tuple[int, float]:
    """Return (1 met, -1 missed, 0 not sure; first contact rounded once) for row i of what is copied."""
    raise NotImplementedError("compiled code only")


def _tie(inner: Any, rows: Any, one: Seen, i: int, other: Seen, j: int) -> tuple[bool, int]:
    """Return (is it sure, which of rows i and j, both met, is met first: -1, 0 for both or 1)."""
    raise NotImplementedError("compiled code only")


def _span(inner: Any, rows: Any, seen: Seen, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves row i, which it meets."""
    raise NotImplementedError("compiled code only")


def _normal(inner: Any, rows: Any, seen: Seen, i: int) -> tuple[float, float, float]:
    """Return the normal at the first contact, in the copy's coordinates."""
    raise NotImplementedError("compiled code only")


def _weights(inner: Any, rows: Any, seen: Seen, i: int) -> tuple[float, float]:
    """Return the barycentric weights at the first contact."""
    raise NotImplementedError("compiled code only")


dispatch_named((_decide, _tie, _span, _normal, _weights), _TABLE)


def bounds(rows: Any) -> tuple[Any, Any]:
    """Return the corners of the boxes round the copies."""
    return rows.lower, rows.upper


@inlined
def intersect(rows: Any, seen: Seen, number: int) -> tuple[bool, float]:
    """Return (is this primitive surely met, first contact) in the copy that the ray is seen from."""
    if seen.sure:
        status, t = _decide(rows.rows, rows, seen, number - seen.base)
        if status == 0:
            status, t = instance_world.intersect(rows, seen, number - seen.base)
        if status != 0:
            return status > 0, t if status > 0 else np.inf
    rows.undecided[0] = True
    return False, np.inf


@device
def _same(placed: Any, one: int, other: int) -> bool:
    same = True
    for k in range(12):
        same = same and placed[one, k // 4, k % 4] == placed[other, k // 4, k % 4]
    return same


@device
def tie(rows: Any, ray: Any, one: int, other: int) -> int:
    """Compare first contacts with two primitives, both met, exactly: -1, 0 or 1."""
    i, j = one // rows.size, other // rows.size
    row_i, row_j = one - i * rows.size, other - j * rows.size
    if row_i == row_j and _same(rows.placed, i, j):
        return 0
    plain = plainly(ray)
    sure, first = _tie(rows.rows, rows, look(rows, plain, i), row_i, look(rows, plain, j), row_j)
    if not sure:
        sure, first = instance_world.tie(rows, plain, (i, j), (row_i, row_j))
    if not sure:
        rows.undecided[0] = True
    return first


@device
def span(rows: Any, ray: Ray, number: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves a primitive that it meets."""
    seen = look(rows, ray, number // rows.size)
    if not seen.sure:
        return np.nan, np.nan
    near, far = _span(rows.rows, rows, seen, number - seen.base)
    if np.isnan(near) or np.isnan(far):
        near, far = instance_world.span(rows, seen, number - seen.base)
    return near, far


@device
def normal(rows: Any, ray: Ray, number: int) -> tuple[float, float, float]:
    """Return the unit normal at the first contact: the copied thing's own, by the inverse, transposed."""
    seen = look(rows, ray, number // rows.size)
    if not seen.sure:
        return np.nan, np.nan, np.nan
    x, y, z = _normal(rows.rows, rows, seen, number - seen.base)
    if np.isnan(x):
        return instance_world.normal(rows, seen, number - seen.base)
    m, i = rows.high, seen.copy
    return double_double.unit(
        (
            x * m[i, 0, 0] + y * m[i, 1, 0] + z * m[i, 2, 0],
            x * m[i, 0, 1] + y * m[i, 1, 1] + z * m[i, 2, 1],
            x * m[i, 0, 2] + y * m[i, 1, 2] + z * m[i, 2, 2],
        )
    )


@device
def weights(rows: Any, ray: Ray, number: int) -> tuple[float, float]:
    """Return the barycentric weights at the first contact."""
    seen = look(rows, ray, number // rows.size)
    return _weights(rows.rows, rows, seen, number - seen.base) if seen.sure else (np.nan, np.nan)


@device
def close(rows: Any, k: int) -> None:
    """Note whether anything about ray k was unsure."""
    rows.undecided_rays[k] = rows.undecided[0]
    rows.undecided[0] = False
