"""Files that are appended to: cut to a valid length, read again, made durable.

Long files are dropped from the page cache once they are on the disk, and their pages serve the next writes:
fresh pages are expensive on a virtual machine, where this gives half as many rays again a second.
"""

import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from raybox.store.checksum import Checksum, Data, as_bytes
from raybox.store.folder import Folder
from raybox.validation import Array, Dtype

CACHED = 1 << 28  # bytes: files up to this length stay in the page cache, for their next reader
_READ = 1 << 20  # bytes that are copied or read at once: they stay in a core's cache


def sync_file(file: BinaryIO) -> None:
    """Wait until a file is on the disk; drop a long one from the page cache."""
    number = file.fileno()
    os.fsync(number)
    if os.fstat(number).st_size > CACHED and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(number, 0, 0, os.POSIX_FADV_DONTNEED)


class AppendFile:
    """A file that is appended to, from a valid length on."""

    def __init__(self, folder: Folder, name: str) -> None:
        self._file = folder.open_or_create(name)
        self._reader = folder.open(name, buffering=0)
        self.length = self._file.seek(0, os.SEEK_END)
        self._memory = memoryview(bytearray(_READ))

    def write(self, data: Data) -> None:
        """Append bytes: an array, or any object with the buffer protocol."""
        self.length += self._file.write(as_bytes(data))

    def append_from(self, source: BinaryIO, start: int, length: int) -> Iterator[memoryview]:
        """Append bytes of another file, within the kernel on Linux; yield them as `blocks` does.

        Each block is read again while it is in a core's cache.
        """
        self._file.flush()
        shift, end = start - self.length, self.length + length
        while self.length < end:
            copied = self._copy(source, self.length + shift, min(end - self.length, _READ))
            if not copied:
                raise OSError("a part has become shorter")
            self.length += copied
            yield from self.blocks(self.length - copied, self.length)

    def _copy(self, source: BinaryIO, start: int, length: int) -> int:
        if sys.platform != "linux":  # elsewhere, sendfile writes to sockets only
            source.seek(start)
            copied = self._file.write(source.read(length))
            self._file.flush()
            return copied
        return os.sendfile(self._file.fileno(), source.fileno(), start, length)

    def blocks(self, start: int, end: int) -> Iterator[memoryview]:
        """Yield the bytes from `start` to before `end`, read from the file, in memory that is reused."""
        self._file.flush()
        self._reader.seek(start)
        while start < end:
            count = self._reader.readinto(self._memory[: end - start])  # type: ignore[attr-defined]
            if not count:
                raise OSError("a file has become shorter")
            yield self._memory[:count]
            start += count

    def checksum(self, start: int, end: int) -> str:
        """Return the checksum of the bytes from `start` to before `end`, read from the file."""
        checksum = Checksum()
        for block in self.blocks(start, end):
            checksum.update(block)
        return checksum.text()

    def array(self, dtype: Dtype, start: int, count: int) -> Array:
        """Return `count` numbers of a file that has no others, or all from the one at `start` on."""
        self._file.flush()
        self._reader.seek(start * dtype.itemsize)
        return np.fromfile(self._reader, dtype, count)

    def truncate(self, length: int) -> None:
        """Cut the file to a length."""
        self._file.flush()
        self._file.truncate(length)
        self._file.seek(length)
        self.length = length

    def overwrite(self, start: int, data: bytes) -> None:
        """Write bytes in place of others."""
        self._file.seek(start)
        self._file.write(data)
        self._file.seek(self.length)

    def sync(self) -> None:
        """Wait until the file is on the disk."""
        self._file.flush()
        sync_file(self._file)

    def close(self) -> None:
        """Close the file."""
        self._reader.close()
        self._file.close()
