"""Files that are written: every byte that is given is on its way, or an error names the file and the step.

Errors of the system have no path where a descriptor was used, and never the step. `DiskError` has both.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO, Self

from raybox.store.checksum import Data, as_bytes


class DiskError(OSError):
    """An error of the system at a file: what was to be done there, and why it failed."""

    def __init__(self, error: OSError, path: Path, step: str) -> None:
        super().__init__(error.errno, os.strerror(error.errno) if error.errno else str(error), str(path))
        self.path, self.step = path, step


@contextmanager
def at(path: Path, step: str) -> Iterator[None]:
    """Turn errors of the system into `DiskError`; missing and existing files, and closed pipes, stay."""
    try:
        yield
    except (DiskError, FileNotFoundError, FileExistsError, BrokenPipeError):
        raise
    except OSError as error:
        raise DiskError(error, path, step) from error


def write_all(file: IO[bytes], data: Data, path: Path) -> int:
    """Write bytes until the file has accepted all of them; return how many there are."""
    left = memoryview(as_bytes(data)).cast("B")
    size = len(left)
    with at(path, "written"):
        while left:
            accepted = file.write(left)
            if accepted is None:
                raise BlockingIOError(os.EX_TEMPFAIL, "it accepts no bytes now")
            left = left[accepted:]
    return size


class OutFile:
    """A new file, without a buffer of its own; arrays and bytes are written as they come."""

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file, self.path = file, path

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        (self.abandon if kind else self.close)()

    @property
    def closed(self) -> bool:
        """Whether the file is closed."""
        return self._file.closed

    def write(self, data: Data) -> int:
        """Write all of some bytes; return how many."""
        return write_all(self._file, data, self.path)

    def tell(self) -> int:
        """Return the position."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move the position."""
        return self._file.seek(offset, whence)

    def seekable(self) -> bool:
        """Return that the position can be moved."""
        return True

    def flush(self) -> None:
        """Do nothing: there is no buffer."""

    def sync(self) -> None:
        """Wait until all is on the disk. An error is final: the system reports it once."""
        with at(self.path, "written to the disk"):
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file: some file systems report only here what they could not write."""
        with at(self.path, "closed"):
            self._file.close()

    def abandon(self) -> None:
        """Close a file that is to be removed."""
        with suppress(OSError):
            self._file.close()
