"""Part files: appended to, truncated to a valid length, made durable.

Long files are dropped from the page cache once they are on the disk, and their pages serve the next writes:
fresh pages are expensive on a virtual machine, where this gives half as many rays again a second.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import numpy as np

from raybox.errors import RayboxError
from raybox.io import checksums, own_files
from raybox.io.checksums import Bytes
from raybox.io.formats.common import file_error

CACHED = 1 << 28  # bytes: files up to this length stay in the page cache, for their next reader
_COPIED = 1 << 24  # bytes of another file that are copied at once


def sync_file(file: int) -> None:
    """Wait until a file would survive a crash of the machine.

    Drop a long one from the page cache.
    """
    os.fsync(file)
    if os.fstat(file).st_size > CACHED and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


class PartFile:
    """A file that is appended to, from a valid length on."""

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = path
        self._file = own_files.open_own(path, buffering=0)
        self.checksum: int | None = None
        """Of all bytes, once `add_checksum` was called, while they are written by `write`."""
        if os.fstat(self._file.fileno()).st_size < length:
            self._file.close()
            raise _damaged(path, "is shorter than its journal says")
        self.truncate(length)

    def add_checksum(self, wanted: int | None) -> None:
        """Compute the checksum of all bytes, now by reading them, later as they are written.

        Raise `RayboxError` if it is not the wanted one.
        """
        self._file.seek(0)
        self.checksum, left = 0, self.length
        while left:
            data = self._file.read(min(left, _COPIED))
            if not data:
                raise OSError(f"{self.path} has become shorter")
            self.checksum, left = checksums.of_bytes(data, self.checksum), left - len(data)
        if wanted is not None and wanted != self.checksum:
            raise self.damaged()

    def damaged(self) -> RayboxError:
        """Return the error for bytes that are not those of the journal."""
        return _damaged(self.path, "is damaged: its checksum is not the one in its journal")

    def write(self, data: Bytes) -> None:
        """Append bytes: an array, or any object with the buffer protocol."""
        raw = data.view(np.uint8).data if isinstance(data, np.ndarray) else data
        left = memoryview(raw).cast("B")
        if self.checksum is not None:
            self.checksum = checksums.of_bytes(left, self.checksum)
        while left:
            written = self._file.write(left)
            self.length += written
            left = left[written:]

    def append_from(self, path: Path, start: int, length: int) -> None:
        """Append bytes of another file."""
        end = self.length + length
        with path.open("rb", buffering=0) as source:
            source.seek(start)
            while self.length < end:
                if not self._copy(source, min(end - self.length, _COPIED)):
                    raise OSError(f"{path} has become shorter")

    def _copy(self, source: BinaryIO, length: int) -> int:
        """Append bytes of an open file, within the kernel on Linux.

        Return how many.
        """
        if sys.platform != "linux":  # elsewhere, sendfile writes to sockets only
            data = source.read(length)
            self.write(data)
            return len(data)
        copied = os.sendfile(self._file.fileno(), source.fileno(), None, length)
        self.length += copied
        return copied

    def truncate(self, length: int) -> None:
        """Cut the file to a length."""
        self._file.truncate(length)
        self._file.seek(length)
        self.length = length

    def sync(self) -> None:
        """Wait until the file would survive a crash of the machine."""
        sync_file(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _damaged(path: Path, problem: str) -> RayboxError:
    return file_error(path, problem, f"remove the folder {path.parent} and start again")


class PartFiles(dict[str, PartFile]):
    """The part files of a writer, by name."""

    def lengths(self) -> dict[str, int]:
        """Return the length of each file."""
        return {name: file.length for name, file in self.items()}

    def checksums(self) -> dict[str, int | None]:
        """Return the checksum of each file."""
        return {name: file.checksum for name, file in self.items()}

    def add_checksums(self, wanted: Mapping[str, int | None]) -> None:
        """Compute checksums from here on; raise `RayboxError` unless they are the wanted ones."""
        for name, file in self.items():
            file.add_checksum(wanted.get(name))

    def close(self) -> None:
        """Close the files."""
        for file in self.values():
            file.close()
