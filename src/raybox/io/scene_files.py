"""A built scene in a folder of ``.npy`` files, which are mapped into memory without a build.

Processes of one machine that map the same files share their memory. `scene.json` is the manifest of the
folder (see `raybox.io.manifest`), and is written last. A file's name begins with the number of its geometry
in a list, such as ``1-lower.npy``; for the geometry of instances ``of-`` follows.

=========  ==========================  ============================================================
kind       geometry                    rows for kernels, where they are other arrays
=========  ==========================  ============================================================
boxes      lower upper                 rows-lower rows-upper, in 2D
mesh       vertices faces [objects]    rows-corners
planes     normals offsets             rows-normals, in 2D
grid       x_edges y_edges [z_edges]   rows-blocks rows-words
instances  placed                      rows-high rows-low rows-tame rows-lower rows-upper
=========  ==========================  ============================================================

The tree of a grid is ``planes starts nodes``, any other ``nodes center root parts [frame] [triangles]
[built]``; with groups also ``starts groups group-numbers``. Ids and labels are in ``attributes.npz``.
"""

import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from raybox.bvh import cell_tree
from raybox.bvh.build import QUALITIES
from raybox.bvh.cell_tree import CellTree
from raybox.bvh.forest import broken_starts
from raybox.bvh.frame import MAX_EXPONENT
from raybox.bvh.node import ROW, Tree
from raybox.bvh.partial_rebuild import Costs
from raybox.bvh.validate import broken_rule
from raybox.compiler import huge_pages
from raybox.geometry import (
    Boxes,
    BoxRows,
    Geometry,
    Grid,
    Instances,
    Mesh,
    ObjectRows,
    PlaneRows,
    Planes,
    PrimitiveRows,
    TriangleRows,
    cell_bits,
    grid,
    instances,
    mesh,
    planes,
)
from raybox.geometry import boxes as box_lists
from raybox.geometry.cell_bits import CellBits
from raybox.geometry.mesh import stored_objects
from raybox.io import manifest
from raybox.io.formats import saved_arrays
from raybox.io.formats.common import (
    Loaded,
    SceneGeometry,
    file_error,
    missing_file,
    path_of,
    reader_errors,
    resolved,
)
from raybox.io.formats.numpy_arrays import open_archive, write_npz
from raybox.io.formats.object_boxes import boxes_of
from raybox.io.formats.saved_arrays import EDGES
from raybox.io.formats.table import SAVED_SCENE
from raybox.io.manifest import Layout, Manifest, folder_error
from raybox.primitives.triangle_slots import ROOM
from raybox.scene.geometry_parts import InstanceArrays, Part, TreeState
from raybox.scene.groups import COMMON, GroupRows
from raybox.scene.scene import PartState, Scene, restore, state_of
from raybox.traversal.job import NO_TRIANGLES
from raybox.traversal.ray_setup import REACH, Frame, frame_of
from raybox.traversal.slot_triangles import triangles_of
from raybox.validation import Array, Floats

FACTS = "scene.json"
_COPIED = 1 << 30  # bytes of nodes, at most, that are copied into large pages
_ATTRIBUTES = "attributes.npz"
_TREE = ("nodes", "center", "root", "parts")


class PartFacts(NamedTuple):
    """What the manifest lists of a geometry."""

    kind: str
    size: int
    dimension: int
    exponent: int
    """of the tree's scale, a power of two; 0 for a grid"""
    inner: "PartFacts | None"
    """of instances: what it lists of their geometry"""


class Whole(NamedTuple):
    """The manifest of a scene, parsed."""

    opened: Manifest
    parts: list[PartFacts]
    is_list: bool

    @property
    def size(self) -> int:
        """The number of rows of all geometries."""
        return sum(part.size for part in self.parts)


# Write.


