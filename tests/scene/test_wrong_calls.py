"""Calls that are wrong in a usual way, and the line to write that their errors name."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import raybox as rb

SCENE = rb.Scene(rb.Boxes([[2, -1]], [[3, 1]]))
ORIGIN, DIRECTION = [0, 0], [1, 0]


@pytest.mark.parametrize("method", ["nearest", "occluded", "count", "all"])
def test_origins_and_directions_in_place_of_rays(method):
    query = getattr(SCENE, method)
    with pytest.raises(rb.InvalidInput, match=rf"scene\.{method}\(raybox\.Rays\(origins, directions\)\)"):
        query(ORIGIN, DIRECTION)
    with pytest.raises(rb.InvalidInput, match=r"Make some: raybox\.Rays\(origins, directions\)"):
        query(ORIGIN)
    query(rb.Rays(ORIGIN, DIRECTION))


def test_segments_of_origins_and_directions():
    grid = rb.Scene(rb.Grid([0, 1, 2], [0, 1]))
    with pytest.raises(rb.InvalidInput, match=r"scene\.segments\(raybox\.Rays\(origins, directions\)\)"):
        grid.segments(ORIGIN, DIRECTION)
    assert grid.segments(rb.Rays([0, 0.5], DIRECTION)).index.tolist() == [0, 1]


@pytest.mark.parametrize("query", ["integrate", "deposit"])
def test_sums_on_meshes_name_the_boxes_of_a_file(query):
    mesh = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    for geometry in (mesh, [mesh, rb.Boxes([0, 0, 0], [1, 1, 1])]):
        with pytest.raises(
            rb.InvalidInput, match=r"holds a Mesh.*rb\.load\(path, boxes=True\) returns a box of each"
        ):
            getattr(rb.Scene(geometry), query)(rb.Rays([0, 0, 0], [1, 0, 0]))


LOW, VERTICES, FACES = np.zeros((5, 3)), np.eye(3), [[0, 1, 2]]
HIGH = LOW + 1.0
LINES = {"array": np.hstack([LOW, HIGH]), "pairs": np.stack([LOW, HIGH], axis=1), "LOW": LOW, "HIGH": HIGH}
LINES |= {
    "VERTICES": VERTICES,
    "FACES": FACES,
    "soup": VERTICES[FACES],
    "mesh": SimpleNamespace(vertices=VERTICES, faces=FACES),
}
LINES |= {"numpy": np, "raybox": rb}
SOUP = "Mesh(array.reshape(-1, 3), numpy.arange(3 * len(array)).reshape(-1, 3))"


@pytest.mark.parametrize(
    ("kind", "given", "got", "line"),
    [
        ("Boxes", "array", "one ndarray of shape (5, 6)", "Boxes.from_bounds(array)"),
        ("Boxes", "array[0].tolist()", "one list of shape (6,)", "Boxes.from_bounds(array)"),
        ("Boxes", "dict(zip('abcdef', array.T))", "one table of 6 columns", "Boxes.from_bounds(table)"),
        ("Boxes", "pairs", "one ndarray of shape (5, 2, 3)", "Boxes(array[..., 0, :], array[..., 1, :])"),
        ("Boxes", "(LOW, HIGH)", "one tuple of shape (2, 5, 3)", "Boxes(array[0], array[1])"),
        ("Boxes", "LOW", "one ndarray of shape (5, 3)", "Boxes(lower, upper)"),
        ("Boxes", "'boxes.csv'", "one str", "Boxes(lower, upper)"),
        ("Rays", "array", "one ndarray of shape (5, 6)", "Rays.from_array(array)"),
        ("Rays", "array[:, :4]", "one ndarray of shape (5, 4)", "Rays.from_array(array)"),
        ("Rays", "pairs", "one ndarray of shape (5, 2, 3)", "Rays(array[..., 0, :], array[..., 1, :])"),
        ("Rays", "LOW", "one ndarray of shape (5, 3)", "Rays(origins, directions)"),
        ("Mesh", "VERTICES", "one ndarray of shape (3, 3)", "Mesh(vertices, faces)"),
        ("Mesh", "soup", "one ndarray of shape (1, 3, 3)", SOUP),
        ("Mesh", "mesh", "one SimpleNamespace", "Mesh.from_trimesh(mesh)"),
        ("Planes", "array[:, 2:]", "one ndarray of shape (5, 4)", "Planes(array[:, :-1], array[:, -1])"),
        ("Planes", "1.0", "one float", "Planes(normals, offsets)"),
    ],
)  # fmt: skip
def test_one_array_in_place_of_two(kind, given, got, line):
    value = eval(given, LINES)
    with pytest.raises(rb.InvalidInput, match=rf"^{kind} needs two arrays, \w+ and \w+; got ") as raised:
        getattr(rb, kind)(value)
    assert str(raised.value).endswith(f"; got {got}. Write raybox.{line}.")
    with pytest.raises(rb.InvalidInput, match="needs two arrays"):
        getattr(rb, kind)(value, **{re.search(r"two arrays, \w+ and (\w+)", str(raised.value))[1]: None})
    if "array" in line or "mesh" in line:
        assert isinstance(eval(f"raybox.{line}", LINES | {"array": np.asarray(value)}), getattr(rb, kind))


TWO = "a Scene takes one geometry, or a list of them; got 2: "
BOXES_OR_MESH = r"Of boxes: Scene\(raybox\.Boxes\(lower, upper\)\); of triangles: Scene\(raybox\.Mesh\(vert"


def test_arrays_in_place_of_a_geometry():
    for given in ((LOW, HIGH), (VERTICES, FACES), (LOW.tolist(), HIGH.tolist())):
        with pytest.raises(rb.InvalidInput, match=TWO + r"\w+, \w+\. " + BOXES_OR_MESH):
            rb.Scene(*given)
        with pytest.raises(rb.InvalidInput, match=rf"; got (ndarray|list)\. {BOXES_OR_MESH}.*from_bounds"):
            rb.Scene(given)
    boxes = rb.Boxes(LOW, HIGH)
    with pytest.raises(
        rb.InvalidInput, match=TWO + r"Boxes, Boxes\. Put them into a list: Scene\(\[one, other"
    ):
        rb.Scene(boxes, boxes)


@pytest.mark.parametrize(("read", "first"), [(rb.Boxes.from_bounds, "min"), (rb.Rays.from_array, "origin")])
def test_columns_without_names(read, first):
    pandas = pytest.importorskip("pandas")
    for width in (4, 6):
        array = LINES["array"][:, -width:]
        table = pandas.DataFrame(array)
        names = " ".join(f"{first}_{axis}" for axis in "xyz"[: width // 2])
        columns = " ".join(map(str, range(width)))
        text = rf"needs the columns {names} .*; got {columns}\. Rename them, or pass them in this order: "
        with pytest.raises(rb.InvalidInput, match=text + r"table\.to_numpy\(\)\.$"):
            read(table)
        with pytest.raises(rb.InvalidInput, match=text + rf"an array of shape \(M, {width}\)\.$"):
            read(dict(table))
        assert read(table.to_numpy()).equals(read(array))
