"""Tasks handed out a few at a time; what workers have done is taken in, in order, as it comes."""

from asyncio import CancelledError
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from raybox.cluster import worker
from raybox.cluster.crew import engine
from raybox.cluster.joining import Joiner
from raybox.cluster.notes import Note, Told
from raybox.cluster.parts import Folder, part_of, told_by
from raybox.cluster.worker import Errand, Failure
from raybox.errors import RayboxError
from raybox.stream.chunks import Place
from raybox.stream.pipeline import Advance

_AHEAD = 3  # tasks for each thread of the cluster: workers do not wait for the next one
_TRIES = 3  # more, of a task that failed


class Work(NamedTuple):
    """What is to be done."""

    client: Any
    errand: Errand
    folder: Folder
    places: Iterator[Place]
    advance: Advance


class Done(NamedTuple):
    """What has been done."""

    rays: int = 0
    rows: int = 0
    met: int = 0
    resumed: int = 0


def still_good(work: Work, notes: list[Note], where: Iterator[Place]) -> list[Note]:
    """Return notes of the first parts, of those that are joined, whose rays are the file's as it is now."""
    most = _most(work)
    for begin in range(0, len(notes), most):
        some = notes[begin : begin + most]
        sums = [
            work.client.submit(worker.rays_of, work.errand, place, pure=False)
            for place in islice(where, len(some))
        ]
        good = [of == note.told.of for note, of in zip(some, work.client.gather(sums), strict=False)]
        if not all(good) or len(good) < len(some):
            return notes[: begin + [*good, False].index(False)]
    return notes


def _most(work: Work) -> int:
    """Return how many tasks may be handed out at once."""
    threads: int = sum(work.client.nthreads().values())
    return _AHEAD * max(1, threads)


def run(work: Work, joiner: Joiner) -> Done:
    """Do all parts, less those that are there; return when all are joined."""
    run = _Run(work, joiner)
    try:
        run.go()
    finally:
        work.client.cancel(list(run.waiting))
    return run.done


class _Run:
    def __init__(self, work: Work, joiner: Joiner) -> None:
        self._work, self._joiner = work, joiner
        before = [note.told for note in joiner.notes]
        self._next = len(before)
        self._numbered = islice(enumerate(work.places), self._next, None)
        self.waiting: dict[Any, int] = {}
        self._told: dict[int, Told] = {}  # of parts that wait for those before them
        rays, rows, met = (sum(getattr(told, name) for told in before) for name in ("rays", "rows", "met"))
        self.done = Done(rays, rows, met, rays)
        work.advance(rays, None)

    def go(self) -> None:
        """Hand out and take in; after a failure, what workers are at is still taken in."""
        ready = engine().as_completed(loop=self._work.client.loop, raise_errors=False)
        failed = self._hand_out(ready)
        for future in ready:
            number = self.waiting.pop(future)
            try:
                self._take(number, self._result(future, number))
            except RayboxError as error:
                failed = failed or error
            failed = failed or self._hand_out(ready)
        if failed:
            raise failed

    def _hand_out(self, ready: Any) -> RayboxError | None:
        """Hand out tasks, and take in parts that are there; return what is wrong with the rays that come."""
        work = self._work
        most = _most(work)
        while len(self.waiting) < most:
            try:
                number, place = next(self._numbered, (-1, Place()))
            except RayboxError as error:  # those before it are still to be answered
                return error
            if number < 0:
                return None
            there = told_by(part_of(work.folder.path, number))
            if there and work.folder.same_input:
                self.done = self.done._replace(resumed=self.done.resumed + there.rays)
                self._take(number, there)
                continue
            future = work.client.submit(
                worker.do_part,
                work.errand,
                number,
                place,
                there and there.of,
                key=f"raybox-{work.errand.token}-{number}",
                pure=False,
                retries=_TRIES,
            )
            self.waiting[future] = number
            ready.add(future)
        return None

    def _result(self, future: Any, number: int) -> Told:
        """Return what was done, or raise what went wrong; what died with its worker is waited for."""
        try:
            result = future.result()
        except (Exception, CancelledError) as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            problem = f"part {number} cannot be done ({said})"
            raise RayboxError(f"{problem}; see the logs of the workers") from error
        if isinstance(result, Failure):
            raise result.kind(result.text)
        return Told(*result)

    def _take(self, number: int, told: Told) -> None:
        """Count a part, and join those that are next."""
        work, done = self._work, self.done
        self._told[number] = told
        self.done = done._replace(
            rays=done.rays + told.rays, rows=done.rows + told.rows, met=done.met + told.met
        )
        work.advance(told.rays, None)
        while (now := self._told.pop(self._next, None)) is not None:
            self._joiner.add(part_of(work.folder.path, self._next), now)
            self._next += 1
