"""Blocks of rays as kernels read them: made of users' arrays, or of a camera's or a lidar's parameters.

Arrays of users are checked in the same pass. Directions have the very bits of the NumPy formulas in
`raybox.geometry.camera` and `raybox.geometry.lidar`: the same sums and products in the same order, not fused.
"""

from typing import NamedTuple

import numpy as np

from raybox.compiler.decorators import device, inlined, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import int64, vector_code, void
from raybox.compiler.simd import F64, I64, Builder, Lanes, Scalar, joined, lined_up
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.geometry.lidar import LidarSweep
from raybox.validation import Floats, Floats32

_LANES = 16
_LINE = 8  # numbers of float64 in a cache line


class Strides(NamedTuple):
    """Where the vectors of an array lie, in items of its memory: vector k is in row k // columns."""

    start: int
    columns: int
    row: int
    column: int
    axis: int
    """between the coordinates of one vector"""


@vector_code(int64)
def _copy_finite(b: Builder, values: Memory, out: Memory, past: Scalar) -> Scalar:
    """Copy numbers as float64; return how many blocks of lanes have one that is not finite.

    past: whether lines, which are aligned, go past the caches.
    """
    lost, whole = Register(b, I64(0)), b.and_(values.size, I64(-_LANES))
    with b.if_else(past) as (far, near):
        with far, loop(b, whole, _LINE) as at:
            some = _as_float64(values.load(at, _LINE))
            out.store_past(some, at)
            _count(b, lost, some)
        with near, loop(b, whole, _LANES) as at:
            some = _as_float64(values.load(at, _LANES))
            out.store(some, at)
            _count(b, lost, some)
    with loop(b, b.sub(values.size, whole)) as step:
        one = _as_float64(values.load(b.add(whole, step), 1))
        out.store(one, b.add(whole, step))
        _count(b, lost, one)
    return lost.value


@vector_code(int64)
def _count_infinite(b: Builder, values: Memory) -> Scalar:
    """Return how many blocks of lanes have a number that is not finite."""
    lost, whole = Register(b, I64(0)), b.and_(values.size, I64(-_LANES))
    with loop(b, whole, _LANES) as at:
        _count(b, lost, values.load(at, _LANES))
    with loop(b, b.sub(values.size, whole)) as step:
        _count(b, lost, values.load(b.add(whole, step), 1))
    return lost.value


def _as_float64(numbers: Lanes) -> Lanes:
    return numbers if numbers.item == F64 else numbers.to(F64)


def _count(b: Builder, lost: Register, numbers: Lanes) -> None:
    """Add 1 to a register if a number is not finite."""
    bad = ~(numbers.magnitude() < np.inf)
    lost.value = b.add(lost.value, b.zext(bad.any(), I64))


@entry
def copy_finite(values: Floats | Floats32, out: Floats, past: bool) -> bool:
    """Copy numbers as float64; return whether all are finite.

    past: whether the copy, which begins with a cache line, is written past the caches.
    """
    return bool(_copy_finite(values, out, past) == 0)


@entry
def are_finite(values: Floats) -> bool:
    """Return whether all numbers are finite."""
    return bool(_count_infinite(values) == 0)


@entry
def copy_strided(values: Floats | Floats32, strides: Strides, begin: int, width: int, out: Floats) -> bool:
    """Write the vectors from `begin` on to rows of three; return whether all numbers are finite.

    values: the memory of an array of vectors of `width` coordinates; with two, the third is left unchanged.
    """
    row, column = divmod(begin, strides.columns)
    i, lost = 0, 0
    while i < out.shape[0]:
        count = min(strides.columns - column, out.shape[0] - i)
        at = strides.start + row * strides.row + column * strides.column
        done = 0
        if strides.column == 1 and width == 3:
            done = count // _LANES * _LANES
            lost += _copy_sixteens(values, whole(at), whole(strides.axis), (whole(i), whole(done)), out)
        for k in range(width):
            first = at + done * strides.column + k * strides.axis
            lost += _copy_column(values, first, strides.column, out[i + done : i + count, k])
        i, row, column = i + count, row + 1, 0
    return lost == 0


