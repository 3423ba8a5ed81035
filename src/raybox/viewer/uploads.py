"""Files and pictures that a page sends in parts, whose size and time are bounded."""

import asyncio
import tempfile
from typing import IO, final

from raybox.errors import RayboxError

MAX_UPLOADS = 4  # at a time, of all pages
MAX_PICTURE = 64 * 2**20  # bytes
SILENT_SECONDS = 30.0  # without a part of an upload
PICTURE_SECONDS = 120.0  # without a part of a picture: a browser without a GPU draws a large scene
TOTAL_SECONDS = 1800.0


@final
class Parts:
    """What a page sends in parts, up to an empty one; on disk until all have arrived.

    silent: seconds without a part after which it ends.
    """

    def __init__(self, name: str, most: int, silent: float) -> None:
        self.name, self._most, self._silent = name, most, silent
        self._arrived: asyncio.Queue[memoryview | None] = asyncio.Queue()
        self._has_ended = False

    def add(self, part: memoryview) -> None:
        """Add a part; one that comes too late counts for nothing."""
        if not self._has_ended:
            self._arrived.put_nowait(part)

    def fail(self) -> None:
        """End without the parts that are missing."""
        self._arrived.put_nowait(None)

    async def content(self) -> bytes:
        """Return all bytes; raise `RayboxError` if they are too many, or arrive too late or never."""
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                with tempfile.TemporaryFile() as file:  # without a name
                    await self._write(file)
                    file.seek(0)
                    return file.read()
        except TimeoutError as error:
            raise RayboxError(f"{self.name}: was silent or slow for too long; start it again") from error
        finally:
            self._has_ended = True

    async def _write(self, file: IO[bytes]) -> None:
        while part := await self._next():
            if file.tell() + len(part) > self._most:
                raise RayboxError(f"{self.name}: sent more bytes than announced; start it again")
            file.write(part)

    async def _next(self) -> memoryview:
        part = await asyncio.wait_for(self._arrived.get(), self._silent)
        if part is None:
            raise RayboxError(f"{self.name}: the page has closed; open it again")
        return part
