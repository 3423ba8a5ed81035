"""The table of formats: a reader for each file extension, checked against the first bytes."""

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
    pcd,
    ply,
    point_clouds,
    stl,
    vox,
)
from raybox.io.formats.common import (
    FileArrays,
    Loaded,
    ReadOptions,
    extension_problem,
    file_error,
    quoted,
    reader_errors,
)


class Format(NamedTuple):
    """A file format.

    Its reader, the first bytes of its files (b"": any), its name.
    """

    read: Callable[[Path, ReadOptions], Loaded | FileArrays]
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
    ".pcd": Format(pcd.read, b"", "PCD"),
}


SCENE = ".npz .npy .csv .parquet .ply .obj .stl .glb .ifc .json .vox"
RAYS = ".npz .npy .csv .parquet .ply .las .laz .pcd"
EXTENSIONS = {"scene": SCENE, "rays": RAYS}
"""Of the files of each kind."""


def parse(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return the content of a file.

    Every error is one line that names the file.
    """
    form = format_of(path, EXTENSIONS.get(options.kind or "", " ".join(FORMATS)))
    with reader_errors(path, form.name):
        return form.read(path, options)


def format_of(path: Path, extensions: str = " ".join(FORMATS)) -> Format:
    """Return the format of a file's extension; an error lists `extensions`.

    Raise if the file does not begin like one.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise file_error(path, extension_problem(path), f"supported: {extensions}")
    with reader_errors(path, form.name):
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            problem = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
            raise file_error(path, problem, "give the path of a file")
        with path.open("rb") as file:
            head = file.read(64)
        _check_start(path, head, form)
    return form


def _check_start(path: Path, head: bytes, form: Format) -> None:
    """Raise for an empty file, and for first bytes of another format than its extension's."""
    if not head:
        raise file_error(path, "is empty", "copy or download it again")
    if form.magic and head.startswith(form.magic):
        return
    others = [e for e, other in FORMATS.items() if len(other.magic) > 2 and head.startswith(other.magic)]
    if others and form.read is not stl.read:  # the header of a binary STL may begin with anything
        raise file_error(
            path, f"is not {form.name} but looks like {others[0]}", f"rename it to end in {others[0]}"
        )
    if form.magic:
        problem = f"does not begin like {form.name}, but with {quoted(head[:16].decode('latin-1'))}"
        raise file_error(path, problem, "rename it to the extension of its format")
