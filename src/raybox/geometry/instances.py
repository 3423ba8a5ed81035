"""Instances: moved copies of boxes or of a mesh."""

import operator
from contextlib import suppress
from typing import Any, NamedTuple, final

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import transforms as affine
from raybox.geometry.boxes import Boxes
from raybox.geometry.image_bounds import around
from raybox.geometry.mesh import Mesh
from raybox.validation import Bools, Floats


class CopyRows(NamedTuple):
    """Moved copies as the kernels read them. A primitive's number is ``copy * size + row``."""

    rows: Any
    """what is copied, as the kernels read it"""
    tree: Any
    """its tree"""
    size: int
    """how many rows it has"""
    placed: Floats
    """(M, 3, 4): local to world"""
    high: Floats
    """(M, 3, 3): the inverse of the first three columns, rounded"""
    low: Floats
    """(M, 3, 3): what that rounding left, rounded"""
    tame: Bools
    """(M,): no number is so large or so small that products of them could be lost"""
    lower: Floats
    """(M, 3): where a copy begins at the earliest"""
    upper: Floats
    """(M, 3)"""
    unsure: Bools
    """(1,): was there anything about this ray that floats could not tell?"""
    doubts: Bools
    """(N,): was there, for each ray?"""
    room: Any
    """for two rows like those copied, as they stand in the world"""


def noting(rows: Any, rays: int) -> Any:
    """Return rows as loops take them: of copies, with memory of their own to write to, for so many rays."""
    if not isinstance(rows, CopyRows):
        return rows
    arrays = {name: of for name, of in rows.rows._asdict().items() if isinstance(of, np.ndarray)}
    room = rows.rows._replace(**{name: np.empty((2, *of.shape[1:])) for name, of in arrays.items()})
    return rows._replace(unsure=np.zeros(1, np.bool_), doubts=np.zeros(rays, np.bool_), room=room)


