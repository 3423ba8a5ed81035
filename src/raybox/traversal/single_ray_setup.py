"""Ray setup of a single ray: in tree coordinates, in float32, rounded so that no box is lost.

**Why no box is lost.** Let a plane at p be crossed at the exact time T, in tree units. The slot holds
a plane b beyond p, outward; for a near plane the origin o_near is shifted along the direction,
for a far plane o_far against it, by more than all rounding so far. So N = (b - o_near)/w is at
most T for near planes, and at least T for far ones, by 2^-100 or more. What float32 computes is
``fl(fl(b - o) * inv) = N (1 + e)``, abs(e) <= 3.01 * 2^-24 (two roundings, and inv's own), off by
2^-149 where it underflows. `raybox.traversal.single` therefore takes near times smaller, and far
times larger, by the factor 1 +- 2^-22. A parent's planes lie outside its child's, and
rounding is monotone: ``b <= b'  =>  fl(fl(b - o) * inv) <= fl(fl(b' - o) * inv)`` for inv > 0, so
a parent never drops a ray that its child accepts.

Axes along which the ray (nearly) stands still have inv = inf: the times are then -inf and +inf
for a slab round the origin. ``0 * inf`` is NaN, which constrains nothing. A ray of zero direction is a
point: it needs no range, and that of 0 alone excludes the slabs elsewhere, whose times are +inf.
"""

from typing import NamedTuple, TypeAlias

import numpy as np

from raybox.bvh.node import FAR, Tree, outward_down, outward_up, to_tree
from raybox.compiler.decorators import device, inlined
from raybox.exact.double_double import Vector3
from raybox.exact.error_free import exponent_of, scaled
from raybox.primitives.ray import Mover, Ray, extent

_SLOW = 2.0**-60  # direction parts below this share of the largest: the ray stands still
_ROUND = 2.0**-50
_SMALLEST = 5e-324  # lost in any normal float
_LARGEST = 1.7976931348623157e308
_INF32 = np.float32(np.inf)
_POINT = -3000  # exponent of the unit of time of a ray of zero direction: all its times are 0 in tree units
SHARP = (0.0, 0.0, 0.0)
_to_tree = inlined(to_tree)
_Singles: TypeAlias = tuple[np.float32, np.float32, np.float32]


class RaySlabs(NamedTuple):
    """What the node test reads of a ray; its times are t * 2^exponent - shift."""

    near: _Singles  # origins for near planes, one for each axis
    far: _Singles  # origins for far planes
    inverse: _Singles
    backward: tuple[np.bool_, np.bool_, np.bool_]  # whether the ray runs towards smaller coordinates
    start: np.float32  # the range, in tree units, rounded outward
    stop: np.float32
    exponent: int
    shift: float


@device
def latest(t: float, exponent: int, shift: float) -> np.float32:
    """Return a time in tree units, rounded up to float32.

    The time was rounded once: -inf stands for all that overflows; a denormal may be off by half of itself.
    """
    x = scaled(max(t + _SMALLEST, -_LARGEST), exponent)
    if x < -FAR:
        return np.float32(-FAR)
    return outward_up(x - shift + (abs(x) + abs(shift)) * _ROUND) if x < FAR else _INF32


@device
def _place(low: float, high: float, center: float, scale: float) -> tuple[tuple[float, float], float]:
    """Return both ends of what moves in tree coordinates, and their error bound."""
    x = _to_tree(low, center, scale)
    y = _to_tree(high, center, scale)
    return (x, y), max(abs(x), abs(y)) * _ROUND


@device
def _farther(v: tuple[float, float]) -> float:
    return max(abs(v[0]), abs(v[1]))


