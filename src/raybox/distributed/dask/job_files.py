"""Files of a job's scene: the scene itself, other ids of its objects, and a list of both, written last."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from raybox.errors import FileFormatError, RayboxError
from raybox.io import checked_json, manifest, scene_files
from raybox.scene.scene import Scene
from raybox.split import SplitScene

IDS, _READY = "ids.json", "ready"


class SplitPlace(NamedTuple):
    """The folder of a scene in parts, and the bytes that open parts may occupy."""

    folder: Path
    memory: int | None
    digest: str
    """Of the scene."""


def place_of(scene: SplitScene) -> SplitPlace:
    """Return where workers find a scene in parts."""
    return SplitPlace(scene.folder.resolve(), scene.memory, scene.digest)


def open_split(place: SplitPlace) -> SplitScene:
    """Return a scene in parts; raise `FileFormatError` if its folder holds another one by now."""
    scene = SplitScene.open(place.folder, memory=place.memory)
    if scene.digest != place.digest:
        raise FileFormatError(f"{place.folder}: holds another scene than the cast's; cast it again")
    return scene


def write(folder: Path, scene: Scene | SplitScene, ids: Sequence[str] | None) -> None:
    """Write a scene, unless it has files of its own, and ids into a folder."""
    if isinstance(scene, Scene):
        scene_files.write_scene(folder, scene)
    checked_json.write(folder / IDS, None if ids is None else [str(name) for name in ids])
    names = [IDS, scene_files.FACTS] if isinstance(scene, Scene) else [IDS]
    manifest.write(folder / _READY, {}, names)


def read_ids(folder: Path) -> list[str] | None:
    """Return the ids in a folder; raise `FileFormatError` unless it is complete."""
    complete = manifest.read(folder / _READY)
    for name in complete.files:
        complete.check_data(name)
    ids: list[str] | None = checked_json.read(folder / IDS).content
    return ids


def are_valid(folder: Path, scene: Scene | SplitScene) -> bool:
    """Return whether an earlier call has written the files of a scene and its ids, and they are whole."""
    try:
        read_ids(folder)
        if isinstance(scene, Scene):
            scene_files.read_scene(folder)
    except RayboxError:
        return False
    return True
