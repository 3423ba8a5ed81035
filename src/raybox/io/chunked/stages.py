"""Threads that hand chunks on and stop together; results keep the order of the rays."""

import queue
from collections.abc import Callable, Iterable, Iterator
from threading import Condition, Event, Lock, Thread
from typing import Any, TypeVar

from raybox.io.chunked.chunks import Chunk
from raybox.io.chunked.result_columns import run_query
from raybox.queries.columns import ChunkResults
from raybox.scene.scene import Scene

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


Read = Chunk | Exception | None
Answered = tuple[ChunkResults, Chunk | None] | None


def shares(scene: Any, workers: int) -> list[int]:
    """Tell by how many threads chunks are asked that are asked at once: two, by half of the workers each.

    While threads of one wait for each other, between the steps of a question, those of the other go on.
    Parts of a split scene are opened for one chunk at a time.
    """
    if workers == 1 or not isinstance(scene, Scene):
        return [workers]
    return [workers - workers // 2, workers // 2]


class Turns:
    """Who takes the next chunk, and whose turn it is to hand on answers."""

    def __init__(self, line: Line, read: "queue.Queue[Read]", answered: "queue.Queue[Answered]") -> None:
        self._line, self._read, self._answered = line, read, answered
        self._taking, self._changed = Lock(), Condition()
        self._taken = self._turn = 0
        self._no_more = self._over = False
        self.ended: BaseException | None = None
        """What ended it too early; all before that is handed on, and nothing after it."""

    def ask(self, scene: Any, query: str, workers: int) -> None:
        """Ask chunks until there are no more."""
        while (taken := self._take()) is not None:
            turn, chunk = taken
            del taken
            ended: BaseException | None = None
            try:
                if isinstance(chunk, Chunk):
                    self._answer(turn, chunk, run_query(scene, query, chunk.rays, chunk.first, workers))
                    del chunk
                    continue
                ended = chunk
            except Stopped:
                raise
            except BaseException as error:  # Ctrl-C, too: chunks before this one are being asked
                ended = error
            self._end(turn, ended)

    def _take(self) -> tuple[int, Read] | None:
        """Take what comes next, and the number of its turn."""
        with self._taking:
            if self._no_more or self._over:
                return None
            chunk = self._line.get(self._read)
            self._no_more = not isinstance(chunk, Chunk)
            self._taken += 1
            return self._taken - 1, chunk

    def _answer(self, turn: int, chunk: Chunk, answers: Iterator[ChunkResults]) -> None:
        """Hand on answers when it is their turn; whoever is next may then."""
        for answer, last in _marked(answers):
            if not self._may(turn):
                return
            self._line.put(self._answered, (answer, chunk if last else None))
            del answer
        with self._changed:
            self._turn = turn + 1
            self._changed.notify_all()

    def _may(self, turn: int) -> bool:
        """Wait for a turn; False: there will be none any more."""
        with self._changed:
            while self._turn != turn and not self._over:
                self._line.check()
                self._changed.wait(WAIT)
            return not self._over

    def _end(self, turn: int, ended: BaseException | None) -> None:
        """Say that nothing comes after this turn."""
        if self._may(turn):
            with self._changed:
                self.ended, self._over = ended, True
                self._changed.notify_all()
            self._line.put(self._answered, None)


def _marked(items: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Tell the last of some things."""
    before: list[T] = []
    for item in items:
        if before:
            yield before.pop(), False
        before.append(item)
    for item in before:
        yield item, True