def save(folder: str | os.PathLike[str], scene: Scene) -> None:
    """Write a scene into a new folder, under another name that is renamed at the end."""
    target = path_of(folder)
    if target.suffix.lower() != SAVED_SCENE:
        problem = f"unsupported extension {target.suffix!r} of a saved scene"
        way_out = f"name it {target.stem}{SAVED_SCENE}; to save the geometry alone: raybox.save(path, scene)"
        raise file_error(target, problem, way_out)
    if os.path.lexists(target):
        raise file_error(target, "exists already", "remove it first, or give another name")
    new = resolved(target).with_name(f".{secrets.token_hex(6)}.raybox-part")
    try:
        new.mkdir()
        write_scene(new, scene)
        new.rename(resolved(target))
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
        raise file_error(target, problem, "check the disk and its permissions") from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def write_scene(folder: Path, scene: Scene) -> None:
    """Write a scene into an existing folder, `scene.json` last."""
    state, names = state_of(scene), list[str]()
    facts = []
    for number, part in enumerate(state.parts):
        facts.append(_write_part(folder, f"{number}-" if state.is_list else "", part, names))
    manifest.write(
        folder / FACTS, {"quality": state.quality, "is_list": state.is_list, "parts": facts}, names
    )


def _write_part(folder: Path, prefix: str, part: Part, names: list[str]) -> PartFacts:
    """Write the arrays of a geometry and of its tree; add the names of their files."""
    geometry = cast("SceneGeometry", part.geometry)
    kind, arrays = _geometry_arrays(geometry, part.rows)
    is_tree = isinstance(part.tree, Tree)
    arrays |= {name: getattr(part.tree, name) for name in (_TREE if is_tree else CellTree._fields)}
    if part.frame is not None:
        arrays["frame"] = part.frame.numbers
    if len(triangles := part.triangles()):
        arrays["triangles"] = triangles
    if (built := part.refit_policy.built) is not None:
        arrays["built"] = np.array([built.whole, *built.parts])
    if part.groups is not None and isinstance(part.tree, Tree):
        groups = {"groups": part.groups.of_rows, "group-numbers": part.groups.numbers}
        arrays |= {"starts": part.tree.starts, **groups}
    for name, array in arrays.items():
        np.save(folder / f"{prefix}{name}.npy", array)
        names.append(f"{prefix}{name}.npy")
    attributes = saved_arrays.attribute_arrays(geometry)
    if attributes:
        with (folder / f"{prefix}{_ATTRIBUTES}").open("wb") as file:
            write_npz(file, attributes)
        names.append(f"{prefix}{_ATTRIBUTES}")
    inner = None
    if part.inner:  # by itself, no ray is cast into it
        below = part.inner._replace(triangles=lambda: NO_TRIANGLES)
        inner = _write_part(folder, f"{prefix}of-", below, names)
    exponent = part.tree.exponent if isinstance(part.tree, Tree) else 0
    return PartFacts(kind, len(geometry), geometry.ndim_space, exponent, inner)


def _geometry_arrays(geometry: SceneGeometry, rows: Any) -> tuple[str, dict[str, Array]]:
    """Return the kind of a geometry, and the arrays that are stored of it and of its rows."""
    is_flat = geometry.ndim_space == 2
    own: dict[str, Array] = {}
    derived: tuple[str, ...] = ()
    match geometry:
        case Boxes():
            own, derived = {"lower": geometry.lower, "upper": geometry.upper}, ("lower", "upper") * is_flat
        case Mesh():
            own, derived = {"vertices": geometry.vertices, "faces": geometry.faces}, ("corners",)
            objects = stored_objects(geometry)
            own |= {} if objects is None else {"objects": objects}
        case Planes():
            own = {"normals": geometry.normals, "offsets": geometry.offsets}
            derived = ("normals",) * is_flat
        case Grid():
            own, derived = dict(zip(EDGES, geometry.edges, strict=False)), ("blocks", "words")
        case Instances():
            own, derived = {"placed": geometry._rows()}, InstanceArrays._fields
        case _:
            saved_arrays.arrays_of(geometry)  # raises `InvalidInput`
    kind = type(geometry).__name__.lower()
    return kind, own | {f"rows-{name}": getattr(rows, name) for name in derived}


# Read.


def open_scene(folder: str | os.PathLike[str], *, check: bool) -> Scene:
    """Return the scene in a folder, mapped; errors are those of `Scene.open`."""
    place = path_of(folder)
    with reader_errors(place, "a saved scene"):
        return map_scene(open_folder(place), check=check)


