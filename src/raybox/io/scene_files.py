"""A built scene as ``.npy`` files in a folder: mapped into memory, without building it again (but for grids).

Processes of one machine that map the same files share their memory. `scene.json` is the manifest of the
folder (see `raybox.io.manifest`). Arrays that are checked have the checksums of when they were written, and
a tree whose indices compiled code may follow.
"""

import os
from math import prod
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raybox.bvh.build import QUALITIES, Quality
from raybox.bvh.node import ROW, Tree
from raybox.bvh.validate import broken_rule
from raybox.compiler import huge_pages
from raybox.errors import FileFormatError
from raybox.geometry import Boxes, Grid, Mesh, ObjectRows
from raybox.geometry.boxes import restored as boxes_of
from raybox.geometry.cell_bits import pack
from raybox.geometry.grid import of_bits
from raybox.geometry.mesh import restored as mesh_of
from raybox.geometry.mesh import stored_objects
from raybox.io import manifest
from raybox.io.formats import saved_arrays
from raybox.io.formats.common import path_of, reader_errors
from raybox.io.formats.numpy_arrays import open_archive, write_npz
from raybox.io.formats.saved_arrays import EDGES
from raybox.io.manifest import Layout, Manifest, SceneFacts, folder_error
from raybox.scene.scene import Scene, quality_of, restore, state_of
from raybox.validation import NO_MASK, Array, Floats

_COPIED = 1 << 30  # bytes of nodes, at most, that are copied into large pages
FACTS = "scene.json"
_ARRAYS: dict[str, tuple[str, ...]] = {"boxes": ("lower", "upper"), "mesh": ("vertices", "faces")}
_MASK = "occupied"
_TREE = ("nodes", "center", "root", "parts")
_OBJECTS, _ATTRIBUTES, _GEOMETRY = "objects.npy", "attributes.npz", "geometry.npz"
_LAYOUTS = dict.fromkeys(("lower", "upper", "vertices", "root"), Layout(np.float64, 2))
_LAYOUTS |= {"center": Layout(np.float64, 1), "parts": Layout(np.int64, 1)}
_LAYOUTS |= {"faces": Layout(np.int64, 2), "nodes": Layout(np.int32, 2)}


def new_folder(folder: str | os.PathLike[str], way_out: str = "give another folder") -> Path:
    """Return a folder that is new, or empty."""
    place = path_of(folder)
    try:
        place.mkdir(exist_ok=True)
        is_empty = not any(place.iterdir())
    except OSError as error:
        raise FileFormatError(f"{place}: cannot be made ({error.strerror}); give another folder") from error
    if not is_empty:
        raise FileFormatError(f"{place}: is not empty; {way_out}")
    return place


def write_scene(folder: Path, scene: Scene) -> None:
    """Write a scene into an existing folder, `scene.json` last."""
    geometry = scene.geometry
    if isinstance(geometry, Boxes | Grid | Mesh):
        write_attributes(folder, geometry)
    if isinstance(geometry, Grid):
        write_grid(folder, geometry, quality_of(scene))
    elif isinstance(geometry, Boxes | Mesh):
        write_geometry(folder, geometry)
        write_tree(folder, scene)
    else:  # planes, instances or several geometries, whose trees are built again
        with (folder / _GEOMETRY).open("wb") as file:
            write_npz(file, saved_arrays.arrays_of(geometry))
        manifest.write(folder / FACTS, _facts(scene, "arrays"), [_GEOMETRY])


def write_geometry(folder: Path, geometry: Boxes | Mesh) -> None:
    """Write the arrays of a geometry, without objects, ids and labels."""
    for name in _ARRAYS[_kind(geometry)]:
        np.save(folder / f"{name}.npy", getattr(geometry, name))


def write_attributes(folder: Path, geometry: object) -> list[str]:
    """Write objects, ids and labels of a geometry, if it has any; return the names of their files."""
    objects = stored_objects(geometry) if isinstance(geometry, Mesh) else None
    if objects is not None:
        np.save(folder / _OBJECTS, objects)
    arrays = saved_arrays.attribute_arrays(geometry) if isinstance(geometry, Boxes | Grid | Mesh) else {}
    if arrays:
        with (folder / _ATTRIBUTES).open("wb") as file:
            write_npz(file, arrays)
    return [name for name in (_OBJECTS, _ATTRIBUTES) if (folder / name).exists()]


