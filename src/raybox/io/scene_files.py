"""A built scene as ``.npy`` files in a folder: mapped into memory, without building it again.

Processes of one machine that map the same files share their memory.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from raybox.bvh.node import ROW, Tree
from raybox.compiler import huge_pages
from raybox.errors import FileFormatError, RayboxError
from raybox.geometry import Boxes, Mesh
from raybox.geometry.boxes import restored as boxes_of
from raybox.geometry.mesh import restored as mesh_of
from raybox.scene.scene import Scene, restore, state_of

_COPIED = 1 << 30  # bytes of nodes, at most, that are copied into large pages
FORMAT = 1  # of these files, the layout of the tree's nodes included
_FACTS = "scene.json"
_ARRAYS: dict[str, tuple[str, ...]] = {"boxes": ("lower", "upper"), "mesh": ("vertices", "faces")}
_TREE = ("nodes", "center", "root", "parts")


def new_folder(folder: Any, way_out: str = "give another folder") -> Path:
    """Return a folder that is new, or empty."""
    place = Path(folder)
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
    write_geometry(folder, scene.geometry)
    write_tree(folder, scene)


def write_geometry(folder: Path, geometry: Boxes | Mesh) -> None:
    """Write the arrays of a geometry."""
    for name in _ARRAYS[_kind(geometry)]:
        np.save(folder / f"{name}.npy", getattr(geometry, name))


def write_tree(folder: Path, scene: Scene) -> None:
    """Write the tree of a scene whose geometry is in the folder, and `scene.json`."""
    part, quality = state_of(scene)
    for name in _TREE:
        np.save(folder / f"{name}.npy", getattr(part.tree, name))
    facts = {"format": FORMAT, "kind": _kind(scene.geometry), "size": len(scene), "quality": quality}
    text = json.dumps(facts | {"scale": part.tree.scale, "exponent": part.tree.exponent})
    (folder / _FACTS).write_text(text, encoding="utf-8")


def read_scene(folder: Path, *, large_pages: bool = False) -> Scene:
    """Return the scene in a folder; its arrays are mapped, not read.

    large_pages: copy a tree of up to a gigabyte into large pages (a tenth faster, see
    `raybox.compiler.huge_pages`).
    """
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise folder_error(folder, "was written by another version of raybox")
        geometry = read_geometry(folder, facts["kind"])
        nodes, center, root, parts = (map_array(folder / f"{name}.npy") for name in _TREE)
        if large_pages and nodes.nbytes <= _COPIED:
            copy = huge_pages.empty(nodes.shape, nodes.dtype)
            copy[...] = nodes
            copy.flags.writeable = False
            nodes = copy
    except RayboxError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise folder_error(folder, f"holds no whole scene ({type(error).__name__}: {error})") from error
    if len(geometry) != facts["size"] or nodes.shape[1:] != (ROW,):
        raise folder_error(folder, "holds no whole scene")
    return restore(
        geometry, Tree(nodes, center, root, facts["scale"], facts["exponent"], parts), facts["quality"]
    )


def read_geometry(folder: Path, kind: str) -> Boxes | Mesh:
    """Return the geometry in a folder, mapped."""
    first, second = (map_array(folder / f"{name}.npy") for name in _ARRAYS[kind])
    return boxes_of(first, second) if kind == "boxes" else mesh_of(first, second)


def map_array(path: Path) -> Any:
    """Return the array of a file, mapped into memory."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.asarray(array)


def folder_error(folder: Path, problem: str) -> FileFormatError:
    """Return an error about a folder."""
    return FileFormatError(f"{folder}: {problem}; make it again")


def bytes_of(folder: Path) -> int:
    """Return the bytes of a folder's arrays."""
    return sum(path.stat().st_size for path in folder.glob("*.npy"))


def _kind(geometry: Any) -> str:
    return "boxes" if isinstance(geometry, Boxes) else "mesh"
