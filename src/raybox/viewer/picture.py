"""A picture that Python requests of an open page, which arrives in parts."""

from concurrent.futures import Future
from typing import final

from raybox.errors import RayboxError

MAX_BYTES = 64 * 2**20


@final
class Picture:
    """At most one request at a time, and the parts that have arrived of its answer."""

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
        if seq != self._seq or not 0 < size <= MAX_BYTES:
            self.fail()
        self._size = size

    def add(self, part: memoryview) -> None:
        """Add a part; what no one waits for counts for nothing."""
        if self._waiting is None or not self._size:
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
