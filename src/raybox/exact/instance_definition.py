"""The definition of instances: rays in the coordinates of an instance's geometry, in integers.

An instance is the exact image of its geometry under p -> A p + b. A ray hits it where the ray's image under
the inverse hits the geometry, at the same t: o' = inv(A) (o - b), d' = inv(A) d. By Cramer's rule these are
integers over det(A) and powers of two. Multiplied by those, all numbers are integers, and
`raybox.exact.definition` decides.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from raybox.exact.definition import Ray1, Vector, cross, dot, positive_denominator, rounded, shrunk, whole

Whole = list[int]
Matrix = tuple[Vector, ...]
"""Three rows of four: A, and b in the last column."""


def to_local(ray: Ray1, matrix: Matrix, points: Sequence[Sequence[float]]) -> tuple[Ray1, list[Vector]]:
    """Return a ray in local coordinates and points, all times one positive integer.

    Examples
    --------
    >>> double = ((2.0, 0.0, 0.0, 1.0), (0.0, 2.0, 0.0, 0.0), (0.0, 0.0, 2.0, 0.0))
    >>> to_local(Ray1((2.0, 0.0, 0.0), (1.0, 0.0, 0.0)), double, [(0.5, 0.0, 0.0)])
    (Ray1(origin=(8, 0, 0), direction=(8, 0, 0), t_min=0.0, t_max=inf), [(8, 0, 0)])
    """
    origin, direction, scale = _local(ray.origin, ray.direction, matrix)
    numbers, denominator = whole([x for point in points for x in point])
    scaled = [scale * x for x in numbers]
    o, d = (tuple(denominator * x for x in vector) for vector in (origin, direction))
    return Ray1(o, d, ray.t_min, ray.t_max), [tuple(scaled[k : k + 3]) for k in range(0, len(scaled), 3)]


def determinant_sign(matrix: Matrix) -> int:
    """Return the exact sign of det(A): -1, 0 or 1.

    Examples
    --------
    >>> determinant_sign(((0.0, 1.0, 0.0, 7.0), (1.0, 0.0, 0.0, 7.0), (0.0, 0.0, 1.0, 7.0)))
    -1
    """
    det = _inverted(matrix).det
    return (det > 0) - (det < 0)


def inverse(matrix: Matrix) -> tuple[list[list[float]], list[list[float]]]:
    """Return inv(A) rounded, and the rounding error, rounded.

    Examples
    --------
    >>> inverse(((3.0, 0.0, 0.0, 7.0), (0.0, 2.0, 0.0, 7.0), (0.0, 0.0, 1.0, 7.0)))[0][0]
    [0.3333333333333333, 0.0, 0.0]
    """
    columns, scale, det = _inverted(matrix)
    high = [[rounded(positive_denominator(scale * column[k], det)) for column in columns] for k in range(3)]
    low = []
    for k in range(3):
        row = []
        for column, head in zip(columns, high[k], strict=True):
            n, d = head.as_integer_ratio() if abs(head) < float("inf") else (0, 1)
            row.append(rounded(positive_denominator(scale * column[k] * d - n * det, det * d)))
        low.append(row)
    return high, low


def world_normal(normal: Sequence[float], matrix: Matrix) -> tuple[float, float, float]:
    """Return a local normal in world coordinates, at most 1 on any axis.

    It is transformed by the transposed inverse.

    Examples
    --------
    >>> world_normal((0.0, 1.0, 0.0), ((1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)))
    (0.0, 0.5, 0.0)
    """
    columns, _, det = _inverted(matrix)
    parts, _ = whole(normal)
    return shrunk([dot(parts, column) * (1 if det > 0 else -1) for column in columns])


def world_triangle_normal(corners: Sequence[Vector], matrix: Matrix) -> tuple[float, float, float]:
    """Return the normal of a local triangle in world coordinates, at most 1 on any axis.

    That of its image, or the opposite one under a mirroring: `world_normal` of a normal that is not rounded.

    Examples
    --------
    >>> shear = (1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)
    >>> world_triangle_normal(((0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)), shear)
    (0.0, 0.5, 0.0)
    """
    rows, _ = whole([x for row in matrix for x in row[:3]])
    points, _ = whole([x for corner in corners for x in corner])
    edges = [[p - o for p, o in zip(points[k : k + 3], points[:3], strict=True)] for k in (3, 6)]
    one, other = ([dot(rows[k : k + 3], edge) for k in (0, 3, 6)] for edge in edges)
    sign = 1 if _inverted(matrix).det > 0 else -1
    return shrunk([sign * x for x in cross(one, other)])


class _LocalRay(NamedTuple):
    """o' and d' times a positive integer, and that integer."""

    origin: Whole
    direction: Whole
    scale: int


@lru_cache(maxsize=256)
def _local(origin: Vector, direction: Vector, matrix: Matrix) -> _LocalRay:
    """Return the numbers of a ray in local coordinates, as integers."""
    columns, scale, det = _inverted(matrix)
    (*o, b0, b1, b2), o_scale = whole((*origin, *(row[3] for row in matrix)))
    d, d_scale = whole(direction)
    sign = 1 if det > 0 else -1
    moved = [x - y for x, y in zip(o, (b0, b1, b2), strict=True)]
    return _LocalRay(
        [sign * scale * d_scale * x for x in _combined(columns, moved)],
        [sign * scale * o_scale * x for x in _combined(columns, d)],
        abs(det) * o_scale * d_scale,
    )


class _Inverse(NamedTuple):
    """Integers of which inv(A) has the columns scale * column / det."""

    columns: list[Whole]
    scale: int
    det: int


@lru_cache(maxsize=256)
def _inverted(matrix: Matrix) -> _Inverse:
    """Return inv(A) by Cramer's rule; det is 0 where there is none."""
    numbers, scale = whole([x for row in matrix for x in row[:3]])
    x, y, z = numbers[:3], numbers[3:6], numbers[6:]
    columns = [cross(y, z), cross(z, x), cross(x, y)]
    return _Inverse(columns, scale, dot(x, columns[0]))


def _combined(columns: list[Whole], factors: Whole) -> Whole:
    return [sum(f * c[k] for f, c in zip(factors, columns, strict=True)) for k in range(3)]
