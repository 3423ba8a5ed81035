"""Kernels that write the vectors of rays: copies of users' arrays, and directions of cameras and lidars.

Arrays of users are checked in the same pass. Directions have the very bits of NumPy's formulas: the same sums
and products in the same order, not fused.
"""

import numpy as np

from raybox.compiler.decorators import device, inlined, whole
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import int64, vector_code, void
from raybox.compiler.simd import F64, I64, Builder, Lanes, Scalar, lined_up
from raybox.compiler.simd_arrays import Memory, Register, loop
from raybox.geometry.lidar import LidarSweep
from raybox.validation import Floats, Floats32

_LANES = 16
_LINE = 8  # numbers of float64 in a cache line
_LINE_BYTES = 64
_LARGE = 1 << 20  # numbers of an array that is written past the caches


def goes_past_caches(values: Floats) -> bool:
    """Return whether an array is so large that it is written past the caches: in whole, aligned lines."""
    return values.size >= _LARGE and values.ctypes.data % _LINE_BYTES == 0


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


@vector_code(void)
def _add_row(b: Builder, rows: Memory, columns: Memory, row: Scalar, out: Memory, past: Scalar) -> None:
    """Write the sums of a row's vector and those of all columns. past: whether lines go past the caches."""
    begin, width = b.mul(row, I64(3)), b.sdiv(columns.size, I64(3))
    start = b.mul(begin, width)
    sums = lined_up(b, [rows.get(b.add(begin, I64(k))) for k in range(3)])
    many = sums.permuted([k % 3 for k in range(3 * _LINE)])
    whole = b.and_(width, I64(-_LINE))
    with b.if_else(past) as (far, near):
        with far, loop(b, whole, _LINE) as step:
            at = b.mul(step, I64(3))
            added = many + columns.load(at, 3 * _LINE)
            for k in range(3):
                line = added.permuted(range(_LINE * k, _LINE * k + _LINE))
                out.store_past(line, b.add(b.add(start, at), I64(_LINE * k)))
        with near, loop(b, whole, _LINE) as step:
            at = b.mul(step, I64(3))
            out.store(many + columns.load(at, 3 * _LINE), b.add(start, at))
    with loop(b, b.sub(width, whole)) as step:
        at = b.mul(b.add(whole, step), I64(3))
        out.store(sums + columns.load(at, 3), b.add(start, at))


@entry
def write_pinhole(rows: Floats, columns: Floats, out: Floats, past: bool) -> None:
    """Write the directions of a camera's pixels: each the sum of a row's and a column's vector.

    past: whether `out`, which begins with a cache line, is written past the caches, if rows are whole lines.
    """
    in_lines = past and columns.shape[0] % _LINE == 0
    for row in range(rows.shape[0]):
        _add_row(rows, columns, whole(row), out, in_lines)


@inlined
def _turned(rotation: Floats, axis: int, x: float, y: float, z: float) -> float:
    turned: float = rotation[axis, 0] * x + rotation[axis, 1] * y + rotation[axis, 2] * z
    return turned


@entry
def write_lidar(sweep: LidarSweep, directions: Floats) -> None:
    """Write the directions of a lidar's rays, through poses, elevations and azimuths."""
    rows, columns = sweep.elevations.shape[0], sweep.azimuths.shape[1]
    if directions.shape[0] > 0:
        for k in range(directions.shape[0] // columns):
            pose, row = divmod(k, rows)
            azimuths = sweep.azimuths[row % len(sweep.azimuths)]
            _write_row(sweep, (pose, row), azimuths, directions[k * columns : (k + 1) * columns])


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
