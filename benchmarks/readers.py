"""Compare what `raybox.load` reads of every file of a folder with an independent reader.

    python benchmarks/readers.py FOLDER [--all]

The other readers are ifcopenshell (.ifc), trimesh (.glb .obj), plyfile (.ply) and laspy (.las .laz). A row
is printed for each file that one of the two refuses, or of which they find another number of triangles or
points, or other bounds; with --all for each file. Bounds are equal within a millionth of their size: trimesh
and plyfile keep float32.
"""

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import raybox as rb
from raybox.errors import SkippedWarning

NEAR = 1e-6


class Content(NamedTuple):
    """What a reader finds: triangles or points, and the corners of the box around them."""

    count: int
    bounds: np.ndarray

    def __str__(self) -> str:
        lower, upper = (" ".join(f"{x:.6g}" for x in corner) for corner in self.bounds)
        return f"{self.count:,} in {lower} … {upper}"


def content_of(points: np.ndarray, count: int) -> Content:
    """Return the content of triangles or points, whose corners are these."""
    points = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    if not len(points):
        return Content(count, np.zeros((2, 3)))
    return Content(count, np.array([points.min(axis=0), points.max(axis=0)]))


def of_raybox(path: Path) -> Content:
    """Return the triangles of a scene, or the points of a file of points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedWarning)
        if has_points(path):
            rays: Any = rb.load(path, kind="rays", origin=(0, 0, 0))
            return content_of(rays.directions, len(rays))
        mesh: Any = rb.load(path, kind="scene")
    return content_of(mesh.triangles, len(mesh))


def has_points(path: Path) -> bool:
    """Return whether a file holds points alone: LAS, and PLY without faces."""
    with path.open("rb") as file:
        is_ply = path.suffix.lower() == ".ply"
        return path.suffix.lower() in (".las", ".laz") or (is_ply and b"element face" not in file.read(9999))


def of_ifcopenshell(path: Path) -> Content:
    """Return the triangles of all products but spaces and openings."""
    import ifcopenshell
    import ifcopenshell.geom

    settings = ifcopenshell.geom.settings()
    settings.set("use-world-coords", True)
    settings.set("keep-bounding-boxes", True)
    model: Any = ifcopenshell.open(str(path))
    no_matter = [one for name in ("IfcSpace", "IfcOpeningElement") for one in model.by_type(name)]
    shapes: Any = ifcopenshell.geom.iterator(settings, model, exclude=no_matter)
    parts = [np.zeros((0, 3))]
    for shape in shapes:
        vertices = np.array(shape.geometry.verts).reshape(-1, 3)
        parts.append(vertices[np.array(shape.geometry.faces, dtype=np.int64)])
    corners = np.concatenate(parts)
    return content_of(corners, len(corners) // 3)


def of_trimesh(path: Path) -> Content:
    """Return the triangles of all meshes of a scene, each as often as it is placed."""
    import trimesh

    scene = trimesh.load_scene(path, process=False)
    parts = [part.triangles for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
    triangles = np.concatenate([np.zeros((0, 3, 3)), *parts])
    return content_of(triangles, len(triangles))


def of_plyfile(path: Path) -> Content:
    """Return the faces as triangles, k - 2 of k corners; without faces, the points."""
    import plyfile

    data = plyfile.PlyData.read(path)
    points = np.stack([data["vertex"][axis] for axis in "xyz"], axis=1)
    if "face" not in data:
        return content_of(points, len(points))
    name = next(one for one in ("vertex_indices", "vertex_index") if one in data["face"])
    faces = [np.asarray(face, dtype=np.int64) for face in data["face"][name]]
    used = np.concatenate([np.zeros(0, np.int64), *faces])
    return content_of(points[used], sum(max(0, len(face) - 2) for face in faces))


def of_laspy(path: Path) -> Content:
    """Return the points."""
    import laspy

    points = laspy.read(path).xyz
    return content_of(points, len(points))


READERS: dict[str, Callable[[Path], Content]] = {
    ".ifc": of_ifcopenshell,
    ".glb": of_trimesh,
    ".obj": of_trimesh,
    ".ply": of_plyfile,
    ".las": of_laspy,
    ".laz": of_laspy,
}


def tried(read: Callable[[Path], Content], path: Path) -> Content | str:
    """Return what a reader finds, or the text of its error."""
    try:
        return read(path)
    except Exception as error:
        return f"{type(error).__name__}: {error}".splitlines()[0]


def verdict(own: Content | str, other: Content | str) -> str:
    """Return how the two differ."""
    if isinstance(own, str) or isinstance(other, str):
        both = isinstance(own, str) and isinstance(other, str)
        return (
            "refused by both" if both else f"refused by {'raybox' if isinstance(own, str) else 'the other'}"
        )
    if own.count != other.count:
        return "another number"
    size = max(np.abs(other.bounds).max(), 1e-300)
    return "equal" if np.abs(own.bounds - other.bounds).max() <= NEAR * size else "other bounds"


def main() -> None:
    """Print the rows, and how many files are equal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--all", action="store_true", help="print equal files, too")
    options = parser.parse_args()
    counts = Counter[str]()
    files = sorted(path for path in options.folder.rglob("*") if path.suffix.lower() in READERS)
    for path in filter(Path.is_file, files):
        own, other = tried(of_raybox, path), tried(READERS[path.suffix.lower()], path)
        found = verdict(own, other)
        counts[f"{path.suffix.lower()} {found}"] += 1
        if found != "equal" or options.all:
            print(
                f"{path.relative_to(options.folder)}: {found}\n  raybox {own}\n  other  {other}", flush=True
            )
    print(f"{counts.total()} files: {', '.join(f'{name} {count}' for name, count in sorted(counts.items()))}")
    sys.exit(0 if files else f"{options.folder}: no file of {' '.join(READERS)}")


if __name__ == "__main__":
    main()