def load(folder: Path, *, boxes: bool) -> Loaded:
    """Return the geometry of the scene in a folder, mapped and checked; boxes: those around its objects."""
    geometry = open_scene(folder, check=True).geometry
    found = [*geometry] if isinstance(geometry, tuple) else geometry
    return Loaded(boxes_of(found, folder) if boxes else found)


def read_scene(folder: Path, *, large_pages: bool = False) -> Scene:
    """Return the scene in a folder, mapped and checked.

    large_pages: copy a tree of up to a gigabyte into large pages (a tenth faster, see
    `raybox.compiler.huge_pages`).
    """
    return map_scene(open_folder(folder), check=True, large_pages=large_pages)


def open_folder(folder: Path) -> Whole:
    """Return the manifest of a scene's folder; sizes and headers of its files are checked."""
    if not folder.exists():
        raise missing_file(folder)
    if not folder.is_dir():
        way_out = "make a scene of the file: Scene(raybox.load(path))"
        raise file_error(folder, "is a file, not the folder of a saved scene", way_out)
    if not (folder / FACTS).exists():
        raise file_error(folder, "holds no scene", "give a folder that Scene.save has written")
    opened = manifest.read(folder / FACTS)
    try:
        parts = [_part_facts(*value) for value in opened.facts["parts"]]
        is_known = opened.facts["quality"] in QUALITIES and (opened.facts["is_list"] or len(parts) == 1)
        if not is_known or not parts or len({part.dimension for part in parts}) > 1:
            raise ValueError
        whole = Whole(opened, parts, bool(opened.facts["is_list"]))
    except (KeyError, TypeError, ValueError) as error:
        raise folder_error(folder / FACTS, "is the manifest of no scene") from error
    opened.check_headers()
    return whole


def _part_facts(kind: str, size: int, dimension: int, exponent: int, inner: list[Any] | None) -> PartFacts:
    """Return facts of a geometry; raise `ValueError` or `TypeError` for those of none."""
    below = None if inner is None else _part_facts(*inner)
    is_instances = kind == "instances"
    if (
        kind not in (*_READERS, _GRID)
        or not isinstance(size, int)
        or not isinstance(exponent, int)
        or size < 0
    ):
        raise ValueError
    if dimension not in (2, 3) or is_instances != (below is not None):
        raise ValueError
    if below and (below.kind not in ("boxes", "mesh") or below.dimension != dimension):
        raise ValueError
    return PartFacts(kind, size, dimension, exponent, below)


def map_scene(whole: Whole, *, check: bool, large_pages: bool = False) -> Scene:
    """Return the scene of a manifest, its arrays mapped.

    check: compare all bytes with their checksums, and the arrays with the rules that compiled code relies on.
    """
    prefixes: Iterator[str] = (f"{number}-" for number in count()) if whole.is_list else iter([""])
    states = [
        _map_part(_Files(whole.opened, prefix, facts, check), large_pages)
        for prefix, facts in zip(prefixes, whole.parts, strict=False)
    ]
    return restore(whole.is_list, whole.opened.facts["quality"], states)


class _Files(NamedTuple):
    """The files of a geometry, whose arrays are mapped."""

    opened: Manifest
    prefix: str
    facts: PartFacts
    check: bool

    def array(self, name: str, kind: type, *shape: int | None) -> Any:
        """Return an array; None in its shape is any length."""
        return self.opened.map(f"{self.prefix}{name}.npy", Layout(kind, shape), check=self.check)

    def floats(self, name: str, *shape: int | None) -> Floats:
        """Return an array of float64."""
        return cast("Floats", self.array(name, np.float64, *shape))

    def has(self, name: str) -> bool:
        """Return whether a file belongs to the folder."""
        return self.prefix + name in self.opened.files

    def require(self, condition: object, rule: str) -> None:
        """Raise `FileFormatError` unless a condition holds."""
        if not condition:
            raise folder_error(self.opened.folder, f"holds no valid scene ({rule})")

    def attributes(self) -> ObjectRows:
        """Return the objects, ids and labels of the geometry's rows."""
        objects = self.array("objects", np.int64, self.facts.size) if self.has("objects.npy") else None
        name = self.prefix + _ATTRIBUTES
        self.require(not self.check or objects is None or objects.min(initial=0) >= 0, "an object below 0")
        if name not in self.opened.files:
            return ObjectRows(objects)
        if self.check:
            self.opened.check_data(name)
        path = self.opened.folder / name
        with reader_errors(path, "NumPy arrays"), open_archive(path) as archive:
            return ObjectRows(objects, saved_arrays.attributes_of(archive.arrays(), objects, self.facts.size))


