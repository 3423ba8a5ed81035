"""The folder of parts: ``OUT.raybox-parts``, beside the output until that is complete.

It holds ``job.json`` (the manifest), the scene's files, the output as far as it is joined (``output`` and
``joined``, see `raybox.distributed.dask.join_parts`), and the parts after that: ``part-000000012``, ..., the
results of one chunk of rays each. A worker writes a part under another name and renames it; written twice, it
is the same bytes. It ends with a trailer: its job, its number, and the length of the results. The manifest,
each line of the list and each trailer hold a checksum of themselves. While a cast runs, the empty file
``running-TOKEN`` names its job.
"""

import json
import os
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import numpy as np

from raybox.errors import FileFormatError, RayboxError
from raybox.io import checked_json, checksums, own_files
from raybox.io.checksums import Facts
from raybox.io.chunked import column_kernels, output_folder
from raybox.io.chunked.output_lock import is_lock, locked
from raybox.io.formats.common import file_error


class PartInfo(NamedTuple):
    """The trailer of a part."""

    rays: int
    rows: int
    hit_count: int
    length: int
    """Of the results, in bytes."""
    rays_checksum: str


class JoinedPart(NamedTuple):
    """A part that is joined."""

    info: PartInfo
    lengths: dict[str, int]
    """Of the output's files after it."""
    checksums: dict[str, str]
    """Of the bytes that each file got with it."""


def joined_line(number: int, part: JoinedPart) -> bytes:
    """Return the line of a part in the list of joined ones; it ends with a checksum of itself."""
    content = [number, part.info, part.lengths, part.checksums]
    return json.dumps([*content, checksums.of_text(json.dumps(content))]).encode() + b"\n"


def read_joined(log: Path, output: Path) -> list[JoinedPart]:
    """Return the parts that are joined.

    From the first on, as far as the lines of the list are whole: parts after those are written again.

    There are none if the output's files are missing: an earlier call has moved them to their place.
    """
    joined = list[JoinedPart]()
    for line in log.read_bytes().splitlines(keepends=True) if log.exists() else ():
        part = _joined_part(line, len(joined))
        if part is None:
            break
        joined.append(part)
    size = sum(path.stat().st_size for path in output.rglob("*")) if output.exists() else 0
    return joined if joined and size >= sum(joined[-1].lengths.values()) else []


def _joined_part(line: bytes, number: int) -> JoinedPart | None:
    """Return the part in a line of the list; None unless the line is whole, and has this number."""
    try:
        _, info, lengths, sums, _ = json.loads(line)
        part = JoinedPart(PartInfo(*info), dict(lengths), dict(sums))
    except (ValueError, TypeError, RecursionError):
        return None
    return part if line == joined_line(number, part) else None


SCENE = "scene"
PART_SUFFIX = {".parquet": ".parquet", ".csv": ".csv", ".npy": ".npy", ".npz": ".npy", ".zarr": ".npy"}
"""The format of the parts, by the format of the output."""
MANIFEST = "job.json"
_PART, _WORK, _RUNNING, _OUTPUT, _JOINED = "part-", "work-", "running-", "output", "joined"
_MAGIC = b"raybox-2"
_BLOCK = 1 << 22  # bytes of a part that are read at once: whole rounds of all lanes
_LANES = 32  # checksums side by side: with eight, which wait for each other, a third slower
_REMOVERS = 4  # files removed at a time: freeing the page cache of one takes 12 ms
_TRAILER = struct.Struct("<8s16sQQQQQ16s16s")


def part_path(folder: Path, number: int) -> Path:
    """Return the path of a part."""
    return folder / f"{_PART}{number:09}"


def part_number(part: Path) -> int:
    """Return the number of the part with a path."""
    return int(part.name.removeprefix(_PART))


def write_trailer(path: Path, info: PartInfo, job_id: str, number: int) -> None:
    """Append the trailer to the results of a part."""
    numbers, ends = (number, *info[:4]), (info.rays_checksum, _part_checksum(path, info, job_id, number))
    with path.open("ab") as file:
        file.write(_TRAILER.pack(_MAGIC, bytes.fromhex(job_id), *numbers, *map(bytes.fromhex, ends)))


def read_trailer(path: Path, job_id: str) -> PartInfo | None:
    """Return the trailer of a part.

    None if the part is missing, incomplete, of another job, or not the one of this name.
    """
    info, own_checksum = _unpacked(path, job_id)
    if info is None:
        return None
    return info if _part_checksum(path, info, job_id, part_number(path)) == own_checksum else None


def check_joined(path: Path, job_id: str, info: PartInfo) -> None:
    """Raise `FileFormatError` unless a part has this trailer; its bytes were checked when it was written."""
    if _unpacked(path, job_id)[0] != info:
        problem = f"is not part {part_number(path)} of this cast"
        raise file_error(path, problem, "cast again: it is written anew")


