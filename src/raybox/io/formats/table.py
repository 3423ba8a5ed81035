"""The table of formats: a line each, of which all else follows."""

import codecs
import stat
from collections.abc import Callable
from importlib import import_module
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
from raybox.io.formats.columns import TEXTS
from raybox.io.formats.common import (
    PACKED,
    FileArrays,
    Loaded,
    ReadOptions,
    extension_problem,
    file_error,
    quoted,
    reader_errors,
)
from raybox.io.formats.foreign_files import EXTENSIONS, foreign_start
from raybox.io.formats.tables import Announced, Table, whole

Reader = Callable[[Path, ReadOptions], Loaded | FileArrays]
SCENE, RAYS = "scene", "rays"
SAVED_SCENE = ".scene"
_HEAD = 256  # first bytes of a file, by which its format is checked


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

    def begins(self, head: bytes) -> bool:
        """Return whether a file begins as those of this format, and not as many others do."""
        start = self.first or self.magic
        return (len(start) > 2 or start == b"{") and head.startswith(start)


def _table(table: Callable[[Path, ReadOptions], Table], magic: bytes, name: str, *kinds: str) -> Format:
    """Return the format of a table, from its reader."""
    return Format(
        lambda path, options: whole(table(path, options), options),
        magic,
        name,
        kinds,
        lambda path: table(path, ReadOptions()).announced(),
        table,
    )


def _saved_scene(path: Path, options: ReadOptions) -> Loaded:
    """Return the geometry of a saved scene."""
    found: Loaded = import_module("raybox.io.scene_files").load(path, boxes=options.boxes)
    return found


def _announced_scene(path: Path) -> Announced:
    whole = import_module("raybox.io.scene_files").open_folder(path)
    return Announced(whole.size, whole.opened.bytes)


_PARQUET = _table(lambda path, _: parquet.ParquetTable(path), b"PAR1", "Parquet", SCENE, RAYS)
_LAS = _table(lambda path, _: point_clouds.LasTable(path), b"LASF", "LAS", RAYS)
_TEXT = _table(csv_table.CsvTable, b"", "a table of text", SCENE, RAYS)
FORMATS = {
    ".npz": Format(
        *(saved_arrays.read, b"PK", "NumPy arrays (npz)", (SCENE, RAYS)),
        *(numpy_arrays.announced_npz, numpy_arrays.open_npz),
    ),
    ".npy": _table(numpy_arrays.NpyTable, b"\x93NUMPY", "a NumPy table (npy)", SCENE, RAYS),
    **{suffix: _TEXT._replace(name="CSV" if suffix == ".csv" else _TEXT.name) for suffix in TEXTS},
    ".bin": _table(numpy_arrays.BinTable, b"", "rows of float32", SCENE, RAYS)._replace(announced=None),
    ".parquet": _PARQUET._replace(read=saved_tables.read),
    ".ply": Format(ply.read, b"ply", "PLY", (SCENE, RAYS), ply.announced),
    ".obj": Format(obj.read, b"", "Wavefront OBJ", announced=obj.announced),
    ".stl": Format(stl.read, b"", "STL", announced=stl.announced),
    ".glb": Format(glb.read, b"glTF", "binary glTF", announced=glb.announced),
    ".gltf": Format(glb.read, b"", "glTF", announced=glb.announced, first=b"{"),
    ".ifc": Format(ifc.read, b"ISO-10303-21", "IFC"),
    ".jsonl": Format(cityjson.read, b"", "CityJSONSeq", first=b"{"),
    ".json": Format(cityjson.read, b"", "CityJSON", first=b"{"),
    ".vox": Format(vox.read, b"VOX ", "MagicaVoxel", announced=vox.announced),
    ".las": _LAS,
    ".laz": _LAS._replace(name="LAZ"),
    ".pcd": Format(pcd.read, b"", "PCD", (RAYS,), pcd.announced, first=b"# .PCD"),
    ".zarr": _table(zarr_arrays.open_zarr, b"", "Zarr", SCENE, RAYS)._replace(announced=None, is_folder=True),
    SAVED_SCENE: Format(_saved_scene, b"", "raybox scene", announced=_announced_scene, is_folder=True),
}


def extensions(kind: str | None = None) -> str:
    """Return the extensions for a kind of content; None: of all."""
    return " ".join(name for name, form in FORMATS.items() if kind is None or kind in form.kinds)


def extension_of(head: bytes) -> str | None:
    """Return the extension of files that begin so; of LAS, ``.laz``."""
    starts = {ext: form.first or form.magic for ext, form in FORMATS.items()}
    return next((ext for ext, start in [*starts.items()][::-1] if start and head.startswith(start)), None)


def parse(path: Path, options: ReadOptions) -> Loaded | FileArrays:
    """Return the content of a file; each error is one line that names it."""
    form = format_of(path, options.kind)
    with reader_errors(path, form.name):
        return form.read(path, options)


def announced(path: Path) -> Announced:
    """Return what headers announce, before anything is allocated by it."""
    if path.suffix.lower() == PACKED:
        return Announced()
    form = format_of(path)
    with reader_errors(path, form.name):
        return form.announced(path) if form.announced else Announced()


def format_of(path: Path, kind: str | None = None) -> Format:
    """Return the format of a file's extension; raise unless the file begins like one."""
    suffix = path.suffix.lower()
    form = FORMATS.get(suffix)
    if form is None:
        kind = {"boxes": SCENE, "points": RAYS}.get(kind or "", kind)
        way_out = EXTENSIONS.get(suffix, f"supported: {extensions(kind)}")
        raise file_error(path, extension_problem(path), way_out)
    with reader_errors(path, form.name):
        if form.is_folder:
            if not stat.S_ISDIR(path.stat().st_mode):
                raise file_error(path, "is not a folder", f"give a {form.name} folder")
            return form
        _check_start(path, first_bytes(path), form)
    return form


def first_bytes(path: Path) -> bytes:
    """Return the first bytes of a regular file, without the mark of UTF-8; raise if it is none, or empty."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        problem = "is a folder" if stat.S_ISDIR(mode) else "is not a regular file"
        raise file_error(path, problem, "give the path of a file")
    with path.open("rb") as file:
        head = file.read(_HEAD).removeprefix(codecs.BOM_UTF8)
    if not head:
        raise file_error(path, "is empty", "copy or download it again")
    return head


def _check_start(path: Path, head: bytes, form: Format) -> None:
    """Raise for first bytes of another format than its extension's."""
    if form.magic and head.startswith(form.magic):
        return
    if form.read is stl.read and stl.is_binary(path):  # its header may begin with anything
        return
    if found := foreign_start(head):
        raise file_error(path, f"is {found[0]}, not {form.name}", found[1])
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and form.magic:
        raise file_error(path, "is text in UTF-16", "save it as text in UTF-8")
    others = [e for e, other in FORMATS.items() if other.begins(head)]
    if others and not form.begins(head):
        problem = f"is not {form.name} but looks like {' or '.join(others)}"
        raise file_error(path, problem, f"rename it to end in {others[0]}")
    if form.magic:
        problem = f"does not begin like {form.name}, but with {quoted(head[:16].decode('latin-1'))}"
        raise file_error(path, problem, "rename it to the extension of its format")
