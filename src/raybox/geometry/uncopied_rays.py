"""Rays of users' arrays that are not copied: float32 or float64, converted and checked when they are read."""

from typing import Any, NamedTuple, cast

import numpy as np

from raybox import validation
from raybox.compiler import huge_pages
from raybox.geometry import ray_input
from raybox.geometry.ray_blocks import Strides, are_finite, copy_finite, copy_strided
from raybox.geometry.ray_input import Invalid, RayArrays
from raybox.geometry.ray_sources import RayBlock, RaySource, ranges_at
from raybox.geometry.rows import RayRows
from raybox.validation import Array, ArrayInput, Floats, Floats32, Ints, all_below, freeze


class CheckedRows(NamedTuple):
    """Vectors in rows of three, and whether all numbers are finite."""

    rows: Floats
    finite: bool


def as_points(value: ArrayInput, name: str) -> Floats:
    """Return points as they are, if they are of float32 or float64, else `validation.points`."""
    validation.check_axis_order(value, name)
    found = validation.array(value, name)
    if found.dtype not in ray_input.FLOATS or not found.flags.aligned:
        return validation.points(value, name)
    return cast(Floats, validation.with_width(found, name))


def as_floats(value: ArrayInput, name: str) -> Floats:
    """Return numbers as they are, if they are of float64 in C order, else `validation.floats`."""
    found = validation.array(value, name)
    if found.dtype == np.float64 and found.flags.c_contiguous and found.flags.aligned:
        return cast(Floats, found)
    return validation.floats(value, name)