class _Mapped(NamedTuple):
    """A geometry, and its rows for kernels; None: those that it computes itself."""

    geometry: Geometry
    rows: PrimitiveRows | None


def _map_part(files: _Files, large_pages: bool) -> PartState:
    """Return a geometry and its tree."""
    if files.facts.kind == _GRID:
        return _map_grid(files)
    inner = None
    if files.facts.inner is not None:
        below = files._replace(prefix=f"{files.prefix}of-", facts=files.facts.inner)
        inner = _map_part(below, large_pages)
    geometry, rows = _READERS[files.facts.kind](files, inner)
    tree = _map_tree(files, large_pages)
    frame = triangles = built = None
    if files.has("frame.npy"):
        frame = Frame(files.floats("frame", REACH + 1), tree.exponent)
        if files.check:
            files.require(
                np.array_equal(frame.numbers, frame_of(tree).numbers), "another frame than its tree's"
            )
    if frame and isinstance(rows, TriangleRows) and files.has("triangles.npy"):
        triangles = files.array("triangles", np.float32, len(tree.nodes), ROOM)
        if files.check:
            own = triangles_of(tree, rows, frame)
            files.require(np.array_equal(triangles, own), "other triangles in nodes than its own")
    if files.has("built.npy"):
        whole, *parts = files.floats("built", 1 + len(tree.parts)).tolist()
        built = Costs(whole, np.array(parts))
    groups = None
    if files.has("groups.npy"):
        tree, groups = _map_groups(files, tree)
    return PartState(geometry, TreeState(tree, built, inner and inner.tree, rows, frame, triangles, groups))


def _map_groups(files: _Files, tree: Tree) -> tuple[Tree, GroupRows]:
    """Return a tree with the nodes at which rays of groups start, and the groups."""
    numbers = files.array("group-numbers", np.int64, None)
    groups = GroupRows(numbers, files.array("groups", np.int64, files.facts.size))
    tree = tree._replace(starts=files.array("starts", np.int32, 1 + len(numbers), 2))
    if files.check:
        own = groups.of_rows
        are_known = (numbers[:1] >= 0).all() and (np.diff(numbers) > 0).all()
        are_known = are_known and ((own == COMMON) | np.isin(own, numbers)).all()
        problem = broken_starts(tree, groups.of_tree()) if are_known else "a group without a number"
        files.require(not problem, problem)
    return tree, groups


def _map_tree(files: _Files, large_pages: bool) -> Tree:
    nodes, parts = files.array("nodes", np.int32, None, ROW), files.array("parts", np.int64, None)
    center, root, exponent = files.floats("center", 3), files.floats("root", 2, 3), files.facts.exponent
    files.require(len(nodes) and abs(exponent) <= MAX_EXPONENT, "a tree without nodes, or of another scale")
    tree = Tree(nodes, center, root, 2.0**exponent, exponent, parts)
    if files.check:
        problem = broken_rule(tree, files.facts.size)
        files.require(not problem, problem)
    if large_pages and nodes.nbytes <= _COPIED:
        copy = huge_pages.empty(nodes.shape, nodes.dtype)
        copy[...] = nodes
        copy.flags.writeable = False
        tree = tree._replace(nodes=copy)
    return tree


def _map_boxes(files: _Files, _inner: PartState | None) -> _Mapped:
    size, width = files.facts.size, files.facts.dimension
    lower, upper = (files.floats(name, size, width) for name in ("lower", "upper"))
    rows = None
    if width == 2:
        rows = BoxRows(*(files.floats(f"rows-{name}", size, 3) for name in BoxRows._fields))
    if files.check:
        files.require((lower <= upper).all(), "a box ends before it begins")
        for flat, found in zip((lower, upper), rows or (), strict=False):
            files.require(_is_in_space(flat, found), "other rows than boxes")
    return _Mapped(box_lists.restored(lower, upper, files.attributes().attributes), rows)


