"""The table of formats, and the way into them: look at the name, at the first bytes, call the reader."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from raybox.io.formats import (
    cityjson,
    csv_table,
    glb,
    ifc,
    numpy_arrays,
    obj,
    parquet,
    ply,
    point_clouds,
    stl,
    vox,
)
from raybox.io.formats.common import Loaded, Parts, Want, broken, reading, shown


class Format(NamedTuple):
    """How files with one ending are read: by what, how they begin (if they have to), what they are called."""

    read: Callable[[Path, Want], Loaded | Parts]
    magic: bytes
    name: str


FORMATS = {
    ".npz": Format(numpy_arrays.read_npz, b"PK", "NumPy arrays (npz)"),
    ".npy": Format(numpy_arrays.read_npy, b"\x93NUMPY", "a NumPy table (npy)"),
    ".csv": Format(csv_table.read, b"", "CSV"),
    ".parquet": Format(parquet.read, b"PAR1", "Parquet"),
    ".ply": Format(ply.read, b"ply", "PLY"),
    ".obj": Format(obj.read, b"", "Wavefront OBJ"),
    ".stl": Format(stl.read, b"", "STL"),
    ".glb": Format(glb.read, b"glTF", "binary glTF"),
    ".ifc": Format(ifc.read, b"ISO-10303-21", "IFC"),
    ".json": Format(cityjson.read, b"", "CityJSON"),
    ".vox": Format(vox.read, b"VOX ", "MagicaVoxel"),
    ".las": Format(point_clouds.read_las, b"LASF", "LAS"),
    ".laz": Format(point_clouds.read_las, b"LASF", "LAZ"),
    ".pcd": Format(point_clouds.read_pcd, b"", "PCD"),
}


def parse(path: Path, want: Want) -> Loaded | Parts:
    """Read a file as its ending says; every failure is one line that names the file."""
    form = looked_at(path)
    with reading(path, form.name):
        return form.read(path, want)


def looked_at(path: Path) -> Format:
    """Tell a file's format by its ending, and see that it begins like one."""
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise broken(
            path, f"has an ending raybox does not know, {path.suffix!r}", f"it reads {' '.join(FORMATS)}"
        )
    with reading(path, form.name):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            problem = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
            raise broken(path, problem, "give the path of a file")
        with path.open("rb") as file:
            head = file.read(64)
        _check_start(path, head, form)
    return form


def _check_start(path: Path, head: bytes, form: Format) -> None:
    """Refuse an empty file, and one whose first bytes are those of another format than its name says."""
    if not head:
        raise broken(path, "is empty", "copy or download it again")
    if form.magic and head.startswith(form.magic):
        return
    others = [e for e, other in FORMATS.items() if len(other.magic) > 2 and head.startswith(other.magic)]
    if others and form.read is not stl.read:  # the header of a binary STL may begin with anything
        raise broken(
            path, f"is not {form.name} but looks like {others[0]}", f"rename it to end in {others[0]}"
        )
    if form.magic:
        problem = f"does not begin like {form.name}, but with {shown(head[:16])}"
        raise broken(path, problem, "give it the ending of what it is")
