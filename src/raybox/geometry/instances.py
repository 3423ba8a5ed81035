"""`Instances`: transformed copies of boxes or of a mesh."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar, final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry import transforms as affine
from raybox.geometry.boxes import Boxes
from raybox.geometry.grid import Grid
from raybox.geometry.labels import (
    NO_ATTRIBUTES,
    Attributes,
    HasAttributes,
    LabelsInput,
    checked_attributes,
    frozen_attributes,
)
from raybox.geometry.mesh import Mesh
from raybox.geometry.row_ids import IdsInput, RowIndex, listed_rows
from raybox.geometry.rows import BoxRows, PrimitiveRows, TriangleRows
from raybox.geometry.transforms import around
from raybox.validation import ArrayInput, Bools, Floats

R = TypeVar("R")


class InstanceRows(NamedTuple):
    """Arrays of instances, for kernels.

    A primitive's number is ``instance * size + row``.
    """

    rows: BoxRows | TriangleRows
    """rows of the geometry, for kernels"""
    tree: PrimitiveRows
    """tree of the geometry"""
    size: int
    """number of rows of the geometry"""
    placed: Floats
    """(M, 3, 4): matrices, local to world"""
    high: Floats
    """(M, 3, 3): inverse of the first three columns, rounded"""
    low: Floats
    """(M, 3, 3): rounding error of `high`, rounded"""
    tame: Bools
    """(M,): whether no product of the numbers can over- or underflow"""
    lower: Floats
    """(M, 3): bounds in the world"""
    upper: Floats
    """(M, 3)"""
    undecided: Bools
    """(1,): whether floats left anything about the current ray undecided"""
    undecided_rays: Bools
    """(N,): the same for each ray"""
    scratch: PrimitiveRows
    """memory of one thread for two rows of the geometry, in world coordinates"""


def with_scratch(rows: R, rays: int) -> R:
    """Return rows for a loop over so many rays.

    Rows of instances get memory to write to; other rows are returned unchanged.
    """
    if not isinstance(rows, InstanceRows):
        return rows
    inner: Any = rows.rows
    arrays = {name: array for name, array in inner._asdict().items() if isinstance(array, np.ndarray)}
    scratch = inner._replace(**{name: np.empty((2, *array.shape[1:])) for name, array in arrays.items()})
    undecided, undecided_rays = np.zeros(1, np.bool_), np.zeros(rays, np.bool_)
    return rows._replace(undecided=undecided, undecided_rays=undecided_rays, scratch=scratch)


@final
@guard_class("geometry", "transforms", "ndim_space")
class Instances(HasAttributes):
    """Instances of boxes or of a mesh: exact images under matrices.

    Matrices may rotate, scale, shear, mirror and translate: p -> A p + b, from local to world coordinates.
    The geometry is stored once for all instances. For rotated boxes, see `oriented_boxes`. All arrays are
    read-only copies.

    Parameters
    ----------
    geometry : Boxes or Mesh
        The geometry that is instanced; boxes must have finite bounds.
    transforms : array_like, shape (M, D + 1, D + 1) or (M, D, D + 1)
        [A b], one for each instance, with or without a last row 0 ... 0 1. A single matrix is one instance.
    ids : sequence of str or of int, shape (M,), optional
        A name for each instance, which hits return: `Hits.ids`. Without, hits return those of the geometry.
    labels : mapping or table, of M rows, optional
        Columns of numbers, bools or text by name: `Hits.labels`. Without, hits return those of the geometry.

    Raises
    ------
    InvalidInput
        If shapes do not fit, a number is NaN or infinite, or a matrix is singular (its determinant is 0); for
        ids and labels, as `Boxes`.

    Examples
    --------
    >>> import raybox as rb
    >>> cube = rb.Boxes([0, 0, 0], [1, 1, 1])
    >>> instances = rb.Instances(cube, [[[2, 0, 0, 5], [0, 1, 0, 0], [0, 0, 1, 0]]])
    >>> instances.bounds
    array([[5., 0., 0.],
           [7., 1., 1.]])
    """

    __slots__ = ("_attributes", "_geometry", "_placed")
    _AS_ARRAY = "instances.transforms"
    _geometry: Boxes | Mesh
    _placed: Floats

    def __init__(
        self,
        geometry: Boxes | Mesh,
        transforms: ArrayInput,
        *,
        ids: IdsInput = None,
        labels: LabelsInput = None,
    ) -> None:
        if not isinstance(geometry, Boxes | Mesh):
            way_out = "A scene can hold several geometries: Scene([one, other])."
            if isinstance(geometry, Grid):
                way_out = "Pass the boxes of its cells: grid.boxes(grid.occupied)."
            raise InvalidInput(
                f"Instances are copies of Boxes or of a Mesh; got {type(geometry).__name__}. {way_out}"
            )
        if isinstance(geometry, Boxes):
            bad = ~(np.isfinite(geometry.lower) & np.isfinite(geometry.upper)).all(axis=1)
            if bad.any():
                shown = {"lower": geometry.lower, "upper": geometry.upper}
                rule, way_out = "boxes of Instances must have finite bounds", "Clip them to a finite region"
                validation.refuse_rows(bad, rule, shown, "box", way_out)
        placed = affine.matrices(transforms, geometry.ndim_space)
        _made(self, geometry, placed, checked_attributes(ids, labels, len(placed), "instance"))

    @classmethod
    def from_poses(
        cls,
        geometry: Boxes | Mesh,
        positions: ArrayInput,
        *,
        rotations: ArrayInput | None = None,
        quaternions: ArrayInput | None = None,
        yaw: ArrayInput | None = None,
        scales: ArrayInput = 1.0,
        ids: IdsInput = None,
        labels: LabelsInput = None,
    ) -> Instances:
        """Return instances that are scaled, then rotated, then translated.

        The matrices are rounded to float64.

        Parameters
        ----------
        geometry : Boxes or Mesh
            The geometry that is instanced.
        positions : array_like, shape (M, D)
            World coordinates of the geometry's origin.
        rotations : array_like, shape (M, D, D) or (D, D), optional
            Matrices, whose columns are the images of the axes.
        quaternions : array_like, shape (M, 4) or (4,), optional
            (w, x, y, z), of any length but zero.
        yaw : array_like, shape (M,) or scalar, optional
            Radians about z, from x towards y; at most two turns, 4 pi, either way.
        scales : array_like, scalar or shape (M,), (D,) or (M, D)
            Negative scales mirror. Where M = D, shape (D,) means one for each axis.
        ids, labels
            As for `Instances`.

        Raises
        ------
        InvalidInput
            As for `Instances`, or if rotations are given in two ways.

        Examples
        --------
        >>> import raybox as rb
        >>> instances = rb.Instances.from_poses(rb.Boxes([0, 0], [2, 1]), [[0, 0], [5, 5]], scales=2)
        >>> instances.bounds
        array([[0., 0.],
               [9., 7.]])
        """
        rotation = {"rotations": rotations, "quaternions": quaternions, "yaw": yaw}
        return cls(geometry, affine.of_poses(positions, rotation, scales), ids=ids, labels=labels)

    @classmethod
    def oriented_boxes(
        cls,
        centers: ArrayInput,
        sizes: ArrayInput,
        *,
        rotations: ArrayInput | None = None,
        quaternions: ArrayInput | None = None,
        yaw: ArrayInput | None = None,
        ids: IdsInput = None,
        labels: LabelsInput = None,
    ) -> Instances:
        """Return rotated boxes: instances of the unit cube around the origin.

        The matrices are rounded to float64.

        Parameters
        ----------
        centers : array_like, shape (M, D)
            Finite.
        sizes : array_like, shape (M, D), (D,) or scalar
            Edge lengths before the rotation, above zero.
        rotations, quaternions, yaw
            As for `from_poses`.
        ids, labels
            As for `Instances`.

        Raises
        ------
        InvalidInput
            As for `Instances`, or if a size is not above zero.

        Examples
        --------
        >>> import numpy as np
        >>> import raybox as rb
        >>> car = rb.Instances.oriented_boxes([10, 0, 0.7], [4.5, 1.8, 1.4], yaw=np.pi / 2)
        >>> car.bounds.round(3)
        array([[ 9.1 , -2.25,  0.  ],
               [10.9 ,  2.25,  1.4 ]])
        """
        middle, size = validation.rows(centers, "centers"), validation.axis_floats(sizes, "sizes")
        if not (size > 0).all():
            bad = ~(size > 0).all(axis=-1) if size.ndim else ~(size > 0)
            way_out = "Drop those boxes, or give them some thickness"
            validation.refuse_rows(bad, "sizes must be above zero", {"sizes": size}, "box", way_out)
        unit = Boxes.from_centers(np.zeros(middle.shape[1]), 1.0)
        rotation = {"rotations": rotations, "quaternions": quaternions, "yaw": yaw}
        return cls(unit, affine.of_poses(middle, rotation, size), ids=ids, labels=labels)

    @property
    def geometry(self) -> Boxes | Mesh:
        """The geometry that is instanced."""
        return self._geometry

    @property
    def transforms(self) -> Floats:
        """The matrices [A b], local to world: shape (M, D, D + 1), read-only."""
        dims = self.ndim_space
        return self._placed if dims == 3 else self._placed[:, :2, [0, 1, 3]]

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        return self._geometry.ndim_space

    @property
    def bounds(self) -> Floats:
        """The bounds of all instances, shape (2, D).

        +inf and -inf if there are none.
        """
        return self.boxes().bounds

    def boxes(self) -> Boxes:
        """Return a box around each instance: around the image of the geometry's bounds.

        Bounds are rounded outwards. The boxes have the ids and labels of the instances.

        Examples
        --------
        >>> import raybox as rb
        >>> instances = rb.Instances(rb.Boxes([0, 0], [2, 1]), [[[0, -1, 0], [1, 0, 0]]])
        >>> instances.boxes().bounds
        array([[-1.,  0.],
               [ 0.,  2.]])
        """
        lower, upper = around(self._placed, *_corners(self._geometry))
        dims = self.ndim_space
        return Boxes(lower[:, :dims], upper[:, :dims])._with(self._attributes)

    def _compared(self) -> tuple[object, ...]:
        return self._geometry, self._placed, self.ids, self.labels, self.colors

    def _rows(self) -> Floats:
        """Return the matrices for kernels, (M, 3, 4)."""
        return self._placed

    def __len__(self) -> int:
        return len(self._placed)

    def __getitem__(self, index: RowIndex) -> Instances:
        """Return instances by an integer (one instance), slice, mask or list of integers."""
        index = listed_rows(index)
        placed = self._placed[index]
        if isinstance(index, tuple) or placed.ndim != 3:
            raise IndexError(
                "instances are a flat list: index by one integer, slice, mask or list of integers"
            )
        attributes = self._attributes.of_rows(index)
        return _made(object.__new__(Instances), self._geometry, np.asarray(placed, order="C"), attributes)

    def __repr__(self) -> str:
        return f"Instances({len(self)} of {self._geometry!r})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return restored, (self._geometry, self._placed, self._attributes)


def _corners(geometry: Boxes | Mesh) -> tuple[Floats, Floats]:
    """Return the lower and upper bound of a geometry, (1, 3) each.

    (0, 3) if it is empty.
    """
    if isinstance(geometry, Mesh):
        points = geometry.triangles.reshape(-1, 3)
    else:
        rows = geometry._rows()
        points = np.concatenate([rows.lower, rows.upper])
    if not len(points):
        return np.empty((0, 3)), np.empty((0, 3))
    return points.min(axis=0, keepdims=True), points.max(axis=0, keepdims=True)


def _made(instances: Instances, geometry: Boxes | Mesh, placed: Floats, attributes: Attributes) -> Instances:
    instances._geometry, instances._placed, instances._attributes = geometry, placed, attributes
    validation.freeze(placed)
    return instances


def restored(geometry: Boxes | Mesh, placed: Floats, attributes: Attributes = NO_ATTRIBUTES) -> Instances:
    """Return instances of valid arrays, which are not copied."""
    return _made(object.__new__(Instances), geometry, placed, frozen_attributes(attributes))
