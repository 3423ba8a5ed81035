"""The definition of moved copies: a ray as the copy sees it, in whole numbers.

A copy is the image of its geometry under p -> A p + b, exactly, for the very floats of the matrix. A ray
meets it where the ray's own image under the inverse meets the geometry, at the same t: o' = inv(A) (o - b),
d' = inv(A) d. By Cramer's rule these are whole numbers over det(A) and powers of two; multiplied by those,
everything is whole, and `raybox.exact.definition` decides as it does for things that stand still.
"""

from collections.abc import Sequence
from functools import lru_cache

from raybox.exact.definition import Ray1, Vector, cross, dot, rounded, upright, whole

Whole = list[int]
Matrix = tuple[Vector, ...]
"""Three rows of four: A, and b in the last column."""


def seen(ray: Ray1, matrix: Matrix, points: Sequence[Sequence[float]]) -> tuple[Ray1, list[Vector]]:
    """Return the ray as the copy sees it, and points of the geometry, all times one positive number.

    Examples
    --------
    >>> double = ((2.0, 0.0, 0.0, 1.0), (0.0, 2.0, 0.0, 0.0), (0.0, 0.0, 2.0, 0.0))
    >>> seen(Ray1((2.0, 0.0, 0.0), (1.0, 0.0, 0.0)), double, [(0.5, 0.0, 0.0)])
    (Ray1(origin=(8, 0, 0), direction=(8, 0, 0), t_min=0.0, t_max=inf), [(8, 0, 0)])
    """
    origin, direction, scale = _local(ray.origin, ray.direction, matrix)
    numbers, parts = whole([x for point in points for x in point])
    grown = [scale * x for x in numbers]
    local = Ray1(tuple(parts * x for x in origin), tuple(parts * x for x in direction), ray.t_min, ray.t_max)
    return local, [tuple(grown[k : k + 3]) for k in range(0, len(grown), 3)]


def is_singular(matrix: Matrix) -> bool:
    """Tell whether the matrix flattens space: det(A) is 0, exactly."""
    return _inverted(matrix)[2] == 0


def inverse(matrix: Matrix) -> tuple[list[list[float]], list[list[float]]]:
    """Return inv(A) as the sum of two matrices: of numbers rounded once, and of what that left, rounded once.

    Examples
    --------
    >>> inverse(((3.0, 0.0, 0.0, 7.0), (0.0, 2.0, 0.0, 7.0), (0.0, 0.0, 1.0, 7.0)))[0][0]
    [0.3333333333333333, 0.0, 0.0]
    """
    columns, scale, det = _inverted(matrix)
    high = [[rounded(upright(scale * column[k], det)) for column in columns] for k in range(3)]
    low = []
    for k in range(3):
        row = []
        for column, head in zip(columns, high[k], strict=True):
            n, d = head.as_integer_ratio() if abs(head) < float("inf") else (0, 1)
            row.append(rounded(upright(scale * column[k] * d - n * det, det * d)))
        low.append(row)
    return high, low


def turned(normal: Sequence[float], matrix: Matrix) -> tuple[float, float, float]:
    """Return a normal in the world, at most 1 on any axis: by the inverse, transposed.

    Examples
    --------
    >>> turned((0.0, 1.0, 0.0), ((1.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (0.0, 0.0, 1.0, 0.0)))
    (0.0, 0.5, 0.0)
    """
    columns, _, det = _inverted(matrix)
    parts, _ = whole(normal)
    x, y, z = (dot(parts, column) * (1 if det > 0 else -1) for column in columns)
    largest = 2 ** max(x.bit_length(), y.bit_length(), z.bit_length())
    return rounded((x, largest)), rounded((y, largest)), rounded((z, largest))


@lru_cache(maxsize=256)
def _local(origin: Vector, direction: Vector, matrix: Matrix) -> tuple[Whole, Whole, int]:
    """Return o' and d' times a positive number, and that number."""
    columns, scale, det = _inverted(matrix)
    (*o, b0, b1, b2), o_scale = whole((*origin, *(row[3] for row in matrix)))
    d, d_scale = whole(direction)
    sign = 1 if det > 0 else -1
    moved = [x - y for x, y in zip(o, (b0, b1, b2), strict=True)]
    return (
        [sign * scale * d_scale * x for x in _combined(columns, moved)],
        [sign * scale * o_scale * x for x in _combined(columns, d)],
        abs(det) * o_scale * d_scale,
    )


@lru_cache(maxsize=256)
def _inverted(matrix: Matrix) -> tuple[list[Whole], int, int]:
    """Return whole columns c, s and det so that inv(A) has the columns s c / det."""
    numbers, scale = whole([x for row in matrix for x in row[:3]])
    x, y, z = numbers[:3], numbers[3:6], numbers[6:]
    columns = [cross(y, z), cross(z, x), cross(x, y)]
    return columns, scale, dot(x, columns[0])


def _combined(columns: list[Whole], factors: Whole) -> Whole:
    return [sum(f * c[k] for f, c in zip(factors, columns, strict=True)) for k in range(3)]
