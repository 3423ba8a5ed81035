"""What workers read of a cast: its scene, ids of the objects, and arrays, with a manifest, written last."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypedDict, cast

import numpy as np

from raybox.casting.arguments import Arguments, Value
from raybox.casting.scenes import AnyScene
from raybox.errors import FileFormatError
from raybox.io import manifest, scene_files
from raybox.io.manifest import Manifest, SceneFacts
from raybox.split import SplitScene
from raybox.validation import Bools

_IDS, _READY = "ids.json", "ready.json"


class JobFiles(NamedTuple):
    """What was written for workers."""

    scene: AnyScene
    ids: list[str] | None
    arguments: Arguments


class _JobFacts(TypedDict):
    """Facts of the manifest."""

    split: tuple[str, int | None, str] | None
    """Folder, memory and digest of a scene in parts; None: the scene is among the files."""
    arguments: dict[str, str | tuple[bool, list[str]]]


def write(folder: Path, scene: AnyScene, ids: Sequence[str] | None, arguments: Arguments) -> None:
    """Write a scene, unless it has files already, ids and arguments into a folder."""
    names, split = list[str](), None
    if isinstance(scene, SplitScene):
        split = str(scene.folder.resolve()), scene.memory, scene.digest
    else:
        scene_files.write_scene(folder, scene)
        names.append(scene_files.FACTS)
    if ids is not None:
        (folder / _IDS).write_text(json.dumps([str(name) for name in ids]), encoding="utf-8")
        names.append(_IDS)
    facts = _JobFacts(split=split, arguments={})
    for name, value in arguments.items():
        files = list(_write_argument(folder, name, value))
        facts["arguments"][name] = value if isinstance(value, str) else (isinstance(value, list), files)
        names += [file for file in files if file]
    manifest.write(folder / _READY, cast(SceneFacts, facts), names)


def _write_argument(folder: Path, name: str, value: Value) -> Iterator[str]:
    """Write the arrays of an argument; yield the name of the file of each, empty for None."""
    for number, array in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(array, np.ndarray):
            np.save(folder / f"{name}-{number}.npy", array)
            yield f"{name}-{number}.npy"
        elif array is None:
            yield ""


def read(folder: Path, *, large_pages: bool = False) -> JobFiles:
    """Return scene, ids and arguments, arrays mapped; raise `FileFormatError` unless all is whole."""
    opened = manifest.read(folder / _READY)
    for name in opened.files:
        opened.check_data(name)
    ids = json.loads((folder / _IDS).read_text(encoding="utf-8")) if _IDS in opened.files else None
    facts = cast(_JobFacts, opened.facts)
    arguments = {name: _read_argument(opened, value) for name, value in facts["arguments"].items()}
    if facts["split"] is None:
        return JobFiles(scene_files.read_scene(folder, large_pages=large_pages), ids, arguments)
    return JobFiles(_open_split(*facts["split"]), ids, arguments)


def _open_split(folder: str, memory: int | None, digest: str) -> SplitScene:
    """Return a scene in parts; raise `FileFormatError` if its folder holds another one by now."""
    scene = SplitScene.open(folder, memory=memory)
    if scene.digest != digest:
        raise FileFormatError(f"{folder}: holds another scene than the cast's; cast it again")
    return scene


def _read_argument(opened: Manifest, value: "str | tuple[bool, list[str]]") -> Value:
    if isinstance(value, str):
        return value
    is_list, files = value
    if not is_list:
        return opened.array(files[0])
    return [cast(Bools, opened.array(file)) if file else None for file in files]