def _unpacked(path: Path, job_id: str) -> tuple[PartInfo | None, str]:
    """Return the trailer of a part, and the checksum in it; None unless it is of the job and the number."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            file.seek(max(0, size - _TRAILER.size))
            magic, job, number, *numbers, rays, own = _TRAILER.unpack(file.read(_TRAILER.size))
    except (OSError, struct.error):
        return None, ""
    info = PartInfo._make([*numbers, rays.hex()])
    is_own = (magic, job.hex(), number) == (_MAGIC, job_id, part_number(path))
    return info if is_own and info.length + _TRAILER.size == size else None, own.hex()


def _part_checksum(path: Path, info: PartInfo, job_id: str, number: int) -> str:
    """Return the checksum of the results of a part, and of what its trailer says."""
    return checksums.of_text(checksum_of_file(path, 0, info.length), job_id, str(number), *map(str, info))


def checksum_of_file(path: Path, start: int, end: int) -> str:
    """Return the checksum of a file's bytes from `start` to before `end`.

    It is read, not mapped: Dask's profiler may keep this frame, and Windows moves no file that is mapped.
    """
    state, left = np.arange(_LANES, dtype=np.uint64), end - start
    block = np.empty(min(left, _BLOCK), np.uint8)
    with path.open("rb") as file:
        file.seek(start)
        while True:
            some = block[: min(left, _BLOCK)]
            if file.readinto(some.data) != some.size:
                raise OSError(f"{path} has become shorter")
            words = some.size // 8 * 8
            column_kernels.add_to_checksums(some[:words].view(np.uint64), state)
            left -= some.size
            if not left:
                return checksums.of_text(state.tobytes().hex(), some[words:].tobytes().hex())


class PartFolder:
    """The folder of one output.

    job: what determines the results; fingerprint: of the file of rays.
    """

    def __init__(self, target: Path, job: Facts, fingerprint: Facts) -> None:
        self.given, self.target = target, target.resolve()
        self.path = output_folder.parts_folder_of(target)
        self.job, self.fingerprint = job, fingerprint
        self.same_input, self.job_id = True, uuid4().hex
        """The id is stored in the manifest, and in the trailer of each part."""
        self.output, self.log = self.path / _OUTPUT, self.path / _JOINED

    def load(self) -> None:
        """Read the manifest, or write it.

        Raise for a folder of another job.
        """
        path = self.path / MANIFEST
        if not path.exists():
            if output_folder.has_other_files(self.path, MANIFEST):
                raise output_folder.foreign_folder(self.path, f"exists, but has no {MANIFEST}")
        else:
            try:
                stored = checked_json.read(path).content
                job, fingerprint, self.job_id = dict(stored["job"]), stored["input"], str(stored["id"])
            except (FileFormatError, ValueError, KeyError, TypeError) as error:
                problem = f"has a {MANIFEST} that cannot be read, or is damaged"
                raise output_folder.foreign_folder(self.path, problem) from error
            output_folder.check_same_job(self.given, self.path, job, self.job)
            self.same_input = fingerprint == self.fingerprint
        if self.same_input:
            self.write_manifest()

    def write_manifest(self) -> None:
        """Write the job, and the fingerprint of the rays."""
        new = self.path / (MANIFEST + ".new")
        checked_json.write(new, {"job": self.job, "input": self.fingerprint, "id": self.job_id})
        os.replace(new, self.path / MANIFEST)

    def place_output(self, output: Path) -> None:
        """Move the complete output to its place, and remove the folder."""
        output_folder.sync(output)
        os.replace(output, self.target)
        output_folder.sync_folder(self.target.parent)
        self.remove()

    def with_progress(self, error: BaseException) -> BaseException:
        """Return an error whose text, or note, also gives the parts that are stored."""
        number = self.done()
        text = (
            f"{number:,} parts are done and stored in {self.path.name}; the same command continues from there"
        )
        if not number:
            return error
        if isinstance(error, RayboxError):
            return type(error)(f"{error}; {text}")
        error.add_note(text)
        return error

    def clear_work(self) -> None:
        """Remove unfinished parts of workers that died or were stopped, and the marks of such casts."""
        for item in (*self.path.glob(_WORK + "*"), *self.path.glob(_RUNNING + "*")):
            own_files.remove(item, ignore_errors=True)

    def remove(self) -> None:
        """Empty the folder, the manifest last: it identifies the other files."""
        items = [item for item in self.path.iterdir() if item.name != MANIFEST and not is_lock(item.name)]
        with ThreadPoolExecutor(_REMOVERS) as pool:
            list(pool.map(partial(own_files.remove, ignore_errors=True), items))
        own_files.remove(self.path / MANIFEST)

    def joined(self) -> list[JoinedPart]:
        """Return the parts that are joined."""
        return read_joined(self.log, self.output)

    def done(self) -> int:
        """Return the number of parts that are done."""
        joined = len(self.joined())
        return joined + sum(1 for path in self.path.glob(_PART + "*") if part_number(path) >= joined)


def make_work_folder(folder: Path) -> Path:
    """Make a folder for the unfinished parts of one thread."""
    path = folder / f"{_WORK}{uuid4().hex[:12]}"
    path.mkdir()
    return path


def running_mark(folder: Path, token: str) -> Path:
    """Return the path of the file that exists while a job runs."""
    return folder / (_RUNNING + token)


@contextmanager
def open_part_folder(target: Path, job: Facts, fingerprint: Facts) -> Iterator[PartFolder]:
    """Yield the folder of an output, locked.

    It is removed if nothing is done.
    """
    folder = PartFolder(target, job, fingerprint)
    with locked(target, folder.path):
        folder.load()
        folder.clear_work()
        try:
            yield folder
        finally:
            if folder.path.exists():
                folder.clear_work()
                if not folder.done():
                    folder.remove()