def _map_mesh(files: _Files, _inner: PartState | None) -> _Mapped:
    vertices, faces = files.floats("vertices", None, 3), files.array("faces", np.int64, files.facts.size, 3)
    corners = files.floats("rows-corners", files.facts.size, 3, 3)
    if files.check:
        in_range = faces.min(initial=0) >= 0 and faces.max(initial=-1) < len(vertices)
        files.require(np.isfinite(vertices).all(), "a vertex is not finite")
        files.require(in_range, "a face has a vertex that does not exist")
        files.require(np.array_equal(corners, vertices[faces]), "other corners than those of the faces")
    objects, attributes, _ = files.attributes()
    return _Mapped(mesh.restored(vertices, faces, objects, attributes), TriangleRows(corners))


def _map_planes(files: _Files, _inner: PartState | None) -> _Mapped:
    size, width = files.facts.size, files.facts.dimension
    normals, offsets, rows = files.floats("normals", size, width), files.floats("offsets", size), None
    if width == 2:
        rows = PlaneRows(files.floats("rows-normals", size, 3), offsets)
    if files.check:
        files.require(np.isfinite(normals).all() and np.isfinite(offsets).all(), "a plane is not finite")
        files.require(normals.any(axis=1).all(), "a normal is zero")
        files.require(rows is None or _is_in_space(normals, rows.normals), "other rows than planes")
    return _Mapped(planes.restored(normals, offsets, files.attributes().attributes), rows)


def _map_instances(files: _Files, inner: PartState | None) -> _Mapped:
    size = files.facts.size
    placed = files.floats("placed", size, 3, 4)
    high, low = (files.floats(f"rows-{name}", size, 3, 3) for name in ("high", "low"))
    lower, upper = (files.floats(f"rows-{name}", size, 3) for name in ("lower", "upper"))
    rows = InstanceArrays(high, low, files.array("rows-tame", np.bool_, size), lower, upper)
    geometry = cast("PartState", inner).geometry
    if files.check:
        files.require(np.isfinite(placed).all(), "a matrix is not finite")
        files.require(rows.tame.view(np.uint8).max(initial=0) <= 1, "a flag is neither 0 nor 1")
        if isinstance(geometry, Boxes):
            is_finite = np.isfinite(geometry.lower).all() and np.isfinite(geometry.upper).all()
            files.require(is_finite, "a box of instances is not finite")
    attributes = files.attributes().attributes
    return _Mapped(instances.restored(cast("Boxes | Mesh", geometry), placed, attributes), rows)


def _map_grid(files: _Files) -> PartState:
    edges = tuple(files.floats(name, None) for name in EDGES[: files.facts.dimension])
    blocks, words = files.array("rows-blocks", np.int64, None, 2), files.array("rows-words", np.int64, None)
    levels, nodes = files.array("starts", np.int64, None, 3, 2), files.array("nodes", np.int64, None, 2)
    tree, bits = CellTree(files.floats("planes", None), levels, nodes), CellBits(blocks, words)
    shape = [len(one) - 1 for one in edges]
    files.require(min(shape) > 0 and prod(shape) == files.facts.size, "edges of another number of cells")
    files.require(bool(len(nodes)) == bool(len(blocks)), "a mask without a tree")
    if files.check:
        increase = all(np.isfinite(one).all() and (np.diff(one) > 0).all() for one in edges)
        files.require(increase, "edges do not increase")
        problem = cell_bits.broken_rule(bits, files.facts.size)
        files.require(not problem, problem)
    found = grid.of_bits(edges, bits, files.attributes().attributes)
    if files.check:  # a new tree takes less time than the rules of this one
        files.require(
            all(map(np.array_equal, tree, cell_tree.build(found._rows()))), "another tree than its cells'"
        )
    return PartState(found, TreeState(tree))


def _is_in_space(flat: Floats, rows: Floats) -> bool:
    """Return whether rows are vectors in 2D with a third coordinate of 0."""
    return np.array_equal(flat, rows[:, :2]) and not rows[:, 2].any()


_READERS: dict[str, Callable[[_Files, PartState | None], _Mapped]] = {
    "boxes": _map_boxes,
    "mesh": _map_mesh,
    "planes": _map_planes,
    "instances": _map_instances,
}
_GRID = "grid"
