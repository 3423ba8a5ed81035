"""Grids of PyVista and xarray objects: stand-ins with the same attributes, and the libraries themselves."""

import itertools
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybox as rb
from needs import package
from refusals import refusal

RNG = np.random.default_rng(30)


def listed(grid):
    return [values.tolist() for values in grid.edges]


# PyVista


def image(**changes):
    """Return a stand-in for a VTK image of 3 x 2 x 4 cells."""
    made = {"origin": (0.1, -2.0, 5.0), "spacing": (0.1, 1.0, 0.25), "dimensions": (4, 3, 5)}
    return SimpleNamespace(**made | changes)


def test_images():
    grid = rb.Grid.from_pyvista(image())
    assert grid.shape == (3, 2, 4)
    same = rb.Grid.uniform((0.1, -2.0, 5.0), (0.1, 1.0, 0.25), (3, 2, 4))
    assert listed(grid) == listed(same)
    shifted = rb.Grid.from_pyvista(image(extent=(2, 5, -1, 1, 0, 4)))
    assert listed(shifted)[:2] == [[0.1 + 0.1 * k for k in range(2, 6)], [-3, -2, -1]]
    flat = rb.Grid.from_pyvista(image(dimensions=(4, 3, 1)))
    assert listed(flat) == listed(same)[:2]
    assert rb.Grid.from_pyvista(image(direction_matrix=np.eye(3))).shape == (3, 2, 4)


def test_rectilinear_meshes():
    mesh = SimpleNamespace(x=np.float32([0, 0.1, 7]), y=[1, 2], z=np.array([-1.0, 0.0, 5.0]))
    assert listed(rb.Grid.from_pyvista(mesh)) == [[0, float(np.float32(0.1)), 7], [1, 2], [-1, 0, 5]]
    mesh.z = [3.0]
    assert rb.Grid.from_pyvista(mesh).shape == (2, 1)


def test_meshes_that_are_refused():
    curved = SimpleNamespace(x=np.zeros((2, 2, 2)), y=np.zeros((2, 2, 2)), z=np.zeros((2, 2, 2)))
    for other in (curved, None, "a.vti", np.zeros((3, 3))):
        text = refusal(rb.Grid.from_pyvista, other)
        assert f"needs an ImageData or a RectilinearGrid; got {type(other).__name__}. " in text
        assert "Grid(x, y, z)" in text
    rotated = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
    text = refusal(rb.Grid.from_pyvista, image(direction_matrix=rotated))
    assert f"its direction_matrix is {rotated}" in text
    text = refusal(rb.Grid.from_pyvista, image(spacing=(1, -1, 1)))
    assert "edges[1] must be strictly increasing; 2 of 3 break this, first number 1: -3.0 after -2.0" in text
    text = refusal(rb.Grid.from_pyvista, image(dimensions=(4, 1, 5)))
    assert "edges[1] must have two numbers or more" in text


def check_cells_of_vtk(mesh, grid):
    """Compare bounds and data of all cells with those that VTK returns cell by cell."""
    dims = grid.ndim_space
    numbers = np.arange(mesh.n_cells)
    mesh.cell_data["number"], mesh.cell_data["pair"] = numbers, np.stack([numbers, -numbers], axis=1)
    order = mesh.cell_data["number"].reshape(grid.shape, order="F")
    boxes = grid.boxes()
    for row, cell in enumerate(order.ravel().tolist()):
        bounds = np.reshape(mesh.get_cell(cell).bounds, (3, 2))[:dims]
        np.testing.assert_array_equal(boxes.lower[row], bounds[:, 0])
        np.testing.assert_array_equal(boxes.upper[row], bounds[:, 1])
    pairs = mesh.cell_data["pair"].reshape((*grid.shape, 2), order="F")
    assert pairs[..., 0].tolist() == order.tolist()
    assert pairs[..., 1].tolist() == (-order).tolist()
    assert order.ravel(order="F").tolist() == numbers.tolist()


