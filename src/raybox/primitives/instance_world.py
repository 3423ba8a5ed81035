"""Copies that stand in the world as primitives of their own: decided there, where bounds leave a doubt.

A doubt mostly means that things truly touch: cells side by side, rays along an edge, copies laid out on a
grid. Matrices are plain there (moves, mirror images, quarter turns, powers of two), and the corners of a
primitive's image are floats to the last bit. Then it is a primitive like any other, and
`raybox.primitives.box` and `triangle` decide exactly. The image of a box must be a box, too: each axis goes
to an axis.
"""

from typing import Any

import numpy as np

from raybox.compiler.decorators import device, dispatch, dispatch_named
from raybox.exact import double_double
from raybox.exact.double_double import is_moderate
from raybox.geometry import BoxRows, TriangleRows
from raybox.primitives import box, triangle
from raybox.primitives.instance_ray import Seen, plainly
from raybox.primitives.ray import Ray

_MODULES = {BoxRows: box, TriangleRows: triangle}


@device
def _moved(rows: Any, copy: int, k: int, point: Any) -> tuple[bool, float]:
    """Return (is it a float, coordinate k of a tame point's image)."""
    m = rows.placed
    x, y, z = (
        double_double.mul(double_double.lift(m[copy, k, 0]), double_double.lift(point[0])),
        double_double.mul(double_double.lift(m[copy, k, 1]), double_double.lift(point[1])),
        double_double.mul(double_double.lift(m[copy, k, 2]), double_double.lift(point[2])),
    )
    image = double_double.add(
        double_double.add(x, y), double_double.add(z, double_double.lift(m[copy, k, 3]))
    )
    return image.tail == 0.0 and image.slack == 0.0, image.head


@device
def _put(rows: Any, copy: int, point: Any, out: Any) -> bool:
    """Write a point's image, under a map that bounds hold for; False where it is not three floats."""
    if not is_moderate(point):
        return False
    exact_x, out[0] = _moved(rows, copy, 0, point)
    exact_y, out[1] = _moved(rows, copy, 1, point)
    exact_z, out[2] = _moved(rows, copy, 2, point)
    return exact_x and exact_y and exact_z


@device
def _upright(rows: Any, copy: int) -> bool:
    """Tell whether each axis goes to an axis; no matrix flattens space."""
    turned = 0
    for k in range(9):
        turned += rows.placed[copy, k // 3, k % 3] != 0.0
    return turned == 3


@device
def _straight(rows: Any, copy: int) -> bool:
    """Tell whether each axis goes to itself."""
    m = rows.placed
    return _upright(rows, copy) and m[copy, 0, 0] != 0.0 and m[copy, 1, 1] != 0.0 and m[copy, 2, 2] != 0.0


@device
def _handed(rows: Any, copy: int) -> int:
    """Return 1 where left stays left, -1 for a mirror image, 0 where that is not sure."""
    m = rows.placed
    x, y, z = (
        double_double.lift3((m[copy, 0, 0], m[copy, 0, 1], m[copy, 0, 2])),
        double_double.lift3((m[copy, 1, 0], m[copy, 1, 1], m[copy, 1, 2])),
        double_double.lift3((m[copy, 2, 0], m[copy, 2, 1], m[copy, 2, 2])),
    )
    det = double_double.inner(x, double_double.cross(y, z))
    if not double_double.certain(det):
        return 0
    return 1 if det.head > 0.0 else -1


def _stand(inner: Any, rows: Any, copy: int, i: int, place: int) -> bool:
    """Write the image of row i to a place of the room; False where that is no primitive of floats."""
    raise NotImplementedError("compiled code only")


@device
def _stand_box(inner: BoxRows, rows: Any, copy: int, i: int, place: int) -> bool:
    low, up = inner.lower, inner.upper
    lower, upper = rows.scratch.lower[place], rows.scratch.upper[place]
    if not (
        _upright(rows, copy)
        and _put(rows, copy, (low[i, 0], low[i, 1], low[i, 2]), lower)
        and _put(rows, copy, (up[i, 0], up[i, 1], up[i, 2]), upper)
    ):
        return False
    for k in range(3):
        lower[k], upper[k] = min(lower[k], upper[k]), max(lower[k], upper[k])
    return True


@device
def _stand_triangle(inner: TriangleRows, rows: Any, copy: int, i: int, place: int) -> bool:
    corners, hand = inner.corners, _handed(rows, copy)
    for k in range(3):
        to = k if hand > 0 or k == 0 else 3 - k  # in a mirror image, two corners change places
        point = corners[i, k, 0], corners[i, k, 1], corners[i, k, 2]
        if not _put(rows, copy, point, rows.scratch.corners[place, to]):
            return False
    return hand != 0


_STAND: dict[type, Any] = {BoxRows: _stand_box, TriangleRows: _stand_triangle}
dispatch(_stand, _STAND.get)


def _intersect(room: Any, ray: Ray, i: int) -> tuple[bool, float]:
    raise NotImplementedError("compiled code only")


def _tie(room: Any, ray: Ray, i: int, j: int) -> int:
    raise NotImplementedError("compiled code only")


def _span(room: Any, ray: Ray, i: int) -> tuple[float, float]:
    raise NotImplementedError("compiled code only")


def _normal(room: Any, ray: Ray, i: int) -> tuple[float, float, float]:
    raise NotImplementedError("compiled code only")


dispatch_named((_intersect, _tie, _span, _normal), _MODULES)


@device
def intersect(rows: Any, seen: Seen, i: int) -> tuple[int, float]:
    """Return (1 met, -1 missed, 0 where it is no primitive of the world; first contact)."""
    if not _stand(rows.rows, rows, seen.copy, i, 0):
        return 0, np.nan
    met, t = _intersect(rows.scratch, plainly(seen), 0)
    return 1 if met else -1, t


@device
def tie(rows: Any, ray: Ray, copies: tuple[int, int], items: tuple[int, int]) -> tuple[bool, int]:
    """Return (is it sure, which of two primitives, both met, is met first: -1, 0 for both or 1)."""
    for place in range(2):
        if not _stand(rows.rows, rows, copies[place], items[place], place):
            return False, 0
    return True, _tie(rows.scratch, ray, 0, 1)


@device
def span(rows: Any, seen: Seen, i: int) -> tuple[float, float]:
    """Return where the whole line enters and leaves a primitive that it meets, or NaN."""
    if not _stand(rows.rows, rows, seen.copy, i, 0):
        return np.nan, np.nan
    return _span(rows.scratch, plainly(seen), 0)


@device
def normal(rows: Any, seen: Seen, i: int) -> tuple[float, float, float]:
    """Return the unit normal at the first contact, or NaN; edges belong to the copy's own first axis."""
    if not (_straight(rows, seen.copy) and _stand(rows.rows, rows, seen.copy, i, 0)):
        return np.nan, np.nan, np.nan
    return _normal(rows.scratch, plainly(seen), 0)
