"""Constructors of `Boxes`: centres, groups of points, triangles and voxels."""

from __future__ import annotations

from typing import Self

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.geometry import box_bounds, table_columns
from raybox.geometry.labels import LabelsInput
from raybox.geometry.row_ids import IdsInput
from raybox.geometry.table_columns import TableInput
from raybox.validation import ArrayInput, Floats


@guard_class()
class BoxConstructors:
    """The class methods of `Boxes`."""

    __slots__ = ()

    @classmethod
    def _of(cls, lower: Floats, upper: Floats, ids: IdsInput = None, labels: LabelsInput = None) -> Self:
        """Return boxes of valid, C-ordered arrays, which are frozen; ids and labels are checked."""
        raise NotImplementedError

    @classmethod
    def from_centers(
        cls, centers: ArrayInput, sizes: ArrayInput, *, ids: IdsInput = None, labels: LabelsInput = None
    ) -> Self:
        """Return boxes from centres and sizes.

        Bounds are centre -+ size/2, each rounded to float64.

        Parameters
        ----------
        centers : array_like, shape (M, D)
            Finite.
        sizes : array_like, shape (M, D), (D,) or scalar
            Edge lengths, not negative; may be infinite.
        ids, labels
            As for `Boxes`.

        Raises
        ------
        InvalidInput
            If shapes do not fit, a centre is not finite, or a size is negative or NaN; for ids and labels,
            as `Boxes`.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Boxes.from_centers([[0, 0], [5, 5]], 2).lower
        array([[-1., -1.],
               [ 4.,  4.]])
        """
        return cls._of(*box_bounds.from_centers(centers, sizes), ids, labels)

    @classmethod
    def from_bounds(cls, bounds: TableInput, *, ids: IdsInput = None, labels: LabelsInput = None) -> Self:
        """Return boxes from one array or table: each row is a lower corner, followed by an upper one.

        Parameters
        ----------
        bounds : array_like, shape (M, 2 * D), or table
            ``min_x, min_y, [min_z], max_x, max_y, [max_z]``; one row of these is a single box. Of a table (a
            data frame, a table of Arrow, a dict of columns), the columns with these names, and the column
            ``id`` if there is one; others are ignored.
        ids : sequence of str or of int, shape (M,), optional
            As for `Boxes`; in place of the column ``id``.
        labels : mapping or table, of M rows, optional
            As for `Boxes`, such as further columns of the table: ``labels=table[["name", "storey"]]``.

        Raises
        ------
        InvalidInput
            If a row has neither 4 nor 6 numbers, a column is missing, or as for `Boxes`.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Boxes.from_bounds([[0, 0, 2, 1], [5, 5, 6, 6]]).sizes
        array([[2., 1.],
               [1., 1.]])
        >>> table = {"id": ["a"], "min_x": [0], "min_y": [0], "max_x": [2], "max_y": [1]}
        >>> rb.Boxes.from_bounds(table).ids
        array(['a'], dtype=object)
        """
        found = table_columns.column(bounds, "id") if ids is None else ids
        return cls._of(*box_bounds.from_bounds(bounds), found, labels)

    @classmethod
    def around(cls, points: ArrayInput, groups: ArrayInput) -> Self:
        """Return the smallest box around each group of points.

        Parameters
        ----------
        points : array_like, shape (P, D)
            Finite.
        groups : array_like of int, shape (P,)
            The number of each point's box: 0 to G-1, in any order. Every number must occur;
            ``np.unique(labels, return_inverse=True)[1]`` gives such numbers for any labels.

        Returns
        -------
        Boxes
            G boxes, box g around the points of group g.

        Raises
        ------
        InvalidInput
            If shapes do not fit, a point is not finite, or a group is negative or has no point.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Boxes.around([[0, 0], [5, 1], [2, 3]], [0, 1, 0]).upper
        array([[2., 3.],
               [5., 1.]])
        """
        p, g = validation.rows(points, "points"), validation.integers(groups, "groups")
        validation.require_finite(p, "points", "point", "Drop those points")
        return cls._of(*box_bounds.around(p, g))

    @classmethod
    def of_triangles(cls, vertices: ArrayInput, faces: ArrayInput) -> Self:
        """Return the smallest box around each triangle.

        Parameters
        ----------
        vertices : array_like, shape (V, 3)
        faces : array_like of int, shape (F, 3)
            As for `Mesh`.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Boxes.of_triangles([[0, 0, 5], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).sizes
        array([[1., 1., 5.]])
        """
        return cls._of(*box_bounds.of_triangles(vertices, faces))

    @classmethod
    def of_voxels(cls, occupancy: ArrayInput, *, origin: ArrayInput, pitch: ArrayInput) -> Self:
        """Return one box for each occupied cell of a regular grid, in C order.

        Cell ``(i, j, k)`` extends from origin + pitch*(i, j, k) to origin + pitch*(i+1, j+1, k+1). These
        planes are computed once for each axis, so that neighbours share exactly the same face and no ray
        passes between them.

        Parameters
        ----------
        occupancy : array_like of bool or int, of 2 or 3 dimensions
            Axis 0 is x; nonzero cells are occupied. The cells are ``np.argwhere(occupancy)``.
        origin : array_like, shape (D,)
            The lower corner of the grid.
        pitch : array_like, scalar or shape (D,)
            The size of a cell, above zero.

        Raises
        ------
        InvalidInput
            If shapes do not fit, occupancy is of floats, or a number is not finite.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Boxes.of_voxels([[True, True], [False, True]], origin=[0, 0], pitch=0.5).lower
        array([[0. , 0. ],
               [0. , 0.5],
               [0.5, 0.5]])
        """
        return cls._of(*box_bounds.of_voxels(occupancy, origin, pitch))
