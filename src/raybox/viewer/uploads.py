"""What arrives from pages in parts: files, whose number, size and time are bounded, and a picture."""

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Final, final

from raybox.errors import RayboxError
from raybox.viewer.open_file import check_upload, upload_path

MAX_UPLOADS = 4  # at a time
SILENT_SECONDS = 30.0  # without a part, after which another upload may take the turn
MAX_PICTURE = 64 * 2**20  # bytes
TOTAL_SECONDS = 1800.0  # from the start, after which another may


@final
class Upload:
    """A file that arrives in parts, in a private folder, which `close` removes."""

    def __init__(self, name: str, size: int, seq: int, now: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="raybox-", ignore_cleanup_errors=True)
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


@final
class PictureRequest:
    """The picture that Python requests of one page, at most one at a time."""

    def __init__(self) -> None:
        self._waiting: Future[bytes] | None = None
        self._seq, self._size, self._parts = 0, 0, bytearray()

    def request(self) -> tuple[int, "Future[bytes]"]:
        """Return the number of a new request, and its result; an earlier one fails."""
        self.fail()
        self._seq, self._size, self._parts = self._seq + 1, 0, bytearray()
        self._waiting = Future()
        return self._seq, self._waiting

    def announce(self, seq: int, size: int) -> None:
        """Set the size of the picture that is to arrive; 0: the page has none."""
        if seq != self._seq or not 0 < size <= MAX_PICTURE:
            self.fail()
        self._size = size

    def add(self, part: memoryview) -> None:
        """Add a part, if a request waits for it."""
        if self._waiting is None:
            return
        self._parts += part
        if len(self._parts) > self._size:
            self.fail()
        elif len(self._parts) == self._size:
            self._waiting.set_result(bytes(self._parts))
            self._waiting = None

    def fail(self) -> None:
        """End the request without a picture."""
        if self._waiting is not None:
            self._waiting.set_exception(RayboxError("the page has drawn no picture; reload it and try again"))
        self._waiting = None
