"""What is shown comes from a file, or from the bytes of one that the page sends."""

import os
import tempfile
from pathlib import Path, PurePosixPath

from raybox.errors import FileFormatError, InvalidInput, RayboxError
from raybox.geometry import Boxes, Mesh, Rays
from raybox.io.formats import FORMATS, read
from raybox.scene.scene import Scene
from raybox.viewer.stage import Stage, stage

LARGEST = 256 * 2**20  # bytes of an upload
MOST = 5_000_000  # rows of a scene that is uploaded


def stage_of(scene: "str | os.PathLike[str] | Boxes | Mesh | Scene", *, boxes: bool = False) -> Stage:
    """Put a file, boxes, a mesh or a scene on a stage."""
    if isinstance(scene, Boxes | Mesh | Scene):
        return stage(scene)
    if not isinstance(scene, str | os.PathLike):
        raise InvalidInput(
            f"view shows a file, Boxes, a Mesh or a Scene; got {type(scene).__name__}. Give one of these."
        )
    return _read(Path(scene), Path(scene).name, boxes)


def stage_of_bytes(name: str, content: bytes) -> Stage:
    """Put the content of a file that the page sent on a stage.

    Nothing but the ending of its name is used, and only if it is that of a format: the content is parsed in
    a private folder that is gone afterwards.
    """
    plain = PurePosixPath(name.replace("\\", "/")).name[-80:] or "file"
    if len(content) > LARGEST:
        raise too_large(plain, len(content))
    suffix = PurePosixPath(plain).suffix.lower()
    if suffix not in FORMATS:
        raise FileFormatError(f"{plain}: raybox does not know its ending; it reads {' '.join(FORMATS)}")
    with tempfile.TemporaryDirectory(prefix="raybox-") as folder:
        path = Path(folder) / f"upload{suffix}"
        path.write_bytes(content)
        try:
            return _read(path, plain, boxes=False)
        except RayboxError as error:
            raise FileFormatError(str(error).replace(str(path), plain)) from error


def too_large(name: str, size: int) -> RayboxError:
    """Word the refusal of an upload by its size."""
    limit = f"{LARGEST / 2**20:g} MiB"
    return RayboxError(
        f"{name}: {size / 2**20:.0f} MiB are more than the {limit} that the page takes; "
        "open it with: raybox view FILE"
    )


def _read(path: Path, name: str, boxes: bool) -> Stage:
    loaded = read(path, kind="scene", boxes=boxes)
    if isinstance(loaded.geometry, Rays):
        raise FileFormatError(f"{path}: holds rays, not a scene; give a file of boxes or a mesh")
    if len(loaded.geometry) > MOST:
        raise RayboxError(
            f"{path}: {len(loaded.geometry):,} rows are more than the {MOST:,} that a page shows"
        )
    return stage(loaded.geometry, name, loaded.ids, loaded.labels)
