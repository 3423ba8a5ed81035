"""Manifests: sizes, shapes, dtypes and checksums of the files of a folder.

Sizes and headers are checked when a folder is opened. Data is checked when an array is first mapped, by
CRC-32, which every error of up to 32 bits in a row changes (zlib's is four times as fast as BLAKE2b).
"""

import os
from collections.abc import Callable, Iterable
from math import prod
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any, BinaryIO, NamedTuple, TypedDict, TypeVar, cast
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from raybox.bvh.build import Quality
from raybox.io import checked_json
from raybox.io.checked_json import folder_error, unreadable

T = TypeVar("T")

_BLOCK = 1 << 20  # bytes that are read at a time


class FileFacts(NamedTuple):
    """A file as it was written: an array at its end, and a header before that."""

    size: int
    """In bytes."""
    shape: tuple[int, ...]
    dtype: str
    header_checksum: int
    data_checksum: int

    @property
    def data_begin(self) -> int:
        """The position of the array in the file."""
        return self.size - prod(self.shape) * np.dtype(self.dtype).itemsize


class SceneFacts(TypedDict, total=False):
    """Facts about a scene, or about one in parts; those who read them check which there are."""

    format: int
    kind: str
    size: int
    quality: Quality
    axes: int
    scale: float
    exponent: int
    dimension: int
    digest: str
    parts: list[str]


class Layout(NamedTuple):
    """The type of an array: its dtype, and its number of axes."""

    dtype: type[np.float64 | np.int64 | np.int32 | np.uint8]
    axes: int


class Manifest(NamedTuple):
    """The files of a folder, and facts about their content."""

    folder: Path
    facts: SceneFacts
    files: dict[str, FileFacts]
    checksum: str

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(file.size for file in self.files.values())

    def check_headers(self) -> None:
        """Raise `FileFormatError` unless all files have their sizes and headers."""
        for name in self.files:
            self._read(name, lambda file, facts: None)

    def identity(self) -> tuple[tuple[int, ...], ...]:
        """Return numbers of all files that change when one is written to or replaced."""
        return tuple(
            self._read(name, lambda file, facts: _identity(os.fstat(file.fileno()))) for name in self.files
        )

    def map(self, name: str, layout: Layout, *, check: bool) -> NDArray[Any]:
        """Return the array of a file, mapped into memory; check: also its data."""
        facts = self.files.get(name)
        if facts is None or facts.dtype != np.dtype(layout.dtype).str or len(facts.shape) != layout.axes:
            raise folder_error(self.folder / name, "holds another array than a scene has there")
        if check:
            self.check_data(name)
        return self._read(name, _map)

    def check_data(self, name: str) -> None:
        """Raise `FileFormatError` unless the data of a file has its checksum."""
        if self._read(name, lambda file, facts: _checksum(file)) != self.files[name].data_checksum:
            raise folder_error(self.folder / name, "is damaged: its checksum differs")

    def _read(self, name: str, read: Callable[[BinaryIO, FileFacts], T]) -> T:
        """Return what a function reads from a file, at the position of its data."""
        path, facts = self.folder / name, self.files[name]
        try:
            if not path.is_file():
                raise folder_error(path, "is missing, or no regular file")
            with path.open("rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size != facts.size:
                    raise folder_error(path, f"has {size:,} bytes in place of {facts.size:,}")
                if crc32(file.read(facts.data_begin)) != facts.header_checksum:
                    raise folder_error(path, "is damaged: its header differs")
                return read(file, facts)
        except (OSError, MemoryError) as error:
            raise unreadable(path, error) from error


def _map(file: BinaryIO, facts: FileFacts) -> NDArray[Any]:
    if not prod(facts.shape):  # nothing to map
        array = np.empty(facts.shape, facts.dtype)
        array.flags.writeable = False
        return array
    return np.asarray(np.memmap(file, facts.dtype, "r", facts.data_begin, facts.shape))


def _identity(stat: os.stat_result) -> tuple[int, ...]:
    return stat.st_dev, stat.st_ino, stat.st_mtime_ns, stat.st_ctime_ns


def _checksum(file: BinaryIO) -> int:
    """Return the checksum of a file from its position on."""
    checksum, buffer = 0, memoryview(bytearray(_BLOCK))
    while count := file.readinto(buffer):  # type: ignore[attr-defined]  # a buffered file has it
        checksum = crc32(buffer[:count], checksum)
    return checksum


def write(path: Path, facts: SceneFacts, names: Iterable[str]) -> str:
    """Write the manifest of files that are beside it; return its checksum."""
    files = {name: _facts_of(path.parent / name) for name in names}
    return checked_json.write(path, {"facts": facts, "files": files})


def _facts_of(path: Path) -> FileFacts:
    """Return the facts of a file; one that is no `.npy` counts as an array of bytes."""
    size = path.stat().st_size
    shape, dtype = (size,), np.dtype(np.uint8)
    if path.suffix == ".npy":
        array = np.load(path, mmap_mode="r", allow_pickle=False)
        shape, dtype = array.shape, array.dtype
    facts = FileFacts(size, shape, dtype.str, 0, 0)
    with path.open("rb") as file:
        header_checksum = crc32(file.read(facts.data_begin))
        return facts._replace(header_checksum=header_checksum, data_checksum=_checksum(file))


def read(path: Path) -> Manifest:
    """Return a manifest; the files that it lists are not yet checked."""
    content, checksum = checked_json.read(path)
    try:
        files = {_beside(str(name)): _listed(*facts) for name, facts in content["files"].items()}
        return Manifest(path.parent, cast(SceneFacts, dict(content["facts"])), files, checksum)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise folder_error(path, "is no manifest of raybox") from error


def _beside(name: str) -> str:
    """Return the name of a file beside the manifest; raise `ValueError` for a path to another folder."""
    if name in ("", "..") or {PurePath(name).name, PureWindowsPath(name).name} != {name}:
        raise ValueError("a path")
    return name


def _listed(size: int, shape: list[int], dtype: str, header_checksum: int, data_checksum: int) -> FileFacts:
    """Return the facts of a file as a manifest lists them; raise `ValueError` for impossible ones."""
    numbers = [int(size), *map(int, shape), int(header_checksum), int(data_checksum)]
    facts = FileFacts(numbers[0], tuple(numbers[1:-2]), np.dtype(str(dtype)).str, *numbers[-2:])
    if min(numbers) < 0 or facts.data_begin < 0:
        raise ValueError("negative size")
    return facts