@final
class Instances:
    """Moved copies of boxes or of a mesh: each is the exact image of what is copied, under its matrix.

    Matrices may turn, scale, shear, mirror and move: p -> A p + b, from the copied thing's own coordinates
    to the world's. Turned boxes are such copies, see `oriented_boxes`. What is copied is held once, however
    many copies there are. The arrays held are read-only copies.

    Parameters
    ----------
    geometry : Boxes or Mesh
        What is copied; boxes with finite bounds.
    transforms : array_like, shape (M, D + 1, D + 1) or (M, D, D + 1)
        [A b], one for each copy; a last row of 0 ... 0 1 may be there. A single matrix is one copy.

    Raises
    ------
    InvalidInput
        If shapes do not fit, a number is NaN or infinite, or a matrix flattens space (its determinant is 0).

    Examples
    --------
    >>> import raybox as rb
    >>> cube = rb.Boxes([0, 0, 0], [1, 1, 1])
    >>> copies = rb.Instances(cube, [[[2, 0, 0, 5], [0, 1, 0, 0], [0, 0, 1, 0]]])
    >>> copies.bounds
    array([[5., 0., 0.],
           [7., 1., 1.]])
    """

    __slots__ = ("_geometry", "_placed")
    _geometry: Boxes | Mesh
    _placed: Floats

    def __init__(self, geometry: Boxes | Mesh, transforms: Any) -> None:
        if not isinstance(geometry, Boxes | Mesh):
            raise InvalidInput(
                f"Instances are copies of Boxes or of a Mesh; got {type(geometry).__name__}. Things of "
                "several kinds go side by side into a scene: Scene([one, other])."
            )
        if isinstance(geometry, Boxes):
            bad = ~(np.isfinite(geometry.lower) & np.isfinite(geometry.upper)).all(axis=1)
            if bad.any():
                shown = {"lower": geometry.lower, "upper": geometry.upper}
                rule, way_out = "boxes that are copied must have finite bounds", "Cut them to what you need"
                validation.refuse_rows(bad, rule, shown, "box", way_out)
        _made(self, geometry, affine.matrices(transforms, geometry.ndim_space))

    @classmethod
    def from_poses(
        cls,
        geometry: Boxes | Mesh,
        positions: Any,
        *,
        rotations: Any = None,
        quaternions: Any = None,
        yaw: Any = None,
        scales: Any = 1.0,
    ) -> "Instances":
        """Make copies that are scaled, then turned, then moved; the matrices are rounded to float64.

        Parameters
        ----------
        geometry : Boxes or Mesh
            What is copied.
        positions : array_like, shape (M, D)
            Where the geometry's own origin goes.
        rotations : array_like, shape (M, D, D) or (D, D), optional
            Matrices; columns say where the axes go.
        quaternions : array_like, shape (M, 4) or (4,), optional
            (w, x, y, z), of any length but zero.
        yaw : array_like, shape (M,) or scalar, optional
            Radians about z, from x towards y.
        scales : array_like, scalar or shape (M,), (D,) or (M, D)
            Below zero mirrors. Where M = D, shape (D,) is one for each axis.

        Raises
        ------
        InvalidInput
            As for `Instances`, or if a turn is given in two ways.

        Examples
        --------
        >>> import raybox as rb
        >>> copies = rb.Instances.from_poses(rb.Boxes([0, 0], [2, 1]), [[0, 0], [5, 5]], scales=2)
        >>> copies.bounds
        array([[0., 0.],
               [9., 7.]])
        """
        turns = {"rotations": rotations, "quaternions": quaternions, "yaw": yaw}
        return cls(geometry, affine.of_poses(positions, turns, scales))

    @classmethod
    def oriented_boxes(
        cls, centers: Any, sizes: Any, *, rotations: Any = None, quaternions: Any = None, yaw: Any = None
    ) -> "Instances":
        """Make turned boxes: copies of the unit cube round the origin. The matrices are rounded to float64.

        Parameters
        ----------
        centers : array_like, shape (M, D)
            Finite.
        sizes : array_like, shape (M, D), (D,) or scalar
            Edge lengths before the turn, above zero.
        rotations, quaternions, yaw
            As for `from_poses`.

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
        middle, size = validation.rows(centers, "centers"), validation.floats(sizes, "sizes")
        if not (size > 0).all():
            bad = ~(size > 0).all(axis=-1) if size.ndim else ~(size > 0)
            way_out = "Drop those boxes, or give them some thickness"
            validation.refuse_rows(bad, "sizes must be above zero", {"sizes": size}, "box", way_out)
        unit = Boxes.from_centers(np.zeros(middle.shape[1]), 1.0)
        turns = {"rotations": rotations, "quaternions": quaternions, "yaw": yaw}
        return cls(unit, affine.of_poses(middle, turns, size))

    @property
    def geometry(self) -> Boxes | Mesh:
        """What is copied."""
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
        """The corners of a box round everything, shape (2, D); +inf and -inf for no copies."""
        return self.boxes().bounds

    def boxes(self) -> Boxes:
        """Return a box round each copy, rounded outwards: round the turned box of what is copied.

        Examples
        --------
        >>> import raybox as rb
        >>> copies = rb.Instances(rb.Boxes([0, 0], [2, 1]), [[[0, -1, 0], [1, 0, 0]]])
        >>> copies.boxes().bounds
        array([[-1.,  0.],
               [ 0.,  2.]])
        """
        lower, upper = around(self._placed, *_corners(self._geometry))
        dims = self.ndim_space
        return Boxes(lower[:, :dims], upper[:, :dims])

    def rows(self) -> Floats:
        """Return the matrices as the kernels read them, (M, 3, 4)."""
        return self._placed

    def __len__(self) -> int:
        return len(self._placed)

    def __getitem__(self, index: Any) -> "Instances":
        """Pick copies by an integer (one copy), slice, mask or list of integers."""
        with suppress(TypeError):
            index = [operator.index(index)]
        placed = self._placed[index]
        if isinstance(index, tuple) or placed.ndim != 3:
            raise IndexError(
                "instances are a flat list: index by one integer, slice, mask or list of integers"
            )
        return _made(object.__new__(Instances), self._geometry, np.asarray(placed, order="C"))

    def __repr__(self) -> str:
        return f"Instances({len(self)} of {self._geometry!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._geometry, self._placed)


def _corners(geometry: Boxes | Mesh) -> tuple[Floats, Floats]:
    """Return the corners (1, 3) of the box round all of a geometry; (0, 3) where there is nothing."""
    if isinstance(geometry, Mesh):
        points = geometry.corners().reshape(-1, 3)
    else:
        rows = geometry.rows()
        points = np.concatenate([rows.lower, rows.upper])
    if not len(points):
        return np.empty((0, 3)), np.empty((0, 3))
    return points.min(axis=0, keepdims=True), points.max(axis=0, keepdims=True)


def _made(instances: Instances, geometry: Boxes | Mesh, placed: Floats) -> Instances:
    instances._geometry, instances._placed = geometry, placed
    validation.freeze(placed)
    return instances


def _restored(geometry: Boxes | Mesh, placed: Floats) -> Instances:
    return _made(object.__new__(Instances), geometry, placed)
