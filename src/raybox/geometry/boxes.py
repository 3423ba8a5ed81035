"""Boxes: axis-aligned, closed, possibly flat or unbounded."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import cast, final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry import box_bounds as bounds
from raybox.geometry.box_constructors import BoxConstructors
from raybox.geometry.labels import (
    NO_ATTRIBUTES,
    Attributes,
    HasAttributes,
    LabelsInput,
    checked_attributes,
    frozen_attributes,
)
from raybox.geometry.row_ids import IdsInput, RowIndex, listed_rows
from raybox.geometry.rows import BoxRows, in_space
from raybox.geometry.two_arrays import of_two_arrays, refuse_one_of_boxes
from raybox.validation import ArrayInput, Bools, Floats

_FEWEST, _PAIRS = 64, 1 << 19  # boxes, and pairs times D: with fewer of either, a tree takes longer to build


@final
@guard_class("lower", "upper", "ndim_space")
class Boxes(BoxConstructors, HasAttributes):
    """Axis-aligned boxes (in 2D: rectangles): the points p with ``lower <= p <= upper`` on every axis.

    Boxes are closed: faces, edges and corners belong to them, and a box may be flat, or a single point.
    Bounds may be infinite: lower = -inf and upper = +inf mean no bound. A box from +inf to +inf (or -inf to
    -inf) contains no point. Input is converted to float64 exactly, without rounding. All arrays are read-only
    copies.

    Parameters
    ----------
    lower, upper : array_like, shape (M, D)
        D is 2 or 3; ``(D,)`` is a single box. A data frame is read by position, and has its columns in the
        order of the axes; `from_bounds` reads columns by name.
    ids : sequence of str or of int, shape (M,), optional
        A name for each box, which hits return: `Hits.ids`. Ids need not be unique.
    labels : mapping or table, of M rows, optional
        Columns of numbers, bools or text by name, which hits return: `Hits.labels`. Slices and other indices
        keep ids and labels of their boxes, `expanded` and `translated` keep all.

    Raises
    ------
    InvalidInput
        If shapes do not fit, a bound is NaN, or lower > upper somewhere; if there is not one id and label for
        each box, ids are neither all str nor all int, or labels are of other kinds.

    Examples
    --------
    >>> import raybox as rb
    >>> boxes = rb.Boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 4]])
    >>> boxes
    Boxes(2, D=3)
    >>> boxes.volumes
    array([1., 4.])
    """

    __slots__ = ("_attributes", "_lower", "_upper")
    _AS_ARRAY = "numpy.hstack([boxes.lower, boxes.upper])"
    _lower: Floats
    _upper: Floats

    @of_two_arrays
    def __init__(
        self, lower: ArrayInput, upper: ArrayInput, *, ids: IdsInput = None, labels: LabelsInput = None
    ) -> None:
        if upper is None:
            refuse_one_of_boxes(lower)
        low, high = validation.rows(lower, "lower"), validation.rows(upper, "upper")
        if low.shape != high.shape:
            validation.same_shape({"lower": low, "upper": high}, "Give one row of each for every box.")
        _made(self, *bounds.checked(low, high), checked_attributes(ids, labels, len(low), "box"))

    @classmethod
    def _of(cls, lower: Floats, upper: Floats, ids: IdsInput = None, labels: LabelsInput = None) -> Boxes:
        attributes = checked_attributes(ids, labels, len(lower), "box")
        return _made(object.__new__(cls), lower, upper, attributes)

    @property
    def lower(self) -> Floats:
        """The lower bounds: shape (M, D), read-only."""
        return self._lower

    @property
    def upper(self) -> Floats:
        """The upper bounds: shape (M, D), read-only."""
        return self._upper

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        return int(self._lower.shape[1])

    @property
    def centers(self) -> Floats:
        """The centres, shape (M, D).

        Infinite where a box has one bound, NaN where it has none.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            total = self._lower + self._upper
            return np.where(np.isfinite(total), total / 2, self._lower / 2 + self._upper / 2)

    @property
    def sizes(self) -> Floats:
        """The edge lengths, shape (M, D): zero for a box from inf to inf."""
        with np.errstate(over="ignore", invalid="ignore"):
            return np.where(self._lower == self._upper, 0.0, self._upper - self._lower)

    @property
    def bounds(self) -> Floats:
        """The lower and upper bound of all boxes together, shape (2, D).

        +inf and -inf if there are none.
        """
        return np.stack([self._lower.min(axis=0, initial=np.inf), self._upper.max(axis=0, initial=-np.inf)])

    @property
    def volumes(self) -> Floats:
        """The volumes (in 2D: areas), shape (M,): zero if flat, even without bounds."""
        sizes = self.sizes
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return np.where((sizes == 0).any(axis=1), 0.0, sizes.prod(axis=1))

    def __len__(self) -> int:
        return len(self._lower)

    def __bool__(self) -> bool:
        raise InvalidInput(
            "bool() of boxes is ambiguous. Use len(boxes) > 0 for whether there are any, or "
            "intersect(rays, boxes).hit.any() for whether rays hit them."
        )

    def __iter__(self) -> Iterator[Boxes]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: RowIndex) -> Boxes:
        """Return boxes by an integer (one box), slice, mask or list of integers."""
        index = listed_rows(index)
        low, high = self._lower[index], self._upper[index]
        if isinstance(index, tuple) or low.ndim != 2:
            raise IndexError("boxes are a flat list: index by one integer, slice, mask or list of integers")
        corners = np.asarray(low, order="C"), np.asarray(high, order="C")
        return _made(object.__new__(Boxes), *corners, self._attributes.of_rows(index))

    def contains(self, points: ArrayInput) -> Bools:
        """Return which boxes contain which points; faces, edges and corners count.

        Parameters
        ----------
        points : array_like, shape (..., D)
            Finite. The result has a byte for every pair: pass many points in chunks.

        Returns
        -------
        ndarray of bool, shape (..., M)

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Boxes([[0, 0], [1, 1]], [[1, 1], [2, 2]]).contains([[1, 1], [0.5, 1]])
        array([[ True,  True],
               [ True, False]])
        """
        p = validation.finite_points(points, self.ndim_space)
        if len(self) > _FEWEST and len(self) * p.size > _PAIRS:
            # scenes are a layer above geometries
            return cast("Bools", import_module("raybox.scene.containment").contains_each(self, p))
        inside = np.ones((*p.shape[:-1], len(self)), dtype=np.bool_)
        for axis in range(self.ndim_space):
            x = p[..., axis, None]
            inside &= (self._lower[:, axis] <= x) & (x <= self._upper[:, axis])
        return inside

    def expanded(self, margin: ArrayInput) -> Boxes:
        """Return the boxes extended by a margin on both sides of every axis.

        Each bound is rounded to float64.

        Parameters
        ----------
        margin : array_like, scalar, shape (D,) or (M, D)
            Finite; a negative margin shrinks the boxes.

        Raises
        ------
        InvalidInput
            If the margin is not finite, or would turn a box inside out.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Boxes([0, 0], [2, 4]).expanded(0.5).bounds
        array([[-0.5, -0.5],
               [ 2.5,  4.5]])
        """
        corners = bounds.expanded((self._lower, self._upper), margin)
        return _made(object.__new__(Boxes), *corners, self._attributes)

    def translated(self, offset: ArrayInput) -> Boxes:
        """Return the boxes moved by an offset; ids and labels stay.

        Each bound is rounded to float64. No bound stays no bound.

        Parameters
        ----------
        offset : array_like, shape (D,), (M, D) or scalar
            Finite; one for all boxes, or one for each.

        Raises
        ------
        InvalidInput
            If the shape is another, the offset is not finite, or a bound would be beyond float64.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Boxes([0, 0], [2, 4]).translated([10, -1]).bounds
        array([[10., -1.],
               [12.,  3.]])
        """
        corners = bounds.translated((self._lower, self._upper), offset)
        return _made(object.__new__(Boxes), *corners, self._attributes)

    def _compared(self) -> tuple[object, ...]:
        return self._lower, self._upper, self.ids, self.labels, self.colors

    def _rows(self) -> BoxRows:
        """Return the arrays for kernels; in 3D without a copy."""
        return BoxRows(in_space(self._lower), in_space(self._upper))

    def __repr__(self) -> str:
        return f"Boxes({len(self)}, D={self.ndim_space})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return restored, (self._lower, self._upper, self._attributes)


def _made(boxes: Boxes, lower: Floats, upper: Floats, attributes: Attributes) -> Boxes:
    """Return ``boxes`` with valid, C-ordered arrays, which are frozen."""
    boxes._lower, boxes._upper, boxes._attributes = lower, upper, attributes
    validation.freeze(lower, upper)
    return boxes


def restored(lower: Floats, upper: Floats, attributes: Attributes = NO_ATTRIBUTES) -> Boxes:
    """Return boxes of valid arrays, which are not copied."""
    return _made(object.__new__(Boxes), lower, upper, frozen_attributes(attributes))
