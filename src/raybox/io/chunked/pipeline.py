"""Threads that read, ask (the caller's is one of them), write and note; none is far ahead."""

import os
import queue
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import NamedTuple

from raybox.distributed.split import SplitScene
from raybox.io.chunked import chunks
from raybox.io.chunked.chunks import Chunk, Place, Rooms, Source
from raybox.io.chunked.journal import Done, Journal
from raybox.io.chunked.stages import Answered, Line, Read, Stopped, Turns, shares
from raybox.io.chunked.writers import Sink
from raybox.queries.columns import Scratch
from raybox.scene.scene import Scene

SECONDS = 0.25  # between two notes in the journal: at the end, little is left to wait for

Advance = Callable[[int, float | None], None]


class Work(NamedTuple):
    """What is asked of what, and where the answers go; ``size`` rays are a chunk."""

    source: Source
    scene: Scene | SplitScene
    query: str
    size: int
    workers: int
    line: Line
    progress: bool
    rooms: Rooms


def run(work: Work, sink: Sink, log: Journal | None = None) -> Done:
    """Do what is left to be done; return how far that is, or raise. The journal knows it either way."""
    line, start = work.line, log.done if log else Done()
    with progress(work.source, start.place.first, work.progress) as advance:
        writer = _Writer(sink, log, advance, start, work.rooms)
        read: queue.Queue[Read] = queue.Queue(1)
        answered: queue.Queue[Answered] = queue.Queue(1)
        line.start(_read, work, read, start.place)
        line.start(writer.note_all, line)
        writing = line.start(writer.run, line, answered)
        turns = Turns(line, read, answered)
        own, *others = shares(work.scene, work.workers)
        try:
            for threads in others:
                line.start(turns.ask, work.scene, work.query, threads)
            with suppress(Stopped):
                turns.ask(work.scene, work.query, own)
                writing.join()  # whoever reads may still be waiting to hand something on
        finally:
            line.stop.set()
            line.join()
            writer.settle(line.failure is not None)
    ended = turns.ended or line.failure
    if ended:
        raise ended
    line.stop.clear()
    return writer.done


def _read(work: Work, out: "queue.Queue[Read]", start: Place) -> None:
    """Read chunks; what is wrong with one is told after those before it, which are still to be answered."""
    ended: Exception | None = None
    try:
        for chunk in chunks.read(work.source, work.size, start, work.rooms):
            work.line.put(out, chunk)
            del chunk
    except Stopped:
        raise
    except Exception as error:
        ended = error
    work.line.put(out, ended)


class _Writer:
    """Has answers appended, and notes what is done."""

    def __init__(self, sink: Sink, log: Journal | None, advance: Advance, done: Done, rooms: Rooms) -> None:
        self._sink, self._log, self._advance, self._rooms = sink, log, advance, rooms
        self.done = done
        self._rows, self._met = done.rows, done.met
        self._noted = time.monotonic()
        self._notes: queue.Queue[Done | None] = queue.Queue(1)
        self._scratch: Scratch = {}

    def run(self, line: Line, answered: "queue.Queue[Answered]") -> None:
        """Write answers until there are no more."""
        while (item := line.get(answered)) is not None:
            answer, chunk = item
            columns = answer.columns(self._scratch)
            self._sink.add(columns)
            self._rows, self._met = self._rows + len(columns["ray"]), self._met + answer.hit
            del answer, columns
            if chunk is not None:
                self._end(chunk)
            del item, chunk
        line.put(self._notes, None)

    def _end(self, chunk: Chunk) -> None:
        """Count a chunk as done."""
        lengths = self._sink.parts.lengths()
        rays = chunk.after.first - self.done.place.first
        self.done = Done(chunk.after, self._rows, self._met, lengths)
        if time.monotonic() - self._noted >= SECONDS and self._notes.empty():
            self._notes.put(self.done)
        self._rooms.give_back(chunk.room)
        self._advance(rays, chunk.share)

    def note_all(self, line: Line) -> None:
        """Note what is done, from time to time: waiting for a disk, while others go on."""
        while (done := line.get(self._notes)) is not None:
            self._note(done)

    def _note(self, done: Done) -> None:
        if self._log is None:
            return
        for part in self._sink.parts.values():
            part.sync()
        self._log.save(done)
        self._noted = time.monotonic()

    def settle(self, failed: bool) -> None:
        """Cut off what is not done, which makes room where a disk is full, and note what is."""
        if self._log is None or not self.done.place.first:
            return
        for name, part in self._sink.parts.items():
            part.cut(self.done.files[name])
        # where not even that can be noted, the last note stands
        with suppress(OSError) if failed else nullcontext():
            self._note(self.done)


@contextmanager
def progress(source: Source, done: int, shown: bool) -> Iterator[Advance]:
    """Show a bar on stderr, with the rate and the time left, once the work has taken half a second."""
    if not shown:
        yield lambda _rays, _share: None
        return
    from tqdm import tqdm

    with tqdm(total=source.total, initial=done, unit=" rays", unit_scale=True, delay=0.5) as bar:

        def advance(rays: int, share: float | None) -> None:
            if share:  # the file's length in bytes is all that is known of its end
                bar.total = max(bar.n + rays, round((bar.n + rays) / share))
            bar.update(rays)

        yield advance


def reason(error: OSError) -> str:
    """Say why a file cannot be written."""
    return os.strerror(error.errno) if error.errno else str(error)
