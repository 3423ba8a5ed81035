"""Edges of grids of other libraries, PyVista and xarray, by their attributes."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeGuard, cast

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import grid_edges
from raybox.geometry.grid_edges import Edges
from raybox.validation import Array, ArrayInput, Floats


class _Image(Protocol):
    """An ImageData of PyVista or VTK."""

    @property
    def origin(self) -> Sequence[float]: ...

    @property
    def spacing(self) -> Sequence[float]: ...

    @property
    def dimensions(self) -> Sequence[int]: ...


class _Variable(Protocol):
    """A coordinate or a variable of xarray."""

    @property
    def dims(self) -> Sequence[Hashable]: ...

    @property
    def values(self) -> Array: ...


class _Labelled(Protocol):
    """A DataArray of xarray, or a Dataset, which has `data_vars`."""

    @property
    def dims(self) -> Iterable[Hashable]: ...

    @property
    def coords(self) -> Mapping[Hashable, _Variable]: ...


class _Points(NamedTuple):
    """The points of a uniform grid along one axis: from origin + spacing * first on."""

    origin: float
    spacing: float
    first: int
    point_count: int


def of_pyvista(mesh: object) -> Edges:
    """Return the edges of an ImageData or a RectilinearGrid; of 2 axes if it is flat in z."""
    if _is_image(mesh):
        _check_directions(mesh)
        return _drop_flat([_spaced(points) for points in _image_axes(mesh)])
    axes = [validation.array(cast(ArrayInput, getattr(mesh, name, None)), name) for name in "xyz"]
    if any(values.ndim != 1 for values in axes):
        raise InvalidInput(
            f"from_pyvista needs an ImageData or a RectilinearGrid; got {type(mesh).__name__}. "
            f"Resample it onto one, or pass edges: Grid(x, y, z)."
        )
    return _drop_flat(axes)


def of_xarray(array: object, dims: Iterable[Hashable] | None) -> Edges:
    """Return the edges around the coordinates of a DataArray or a Dataset."""
    if not _is_labelled(array):
        raise InvalidInput(
            f"from_xarray needs a DataArray or a Dataset; got {type(array).__name__}. "
            f"Pass edges: Grid(x, y, z)."
        )
    names = _dims_of(array) if dims is None else tuple(dims)
    if len(names) not in (2, 3) or len(set(names)) < len(names):
        raise InvalidInput(
            f"a Grid has 2 or 3 axes; got the dimensions {', '.join(map(repr, names))}. "
            f"Choose an entry of the others, obj.isel(time=0), or name the axes: dims=('x', 'y', 'z')."
        )
    return grid_edges.of_axes(tuple(_around(array, name) for name in names))


def _is_image(mesh: object) -> TypeGuard[_Image]:
    return all(hasattr(mesh, name) for name in ("origin", "spacing", "dimensions"))


def _is_labelled(array: object) -> TypeGuard[_Labelled]:
    return hasattr(array, "dims") and hasattr(array, "coords")


def _image_axes(mesh: _Image) -> list[_Points]:
    """Return the points of an image along each axis; its extent may begin at another index than 0."""
    extent = getattr(mesh, "extent", None)
    first = (0, 0, 0) if extent is None else tuple(extent)[::2]
    axes = zip(mesh.origin, mesh.spacing, first, mesh.dimensions, strict=True)
    return [_Points(float(o), float(s), int(k), int(n)) for o, s, k, n in axes]


def _spaced(points: _Points) -> Floats:
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.arange(points.first, points.first + points.point_count, dtype=np.int64)
        return np.float64(points.origin) + np.float64(points.spacing) * steps


def _check_directions(mesh: _Image) -> None:
    """Raise `InvalidInput` for an image whose axes are rotated."""
    matrix = getattr(mesh, "direction_matrix", None)
    if matrix is not None and not np.array_equal(matrix, np.eye(3)):
        raise InvalidInput(
            f"an image must have axes along x, y and z; its direction_matrix is "
            f"{np.asarray(matrix).tolist()}. Move the rays into its coordinates, and reset that matrix."
        )


def _drop_flat(axes: Sequence[Array]) -> Edges:
    """Return checked edges; without the axis z if there is a single point along it."""
    return grid_edges.of_axes(tuple(axes[:2] if len(axes[2]) == 1 else axes))


def _dims_of(array: _Labelled) -> tuple[Hashable, ...]:
    """Return the dimensions of a DataArray, or those that all variables of a Dataset have."""
    if not hasattr(array, "data_vars"):
        return tuple(array.dims)
    found = {tuple(variable.dims) for variable in array.data_vars.values()}
    if len(found) != 1:
        raise InvalidInput(
            f"the variables of a Dataset must have the same dimensions, in one order; got "
            f"{len(found)} of them. Name the axes: dims=('x', 'y', 'z'), or pass one variable: obj['name']."
        )
    return found.pop()


def _around(array: _Labelled, name: Hashable) -> Floats:
    """Return the edges around the coordinate of one dimension."""
    if name not in array.coords:
        raise InvalidInput(
            f"dimension {name!r} must have a coordinate, with the centres of the cells; got none. "
            f"Assign one: obj.assign_coords({{{name!r}: centers}})."
        )
    return grid_edges.between(validation.floats(array.coords[name].values, str(name)), str(name))