def read_attributes(opened: Manifest, rows: int, *, check: bool) -> ObjectRows:
    """Return the objects, ids and labels of the primitives of a folder, of which there are so many."""
    objects = None
    if _OBJECTS in opened.files:
        objects = opened.map(_OBJECTS, Layout(np.int64, 1), check=check)
        if len(objects) != rows or objects.min(initial=0) < 0:
            raise folder_error(opened.folder / _OBJECTS, "does not number the objects of the scene")
    if _ATTRIBUTES not in opened.files:
        return ObjectRows(objects)
    arrays = _members(opened, _ATTRIBUTES, check)
    with reader_errors(opened.folder / _ATTRIBUTES, "NumPy arrays"):
        return ObjectRows(objects, saved_arrays.attributes_of(arrays, objects, rows))


def _members(opened: Manifest, name: str, check: bool) -> dict[str, Array]:
    """Return the arrays of an `.npz` file of a folder."""
    if check:
        opened.check_data(name)
    path = opened.folder / name
    with reader_errors(path, "NumPy arrays"), open_archive(path) as archive:
        return archive.arrays()


def _facts(scene: Scene, kind: str) -> SceneFacts:
    return {"kind": kind, "size": len(scene), "quality": quality_of(scene)}


def _read_arrays(opened: Manifest, check: bool) -> Scene:
    path = opened.folder / _GEOMETRY
    if _GEOMETRY not in opened.files:
        raise folder_error(path, "is missing")
    arrays = _members(opened, _GEOMETRY, check)
    with reader_errors(path, "NumPy arrays"):
        scene = Scene(saved_arrays.geometry_of(arrays, path), quality=opened.facts["quality"])
    if len(scene) != opened.facts["size"]:
        raise folder_error(opened.folder, "holds another number of rows than its manifest lists")
    return scene


def write_tree(folder: Path, scene: Scene) -> str:
    """Write the tree of a scene, and `scene.json` of all arrays in the folder; return its checksum."""
    tree = state_of(scene).part.tree
    assert isinstance(tree, Tree)  # that of a grid is not written
    for name in _TREE:
        np.save(folder / f"{name}.npy", getattr(tree, name))
    facts = _facts(scene, _kind(scene.geometry))
    facts |= {"scale": tree.scale, "exponent": tree.exponent}
    names = sorted(path.name for path in folder.glob("*.np[yz]"))
    return manifest.write(folder / FACTS, facts, names)


def write_grid(folder: Path, grid: Grid, quality: Quality) -> str:
    """Write the edges and the mask of a grid, and `scene.json`; return its checksum."""
    write_edges(folder, grid)  # without the tree, which is built in less time than it takes to check
    mask = grid.occupied.reshape(-1) if grid._rows().blocks.size else NO_MASK
    np.save(folder / f"{_MASK}.npy", mask.view(np.uint8))
    facts: SceneFacts = {"kind": "grid", "size": len(grid), "quality": quality, "axes": grid.ndim_space}
    return manifest.write(folder / FACTS, facts, sorted(path.name for path in folder.glob("*.np[yz]")))


def write_edges(folder: Path, grid: Grid) -> list[str]:
    """Write the edges of a grid; return the names of their files."""
    names = [f"{name}.npy" for name in EDGES[: grid.ndim_space]]
    for name, edges in zip(names, grid.edges, strict=True):
        np.save(folder / name, edges)
    return names


def open_folder(folder: Path) -> Manifest:
    """Return the manifest of a scene's folder; sizes and headers of its files are checked."""
    opened = manifest.read(folder / FACTS)
    facts, kind = opened.facts, str(opened.facts.get("kind"))
    needed = {key: {"size", "scale", "exponent"} for key in _ARRAYS}
    needed |= {"grid": {"size", "axes"}, "arrays": {"size"}}
    if kind not in needed or not needed[kind] <= set(facts) or facts.get("quality") not in QUALITIES:
        raise folder_error(folder / FACTS, "is the manifest of no scene")
    opened.check_headers()
    return opened


def read_scene(folder: Path, *, large_pages: bool = False) -> Scene:
    """Return the scene in a folder, checked and mapped; large_pages: copy its tree into large pages."""
    return map_scene(open_folder(folder), check=True, large_pages=large_pages)


