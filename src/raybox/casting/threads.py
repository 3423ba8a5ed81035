"""Threads that pass items on through queues, and stop together."""

import queue
from collections.abc import Callable
from threading import BoundedSemaphore, Event, Thread
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

WAIT = 0.1  # seconds between checks for a stop while a thread waits


class Stopped(Exception):
    """Another thread has failed, or the caller has stopped the threads."""


class StageThreads:
    """Threads of a pipeline, which stop together."""

    def __init__(self) -> None:
        self.stop = Event()
        self.failure: BaseException | None = None
        self._threads: list[Thread] = []

    def start(self, work: Callable[P, None], *arguments: P.args, **options: P.kwargs) -> Thread:
        """Run a function in a new thread; its failure stops all threads."""

        def guarded() -> None:
            try:
                work(*arguments, **options)
            except Stopped:
                pass
            except BaseException as error:
                self.failure = self.failure or error
                self.stop.set()

        self._threads.append(Thread(target=guarded, name="raybox-cast", daemon=True))
        self._threads[-1].start()
        return self._threads[-1]

    def check(self) -> None:
        """Raise `Stopped` if the pipeline is stopped."""
        if self.stop.is_set():
            raise Stopped

    def put(self, items: "queue.Queue[T]", item: T) -> None:
        """Put an item into a queue as soon as there is room.

        Raise `Stopped` meanwhile.
        """
        while True:
            self.check()
            try:
                return items.put(item, timeout=WAIT)
            except queue.Full:
                continue

    def get(self, items: "queue.Queue[T]") -> T:
        """Return the next item of a queue as soon as there is one; raise `Stopped` meanwhile."""
        while True:
            self.check()
            try:
                return items.get(timeout=WAIT)
            except queue.Empty:
                continue

    def join(self) -> None:
        """Wait for the threads."""
        for thread in self._threads:
            thread.join()


class ThreadSlots:
    """Lets so many threads at a time into a ``with`` block; `Stopped` for the others if all are stopped."""

    def __init__(self, threads: StageThreads, count: int) -> None:
        self._threads, self._free = threads, BoundedSemaphore(count)

    def __enter__(self) -> None:
        while True:
            self._threads.check()
            if self._free.acquire(timeout=WAIT):
                return

    def __exit__(self, *_: object) -> None:
        self._free.release()
