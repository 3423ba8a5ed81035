"""Uploads of files from pages: their number, size and time are bounded."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, final

from raybox.errors import RayboxError
from raybox.viewer.open_file import check_upload, upload_path

MAX_UPLOADS = 4  # at a time
SILENT_SECONDS = 30.0  # without a part, after which another upload may take the turn
TOTAL_SECONDS = 1800.0  # from the start, after which another may


@final
class Upload:
    """A file that arrives in parts, in a private folder, which `close` removes."""

    def __init__(self, name: str, size: int, seq: int, now: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="raybox-")
        self.path: Final[Path] = upload_path(Path(self._folder.name), name)
        self.name, self.size, self.seq = name, size, seq
        self.started = self.last_part = now
        self.received, self.is_open = 0, True
        self._file = self.path.open("wb")

    @property
    def is_complete(self) -> bool:
        """Whether all announced bytes have arrived."""
        return self.received == self.size

    def add(self, part: memoryview, now: float) -> None:
        """Write a part; raise if the upload has ended, or sends more than it announced."""
        if not self.is_open:
            raise RayboxError(
                f"{self.name}: the upload was silent for too long and has ended; start it again"
            )
        if self.received + len(part) > self.size:
            raise RayboxError(f"{self.name}: the upload sent more bytes than it announced; start it again")
        self._file.write(part)
        self.received += len(part)
        self.last_part = now
        if self.is_complete:
            self._file.flush()

    def close(self) -> None:
        """Remove the folder; again does nothing."""
        self.is_open = False
        self._file.close()
        self._folder.cleanup()


@final
class Uploads:
    """The uploads of all pages that run at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.running: list[Upload] = []

    def begin(self, name: str, size: int, seq: int) -> Upload:
        """Start an upload; raise if it is too large, no scene by its name, or one too many."""
        plain = check_upload(name, size)
        for late in filter(self._is_late, [*self.running]):
            self.end(late)
        if len(self.running) >= MAX_UPLOADS:
            raise RayboxError(
                f"too many uploads at a time; wait until one ends, or is silent for {SILENT_SECONDS:g} s"
            )
        made = Upload(plain, size, seq, self.clock())
        self.running.append(made)
        return made

    def end(self, upload: Upload) -> None:
        """End an upload, complete or not, and remove its file."""
        upload.close()
        if upload in self.running:
            self.running.remove(upload)

    def _is_late(self, upload: Upload) -> bool:
        now = self.clock()
        return now >= min(upload.last_part + SILENT_SECONDS, upload.started + TOTAL_SECONDS)