def map_scene(opened: Manifest, *, check: bool, large_pages: bool = False) -> Scene:
    """Return the scene of a manifest, its arrays mapped."""
    facts, folder = opened.facts, opened.folder
    kind = facts["kind"]
    if kind == "arrays":
        return _read_arrays(opened, check)
    if kind == "grid":
        return Scene(map_grid(opened, check=check), quality=facts["quality"])
    first, second, nodes, center, root, parts = (
        opened.map(f"{name}.npy", _LAYOUTS[name], check=check) for name in (*_ARRAYS[kind], *_TREE)
    )
    tree = Tree(nodes, center, root, facts["scale"], facts["exponent"], parts)
    if problem := _broken_shape(kind, facts["size"], first, second, tree):
        raise folder_error(folder, problem)
    if check and (problem := _broken_values(kind, first, second) or broken_rule(tree, facts["size"])):
        raise folder_error(folder, f"holds no valid scene ({problem})")
    if large_pages and nodes.nbytes <= _COPIED:
        copy = huge_pages.empty(nodes.shape, nodes.dtype)
        copy[...] = nodes
        copy.flags.writeable = False
        tree = tree._replace(nodes=copy)
    objects, attributes, _ = read_attributes(opened, facts["size"], check=check)
    geometry = (
        boxes_of(first, second, attributes)
        if kind == "boxes"
        else mesh_of(first, second, objects, attributes)
    )
    return restore(geometry, tree, facts["quality"])


def map_grid(opened: Manifest, *, check: bool) -> Grid:
    """Return the grid of a manifest, its edges mapped."""
    facts, folder = opened.facts, opened.folder
    edges = map_edges(opened, facts["axes"], facts["size"], check=check)
    mask = opened.map(f"{_MASK}.npy", Layout(np.uint8, 1), check=check)
    if len(mask) not in (0, facts["size"]):
        raise folder_error(folder, "holds no valid scene (another number of cells than its manifest lists)")
    if mask.max(initial=0) > 1:
        raise folder_error(folder, "holds no valid scene (a cell is neither occupied nor empty)")
    shape = tuple(len(one) - 1 for one in edges)
    occupied = mask.view(np.bool_).reshape(shape) if len(mask) else mask.view(np.bool_)
    attributes = read_attributes(opened, facts["size"], check=check).attributes
    return of_bits(edges, pack(occupied), attributes)


def map_edges(opened: Manifest, axes: int, size: int, *, check: bool) -> tuple[Floats, ...]:
    """Return the edges of a grid of `size` cells; raise `FileFormatError` unless they are valid."""
    names = EDGES[:axes] if axes in (2, 3) else ()
    edges = tuple(opened.map(f"{name}.npy", Layout(np.float64, 1), check=check) for name in names)
    problem = "" if edges else "a grid of other axes"
    if any(len(one) < 2 or not np.isfinite(one).all() or (np.diff(one) <= 0).any() for one in edges):
        problem = "edges do not increase"
    elif edges and prod(len(one) - 1 for one in edges) != size:
        problem = "another number of cells than its manifest lists"
    if problem:
        raise folder_error(opened.folder, f"holds no valid scene ({problem})")
    return edges


def _broken_shape(kind: str, size: int, first: Array, second: Array, tree: Tree) -> str:
    """Return what is wrong with the shapes of a scene's arrays; an empty text if nothing is."""
    widths = (first.shape[1], second.shape[1])
    if widths not in ([(2, 2), (3, 3)] if kind == "boxes" else [(3, 3)]):
        return f"has arrays of other widths than {kind}"
    if len(second) != size or (kind == "boxes" and len(first) != size):
        return "holds another number of rows than its manifest lists"
    is_tree = len(tree.nodes) and tree.nodes.shape[1:] == (ROW,)
    if not is_tree or tree.center.shape != (3,) or tree.root.shape != (2, 3):
        return "has a tree of another shape"
    return ""


def _broken_values(kind: str, first: Floats, second: NDArray[np.float64 | np.int64]) -> str:
    """Return what is wrong with the numbers of a geometry; an empty text if nothing is."""
    if kind == "boxes":
        return "" if (first <= second).all() else "a box ends before it begins"
    if not np.isfinite(first).all():
        return "a vertex is not finite"
    in_range = second.size == 0 or (second.min() >= 0 and second.max() < len(first))
    return "" if in_range else "a face has a vertex that does not exist"


def read_geometry(folder: Path, kind: str) -> Boxes | Mesh:
    """Return the geometry that was just written to a folder, mapped."""
    first, second = (np.asarray(np.load(folder / f"{name}.npy", mmap_mode="r")) for name in _ARRAYS[kind])
    return boxes_of(first, second) if kind == "boxes" else mesh_of(first, second)


def _kind(geometry: Boxes | Mesh) -> str:
    return "boxes" if isinstance(geometry, Boxes) else "mesh"