class _Vectors:
    """An array of vectors (..., D), read by the number of the vector."""

    def __init__(self, values: Array) -> None:
        self.values, axes = _two_axes(values)
        width, step = values.shape[-1], values.itemsize
        (_, row), (columns, column) = [(1, axes[-1][0] * axes[-1][1]), *axes][-2:]
        columns = max(1, columns)
        self._flat, start = _flat_memory(self.values)
        strides = start, columns, row, column, self.values.strides[-1]
        self._strides = Strides(*(n if k == 1 else n // step for k, n in enumerate(strides)))
        _, columns, row, column, axis = self._strides
        self._in_rows = (row, column, axis, width) == (3 * columns, 3, 1, 3)

    @property
    def is_in_place(self) -> bool:
        """Whether kernels read the vectors where they are."""
        return self._in_rows and self._flat.dtype == np.float64

    def in_place(self, begin: int, end: int) -> Floats:
        """Return the vectors begin <= k < end where they are, not checked."""
        return cast(Floats, self._flat[3 * begin : 3 * end].reshape(-1, 3))

    def block(self, begin: int, end: int, memory: Floats) -> CheckedRows:
        """Return the vectors begin <= k < end, in place or in this memory."""
        if self.is_in_place:
            found = self.in_place(begin, end)
            return CheckedRows(found, are_finite(found))
        out, width = memory[: end - begin], self.values.shape[-1]
        if not self._in_rows:
            out[:, width:] = 0.0
            return CheckedRows(out, copy_strided(self._flat, self._strides, begin, width, out))
        return CheckedRows(out, copy_finite(self._flat[3 * begin : 3 * end], out.reshape(-1), False))


def _two_axes(values: Array) -> tuple[Array, list[tuple[int, int]]]:
    """Return an array and its one or two leading axes, as (length, bytes), neighbours taken together.

    An array with more of them, or whose strides are no multiples of a number's size, is copied.
    """
    axes: list[tuple[int, int]] = []
    for count, step in zip(values.shape[:-1], values.strides, strict=False):
        if count != 1 and axes and axes[-1][1] == count * step:
            axes[-1] = axes[-1][0] * count, step
        elif count != 1:
            axes.append((count, step))
    if len(axes) > 2 or any(step % values.itemsize for step in values.strides):
        values = np.ascontiguousarray(values)
        axes = [(values.size // values.shape[-1], values.strides[-2])]
    return values, axes or [(1, 0)]


def _flat_memory(values: Any) -> tuple[Floats | Floats32, int]:
    """Return the memory from an array's lowest number to its highest, and where its first is, in bytes."""
    ends = [(count - 1) * step for count, step in zip(values.shape, values.strides, strict=True)]
    low, high = (sum(pick(end, 0) for end in ends) for pick in (min, max))
    if not values.size:
        return np.empty(0, values.dtype), 0
    lowest = values[tuple(slice(None, None, -1 if step < 0 else 1) for step in values.strides)]
    size = (high - low) // values.itemsize + 1
    return np.lib.stride_tricks.as_strided(lowest, (size,), (values.itemsize,), writeable=False), -low


class UncopiedRays(RaySource):
    """Rays of arrays that their owner may change."""

    def __init__(self, given: RayArrays, invalid: Invalid) -> None:
        shape = ray_input.common_shape(given)
        vectors = (np.broadcast_to(values, shape) for values in given[:2])
        low, high = ray_input.ranges_of(given, shape[:-1])
        super().__init__(shape[:-1], shape[-1], low.reshape(-1), high.reshape(-1))
        self._places = shape[:-1]
        self._vectors = [_Vectors(values) for values in vectors]
        o, d = (cast(Floats, one.values) for one in self._vectors)
        self._in_place = invalid == "raise" and all(one.is_in_place for one in self._vectors)
        self.given, self._invalid = given._replace(origins=o, directions=d, t_min=low, t_max=high), invalid

    def like(self, given: RayArrays) -> "UncopiedRays":
        """Return rays of other arrays."""
        return UncopiedRays(given, self._invalid)

    def reshaped(self, shape: tuple[int, ...]) -> "UncopiedRays":
        """Return the same rays in another shape."""
        o, d = (values.reshape(*shape, self.ndim_space) for values in self.given[:2])
        low, high = (t if t.ndim == 0 else t.reshape(shape) for t in self.given[2:4])
        return self.like(self.given._replace(origins=o, directions=d, t_min=low, t_max=high))

    def arrays(self) -> tuple[Floats, Floats]:
        """Return origins and directions (size, D) as they are now, read-only and not checked."""
        o, d = (values.astype(np.float64, order="C", copy=False) for values in self.given[:2])
        flat = o.reshape(-1, self.ndim_space).view(), d.reshape(-1, self.ndim_space).view()
        freeze(*flat)
        return flat

    def select(self, numbers: Ints | slice) -> RayRows:
        """Return some rays, checked."""
        if isinstance(numbers, slice):
            begin, end, _ = numbers.indices(self.size)
            memory = RayBlock(*(huge_pages.pooled_input((end - begin, 3), np.float64) for _ in range(2)))
            rows = self._rows(begin, end, memory)
        else:
            places = np.unravel_index(self._start + numbers, self._places)
            o, d = (np.zeros((len(numbers), 3)) for _ in range(2))
            for out, values in zip((o, d), self.given[:2], strict=True):
                out[:, : self.ndim_space] = values[places]
            rows = self._valid(RayRows(o, d, *ranges_at(self, numbers)), all_below(np.inf, o, d))
        freeze(*rows)
        return rows

    def _rows(self, begin: int, end: int, memory: RayBlock) -> RayRows:
        at = self._start + begin, self._start + end
        o, d = (some.block(*at, out) for some, out in zip(self._vectors, memory, strict=True))
        return self._valid(
            RayRows(o.rows, d.rows, *ranges_at(self, slice(begin, end))), o.finite and d.finite
        )

    def _unchecked(self, begin: int, end: int, memory: RayBlock) -> RayRows:
        if not self._in_place:
            return self._rows(begin, end, memory)
        at = self._start + begin, self._start + end
        o, d = (some.in_place(*at) for some in self._vectors)
        return RayRows(o, d, *ranges_at(self, slice(begin, end)))

    def _check(self, rows: RayRows) -> None:
        if self._in_place:
            self._valid(rows, are_finite(rows.origins) and are_finite(rows.directions))

    def _valid(self, rows: RayRows, finite: bool) -> RayRows:
        """Return rays of which none is invalid: raise `InvalidInput`, or let those hit nothing."""
        low, high = rows.t_min, rows.t_max
        if finite and (low[0] <= high[0] if low.size == 1 == high.size else bool((low <= high).all())):
            return rows
        if self._invalid == "raise":
            ray_input.refuse_invalid(self.given)
        low, high = ray_input.without_invalid(RayArrays(*rows))
        return rows._replace(t_min=low, t_max=high)