def test_pyvista_itself():
    pyvista = package("pyvista")
    mesh = pyvista.ImageData(dimensions=(4, 3, 5), spacing=(0.5, 1, 0.25), origin=(1, -2, 5))
    check_cells_of_vtk(mesh, rb.Grid.from_pyvista(mesh))
    mesh.offset = (2, -1, 0)
    check_cells_of_vtk(mesh, rb.Grid.from_pyvista(mesh))
    flat = pyvista.ImageData(dimensions=(4, 3, 1))
    check_cells_of_vtk(flat, rb.Grid.from_pyvista(flat))
    edges = [np.cumsum(RNG.random(count)) for count in (4, 2, 3)]
    mesh = pyvista.RectilinearGrid(*edges)
    grid = rb.Grid.from_pyvista(mesh)
    assert listed(grid) == [values.tolist() for values in edges]
    check_cells_of_vtk(mesh, grid)
    assert "got StructuredGrid" in refusal(rb.Grid.from_pyvista, mesh.cast_to_structured_grid())
    assert "got PolyData" in refusal(rb.Grid.from_pyvista, pyvista.Sphere())
    turned = pyvista.ImageData(dimensions=(2, 2, 2), direction_matrix=[[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert "direction_matrix is" in refusal(rb.Grid.from_pyvista, turned)


# xarray


def array(dims, **coords):
    """Return a stand-in for a DataArray."""
    made = {name: SimpleNamespace(values=np.array(values)) for name, values in coords.items()}
    return SimpleNamespace(dims=dims, coords=made)


def dataset(coords, *dims):
    """Return a stand-in for a Dataset of variables of these dimensions."""
    variables = {f"v{k}": array(names) for k, names in enumerate(dims)}
    return SimpleNamespace(dims={"unused": 9}, coords=array((), **coords).coords, data_vars=variables)


def edges_by_definition(centers):
    """Return the edges around centres, in rational arithmetic."""
    exact = [Fraction(float(x)) for x in centers]
    middle = [(a + b) / 2 for a, b in itertools.pairwise(exact)]
    return [2 * exact[0] - middle[0], *middle, 2 * exact[-1] - middle[-1]]


@given(st.lists(st.floats(-1e9, 1e9, width=32), min_size=2, max_size=8, unique=True).map(sorted))
def test_edges_lie_halfway_between_coordinates(centers):
    grid = rb.Grid.from_xarray(array(("x", "y"), x=centers, y=[0, 1]))
    expected = edges_by_definition(centers)
    # Halfway between two float32 is exact in float64; at the ends it is rounded.
    assert grid.edges[0][1:-1].tolist() == [float(x) for x in expected[1:-1]]
    np.testing.assert_allclose(grid.edges[0], [float(x) for x in expected], rtol=1e-15, atol=1e-300)
    assert grid.edges[1].tolist() == [-0.5, 0.5, 1.5]


def test_axes_are_in_the_order_of_the_dimensions():
    coords = {"x": [0, 1, 2, 3.0], "y": [0, 0.5, 2.0], "z": np.float32([5, 7])}
    made = array(("z", "y", "x"), **coords)
    assert rb.Grid.from_xarray(made).shape == (2, 3, 4)
    assert rb.Grid.from_xarray(made, ("x", "y", "z")).shape == (4, 3, 2)
    assert rb.Grid.from_xarray(made, dims=["y", "x"]).edges[0].tolist() == [-0.25, 0.25, 1.25, 2.75]
    assert rb.Grid.from_xarray(dataset(coords, ("z", "x"), ("z", "x"))).shape == (2, 4)
    mixed = dataset(coords, ("z", "x"), ("x", "z"))
    assert "must have the same dimensions, in one order; got 2 of them. Name the axes" in refusal(
        rb.Grid.from_xarray, mixed
    )
    assert "got 0 of them" in refusal(rb.Grid.from_xarray, dataset(coords))
    assert rb.Grid.from_xarray(mixed, ("x", "z")).shape == (4, 2)


def test_arrays_that_are_refused():
    make = rb.Grid.from_xarray
    assert "needs a DataArray or a Dataset; got ndarray" in refusal(make, np.zeros((3, 3)))
    text = refusal(make, array(("x", "y"), x=[0, 1], y=[3, 2, 1]))
    assert "y must increase; it decreases from 3.0 to 1.0. Sort the object first" in text
    assert "obj.sortby('y')" in text
    text = refusal(make, array(("x", "y"), x=[0, 2, 1, 3], y=[0, 1]))
    assert "x must be strictly increasing; 1 of 4 break this, first number 2: 1.0 after 2.0. " in text
    assert "x must be strictly increasing" in refusal(make, array(("x", "y"), x=[0, 0], y=[0, 1]))
    assert "x must be finite" in refusal(make, array(("x", "y"), x=[0, np.nan], y=[0, 1]))
    text = refusal(make, array(("x", "y"), x=[0, 1], y=[5]))
    assert "y must be two centres or more in one dimension" in text
    text = refusal(make, array(("x", "y"), x=[0, 1]))
    assert "dimension 'y' must have a coordinate, with the centres of the cells; got none. " in text
    assert "obj.assign_coords({'y': centers})" in text
    for dims in (("time", "x", "y", "z"), ("x",), ("x", "x")):
        text = refusal(make, array(dims))
        assert f"has 2 or 3 axes; got the dimensions {', '.join(map(repr, dims))}. " in text
    days = np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[ns]")
    assert "x must be real numbers" in refusal(make, array(("x", "y"), x=days, y=[0, 1]))
    assert "edges[0] must be strictly increasing" in refusal(
        make, array(("x", "y"), x=1 + np.arange(3) * 2.0**-52, y=[0, 1])
    )


def test_xarray_itself():
    xarray = pytest.importorskip("xarray")
    coords = {"x": [0.0, 1.0, 2.0], "y": np.float32([10, 11]), "z": [0.0, 1.0, 4.0, 9.0]}
    values = RNG.random((4, 2, 3))
    made = xarray.DataArray(values, coords, dims=("z", "y", "x"), name="density")
    grid = rb.Grid.from_xarray(made)
    assert grid.shape == values.shape
    assert grid.edges[0].tolist() == [-0.5, 0.5, 2.5, 6.5, 11.5]
    turned = rb.Grid.from_xarray(made.to_dataset(), dims=("x", "y", "z"))
    assert listed(turned) == listed(grid)[::-1]
    assert rb.Grid.from_xarray(made.to_dataset()).shape == values.shape
    # Each centre lies in its own cell.
    centers = np.stack(np.meshgrid(*(made[name] for name in "zyx"), indexing="ij"), axis=-1)
    assert grid.index_of(centers).ravel().tolist() == list(range(values.size))
    assert rb.Grid.from_xarray(made.isel(z=0)).shape == (2, 3)
    flipped = made.isel(z=slice(None, None, -1))
    assert "z must increase" in refusal(rb.Grid.from_xarray, flipped)
    assert listed(rb.Grid.from_xarray(flipped.sortby("z"))) == listed(grid)
    assert "'y' must have a coordinate" in refusal(rb.Grid.from_xarray, made.drop_vars("y"))
