"""``load_grid``: the cells of a grid from a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from raybox import validation
from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import Grid, grid_edges, with_facts
from raybox.geometry.cell_bits import pack
from raybox.geometry.grid import of_bits
from raybox.geometry.labels import with_colors
from raybox.io.formats import vox
from raybox.io.formats.common import (
    Floats,
    GridCells,
    extension_problem,
    file_error,
    path_of,
    quoted,
    reader_errors,
    warn_of,
)
from raybox.io.formats.numpy_arrays import as_floats, load_array, open_archive
from raybox.io.formats.table import format_of
from raybox.io.formats.tables import check_numbers
from raybox.validation import ArrayInput


@in_default_environment
def load_grid(
    path: str | os.PathLike[str], *, origin: ArrayInput | None = None, pitch: ArrayInput | None = None
) -> Grid:
    """Return the grid in a file, with its occupied cells.

    Cell (i, j, k) extends from origin + pitch * (i, j, k) to origin + pitch * (i+1, j+1, k+1). `load` returns
    the occupied cells of ``.vox`` files as boxes.

    Parameters
    ----------
    path : str or path
        ``.vox``: a MagicaVoxel model, of unit cells at its own places; a scene of several models is one grid
        around all of them. ``.npy``: an array of 2 or 3 dimensions, axis 0 is x, nonzero cells are occupied.
        ``.npz``: the same under the name ``occupancy``, beside ``origin`` and ``pitch`` if the file has them.
    origin : array_like, shape (D,), optional
        The lower corner of cell (0, 0, 0); by default that of the file, else 0.
    pitch : array_like, scalar or shape (D,), optional
        The size of a cell, above zero; by default that of the file, else 1.

    Raises
    ------
    FileFormatError
        As for `load`; also if the numbers of origin or pitch are not as many as the axes of the cells.
    InvalidInput
        If origin is not finite, or pitch is not finite and above zero.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> import raybox as rb
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "wall.npz"
    >>> np.savez(path, occupancy=np.array([[[0, 1]], [[1, 1]]]), pitch=0.5)
    >>> rb.load_grid(path, origin=[10, 20, 0]).boxes([1]).bounds
    array([[10. , 20. ,  0.5],
           [10.5, 20.5,  1. ]])
    """
    file, given = path_of(path), _arguments(origin, pitch)
    read = READERS.get(file.suffix.lower())
    if read is None:
        raise file_error(file, f"{extension_problem(file)} of a grid", f"supported: {' '.join(READERS)}")
    form = format_of(file)
    with reader_errors(file, form.name):
        cells = read(file)
        start, step = _corner(cells, given, file)
        edges = grid_edges.increasing("origin", start, step, cells.first, cells.occupied.shape)
    warn_of(path, cells.skipped)
    return with_facts(with_colors(of_bits(edges, pack(cells.occupied)), cells.colors), cells.skipped)


def read_npz(path: Path) -> GridCells:
    """Return the cells, the origin and the pitch of an `.npz` file."""
    with open_archive(path) as archive:
        names, arrays = [*archive.members], archive.arrays(("occupancy", "origin", "pitch"))
    if "occupancy" not in arrays:
        problem = f"has no array occupancy, but {quoted(' '.join(names))}"
        raise file_error(path, problem, "name the array of cells occupancy")
    cells = _cells(arrays["occupancy"], path, "occupancy")
    origin, pitch = (as_floats(arrays[n], path, n) if n in arrays else None for n in ("origin", "pitch"))
    return cells._replace(origin=origin, pitch=pitch)


READERS: dict[str, Callable[[Path], GridCells]] = {
    ".vox": vox.read_grid,
    ".npy": lambda path: _cells(load_array(path), path, ""),
    ".npz": read_npz,
}


def _cells(array: NDArray[Any], path: Path, name: str) -> GridCells:
    """Return the nonzero cells of an array."""
    check_numbers(array.dtype, path, name)
    if array.ndim not in (2, 3) or not array.size:
        way_out = "give an array of 2 or 3 dimensions, with a cell or more"
        raise file_error(path, f"has shape {array.shape}", way_out, name)
    if array.dtype.kind == "f" and np.isnan(array).any():
        place = f"{name}{np.argwhere(np.isnan(array))[0].tolist()}"
        raise file_error(path, "nan is neither zero nor a number", "set empty cells to zero", place)
    return GridCells(array.astype(np.bool_, copy=False), (0,) * array.ndim)


def _arguments(origin: ArrayInput | None, pitch: ArrayInput | None) -> dict[str, Floats]:
    """Return the arguments that are given, checked but for their shapes."""
    found = {"origin": origin, "pitch": pitch}
    given = {name: validation.floats(value, name) for name, value in found.items() if value is not None}
    if "origin" in given:
        validation.require_finite(np.atleast_1d(given["origin"]), "origin", "point", "Pass finite numbers")
    if "pitch" in given and not ((given["pitch"] > 0) & np.isfinite(given["pitch"])).all():
        problem = f"finite and above zero on every axis; got {given['pitch'].tolist()}"
        raise InvalidInput(f"pitch must be {problem}. Pass the size of a cell.")
    return given


def _corner(cells: GridCells, given: dict[str, Floats], path: Path) -> tuple[Floats, Floats]:
    """Return the origin and the pitch: those given, else the file's, else 0 and 1."""
    dims = cells.occupied.ndim
    start = given.get("origin", cells.origin if cells.origin is not None else np.zeros(dims))
    step = given.get("pitch", cells.pitch if cells.pitch is not None else np.ones(()))
    for name, values in (("origin", start), ("pitch", step)):
        if values.shape != (dims,) and (name == "origin" or values.shape):
            problem = f"its cells have {dims} axes, {name} has shape {values.shape}"
            raise file_error(path, problem, f"give {name} one number for each axis")
    grid_edges.check_start("origin", start, step, f"the cells have {dims} axes", dims)
    return start, step
