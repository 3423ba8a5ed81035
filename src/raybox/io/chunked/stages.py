"""Pipeline stages: threads that pass chunks on and stop together; results stay in the order of the rays."""

import queue
from collections.abc import Callable, Iterable, Iterator
from threading import Condition, Event, Lock, Thread
from typing import NamedTuple, ParamSpec, TypeVar

from raybox.io.chunked.cast_arguments import Arguments
from raybox.io.chunked.chunks import Chunk
from raybox.io.chunked.partitioned import AnyScene
from raybox.io.chunked.result_columns import rows_of, run_query
from raybox.queries.columns import ChunkResults
from raybox.scene.scene import Scene

P = ParamSpec("P")

WAIT = 0.1  # seconds between checks for a stop while a thread waits

T = TypeVar("T")


class Stopped(Exception):
    """Another thread has failed, or the caller has stopped the pipeline."""


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

        self._threads.append(Thread(target=guarded, name="raybox-stream", daemon=True))
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


ReadItem = Chunk | Exception | None
"""A chunk; what is wrong with the rays that come next; or the end."""


class ResultItem(NamedTuple):
    """Results of some rays, and their chunk if these are its last."""

    results: ChunkResults
    chunk: Chunk | None


def split_workers(scene: AnyScene, query: str, workers: int) -> list[int]:
    """Return the workers of each chunk that is queried at the same time: two chunks, half the workers each.

    While the workers of one chunk wait for each other, between the steps of a query, those of the other run.
    A scene in parts opens its parts for one chunk at a time. Results for all primitives of a scene may be
    large: there is one at a time.
    """
    if workers == 1 or not isinstance(scene, Scene) or rows_of(query) == "primitives":
        return [workers]
    return [workers - workers // 2, workers // 2]


class OrderedQueries:
    """Queries of chunks in several threads.

    Results are passed on in the order of the chunks.
    """

    def __init__(
        self,
        threads: StageThreads,
        chunks: "queue.Queue[ReadItem]",
        results: "queue.Queue[ResultItem | None]",
    ) -> None:
        self._threads, self._chunks, self._results = threads, chunks, results
        self._next_lock, self._changed = Lock(), Condition()
        self._started = self._turn = 0
        self._at_end = self._stopped = False
        self.error: BaseException | None = None
        """The error of the first chunk that failed; all before it is passed on, and nothing after it."""

    def run(self, scene: AnyScene, query: str, workers: int, arguments: Arguments) -> None:
        """Query chunks until there are no more; called by each thread."""
        while (started := self._next()) is not None:
            turn, chunk = started
            del started
            error: BaseException | None = None
            try:
                if isinstance(chunk, Chunk):
                    results = run_query(scene, query, chunk.rays, chunk.first, workers, **arguments)
                    self._pass_on(turn, chunk, results)
                    del results
                    del chunk
                    continue
                error = chunk
            except Stopped:
                raise
            except BaseException as failure:  # Ctrl-C, too: chunks before this one are still being queried
                error = failure
            self._end(turn, error)

    def _next(self) -> tuple[int, ReadItem] | None:
        """Return the next item that was read, and its turn.

        None if there are no more.
        """
        with self._next_lock:
            if self._at_end or self._stopped:
                return None
            chunk = self._threads.get(self._chunks)
            self._at_end = not isinstance(chunk, Chunk)
            self._started += 1
            return self._started - 1, chunk

    def _pass_on(self, turn: int, chunk: Chunk, results: Iterator[ChunkResults]) -> None:
        """Pass on the results of a chunk, when it is its turn."""
        for result, is_last in _with_last(results):
            if not self._wait_for(turn):
                return
            self._threads.put(self._results, ResultItem(result, chunk if is_last else None))
            del result
        with self._changed:
            self._turn = turn + 1
            self._changed.notify_all()

    def _wait_for(self, turn: int) -> bool:
        """Wait for a turn.

        Return False if a chunk before it has failed.
        """
        with self._changed:
            while self._turn != turn and not self._stopped:
                self._threads.check()
                self._changed.wait(WAIT)
            return not self._stopped

    def _end(self, turn: int, error: BaseException | None) -> None:
        """Pass on the end, after all chunks before this turn."""
        if self._wait_for(turn):
            with self._changed:
                self.error, self._stopped = error, True
                self._changed.notify_all()
            self._threads.put(self._results, None)


def _with_last(items: Iterable[T]) -> Iterator[tuple[T, bool]]:
    """Yield items, and whether each is the last.

    At most one is stored.
    """
    before: list[T] = []
    for item in items:
        if before:
            yield before.pop(), False
        before.append(item)
    for item in before:
        yield item, True
