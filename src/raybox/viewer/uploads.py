"""What arrives from pages in parts: files, whose number, size and time are bounded, and a picture."""

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import final

from raybox.errors import RayboxError
from raybox.viewer.open_file import check_upload

MAX_UPLOADS = 4  # at a time
SILENT_SECONDS = 30.0  # without a part, after which another upload may take the turn
TOTAL_SECONDS = 1800.0  # from the start, after which another may
MAX_PICTURE = 64 * 2**20  # bytes


@final
class Upload:
    """A file that arrives in parts, on disk without a name until it has ended."""

    def __init__(self, name: str, size: int, seq: int, now: float) -> None:
        self.name, self.size, self.seq, self.received = name, size, seq, 0
        self.started = self.last_part = now
        self.file = tempfile.TemporaryFile()  # noqa: SIM115  # until the upload ends

    @property
    def is_complete(self) -> bool:
        """Whether all announced bytes have arrived."""
        return self.received == self.size

    def add(self, part: memoryview, now: float) -> None:
        """Write a part; raise if the upload has ended, or sends more than it announced."""
        problem = ""
        if self.file.closed:
            problem = "was silent for too long and has ended"
        elif self.received + len(part) > self.size:
            problem = "sent more bytes than it announced"
        if problem:
            raise RayboxError(f"{self.name}: the upload {problem}; start it again")
        self.received += self.file.write(part)
        self.last_part = now

    def content(self) -> bytes:
        """Return the bytes that have arrived."""
        self.file.seek(0)
        return self.file.read()


@final
class Uploads:
    """The uploads of all pages that run at a time."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self.running: list[Upload] = []

    def begin(self, name: str, size: int, seq: int) -> Upload:
        """Start an upload; raise if it is too large, no scene by its name, or one too many."""
        plain, now = check_upload(name, size), self.clock()
        for one in [*self.running]:
            if now >= min(one.last_part + SILENT_SECONDS, one.started + TOTAL_SECONDS):
                self.end(one)
        if len(self.running) >= MAX_UPLOADS:
            raise RayboxError(
                f"too many uploads at a time; wait until one ends, or is silent for {SILENT_SECONDS:g} s"
            )
        self.running.append(Upload(plain, size, seq, now))
        return self.running[-1]

    def end(self, upload: Upload) -> None:
        """End an upload, complete or not, and remove its file; again does nothing."""
        upload.file.close()
        self.running = [one for one in self.running if one is not upload]


@final
class PictureRequest:
    """A picture that Python requests of a page."""

    def __init__(self, seq: int) -> None:
        self.seq, self.result = seq, Future[bytes]()
        self._size, self._content = 0, bytearray()

    def announce(self, seq: int, size: int) -> None:
        """Set the size of the picture that is to arrive; 0: the page has none."""
        self._size = size
        if seq != self.seq or not 0 < size <= MAX_PICTURE:
            self.fail()

    def add(self, part: memoryview) -> None:
        """Add a part, if the picture is expected."""
        if self.result.done():
            return
        self._content += part
        if len(self._content) > self._size:
            self.fail()
        elif len(self._content) == self._size:
            self.result.set_result(bytes(self._content))

    def fail(self) -> None:
        """End the request without a picture, unless it has one."""
        if not self.result.done():
            self.result.set_exception(RayboxError("the page has drawn no picture; reload it and try again"))
