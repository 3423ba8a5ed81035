"""What other processes read of a cast: the job, its scene, ids and arrays, with a manifest, written last."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

import numpy as np

from raybox.casting.arguments import Arguments, Value
from raybox.casting.call import CastCall, call_of
from raybox.casting.cast_folder import FILES, target_of
from raybox.casting.caster import BlockCaster
from raybox.casting.job import CastJob
from raybox.casting.scenes import mapped_files
from raybox.errors import FileFormatError
from raybox.io import manifest, scene_files
from raybox.io.formats.common import ReadOptions, file_error
from raybox.io.manifest import Manifest, SceneFacts
from raybox.store.folder import TEMPORARY, Folder
from raybox.store.identity import InputFiles
from raybox.validation import Bools

_IDS, _READY = "ids.json", "ready.json"


def write(folder: Folder, caster: BlockCaster) -> None:
    """Write the files of a caster into the folder of its cast, unless another process has.

    Damaged files are written again: a removal may have failed on the way, or the disk.
    """
    if folder.stat(FILES) is not None:
        with suppress(FileFormatError):
            _opened(folder.path / FILES)
            scene_files.read_scene(folder.path / FILES)
            return
        folder.remove(FILES)
    new = f"{TEMPORARY}{FILES}-{token_hex(6)}"
    with folder.subfolder(new) as inner:
        _write(inner.path, caster)
    try:
        folder.rename(new, FILES)
    except OSError:
        if folder.stat(FILES) is None:
            raise
        folder.remove(new)  # another process was faster


def _opened(folder: Path) -> Manifest:
    """Return the manifest of the files, after their checksums are compared."""
    opened = manifest.read(folder / _READY)
    for name in opened.files:
        opened.check_data(name)
    return opened


def _write(folder: Path, caster: BlockCaster) -> None:
    scene_files.write_scene(folder, caster.scene)
    names = [scene_files.FACTS]
    if caster.ids is not None:
        (folder / _IDS).write_text(json.dumps([str(name) for name in caster.ids]), encoding="utf-8")
        names.append(_IDS)
    facts: dict[str, Any] = {"job": _plain(caster.job), "arguments": {}}
    for name, value in caster.arguments.items():
        files = list(_write_argument(folder, name, value))
        facts["arguments"][name] = value if isinstance(value, str) else (isinstance(value, list), files)
        names += [file for file in files if file]
    manifest.write(folder / _READY, cast(SceneFacts, facts), names)


def _plain(job: CastJob) -> dict[str, Any]:
    """Return a job as a JSON value."""
    return {**job._asdict(), "rays": [str(path.absolute()) for path in job.rays], "folder": ""}


def _job_of(value: dict[str, Any], folder: Path) -> CastJob:
    options = ReadOptions(*value["options"])
    origin = options.origin
    options = options._replace(origin=None if origin is None else tuple(origin))
    rays, names = tuple(map(Path, value["rays"])), {name: tuple(value[name]) for name in ("labels", "carry")}
    return CastJob(**{**value, **names, "rays": rays, "options": options, "folder": folder})


def _write_argument(folder: Path, name: str, value: Value) -> Iterator[str]:
    """Write the arrays of an argument; yield the name of the file of each, empty for None."""
    for number, array in enumerate(value if isinstance(value, list) else [value]):
        if isinstance(array, np.ndarray):
            np.save(folder / f"{name}-{number}.npy", array)
            yield f"{name}-{number}.npy"
        elif array is None:
            yield ""


def caster_in(folder: Path, *, large_pages: bool = False) -> BlockCaster:
    """Return what casts the blocks of a folder; arrays are mapped.

    Raise `FileFormatError` unless all files are whole.
    """
    if not (folder / FILES).is_dir():
        problem = "holds no files of a cast"
        raise file_error(folder, problem, "begin it with blocks= of raybox.cast, or --blocks")
    opened = _opened(folder / FILES)
    ids = json.loads((folder / FILES / _IDS).read_text(encoding="utf-8")) if _IDS in opened.files else None
    facts = cast(dict[str, Any], opened.facts)
    arguments: Arguments = {name: _read_argument(opened, value) for name, value in facts["arguments"].items()}
    scene = scene_files.read_scene(folder / FILES, large_pages=large_pages)
    return BlockCaster(_job_of(facts["job"], folder), scene, arguments, ids)


def rays_in(folder: Path) -> Iterator[Path]:
    """Yield the files of rays that the job of a folder names."""
    yield from map(Path, cast(dict[str, Any], manifest.read(folder / FILES / _READY).facts)["job"]["rays"])


def call_in(folder: Path) -> CastCall:
    """Return the call that began a folder, for another process."""
    target, caster = target_of(folder), caster_in(folder)
    return call_of(caster, target, InputFiles([*caster.job.rays, *mapped_files(caster.scene)]))


def _read_argument(opened: Manifest, value: "str | tuple[bool, list[str]]") -> Value:
    if isinstance(value, str):
        return value
    is_list, files = value
    if not is_list:
        return opened.array(files[0])
    return [cast(Bools, opened.array(file)) if file else None for file in files]
