"""What contacts are contacts of: numbers over all geometries of a scene, and what follows from them.

One number names what was met: it counts through the rows of the first geometry, then through those of the
next. Of `Instances` it counts through the first copy's rows, then through the next copy's.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.geometry import BoxRows, CopyRows, Movers, noting
from raybox.primitives import small_batch
from raybox.validation import Bools, Floats, Ints, freeze


class Place(NamedTuple):
    """What was met of a geometry: which row, of copies which row of what is copied; -1: a miss."""

    index: Ints  # type: ignore[assignment]  # of tuples, where nobody looks for it
    primitive: Ints


class Source(NamedTuple):
    """What contacts are contacts of: contact k is of ray ``(k // inner) * row + (k % inner) * column``."""

    rays: Any  # Rays, or Movers
    parts: tuple[Any, ...]  # the rows of each geometry, as the kernels read them
    starts: tuple[int, ...] = (0,)  # the first number of each
    inner: int = 1
    row: int = 1
    column: int = 0
    picked: bool = False  # row k of the only part is contact k's: no machine holds everything

    def ray_of(self, size: int) -> Ints:
        """Return the number of each contact's ray."""
        k = np.arange(size)
        return (k // self.inner) * self.row + (k % self.inner) * self.column

    def geometry_of(self, number: Ints) -> Ints:
        """Return which geometry contacts' numbers are of; -1: a miss."""
        if len(self.parts) == 1:
            return _frozen(np.minimum(number, 0))
        return _frozen(np.searchsorted(self.starts, number, side="right") - 1)

    def place_of(self, number: Ints) -> Place:
        """Return what contacts' numbers stand for."""
        if len(self.parts) == 1:
            return _copy_and_row(self.parts[0], number)
        geometry = self.geometry_of(number)
        index, primitive = np.full(number.shape, -1), np.full(number.shape, -1)
        for k, rows in enumerate(self.parts):
            own = geometry == k
            index[own], primitive[own] = _copy_and_row(rows, number[own] - self.starts[k])
        return Place(_frozen(index), _frozen(primitive))


def _copy_and_row(rows: Any, number: Ints) -> Place:
    """Return what numbers of one geometry stand for; where nothing is copied, that is the number itself."""
    if not isinstance(rows, CopyRows):
        return Place(number, number)
    size = max(1, rows.size)
    missed = number < 0
    return Place(_frozen(number // size), _frozen(np.where(missed, -1, number % size)))


def _frozen(values: Any) -> Ints:
    array = np.asarray(values)  # of a single ray too, where NumPy makes a scalar
    freeze(array)
    return array


def derive(source: Source, ray_of: Ints, number: Ints, loop: str, *out: Floats) -> None:
    """Fill in what follows from contacts: by the compiled loop of this name, or by hand for a handful."""
    if source.picked:
        number = np.where(number < 0, -1, np.arange(number.size))
    if len(source.parts) == 1:
        _derive(source.rays, source.parts[0], (ray_of, number), loop, *out)
        return
    for rows, start, stop in zip(source.parts, source.starts, (*source.starts[1:], 2**63 - 1), strict=True):
        own = np.flatnonzero((number >= start) & (number < stop))
        some = [array[own] for array in out]
        _derive(source.rays, rows, (ray_of[own], number[own] - start), loop, *some)
        for array, part in zip(out, some, strict=True):
            array[own] = part


def _derive(rays: Any, rows: Any, contacts: tuple[Ints, Ints], loop: str, *out: Floats) -> None:
    """Fill in what follows from contacts with one geometry."""
    ray_of, number = contacts
    left: Bools = number >= 0
    if isinstance(rays, Movers) or not small_batch.serves(rows, number.size):
        from raybox.primitives import pairs

        getattr(pairs, loop)(rays.rows(), noting(rows, 0), ray_of, number, *out)
        if not isinstance(rows, CopyRows) or (loop == "weights_of" and isinstance(rows.rows, BoxRows)):
            return
        left = left & np.any([np.isnan(array.reshape(number.size, -1)).any(axis=1) for array in out], axis=0)
    for k in np.flatnonzero(left):
        met = small_batch.meet(rows, small_batch.ray_at(rays.rows(), ray_of[k]), number[k])
        if met is not None:
            _BY_HAND[loop](met, k, *out)


def _set_span(met: small_batch.Met, k: int, near: Floats, far: Floats) -> None:
    near[k], far[k] = met.crossing.t_enter, met.crossing.t_exit


def _set_normal(met: small_batch.Met, k: int, out: Floats) -> None:
    out[k] = met.normal


def _set_weights(met: small_batch.Met, k: int, out: Floats) -> None:
    out[k] = met.weights


_BY_HAND: dict[str, Any] = {"spans_of": _set_span, "normals_of": _set_normal, "weights_of": _set_weights}