@inlined
def _clip(
    v: tuple[float, float], slack: float, w: float, moves: bool, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Return times on one axis before and after which the ray is certainly outside of bounds."""
    low, up = bounds
    if not moves and (v[1] + slack < low or v[0] - slack > up):
        return np.inf, -np.inf
    if abs(w) < _SLOW or not _near(v):
        return -np.inf, np.inf
    a = (low - v[1]) / w
    b = (up - v[0]) / w
    near = min(a, b)
    far = max(a, b)
    pad = slack / abs(w)
    return near - abs(near) * _ROUND - pad, far + abs(far) * _ROUND + pad


@inlined
def _near(v: tuple[float, float]) -> bool:
    return abs(v[0]) < FAR and abs(v[1]) < FAR


@inlined
def _axis(v: tuple[float, float], slack: float, w: float, moves: bool, length: float) -> _Singles:
    """Return (origin for near planes, for far planes, inverse) of one axis; see the module docstring."""
    if abs(w) < _SLOW:
        if moves:
            slack += length * max(abs(w), 2.0**-900)
        if _near(v) and slack < FAR:
            return outward_up(v[1] + slack), outward_down(v[0] - slack), _INF32
        return _INF32, -_INF32, np.float32(1.0)
    if not (_near(v) and slack < FAR):
        return (_INF32, -_INF32, np.float32(1.0)) if w > 0.0 else (-_INF32, _INF32, np.float32(-1.0))
    inverse = np.float32(1.0 / w)
    if w > 0.0:
        return outward_up(v[1] + slack), outward_down(v[0] - slack), inverse
    return outward_down(v[0] - slack), outward_up(v[1] + slack), inverse


@inlined
def make_ray_slabs(tree: Tree, ray: Ray | Mover, blur: Vector3) -> tuple[bool, RaySlabs]:
    """Return whether the ray, or moving box, may hit anything, and its slabs.

    blur: on each axis, how far the exact ray may be from this one within its range; `SHARP`: they are equal.
    """
    o, p = extent(ray)
    d = ray.direction
    root = tree.root

    # Move the ray to tree coordinates; scale its longest direction part to [1/2, 1).
    vx, sx = _place(o[0], p[0], tree.center[0], tree.scale)
    vy, sy = _place(o[1], p[1], tree.center[1], tree.scale)
    vz, sz = _place(o[2], p[2], tree.center[2], tree.scale)
    if blur[0] != 0.0 or blur[1] != 0.0 or blur[2] != 0.0:
        sx, sy, sz = sx + blur[0] * tree.scale, sy + blur[1] * tree.scale, sz + blur[2] * tree.scale
    longest = max(abs(d[0]), abs(d[1]), abs(d[2]))
    size = exponent_of(longest) if longest > 0.0 else _POINT - tree.exponent
    wx, wy, wz = scaled(d[0], -size), scaled(d[1], -size), scaled(d[2], -size)
    exponent = size + tree.exponent

    # Clip it to the bounds of all boxes.
    ax, bx = _clip(vx, sx, wx, d[0] != 0.0, (root[0, 0], root[1, 0]))
    ay, by = _clip(vy, sy, wy, d[1] != 0.0, (root[0, 1], root[1, 1]))
    az, bz = _clip(vz, sz, wz, d[2] != 0.0, (root[0, 2], root[1, 2]))
    first = scaled(ray.t_min, exponent) if longest > 0.0 else 0.0
    last = scaled(ray.t_max, exponent) if longest > 0.0 else 0.0
    start = max(ax, ay, az, first - abs(first) * _ROUND if first < FAR else FAR)
    stop = min(bx, by, bz, last + abs(last) * _ROUND if last > -FAR else -FAR)

    # Move a far origin to where the ray enters: float32 is fine only near the scene.
    shift = 0.0
    if max(_farther(vx), _farther(vy), _farther(vz)) > 4.0 and -FAR < start < FAR:
        shift = start
        sx += (_farther(vx) + abs(shift * wx)) * _ROUND
        sy += (_farther(vy) + abs(shift * wy)) * _ROUND
        sz += (_farther(vz) + abs(shift * wz)) * _ROUND
        vx = (vx[0] + shift * wx, vx[1] + shift * wx)
        vy = (vy[0] + shift * wy, vy[1] + shift * wy)
        vz = (vz[0] + shift * wz, vz[1] + shift * wz)

    length = max(abs(start - shift), abs(stop - shift))
    near_x, far_x, inverse_x = _axis(vx, sx, wx, d[0] != 0.0, length)
    near_y, far_y, inverse_y = _axis(vy, sy, wy, d[1] != 0.0, length)
    near_z, far_z, inverse_z = _axis(vz, sz, wz, d[2] != 0.0, length)
    pad = abs(shift) * _ROUND
    slabs = RaySlabs(
        (near_x, near_y, near_z),
        (far_x, far_y, far_z),
        (inverse_x, inverse_y, inverse_z),
        (inverse_x < 0.0, inverse_y < 0.0, inverse_z < 0.0),
        outward_down(start - shift - pad),
        outward_up(stop - shift + pad),
        exponent,
        shift,
    )
    return start <= stop, slabs
