"""On which side of a plane points are: float64 with a proven margin, then integers of any length.

With u = 2^-53, a product of float64 is x y (1 + d) + e, |d| <= u, |e| <= 2^-1075, and a sum only has the
factor. So the float64 value v of n . p - k, and the float64 size m of |n1 p1| + |n2 p2| + |n3 p3| + |k|, have

    |v - (n . p - k)|  <=  ((1 + u)^4 - 1) (|n1 p1| + |n2 p2| + |n3 p3| + |k|)  +  2^-1073
                       <=  4.1 u m  +  2^-1072

The margin is 8 u m + 2^-1070, which leaves room for its own rounding, and for one more rounding, by up to
u, of each number of the plane. A finite m means that nothing overflowed, as its sums are no less than those
of v. An infinite one, and NaN, decide nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.exact.plane_signs import integers

Floats: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

_ERROR = 2.0**-50
_UNDERFLOW = 2.0**-1070


class Plane(NamedTuple):
    """The numbers of n . p = k."""

    normal: tuple[float, ...]
    offset: float


class Excess(NamedTuple):
    """Values of n . p - k in float64, and how far off they may be."""

    values: Floats
    margins: Floats

    @property
    def is_outside(self) -> Bools:
        """Which points are certainly outside: n . p > k."""
        found: Bools = self.values > self.margins
        return found

    @property
    def is_inside(self) -> Bools:
        """Which points are certainly inside, and not on the plane."""
        found: Bools = self.values < -self.margins
        return found


def planes_of(normals: Floats, offsets: Floats) -> list[Plane]:
    """Return the rows of arrays as planes."""
    rows = zip(normals.tolist(), offsets.tolist(), strict=True)
    return [Plane(tuple(normal), offset) for normal, offset in rows]


def excess(plane: Plane, columns: Sequence[Floats]) -> Excess:
    """Return n . p - k for points, whose coordinates are given axis by axis.

    Coordinates of axes where n is 0 do not count. Others may be infinite; nothing is decided where infinite
    products cancel.
    """
    values, sizes = np.zeros(columns[0].shape), np.zeros(columns[0].shape)
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for weight, column in zip(plane.normal, columns, strict=True):
            if weight != 0.0:
                product = weight * column
                values += product
                sizes += np.abs(product)
        values -= plane.offset
        sizes += abs(plane.offset)
        sizes *= _ERROR
        sizes += _UNDERFLOW
    return Excess(values, sizes)


def are_inside(normals: Floats, offsets: Floats, points: Floats) -> Bools:
    """Return which points (N, D) are inside of all planes (M, D), or on them: exactly."""
    columns = [np.ascontiguousarray(column) for column in points.T]
    inside, undecided = np.ones(len(points), np.bool_), np.zeros(len(points), np.bool_)
    for plane in planes_of(normals, offsets):
        found = excess(plane, columns)
        inside &= ~found.is_outside
        undecided |= ~found.is_inside
    rows = np.flatnonzero(inside & undecided)
    if rows.size:
        inside[rows] = _are_inside_exactly(normals, offsets, points[rows])
    return inside


def _are_inside_exactly(normals: Floats, offsets: Floats, points: Floats) -> Bools:
    planes = integers(np.column_stack([normals, -offsets]))
    places = integers(np.column_stack([points, np.ones(len(points))]))
    inside: Bools = np.array([((planes * place).sum(axis=1) <= 0).all() for place in places])
    return inside
