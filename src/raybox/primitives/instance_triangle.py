"""Triangles in moved copies: three signed volumes with bounds, in the copy's own coordinates.

As in `raybox.primitives.triangle`, but the ray is off by a little: by ``blur`` and ``sway``, see
`raybox.primitives.instance_ray`. A volume d . (p x q) moves by at most sway |p| |q| + 2 |d| blur (|p| + |q| +
3 blur) for that, with sums of absolute values for |p| and |q| and largest ones for the others.
"""

from typing import Any

import numpy as np

from raybox.compiler.decorators import device
from raybox.exact import double_double
from raybox.exact.double_double import DD, is_small, with_underflow
from raybox.exact.predicate import sign
from raybox.primitives import triangle
from raybox.primitives.instance_ray import Seen, order, sharp3

_FILTER = 2.0**-48  # a volume takes seven roundings: 2^-50 of the sum of its terms' sizes
_TINY = 1e-290  # more than underflow can lose


@device
def _point(mesh: Any, i: int, k: int) -> tuple[float, float, float]:
    return mesh.corners[i, k, 0], mesh.corners[i, k, 1], mesh.corners[i, k, 2]


@device
def _minus(p: Any, o: Any) -> tuple[float, float, float]:
    return p[0] - o[0], p[1] - o[1], p[2] - o[2]


@device
def _reach(p: Any) -> float:
    return abs(p[0]) + abs(p[1]) + abs(p[2])


@device
def _largest(p: Any) -> float:
    return max(abs(p[0]), abs(p[1]), abs(p[2]))


@device
def _side(p: Any, q: Any, seen: Seen) -> int:
    """Return the sign of d . (p x q) where float64 is sure of it, else 2."""
    d = seen.heading
    value = (
        d[0] * (p[1] * q[2] - p[2] * q[1])
        + d[1] * (p[2] * q[0] - p[0] * q[2])
        + d[2] * (p[0] * q[1] - p[1] * q[0])
    )
    blur, sway = _largest(seen.blur), _largest(seen.sway)
    steep = _largest(d) + sway
    reach_p, reach_q = _reach(p), _reach(q)
    slack = (_FILTER * steep + 1.1 * sway) * reach_p * reach_q
    slack += 2.1 * steep * blur * (reach_p + reach_q + 3.0 * blur)
    return sign(value) if abs(value) > slack + _TINY else 2


@device
def _judge(mesh: Any, seen: Seen, i: int) -> int:
    """Return 1 where the line surely meets the triangle (and from the side that counts), -1, or 0."""
    a, b, c = _point(mesh, i, 0), _point(mesh, i, 1), _point(mesh, i, 2)
    if not (is_small(a) and is_small(b) and is_small(c)):
        return 0
    a, b, c = _minus(a, seen.local), _minus(b, seen.local), _minus(c, seen.local)
    u, v, w = _side(c, b, seen), _side(a, c, seen), _side(b, a, seen)
    ahead = u == 1 or v == 1 or w == 1
    behind = u == -1 or v == -1 or w == -1
    if behind and (ahead or mesh.cull_back):
        return -1
    return 0 if u == 2 or v == 2 or w == 2 else 1


@device
def _ratio(mesh: Any, rows: Any, seen: Seen, i: int) -> tuple[DD, DD]:
    """Return the crossing time as a numerator and a denominator, in double-double."""
    a = _point(mesh, i, 0)
    n = double_double.cross(
        double_double.diff3(_point(mesh, i, 1), a), double_double.diff3(_point(mesh, i, 2), a)
    )
    o, d = sharp3(rows, seen, seen.copy)
    return with_underflow(double_double.inner(_apart(a, o), n)), with_underflow(double_double.inner(d, n))


@device
def _apart(p: Any, o: Any) -> tuple[DD, DD, DD]:
    """Return p - o of floats and double-doubles."""
    return (
        double_double.sub(double_double.lift(p[0]), o[0]),
        double_double.sub(double_double.lift(p[1]), o[1]),
        double_double.sub(double_double.lift(p[2]), o[2]),
    )


@device
def _time(mesh: Any, rows: Any, seen: Seen, i: int) -> float:
    num, den = _ratio(mesh, rows, seen, i)
    return double_double.divide(num, den)


@device
def decide(mesh: Any, rows: Any, seen: Seen, i: int) -> tuple[int, float]:
    """Return (1 met, -1 missed, 0 not sure; first contact rounded once)."""
    status = _judge(mesh, seen, i)
    if status <= 0:
        return status, np.inf
    t = _time(mesh, rows, seen, i)
    if seen.t_min < t < seen.t_max:
        return 1, t
    return (-1 if t < seen.t_min or t > seen.t_max else 0), np.inf


@device
def tie(mesh: Any, rows: Any, one: Seen, i: int, other: Seen, j: int) -> tuple[bool, int]:
    """Return (is it sure, which of two triangles that are met is met first: -1, 0 for both or 1)."""
    num_i, den_i = _ratio(mesh, rows, one, i)
    num_j, den_j = _ratio(mesh, rows, other, j)
    first = (
        order(num_i, den_i, num_j, den_j)
        if double_double.certain(den_i) and double_double.certain(den_j)
        else 0
    )
    return first != 0, first


@device
def span(mesh: Any, rows: Any, seen: Seen, i: int) -> tuple[float, float]:
    """Return the crossing time twice: a triangle has no inside; NaN where floats cannot tell."""
    t = _time(mesh, rows, seen, i)
    return t, t


@device
def normal(mesh: Any, _rows: Any, _seen: Seen, i: int) -> tuple[float, float, float]:
    """Return the geometric normal, in the copy's coordinates."""
    return triangle.normal(mesh, _seen, i)


@device
def weights(mesh: Any, rows: Any, seen: Seen, i: int) -> tuple[float, float]:
    """Return the weights of the second and third corner, each rounded once; NaN where floats cannot tell."""
    o, d = sharp3(rows, seen, seen.copy)
    a, b, c = _apart(_point(mesh, i, 0), o), _apart(_point(mesh, i, 1), o), _apart(_point(mesh, i, 2), o)
    u, v, w = (
        double_double.inner(d, double_double.cross(c, b)),
        double_double.inner(d, double_double.cross(a, c)),
        double_double.inner(d, double_double.cross(b, a)),
    )
    total = with_underflow(double_double.add(double_double.add(u, v), w))
    return double_double.divide(with_underflow(v), total), double_double.divide(with_underflow(w), total)
