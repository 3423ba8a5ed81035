"""Manifests: sizes, shapes, dtypes and checksums of the files of a folder.

Sizes and headers are checked when a folder is opened. Data is checked when an array is first mapped.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path, PurePath, PureWindowsPath
from typing import Any, BinaryIO, NamedTuple, TypedDict, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from raybox.bvh.build import Quality
from raybox.errors import FileFormatError
from raybox.store import checksum, record
from raybox.store.checksum import Facts
from raybox.store.folder import open_folder
from raybox.store.record import RecordKind

T = TypeVar("T")


def folder_error(path: Path, problem: str) -> FileFormatError:
    """Return an error about a folder of a scene, or a file in it."""
    return FileFormatError(f"{path}: {problem}; write the folder again")


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    """Yield a regular file, open; raise `FileFormatError` if it is none, or is not readable."""
    try:
        if not path.is_file():
            raise folder_error(path, "is missing, or no regular file")
        with path.open("rb") as file:
            yield file
    except MemoryError as error:
        problem = "does not fit into memory; free some, and open the folder again"
        raise FileFormatError(f"{path}: {problem}") from error
    except OSError as error:
        way_out = "check its permissions, or write the folder again"
        raise FileFormatError(f"{path}: cannot be read: {error.strerror or error}; {way_out}") from error


class FileFacts(NamedTuple):
    """A file as it was written: an array at its end, and a header before that."""

    size: int
    """In bytes."""
    shape: tuple[int, ...]
    dtype: str
    header_checksum: str
    data_checksum: str

    @property
    def data_begin(self) -> int:
        """The position of the array in the file."""
        return self.size - prod(self.shape) * np.dtype(self.dtype).itemsize


class SceneFacts(TypedDict, total=False):
    """Facts about a scene; code that reads them checks which there are."""

    quality: Quality
    is_list: bool
    parts: Sequence[Sequence[Any]]


class Layout(NamedTuple):
    """The type of an array: its dtype and its shape, in which None is any length."""

    dtype: type
    shape: tuple[int | None, ...]

    def fits(self, file: FileFacts) -> bool:
        """Return whether a file has such an array."""
        return (
            file.dtype == np.dtype(self.dtype).str
            and len(file.shape) == len(self.shape)
            and all(wanted in (None, length) for wanted, length in zip(self.shape, file.shape, strict=True))
        )


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

    def map(self, name: str, layout: Layout, *, check: bool) -> NDArray[Any]:
        """Return the array of a file, mapped into memory; check: also its data."""
        facts = self.files.get(name)
        if facts is None or not layout.fits(facts):
            raise folder_error(self.folder / name, "holds another array than a scene has there")
        if check:
            self.check_data(name)
        return self._read(name, _map)

    def array(self, name: str) -> NDArray[Any]:
        """Return the array of a file, of any kind, mapped into memory."""
        return self._read(name, _map)

    def check_data(self, name: str) -> None:
        """Raise `FileFormatError` unless the data of a file has its checksum."""
        if self._read(name, lambda file, facts: checksum.of_file(file)) != self.files[name].data_checksum:
            raise folder_error(self.folder / name, "is damaged: its checksum differs")

    def _read(self, name: str, read: Callable[[BinaryIO, FileFacts], T]) -> T:
        """Return what a function reads from a file, at the position of its data."""
        path, facts = self.folder / name, self.files[name]
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size != facts.size:
                raise folder_error(path, f"has {size:,} bytes in place of {facts.size:,}")
            if checksum.of_bytes(file.read(facts.data_begin)) != facts.header_checksum:
                raise folder_error(path, "is damaged: its header differs")
            return read(file, facts)


def _map(file: BinaryIO, facts: FileFacts) -> NDArray[Any]:
    if not prod(facts.shape):  # nothing to map
        array = np.empty(facts.shape, facts.dtype)
        array.flags.writeable = False
        return array
    return np.asarray(np.memmap(file, facts.dtype, "r", facts.data_begin, facts.shape))


def write(path: Path, facts: SceneFacts, names: Iterable[str]) -> str:
    """Write the manifest of files in its folder; return its checksum."""
    files = {name: _facts_of(path.parent / name) for name in names}
    with open_folder(path.parent, own=False) as folder:
        return folder.write_record(path.name, MANIFEST, {"facts": cast(Facts, facts), "files": files})


def _facts_of(path: Path) -> FileFacts:
    """Return the facts of a file; one that is no `.npy` counts as an array of bytes."""
    size = path.stat().st_size
    shape, dtype = (size,), np.dtype(np.uint8)
    if path.suffix == ".npy":
        try:
            array = np.load(path, mmap_mode="r", allow_pickle=False)
        except ValueError as error:  # the disk has lost what was written just now
            raise folder_error(path, "is damaged: it is no array") from error
        shape, dtype = array.shape, array.dtype
    facts = FileFacts(size, shape, dtype.str, "", "")
    with path.open("rb") as file:
        header_checksum = checksum.of_bytes(file.read(facts.data_begin))
        return facts._replace(header_checksum=header_checksum, data_checksum=checksum.of_file(file))


def read(path: Path) -> Manifest:
    """Return a manifest; the files that it lists are not yet checked."""
    with _opened(path) as file:
        (facts, files), found = record.read(MANIFEST, path, file)
    return Manifest(path.parent, facts, files, found)


def _parse(value: Any) -> tuple[SceneFacts, dict[str, FileFacts]]:
    """Return the facts and the files of a manifest; raise `ValueError` for impossible ones."""
    files = dict[str, FileFacts]()
    for name, (size, shape, dtype, header, data) in value["files"].items():
        if name in ("", "..") or {PurePath(name).name, PureWindowsPath(name).name} != {name}:
            raise ValueError("a path to another folder")
        lengths = tuple(map(int, shape))
        facts = FileFacts(int(size), lengths, np.dtype(str(dtype)).str, str(header), str(data))
        if min(facts.size, facts.data_begin, *lengths) < 0:
            raise ValueError("negative size")
        files[name] = facts
    return cast(SceneFacts, dict(value["facts"])), files


MANIFEST = RecordKind("scene manifest", 4, _parse, "write the folder again")
"""Its version is also that of the files, the layout of the tree's nodes included."""
