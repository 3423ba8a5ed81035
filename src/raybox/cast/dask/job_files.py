"""What workers read of a cast: its scene, ids of the objects, and arrays, with a manifest, written last."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from raybox.cast.arguments import Arguments, Value
from raybox.cast.scenes import AnyScene
from raybox.errors import FileFormatError
from raybox.io import manifest, scene_files
from raybox.io.manifest import Manifest, SceneFacts
from raybox.scene.scene import Scene
from raybox.split import SplitScene
from raybox.store.checksum import Json
from raybox.validation import Bools

_IDS, _READY = "ids.json", "ready.json"


class SplitPlace(NamedTuple):
    """The folder of a scene in parts, and the bytes that open parts may occupy."""

    folder: Path
    memory: int | None
    digest: str
    """Of the scene."""


class JobFiles(NamedTuple):
    """What was written for workers."""

    ids: list[str] | None
    arguments: Arguments


def place_of(scene: AnyScene) -> SplitPlace | None:
    """Return where workers find a scene in parts; None for others, whose files are written."""
    if isinstance(scene, SplitScene):
        return SplitPlace(scene.folder.resolve(), scene.memory, scene.digest)
    return None


def open_split(place: SplitPlace) -> SplitScene:
    """Return a scene in parts; raise `FileFormatError` if its folder holds another one by now."""
    scene = SplitScene.open(place.folder, memory=place.memory)
    if scene.digest != place.digest:
        raise FileFormatError(f"{place.folder}: holds another scene than the cast's; cast it again")
    return scene


def write(folder: Path, scene: AnyScene, ids: Sequence[str] | None, arguments: Arguments) -> None:
    """Write a scene, unless it has files already, ids and arguments into a folder."""
    if isinstance(scene, Scene):
        scene_files.write_scene(folder, scene)
    names = [scene_files.FACTS] if isinstance(scene, Scene) else []
    if ids is not None:
        (folder / _IDS).write_text(json.dumps([str(name) for name in ids]), encoding="utf-8")
        names.append(_IDS)
    written = dict[str, Json]()
    for name, value in arguments.items():
        files = list(_write_argument(folder, name, value))
        written[name] = value if isinstance(value, str) else [isinstance(value, list), files]
        names += [file for file in files if file]
    manifest.write(folder / _READY, cast(SceneFacts, {"arguments": written}), names)


def _write_argument(folder: Path, name: str, value: Value) -> Iterator[str]:
    """Write the arrays of an argument; yield the name of the file of each, empty for None."""
    for number, array in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(array, np.ndarray):
            np.save(folder / f"{name}-{number}.npy", array)
            yield f"{name}-{number}.npy"
        elif array is None:
            yield ""


def read(folder: Path) -> JobFiles:
    """Return ids and arguments, arrays mapped; raise `FileFormatError` unless all is whole."""
    opened = manifest.read(folder / _READY)
    for name in opened.files:
        opened.check_data(name)
    ids = json.loads((folder / _IDS).read_text(encoding="utf-8")) if _IDS in opened.files else None
    given = cast(dict[str, dict[str, str | tuple[bool, list[str]]]], opened.facts)["arguments"]
    return JobFiles(ids, {name: _read_argument(opened, value) for name, value in given.items()})


def _read_argument(opened: Manifest, value: "str | tuple[bool, list[str]]") -> Value:
    if isinstance(value, str):
        return value
    is_list, files = value
    if not is_list:
        return opened.array(files[0])
    return [cast(Bools, opened.array(file)) if file else None for file in files]
