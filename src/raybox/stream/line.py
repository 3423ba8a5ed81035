"""Threads that hand things on, and stop together."""

import queue
from collections.abc import Callable
from threading import Event, Thread
from typing import Any, TypeVar

WAIT = 0.1  # seconds, after which whoever waits looks whether others have failed

T = TypeVar("T")


class Stopped(Exception):
    """Another thread has failed, or the caller has had enough."""


class Line:
    """Threads that hand things on, and stop together."""

    def __init__(self) -> None:
        self.stop = Event()
        self.failure: BaseException | None = None
        self._threads: list[Thread] = []

    def start(self, work: Callable[..., None], *arguments: Any) -> Thread:
        """Let a thread do some work."""

        def guarded() -> None:
            try:
                work(*arguments)
            except Stopped:
                pass
            except BaseException as error:
                self.failure = self.failure or error
                self.stop.set()

        self._threads.append(Thread(target=guarded, name="raybox-stream", daemon=True))
        self._threads[-1].start()
        return self._threads[-1]

    def check(self) -> None:
        """Leave if another has failed."""
        if self.stop.is_set():
            raise Stopped

    def put(self, to: "queue.Queue[T]", item: T) -> None:
        """Hand something on, as soon as there is room."""
        while True:
            self.check()
            try:
                return to.put(item, timeout=WAIT)
            except queue.Full:
                continue

    def get(self, of: "queue.Queue[T]") -> T:
        """Take the next thing."""
        while True:
            self.check()
            try:
                return of.get(timeout=WAIT)
            except queue.Empty:
                continue

    def join(self) -> None:
        """Wait for the threads."""
        for thread in self._threads:
            thread.join()