@vector_code(int64)
def _copy_sixteens(
    b: Builder, values: Memory, at: Scalar, axis: Scalar, place: list[Scalar], out: Memory
) -> Scalar:
    """Copy vectors whose numbers lie side by side, axis by axis; return how many sixteens are not finite.

    place: (first row in `out`, how many vectors), a multiple of sixteen.
    """
    first, count = place
    lost = Register(b, I64(0))
    with loop(b, count, _LANES) as step:
        begin = b.add(at, step)
        x, y, z = (_as_float64(values.load(b.add(begin, b.mul(axis, I64(k))), _LANES)) for k in range(3))
        vectors = joined([x, y, z, z]).permuted([_LANES * (k % 3) + k // 3 for k in range(3 * _LANES)])
        _count(b, lost, vectors)
        out.store(vectors, b.mul(b.add(first, step), I64(3)))
    return lost.value


@device
def _copy_column(values: Floats | Floats32, at: int, step: int, out: Floats) -> int:
    """Copy numbers that lie `step` apart; return how many are not finite."""
    lost = 0
    for i in range(out.size):
        number = values[at + i * step]
        out[i] = number
        lost += not abs(number) < np.inf
    return lost


@vector_code(void)
def _add_row(
    b: Builder, rows: Memory, columns: Memory, places: list[Scalar], count: Scalar, out: Memory
) -> None:
    """Write the sums of a row's vector and those of columns. places: of the row, a column, and in `out`."""
    row, column, first = places
    begin, start = b.mul(column, I64(3)), b.mul(first, I64(3))
    sums = lined_up(b, [rows.get(b.add(b.mul(row, I64(3)), I64(k))) for k in range(3)])
    many = sums.permuted([k % 3 for k in range(3 * _LANES)])
    whole = b.and_(count, I64(-_LANES))
    with loop(b, whole, _LANES) as step:
        at = b.mul(step, I64(3))
        out.store(many + columns.load(b.add(begin, at), 3 * _LANES), b.add(start, at))
    with loop(b, b.sub(count, whole)) as step:
        at = b.mul(b.add(whole, step), I64(3))
        out.store(sums + columns.load(b.add(begin, at), 3), b.add(start, at))


@entry
def write_pinhole(rows: Floats, columns: Floats, begin: int, out: Floats) -> None:
    """Write the directions of a camera's pixels from `begin` on: the sum of a row's and a column's vector."""
    width = columns.shape[0]
    row, column = divmod(begin, width)
    i = 0
    while i < out.shape[0]:
        count = min(width - column, out.shape[0] - i)
        _add_row(rows, columns, (whole(row), whole(column), whole(i)), whole(count), out)
        i, row, column = i + count, row + 1, 0


@inlined
def _turned(rotation: Floats, axis: int, x: float, y: float, z: float) -> float:
    turned: float = rotation[axis, 0] * x + rotation[axis, 1] * y + rotation[axis, 2] * z
    return turned


@entry
def write_lidar(sweep: LidarSweep, begin: int, origins: Floats, directions: Floats) -> None:
    """Write origins and directions of a lidar's rays from `begin` on; no origins where these are (0, 3)."""
    if directions.shape[0] == 0:
        return
    rows, columns = sweep.elevations.shape[0], sweep.azimuths.shape[1]
    row, column = divmod(begin, columns)
    pose, row = divmod(row, rows)
    i = 0
    while i < directions.shape[0]:
        count = min(columns - column, directions.shape[0] - i)
        if origins.shape[0] > 0:
            for k in range(i, i + count):
                for axis in range(3):
                    origins[k, axis] = sweep.origins[pose, axis]
        _write_row(
            sweep, (pose, row), sweep.azimuths[row % len(sweep.azimuths), column:], directions[i : i + count]
        )
        i, column = i + count, 0
        row += 1
        if row == rows:
            pose, row = pose + 1, 0


@device
def _write_row(sweep: LidarSweep, place: tuple[int, int], azimuths: Floats, out: Floats) -> None:
    """Write the directions of one pose and elevation. place: these two; azimuths: (A, 2)."""
    pose, row = place
    cosine, z = sweep.elevations[row, 0], sweep.elevations[row, 1]
    if sweep.rotations.shape[0] == 0:
        for k in range(out.shape[0]):
            out[k, 0], out[k, 1], out[k, 2] = cosine * azimuths[k, 0], cosine * azimuths[k, 1], z
        return
    rotation = sweep.rotations[pose % len(sweep.rotations)]
    for k in range(out.shape[0]):
        x, y = cosine * azimuths[k, 0], cosine * azimuths[k, 1]
        for axis in range(3):
            out[k, axis] = _turned(rotation, axis, x, y, z)
