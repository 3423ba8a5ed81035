"""`Grid`: the cells of a rectilinear grid."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from math import prod
from typing import final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.geometry import boxes as box_lists
from raybox.geometry import cell_bits, grid_cells, grid_edges
from raybox.geometry.boxes import Boxes
from raybox.geometry.cell_bits import CellBits
from raybox.geometry.grid_cells import GridIndex
from raybox.geometry.grid_edges import Edges
from raybox.geometry.labels import (
    NO_ATTRIBUTES,
    Attributes,
    HasAttributes,
    LabelsInput,
    checked_attributes,
    frozen_attributes,
)
from raybox.geometry.row_ids import IdsInput
from raybox.geometry.rows import GridRows
from raybox.validation import ArrayInput, Bools, Floats, Ints


@final
@guard_class("shape", "edges", "occupied", "ndim_space", "bounds")
class Grid(HasAttributes):
    """The cells of a rectilinear grid: axis-aligned boxes that share faces, in 2D or 3D.

    Cell (i, j, k) extends from edge i to edge i + 1 of the first axis, from j to j + 1 of the second, and so
    on. Cells are not stored: the memory is that of the edges and of the mask, a bit a cell at most. They are
    numbered in C order, the last axis fastest, as by `numpy.ravel_multi_index`, whether occupied or not. All
    arrays are read-only copies.

    Parameters
    ----------
    *edges : array_like, shape (n + 1,), n >= 1
        An array for each of 2 or 3 axes: finite, strictly increasing.
    occupied : array_like of bool, of the grid's shape or (len,), optional
        The cells that rays may hit; None: all.
    ids : sequence of str or of int, shape (len,), optional
        A name for each cell, occupied or not, in the order of their numbers, which hits return: `Hits.ids`.
    labels : mapping or table, of len rows, optional
        Columns of numbers, bools or text by name, which hits return: `Hits.labels`.

    Raises
    ------
    InvalidInput
        If there are not 2 or 3 axes, edges are not finite or do not increase, the mask does not fit, or there
        are more than 2**62 cells; for ids and labels, as `Boxes`.

    Examples
    --------
    >>> import raybox as rb
    >>> grid = rb.Grid([0, 1, 10], [0, 2, 3, 5], occupied=[[True, True, False], [False, True, True]])
    >>> grid
    Grid(2 x 3, occupied=4)
    >>> len(grid), grid.shape
    (6, (2, 3))
    >>> grid[1:, 1].edges
    (array([ 1., 10.]), array([2., 3.]))
    """

    __slots__ = ("_attributes", "_bits", "_edges")
    _AS_ARRAY = "grid.occupied, or grid.edges"
    _edges: Edges
    _bits: CellBits

    # Iteration by index would yield the slices of the first axis, not len(grid) cells.
    __iter__ = None

    def __init__(
        self,
        *edges: ArrayInput,
        occupied: ArrayInput | None = None,
        ids: IdsInput = None,
        labels: LabelsInput = None,
    ) -> None:
        _set(self, grid_edges.of_axes(edges), occupied)
        self._attributes = checked_attributes(ids, labels, len(self), "cell")

    @classmethod
    def uniform(
        cls,
        lower: ArrayInput,
        pitch: ArrayInput,
        shape: ArrayInput,
        occupied: ArrayInput | None = None,
        *,
        ids: IdsInput = None,
        labels: LabelsInput = None,
    ) -> Grid:
        """Return a grid whose cells have one size, with the edges ``lower + pitch * arange``.

        Edges are rounded to float64: those of `Boxes.of_voxels`, bit for bit.

        Parameters
        ----------
        lower : array_like, shape (D,)
            The lower corner of the grid.
        pitch : array_like, scalar or shape (D,)
            The size of a cell, above zero.
        shape : sequence of D int
            The number of cells along each axis, above zero.
        occupied : array_like of bool, of this shape or (len,), optional
            As for `Grid`.
        ids, labels
            As for `Grid`.

        Raises
        ------
        InvalidInput
            As for `Grid`, or if shapes do not fit or the pitch is not above zero.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Grid.uniform([0, 10], 0.5, (2, 3)).edges
        (array([0. , 0.5, 1. ]), array([10. , 10.5, 11. , 11.5]))
        """
        made = _set(object.__new__(cls), grid_edges.uniform(lower, pitch, shape), occupied)
        made._attributes = checked_attributes(ids, labels, len(made), "cell")
        return made

    @classmethod
    def from_pyvista(cls, mesh: object) -> Grid:
        """Return the grid of a PyVista or VTK ImageData or RectilinearGrid.

        Its points are the edges; one with a single point along z becomes a grid in 2D.

        VTK numbers cells with x fastest, a Grid with the last axis fastest. Data of cells in the order of the
        grid are ``mesh.cell_data["name"].reshape(grid.shape, order="F")``; with C channels
        ``reshape((*grid.shape, C), order="F")``. In the other direction: ``values.ravel(order="F")``.

        Parameters
        ----------
        mesh : pyvista.ImageData or pyvista.RectilinearGrid
            Or any object with ``origin``, ``spacing`` and ``dimensions``, or with the arrays ``x``, ``y``
            and ``z``.

        Raises
        ------
        InvalidInput
            As for `Grid`, or if the mesh is of another kind, or rotated.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import raybox as rb
        >>> image = SimpleNamespace(origin=(0, 0, 5), spacing=(1, 1, 0.5), dimensions=(3, 2, 4))
        >>> rb.Grid.from_pyvista(image).bounds
        array([[0. , 0. , 5. ],
               [2. , 1. , 6.5]])
        """
        from raybox.geometry import grid_sources

        return _set(object.__new__(cls), grid_sources.of_pyvista(mesh), None)

    @classmethod
    def from_xarray(cls, array: object, dims: Iterable[Hashable] | None = None) -> Grid:
        """Return the grid of cells around the coordinates of an xarray object.

        Edges lie halfway between the coordinates of neighbours; the first and the last are as far from their
        centre as the edge on its other side. Spacing may be uneven.

        The grid's axes, and the coordinates of points and rays, are in the order of the dimensions, so that
        ``array.values`` has the grid's shape. Arrays are often stored as (z, y, x): for rays in x, y, z pass
        ``dims=("x", "y", "z")``, and take the values from ``array.transpose("x", "y", "z")``.

        Parameters
        ----------
        array : xarray.DataArray or xarray.Dataset
            With two coordinates or more along each dimension, which increase.
        dims : sequence of D names, optional
            The dimensions that become the axes. Default: those of the array, in its order; of a dataset,
            those of its variables.

        Raises
        ------
        InvalidInput
            As for `Grid`, or if a coordinate is missing, decreases or has a single number, or if the
            variables of a dataset differ in their dimensions.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import numpy as np
        >>> import raybox as rb
        >>> coords = {name: SimpleNamespace(values=np.array([10.0, 11.0, 13.0])) for name in ("x", "y")}
        >>> rb.Grid.from_xarray(SimpleNamespace(dims=("y", "x"), coords=coords)).edges[0]
        array([ 9.5, 10.5, 12. , 14. ])
        """
        from raybox.geometry import grid_sources

        return _set(object.__new__(cls), grid_sources.of_xarray(array, dims), None)

    @property
    def edges(self) -> Edges:
        """The edges of each axis: shape (n + 1,) each, read-only."""
        return self._edges

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of cells along each axis."""
        return tuple(len(values) - 1 for values in self._edges)

    @property
    def occupied(self) -> Bools:
        """The cells that rays may hit: bool of the grid's shape, read-only.

        A new array each time, unpacked from bits: store it to read it often. If all are, a view that needs
        no memory (its strides are zero).
        """
        return grid_cells.mask_of(self._bits, self.shape)

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        return len(self._edges)

    @property
    def bounds(self) -> Floats:
        """The lower and upper bound of all cells together, occupied or not, shape (2, D)."""
        return np.array([[values[k] for values in self._edges] for k in (0, -1)])

    def __len__(self) -> int:
        """Return the number of all cells, occupied or not."""
        return prod(self.shape)

    def __getitem__(self, index: GridIndex) -> Grid:
        """Return the grid of some cells, numbered anew: an integer or a slice of step 1 on each axis.

        Ids and labels are those of the cells.

        An axis that is indexed by an integer stays, with one cell.
        """
        ranges = grid_cells.ranges(index, self.shape)
        edges = tuple(e[r.start : r.stop + 1].copy() for e, r in zip(self._edges, ranges, strict=True))
        bits = grid_cells.part_of(self._bits, self.shape, ranges)
        if self._attributes is NO_ATTRIBUTES:
            return of_bits(edges, bits)
        return of_bits(edges, bits, self._attributes.of_rows(grid_cells.numbers(self.shape, ranges)))

    def index_of(self, points: ArrayInput) -> Ints:
        """Return the number of the cell in which each point lies, -1 outside the grid.

        A point on a face that cells share lies in the higher cell, one on the grid's last face in the last.
        As an index, -1 is the last cell: ``values.ravel()[number]`` is wrong outside the grid. Mask first,
        ``inside = number >= 0``, and index by ``number[inside]``.

        Parameters
        ----------
        points : array_like, shape (..., D)
            Finite.

        Returns
        -------
        ndarray of int64, shape (...)

        Raises
        ------
        InvalidInput
            If the shape does not fit, or a point is not finite.

        Examples
        --------
        >>> import raybox as rb
        >>> grid = rb.Grid([0, 1, 10], [0, 2, 3, 5])
        >>> grid.index_of([[0.5, 0.5], [1, 2], [10, 5], [11, 0]])
        array([ 0,  4,  5, -1])
        """
        found = validation.finite_points(points, self.ndim_space)
        return grid_cells.index_of(self._edges, found)

    def boxes(self, cells: ArrayInput | None = None) -> Boxes:
        """Return cells as boxes, with their ids and labels.

        Without ``cells`` a box for each cell, occupied or not, so that a box's row is its cell's number:
        16 D bytes a cell. ``Scene(grid.boxes())``, with ``where=grid.occupied.ravel()``, has hits of occupied
        cells only, with the numbers of cells.

        Parameters
        ----------
        cells : array_like of int, shape (K,), or of bool, of the grid's shape or (len,), optional
            Numbers of cells, in any order, or a mask, whose cells are in C order.

        Raises
        ------
        InvalidInput
            If a number is out of range, a mask does not fit, or all boxes do not fit into memory.

        Examples
        --------
        >>> import raybox as rb
        >>> grid = rb.Grid([0, 1, 10], [0, 2, 3], occupied=[[True, False], [False, True]])
        >>> grid.boxes([3]).lower, grid.boxes(grid.occupied).lower
        (array([[1., 2.]]), array([[0., 0.],
               [1., 2.]]))
        >>> scene = rb.Scene(grid.boxes())
        >>> scene.nearest(rb.Rays([0.5, 4], [0, -1]), where=grid.occupied.ravel()).index
        array(0)
        """
        if cells is None:
            grid_cells.check_memory(self.shape)
            return box_lists.restored(*grid_cells.all_bounds(self._edges), self._attributes)
        places = grid_cells.places(cells, self.shape)
        found = self._attributes
        if found is not NO_ATTRIBUTES:
            found = found.of_rows(np.ravel_multi_index(places, self.shape))
        return box_lists.restored(*grid_cells.bounds_of(self._edges, places), found)

    def _compared(self) -> tuple[object, ...]:
        return *self._edges, *self._bits, self.ids, self.labels, self.colors

    def _rows(self) -> GridRows:
        """Return the arrays for kernels, without copies of edges and mask."""
        flat = np.zeros(2)
        shape = np.array([*self.shape, 1][:3], dtype=np.int64)
        validation.freeze(flat, shape)
        x, y, z = (*self._edges, flat)[:3]
        return GridRows(x, y, z, shape, *self._bits)

    def __repr__(self) -> str:
        occupied = f", occupied={cell_bits.count(self._bits)}" if self._bits.blocks.size else ""
        return f"Grid({' x '.join(map(str, self.shape))}{occupied})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return of_bits, (self._edges, self._bits, self._attributes)


def _set(grid: Grid, edges: Edges, occupied: ArrayInput | None) -> Grid:
    """Return ``grid`` with valid edges and a mask that is checked."""
    grid._edges = edges
    grid._bits = grid_cells.bits_of(occupied, grid.shape)
    grid._attributes = NO_ATTRIBUTES
    validation.freeze(*edges)
    return grid


def of_bits(edges: Edges, bits: CellBits, attributes: Attributes = NO_ATTRIBUTES) -> Grid:
    """Return a grid of valid arrays, which are not copied."""
    grid = object.__new__(Grid)
    grid._edges, grid._bits, grid._attributes = edges, bits, frozen_attributes(attributes)
    validation.freeze(*edges, *bits)
    return grid
