"""A built scene as plain ``.npy`` files in a folder: mapped into memory, not built again, by who needs it.

Processes of one machine that map the same files share the memory they take.
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

_NEAR = 1 << 30
FORMAT = 1  # of these files, the tree's nodes among them
_FACTS = "scene.json"
_ARRAYS: dict[str, tuple[str, ...]] = {"boxes": ("lower", "upper"), "mesh": ("vertices", "faces")}
_TREE = ("nodes", "center", "root", "parts")


def new_folder(folder: Any, ways_out: str = "give another folder") -> Path:
    """Return a folder that is new, or empty."""
    place = Path(folder)
    try:
        place.mkdir(exist_ok=True)
        taken = any(place.iterdir())
    except OSError as error:
        raise FileFormatError(f"{place}: cannot be made ({error.strerror}); give another folder") from error
    if taken:
        raise FileFormatError(f"{place}: is not empty; {ways_out}")
    return place


def keep(folder: Path, scene: Scene) -> None:
    """Write a scene into a folder that is there; the file that tells what it is comes last."""
    keep_geometry(folder, scene.geometry)
    keep_tree(folder, scene)


def keep_geometry(folder: Path, geometry: Boxes | Mesh) -> None:
    """Write what a scene is made of."""
    for name in _ARRAYS[_kind(geometry)]:
        np.save(folder / f"{name}.npy", getattr(geometry, name))


def keep_tree(folder: Path, scene: Scene) -> None:
    """Write the tree of a scene whose geometry is in the folder."""
    part, quality = state_of(scene)
    for name in _TREE:
        np.save(folder / f"{name}.npy", getattr(part.tree, name))
    facts = {"format": FORMAT, "kind": _kind(scene.geometry), "size": len(scene), "quality": quality}
    told = json.dumps(facts | {"scale": part.tree.scale, "exponent": part.tree.exponent})
    (folder / _FACTS).write_text(told, encoding="utf-8")


def found(folder: Path, *, near: bool = False) -> Scene:
    """Return the scene that a folder holds; its arrays are mapped, not read.

    near: but for a tree of up to a gigabyte, which is copied into large pages (a tenth faster, see
    `raybox.compiler.huge_pages`).
    """
    try:
        facts = json.loads((folder / _FACTS).read_text(encoding="utf-8"))
        if facts["format"] != FORMAT:
            raise refused(folder, "was written by another version of raybox")
        geometry = geometry_of(folder, facts["kind"])
        nodes, center, root, parts = (mapped(folder / f"{name}.npy") for name in _TREE)
        if near and nodes.nbytes <= _NEAR:
            copy = huge_pages.empty(nodes.shape, nodes.dtype)
            copy[...] = nodes
            copy.flags.writeable = False
            nodes = copy
    except RayboxError:
        raise
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise refused(folder, f"holds no whole scene ({type(error).__name__}: {error})") from error
    if len(geometry) != facts["size"] or nodes.shape[1:] != (ROW,):
        raise refused(folder, "holds no whole scene")
    return restore(
        geometry, Tree(nodes, center, root, facts["scale"], facts["exponent"], parts), facts["quality"]
    )


def geometry_of(folder: Path, kind: str) -> Boxes | Mesh:
    """Return what the scene of a folder is made of, mapped."""
    first, second = (mapped(folder / f"{name}.npy") for name in _ARRAYS[kind])
    return boxes_of(first, second) if kind == "boxes" else mesh_of(first, second)


def mapped(path: Path) -> Any:
    """Map an array, as kernels take it; an empty one, which no system maps, is read."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    return np.asarray(array)


def refused(folder: Path, problem: str) -> FileFormatError:
    """Word an error about a folder."""
    return FileFormatError(f"{folder}: {problem}; make it again")


def size_of(folder: Path) -> int:
    """Return the bytes of a folder's arrays."""
    return sum(path.stat().st_size for path in folder.glob("*.npy"))


def _kind(geometry: Any) -> str:
    return "boxes" if isinstance(geometry, Boxes) else "mesh"
