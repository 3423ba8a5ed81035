"""The table of formats: a line each, of which all else follows."""

import codecs
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
    saved_arrays,
    saved_tables,
    stl,
    vox,
    zarr_arrays,
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
from raybox.io.formats.tables import Announced, Table, whole

Reader = Callable[[Path, ReadOptions], Loaded | FileArrays]
SCENE, RAYS = "scene", "rays"


class Format(NamedTuple):
    """A file format."""

    read: Reader
    """the whole"""
    magic: bytes
    """the first bytes of its files (b"": any)"""
    name: str
    kinds: tuple[str, ...] = (SCENE,)
    """what its files may hold"""
    announced: Callable[[Path], Announced] | None = None
    """rows and bytes, from headers"""
    open: Callable[[Path, ReadOptions], Table | None] | None = None
    """its rows, block by block; None for a file that is read whole"""
    is_folder: bool = False
    first: bytes = b""
    """how most of its files begin, where not all do"""


def _table(table: Callable[[Path], Table], magic: bytes, name: str, *kinds: str) -> Format:
    """Return the format of a table, from its reader."""
    return Format(
        lambda path, options: whole(table(path), options),
        magic,
        name,
        kinds,
        lambda path: table(path).announced(),
        lambda path, _: table(path),
    )


def _zarr(path: Path, options: ReadOptions) -> FileArrays:
    return whole(zarr_arrays.open_zarr(path, options), options)


_PARQUET = _table(parquet.ParquetTable, b"PAR1", "Parquet", SCENE, RAYS)
FORMATS = {
    ".npz": Format(
        *(saved_arrays.read, b"PK", "NumPy arrays (npz)", (SCENE, RAYS)),
        *(numpy_arrays.announced_npz, numpy_arrays.open_npz),
    ),
    ".npy": _table(numpy_arrays.NpyTable, b"\x93NUMPY", "a NumPy table (npy)", SCENE, RAYS),
    ".csv": _table(csv_table.CsvTable, b"", "CSV", SCENE, RAYS),
    ".parquet": _PARQUET._replace(read=saved_tables.read),
    ".ply": Format(ply.read, b"ply", "PLY", (SCENE, RAYS), ply.announced),
    ".obj": Format(obj.read, b"", "Wavefront OBJ", announced=obj.announced),
    ".stl": Format(stl.read, b"", "STL", announced=stl.announced),
    ".glb": Format(glb.read, b"glTF", "binary glTF", announced=glb.announced),
    ".ifc": Format(ifc.read, b"ISO-10303-21", "IFC"),
    ".json": Format(cityjson.read, b"", "CityJSON", first=b"{"),
    ".jsonl": Format(cityjson.read, b"", "CityJSONSeq"),
    ".vox": Format(vox.read, b"VOX ", "MagicaVoxel", announced=vox.announced),
    ".las": _table(point_clouds.LasTable, b"LASF", "LAS", RAYS),
    ".laz": _table(point_clouds.LasTable, b"LASF", "LAZ", RAYS),
    ".pcd": Format(pcd.read, b"", "PCD", (RAYS,), pcd.announced, first=b"# .PCD"),
    ".zarr": Format(_zarr, b"", "Zarr", (SCENE, RAYS), open=zarr_arrays.open_zarr, is_folder=True),
}


def extensions(kind: str | None = None) -> str:
    """Return the extensions for a kind of content; None: of all."""
    return " ".join(name for name, form in FORMATS.items() if kind is None or kind in form.kinds)


def extension_of(head: bytes) -> str | None:
    """Return the extension of files that begin so; of LAS, ``.laz``."""
    starts = {ext: form.first or form.magic for ext, form in FORMATS.items()}
    found = [ext for ext, start in starts.items() if start and head.startswith(start)]
    return found[-1] if found else None


def parse(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return the content of a file.

    Every error is one line that names the file.
    """
    form = format_of(path, options.kind)
    with reader_errors(path, form.name):
        return form.read(path, options)


def announced(path: Path) -> Announced:
    """Return what headers announce, before anything is allocated by it."""
    form = format_of(path)
    with reader_errors(path, form.name):
        return form.announced(path) if form.announced else Announced()


def format_of(path: Path, kind: str | None = None) -> Format:
    """Return the format of a file's extension; an error lists those of a kind.

    Raise if the file does not begin like one.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise file_error(path, extension_problem(path), f"supported: {extensions(kind)}")
    with reader_errors(path, form.name):
        mode = path.stat().st_mode
        if form.is_folder:
            if not stat.S_ISDIR(mode):
                raise file_error(path, "is not a folder", f"give the folder of a {form.name} group")
            return form
        if not stat.S_ISREG(mode):
            problem = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
            raise file_error(path, problem, "give the path of a file")
        with path.open("rb") as file:
            head = file.read(64).removeprefix(codecs.BOM_UTF8)
        _check_start(path, head, form)
    return form


def _check_start(path: Path, head: bytes, form: Format) -> None:
    """Raise for an empty file, and for first bytes of another format than its extension's."""
    if not head:
        raise file_error(path, "is empty", "copy or download it again")
    if form.magic and head.startswith(form.magic):
        return
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and form.magic:
        raise file_error(path, "is text in UTF-16", "save it as text in UTF-8")
    others = [e for e, other in FORMATS.items() if len(other.magic) > 2 and head.startswith(other.magic)]
    if others and form.read is not stl.read:  # the header of a binary STL may begin with anything
        problem = f"is not {form.name} but looks like {others[0]}"
        raise file_error(path, problem, f"rename it to end in {others[0]}")
    if form.magic:
        problem = f"does not begin like {form.name}, but with {quoted(head[:16].decode('latin-1'))}"
        raise file_error(path, problem, "rename it to the extension of its format")
