"""Files that are appended to, cut back to a length that is known to be good, and made durable.

What is on the disk is dropped from the page cache, and its pages serve what is written next: on a virtual
machine, where new pages are expensive, that gives half as many rays again a second.
"""

import os
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from raybox.errors import RayboxError

CACHED = 1 << 28  # bytes: a file so short stays, for whoever reads it next


def put_away(file: int) -> None:
    """Wait until a file would survive the machine; have the system let go of a long one's memory."""
    os.fsync(file)
    if os.fstat(file).st_size > CACHED and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)


_MOVED = 1 << 24  # bytes of another file that are moved at once


class Part:
    """A file that is appended to, from a length that is known to be good."""

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = path
        self._file = path.open("r+b" if path.exists() else "x+b", buffering=0)
        if os.fstat(self._file.fileno()).st_size < length:
            self._file.close()
            raise RayboxError(
                f"{path} is shorter than its journal says; remove the folder {path.parent} and begin anew"
            )
        self.cut(length)

    def write(self, data: Any) -> None:
        """Append bytes, or whatever lies in memory like them."""
        raw: Any = data.view(np.uint8) if isinstance(data, np.ndarray) else data
        left = memoryview(raw).cast("B")
        while left:
            written = self._file.write(left)
            self.length += written
            left = left[written:]

    def take(self, path: Path, start: int, length: int) -> None:
        """Append bytes of another file."""
        end = self.length + length
        with path.open("rb", buffering=0) as source:
            source.seek(start)
            while self.length < end:
                if not self._move(source, min(end - self.length, _MOVED)):
                    raise OSError(f"{path} has become shorter")

    def _move(self, source: BinaryIO, length: int) -> int:
        """Append what another file gives, within the system where it knows how; return how much."""
        if sys.platform != "linux":  # others send files to sockets alone
            data = source.read(length)
            self.write(data)
            return len(data)
        moved = os.sendfile(self._file.fileno(), source.fileno(), None, length)
        self.length += moved
        return moved

    def cut(self, length: int) -> None:
        """Forget what stands beyond a length."""
        self._file.truncate(length)
        self._file.seek(length)
        self.length = length

    def sync(self) -> None:
        """Wait until all of it would survive the machine."""
        put_away(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class Parts(dict[str, Part]):
    """The files of a sink, by name."""

    def lengths(self) -> dict[str, int]:
        """Tell how long each file is."""
        return {name: part.length for name, part in self.items()}

    def close(self) -> None:
        """Close them."""
        for part in self.values():
            part.close()
