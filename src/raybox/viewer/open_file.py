"""Opens a file, or the bytes of an upload, as a stage."""

import os
import tempfile
from pathlib import Path, PurePosixPath

from raybox.errors import FileFormatError, InvalidInput, RayboxError
from raybox.geometry import Planes, Rays
from raybox.io.formats import FORMATS, announced, read
from raybox.io.formats.common import Loadable
from raybox.scene.scene import Scene
from raybox.validation import MaskInput
from raybox.viewer.stage import Solid, Stage, stage

MAX_BYTES = 256 * 2**20  # bytes of an upload
MAX_UNPACKED = 2**30  # bytes of an upload once it is unpacked
MAX_ROWS = 5_000_000  # rows of a scene


def stage_of(
    scene: "str | os.PathLike[str] | Solid | Scene | Stage", *, boxes: bool = False, where: MaskInput = None
) -> Stage:
    """Return the stage of a file, a geometry or a scene."""
    if isinstance(scene, Stage):
        return scene
    if isinstance(scene, Solid | Scene):
        return stage(scene, where=where)
    if not isinstance(scene, str | os.PathLike):
        found = type(scene).__name__
        raise InvalidInput(f"scene must be a path, a geometry or a Scene; got {found}.")
    return _read(Path(scene), Path(scene).name, boxes, where)


def stage_of_bytes(name: str, content: bytes) -> Stage:
    """Return the stage of an uploaded file's content.

    Only the extension of its name is used, and only if it is a format's: the content is parsed in a private
    folder that is removed afterwards.
    """
    plain = PurePosixPath(name.replace("\\", "/")).name[-80:] or "file"
    if len(content) > MAX_BYTES:
        raise too_large(plain, len(content))
    suffix = PurePosixPath(plain).suffix.lower()
    if suffix not in FORMATS or FORMATS[suffix].is_folder:
        raise FileFormatError(
            f"{plain}: unsupported file extension {suffix!r}; supported: {' '.join(FORMATS)}"
        )
    with tempfile.TemporaryDirectory(prefix="raybox-") as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(content)
        try:
            _check_unpacked(path)
            return _read(path, plain, boxes=False)
        except RayboxError as error:
            raise FileFormatError(str(error).replace(str(path), plain)) from error


def too_large(name: str, size: int) -> RayboxError:
    """Return the error for an upload of this many bytes."""
    limit = f"{MAX_BYTES / 2**20:g} MiB"
    return RayboxError(
        f"{name}: {size / 2**20:.0f} MiB exceed the limit of {limit} for uploads; "
        "open it with: raybox view FILE"
    )


def _check_unpacked(path: Path) -> None:
    """Raise `RayboxError` if the headers of a file announce too many bytes."""
    size = announced(path).bytes
    if size > MAX_UNPACKED:
        problem = f"{size / 2**20:,.0f} MiB once unpacked exceed the limit of {MAX_UNPACKED / 2**20:g} MiB"
        raise RayboxError(f"{path}: {problem} for uploads; open it with: raybox view FILE")


def check_announced(path: Path) -> None:
    """Raise `RayboxError` if the header of a file announces too many rows for a page."""
    _check_rows(path, announced(path).rows)


def stage_of_content(geometry: Loadable, path: Path, name: str, where: MaskInput = None) -> Stage:
    """Return the stage of what a file holds; raise for what the page does not show."""
    if isinstance(geometry, Rays):
        raise FileFormatError(f"{path}: contains rays, not a scene; pass a file of boxes or a mesh")
    if isinstance(geometry, Planes | list):
        found = "planes" if isinstance(geometry, Planes) else "several geometries"
        way_out = "save the others in a file" if found == "planes" else "save each in a file of its own"
        raise FileFormatError(f"{path}: contains {found}, which the page does not show; {way_out}")
    _check_rows(path, len(geometry))
    return stage(geometry, name, where=where)


def _check_rows(path: Path, rows: int) -> None:
    if rows > MAX_ROWS:
        raise RayboxError(f"{path}: {rows:,} rows exceed the limit of {MAX_ROWS:,} for a page")


def _read(path: Path, name: str, boxes: bool, where: MaskInput = None) -> Stage:
    if not boxes:  # else the objects of a mesh count, not its triangles
        check_announced(path)
    return stage_of_content(read(path, kind="scene", boxes=boxes).geometry, path, name, where)
