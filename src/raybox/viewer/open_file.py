"""Opens paths, geometries and the bytes of an upload as a stage."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TypeAlias, cast

from raybox.errors import FileFormatError, RayboxError
from raybox.io.formats import FORMATS, announced, read
from raybox.io.formats.scans import Scan, scan_around_zero
from raybox.scene.scene import Scene
from raybox.validation import MaskInput
from raybox.viewer.stage import Solid, Stage, make_stage

MAX_BYTES = 256 * 2**20  # bytes of an upload
MAX_UNPACKED = 2**30  # bytes of an upload once it is unpacked
MAX_ROWS = 5_000_000  # rows of a scene
PathInput: TypeAlias = str | os.PathLike[str]
ViewInput: TypeAlias = PathInput | Solid | Scene | Stage | Sequence["PathInput | Solid"]


def stage_of(
    scene: ViewInput,
    *,
    boxes: bool = False,
    all_objects: bool = False,
    where: MaskInput = None,
    credit: str = "",
) -> Stage:
    """Return the stage of a file, a geometry, a scene, or of a list of files and geometries.

    Of IFC files, spaces and openings are read too, and hidden at the start unless `all_objects`.
    """
    if isinstance(scene, Stage):
        return scene
    if isinstance(scene, Solid | Scene):
        return make_stage(scene, where=where, credit=credit)
    listed = [*scene] if isinstance(scene, list | tuple) else [scene]
    solids: list[Solid] = []
    names: list[str] = []
    for one in listed:
        if isinstance(one, str | os.PathLike):
            solids += geometries_in(Path(one), boxes=boxes)
            names.append(Path(one).name)
        else:
            solids.append(cast("Solid", one))
    name = ", ".join(names) if 0 < len(names) <= 3 else "scene"
    return make_stage(solids, name, where=where, hides_spaces=not all_objects, credit=credit)


def geometries_in(path: Path, *, boxes: bool = False) -> list[Solid]:
    """Return the geometries of a file; raise, before it is read, if it is too large for a page."""
    if not boxes:  # else the objects of a mesh count, not its triangles
        check_rows(path, announced(path).rows)
    is_ifc = path.suffix.lower() == ".ifc"
    found = read(path, kind="scene", boxes=boxes, all_objects=is_ifc).geometry
    solids = cast("list[Solid]", found if isinstance(found, list) else [found])
    check_rows(path, sum(map(len, solids)))
    return solids


def check_rows(path: Path, rows: int) -> None:
    """Raise `RayboxError` if a file has too many rows for a page."""
    if rows > MAX_ROWS:
        raise RayboxError(f"{path}: {rows:,} rows exceed the limit of {MAX_ROWS:,} for a page")


def check_upload(name: str, size: int) -> str:
    """Return the name of an upload without folders; raise if it is too large, or no scene by its name."""
    plain = PurePosixPath(name.replace("\\", "/")).name[-80:] or "file"
    _check_size(plain, size, MAX_BYTES, "")
    suffix = PurePosixPath(plain).suffix.lower()
    if suffix not in FORMATS or FORMATS[suffix].is_folder:
        supported = " ".join(FORMATS)
        raise FileFormatError(f"{plain}: unsupported file extension {suffix!r}; supported: {supported}")
    return plain


def stage_of_bytes(name: str, content: bytes) -> Stage:
    """Return the stage of an uploaded scene's content."""
    with _uploaded(name, content) as (path, plain):
        return make_stage(geometries_in(path), plain, hides_spaces=True)


def scan_of_bytes(name: str, content: bytes) -> Scan:
    """Return the rays in an uploaded file's content."""
    with _uploaded(name, content) as (path, _):
        return scan_around_zero(path)


@contextmanager
def _uploaded(name: str, content: bytes) -> Iterator[tuple[Path, str]]:
    """Yield the path and the name of an uploaded file's content; errors name it as the user does.

    Only the extension of its name is used, and only if it is a format's: the content is parsed in a private
    folder that is removed afterwards.
    """
    plain = check_upload(name, len(content))
    with TemporaryDirectory(prefix="raybox-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"upload{PurePosixPath(plain).suffix.lower()}"
        path.write_bytes(content)
        try:
            _check_size(str(path), announced(path).bytes, MAX_UNPACKED, " once unpacked")
            yield path, plain
        except RayboxError as error:
            raise FileFormatError(str(error).replace(str(path), plain)) from error


def _check_size(name: str, size: int, most: int, state: str) -> None:
    if size > most:
        problem = f"{size / 2**20:,.0f} MiB{state} exceed the limit of {most / 2**20:g} MiB for uploads"
        raise RayboxError(f"{name}: {problem}; open it with: raybox view FILE")
