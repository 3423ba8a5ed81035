"""`Planes`: all points p with n·p = offset."""

from __future__ import annotations

from typing import final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry.labels import (
    NO_ATTRIBUTES,
    Attributes,
    HasAttributes,
    LabelsInput,
    checked_attributes,
    frozen_attributes,
)
from raybox.geometry.row_ids import IdsInput, RowIndex, listed_rows
from raybox.geometry.rows import PlaneRows, in_space
from raybox.geometry.two_arrays import of_two_arrays, refuse_one_of_planes
from raybox.validation import ArrayInput, Floats


@final
@guard_class("normals", "offsets", "ndim_space")
class Planes(HasAttributes):
    """Planes (in 2D: lines): the points p with ``n·p = offset``, without bounds.

    A normal may have any length but zero; the offset is in units of it: ``Planes([0, 0, 2], 10)`` is the
    plane z = 5. A ray within a plane has no single crossing, and misses. All arrays are read-only copies.

    Parameters
    ----------
    normals : array_like, shape (M, D)
        D is 2 or 3. A single normal ``(D,)`` is used for all offsets: a stack of parallel planes.
    offsets : array_like, shape (M,)
        A scalar is used for all normals.
    ids : sequence of str or of int, shape (M,), optional
        A name for each plane, which hits return: `Hits.ids`.
    labels : mapping or table, of M rows, optional
        Columns of numbers, bools or text by name, which hits return: `Hits.labels`.

    Raises
    ------
    InvalidInput
        If shapes do not fit, a number is NaN or infinite, or a normal is zero; for ids and labels, as of
        `Boxes`.

    Examples
    --------
    >>> import raybox as rb
    >>> rb.Planes([0, 0, 1], [1.0, 2.0, 3.0])
    Planes(3, D=3)
    """

    __slots__ = ("_attributes", "_normals", "_offsets")
    _AS_ARRAY = "numpy.column_stack([planes.normals, planes.offsets])"
    _normals: Floats
    _offsets: Floats

    @of_two_arrays
    def __init__(
        self, normals: ArrayInput, offsets: ArrayInput, *, ids: IdsInput = None, labels: LabelsInput = None
    ) -> None:
        if offsets is None:
            refuse_one_of_planes(normals)
        n, k = validation.points(normals, "normals"), validation.floats(offsets, "offsets")
        if n.ndim == 1 and k.ndim == 1:
            n = np.array(np.broadcast_to(n, (len(k), len(n))))
        n = validation.rows(n, "normals")
        if k.shape not in ((), (len(n),)):
            raise InvalidInput(
                f"offsets must have shape (M,), one for each normal, or be a scalar; got shape "
                f"{k.shape} for normals of shape {n.shape}. "
                f"Planes through points come from Planes.through(points, normals)."
            )
        _check_normals(n)
        k = np.array(np.broadcast_to(k, len(n)))
        if not validation.all_finite(k):
            way_out = "Drop those planes"
            validation.refuse_rows(
                ~np.isfinite(k), "offsets must be finite", {"offsets": k}, "plane", way_out
            )
        _made(self, n, k, checked_attributes(ids, labels, len(n), "plane"))

    @classmethod
    def through(cls, points: ArrayInput, normals: ArrayInput) -> Planes:
        """Return planes through points, with offsets n . p rounded to float64.

        Parameters
        ----------
        points, normals : array_like, shape (M, D)
            A single row is used for all rows of the other.

        Raises
        ------
        InvalidInput
            As for `Planes`.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Planes.through([[0, 0, 5], [0, 0, 7]], [0, 0, 2]).offsets
        array([10., 14.])
        """
        p, n = validation.rows(points, "points"), validation.rows(normals, "normals")
        validation.require_finite(p, "points", "point", "Drop those planes")
        _check_normals(n)
        if p.shape[1] != n.shape[1] or (len(p) != len(n) and 1 not in (len(p), len(n))):
            raise InvalidInput(
                f"points and normals must have one row for each plane, or one row for all, and the same D; "
                f"got shapes {p.shape} and {n.shape}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            offsets = (p * n).sum(axis=1)
        return cls(np.broadcast_to(n, (len(offsets), n.shape[1])), offsets)

    @property
    def normals(self) -> Floats:
        """The normals, of any length: shape (M, D), read-only."""
        return self._normals

    @property
    def offsets(self) -> Floats:
        """The values of n . p on each plane: shape (M,), read-only."""
        return self._offsets

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        return int(self._normals.shape[1])

    def __len__(self) -> int:
        return len(self._normals)

    def __getitem__(self, index: RowIndex) -> Planes:
        """Return planes by an integer (one plane), slice, mask or list of integers."""
        index = listed_rows(index)
        normals, offsets = self._normals[index], self._offsets[index]
        if isinstance(index, tuple) or normals.ndim != 2:
            raise IndexError("planes are a flat list: index by one integer, slice, mask or list of integers")
        arrays = np.asarray(normals, order="C"), np.asarray(offsets, order="C")
        return _made(object.__new__(Planes), *arrays, self._attributes.of_rows(index))

    def _compared(self) -> tuple[object, ...]:
        return self._normals, self._offsets, self.ids, self.labels, self.colors

    def _rows(self) -> PlaneRows:
        """Return the arrays for kernels; in 3D without a copy."""
        return PlaneRows(in_space(self._normals), self._offsets)

    def __repr__(self) -> str:
        return f"Planes({len(self)}, D={self.ndim_space})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return restored, (self._normals, self._offsets, self._attributes)


def _check_normals(normals: Floats) -> None:
    validation.require_finite(normals, "normals", "plane", "Drop those planes")
    zero = ~normals.any(axis=1)
    if zero.any():
        way_out = "Drop those planes, or pass the direction perpendicular to them"
        validation.refuse_rows(zero, "normals must not be zero", {"normals": normals}, "plane", way_out)


def _made(planes: Planes, normals: Floats, offsets: Floats, attributes: Attributes) -> Planes:
    planes._normals, planes._offsets, planes._attributes = normals, offsets, attributes
    validation.freeze(normals, offsets)
    return planes


def restored(normals: Floats, offsets: Floats, attributes: Attributes = NO_ATTRIBUTES) -> Planes:
    """Return planes of valid arrays, which are not copied."""
    return _made(object.__new__(Planes), normals, offsets, frozen_attributes(attributes))
