"""Opens paths, geometries and the bytes of an upload as a stage."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TypeAlias, cast

from raybox.errors import FileFormatError, InvalidInput, RayboxError
from raybox.geometry import Rays
from raybox.io.formats import FORMATS, announced, read
from raybox.io.formats.common import Loadable
from raybox.scene.scene import Scene
from raybox.validation import MaskInput
from raybox.viewer.bounds import Solid
from raybox.viewer.stage import NOT_A_SCENE, Stage, make_stage

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
    geometries: list[Solid] = []
    for one in listed:
        geometries += _geometries(cast("PathInput | Solid", one), boxes)
    paths = [Path(one).name for one in listed if isinstance(one, str | os.PathLike)]
    name = ", ".join(paths) if 0 < len(paths) <= 3 else "scene"
    return make_stage(
        geometries[0] if len(geometries) == 1 else geometries,
        name,
        where=where,
        hides_spaces=not all_objects,
        credit=credit,
    )


def _geometries(one: PathInput | Solid, boxes: bool) -> list[Solid]:
    """Return the geometries of one file, or a geometry itself."""
    if isinstance(one, Solid):
        return [one]
    if not isinstance(one, str | os.PathLike):
        raise InvalidInput(f"{NOT_A_SCENE}; got {type(one).__name__}.")
    return geometries_in(Path(one), boxes=boxes)


def geometries_in(path: Path, *, boxes: bool = False) -> list[Solid]:
    """Return the geometries of a file; raise, before it is read, if it is too large for a page."""
    if not boxes:  # else the objects of a mesh count, not its triangles
        check_announced(path)
    is_ifc = path.suffix.lower() == ".ifc"
    return checked_content(read(path, kind="scene", boxes=boxes, all_objects=is_ifc).geometry, path)


def checked_content(content: Loadable, path: Path) -> list[Solid]:
    """Return the geometries that a file holds; raise for rays, and for too many rows."""
    if isinstance(content, Rays):
        raise FileFormatError(f"{path}: contains rays, not a scene; pass a file of boxes or a mesh")
    found = content if isinstance(content, list) else [content]
    _check_rows(path, sum(map(len, found)))
    return [*found]


def stage_of_bytes(name: str, content: bytes) -> Stage:
    """Return the stage of an uploaded file's content.

    Only the extension of its name is used, and only if it is a format's: the content is parsed in a private
    folder that is removed afterwards.
    """
    plain = check_upload(name, len(content))
    with TemporaryDirectory(prefix="raybox-") as folder:
        path = upload_path(Path(folder), plain)
        path.write_bytes(content)
        return stage_of_upload(path, plain)


def check_upload(name: str, size: int) -> str:
    """Return the name of an upload without folders; raise if it is too large, or no scene by its name."""
    plain = PurePosixPath(name.replace("\\", "/")).name[-80:] or "file"
    if size > MAX_BYTES:
        raise RayboxError(
            f"{plain}: {size / 2**20:.0f} MiB exceed the limit of {MAX_BYTES / 2**20:g} MiB for uploads; "
            "open it with: raybox view FILE"
        )
    suffix = PurePosixPath(plain).suffix.lower()
    if suffix not in FORMATS or FORMATS[suffix].is_folder:
        raise FileFormatError(
            f"{plain}: unsupported file extension {suffix!r}; supported: {' '.join(FORMATS)}"
        )
    return plain


def upload_path(folder: Path, name: str) -> Path:
    """Return the path of an upload in its folder: of its name, the extension alone."""
    return folder / f"upload{PurePosixPath(name).suffix.lower()}"


def stage_of_upload(path: Path, name: str) -> Stage:
    """Return the stage of an uploaded file; errors name it as the user does."""
    try:
        _check_unpacked(path)
        geometries = geometries_in(path)
        return make_stage(geometries, name, hides_spaces=True)
    except RayboxError as error:
        raise FileFormatError(str(error).replace(str(path), name)) from error


def _check_unpacked(path: Path) -> None:
    """Raise `RayboxError` if the headers of a file announce too many bytes."""
    size = announced(path).bytes
    if size > MAX_UNPACKED:
        problem = f"{size / 2**20:,.0f} MiB once unpacked exceed the limit of {MAX_UNPACKED / 2**20:g} MiB"
        raise RayboxError(f"{path}: {problem} for uploads; open it with: raybox view FILE")


def check_announced(path: Path) -> None:
    """Raise `RayboxError` if the header of a file announces too many rows for a page."""
    _check_rows(path, announced(path).rows)


def _check_rows(path: Path, rows: int) -> None:
    if rows > MAX_ROWS:
        raise RayboxError(f"{path}: {rows:,} rows exceed the limit of {MAX_ROWS:,} for a page")
