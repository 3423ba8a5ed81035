"""Tasks handed out a few at a time; what workers have done is taken in, in order, as it comes."""

from asyncio import CancelledError
from bisect import bisect_right
from collections.abc import Callable, Iterator
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

from raybox.distributed.dask import worker
from raybox.distributed.dask.cluster import engine
from raybox.distributed.dask.join_parts import Joiner
from raybox.distributed.dask.part_folder import Folder, Note, Told, part_of, told_by
from raybox.distributed.dask.worker import Chosen, Errand, Failure
from raybox.errors import RayboxError
from raybox.io.chunked import chunks
from raybox.io.chunked.chunks import Place, Rooms, Source
from raybox.io.chunked.pipeline import Advance
from raybox.io.formats.common import require

Find = Callable[[int], tuple[int, int]]  # from which row on to read for a row, and where that is


def places(source: Source, size: int) -> Iterator[Place]:
    """Give the places of all chunks."""
    find = _FINDERS.get(source.path.suffix.lower())
    if find is None or source.total is None:
        yield from _read(source, size)
        return
    where = find(source.path)
    for first in range(0, source.total, size):
        yield Place(first, *where(first))


def count(source: Source, size: int) -> int | None:
    """Tell how many chunks there are, if the file tells."""
    return None if source.total is None else -(-source.total // size)


def _read(source: Source, size: int) -> Iterator[Place]:
    """Read chunks here, too: text and LAZ do not tell where a row begins."""
    place, rooms = Place(), Rooms()
    for chunk in chunks.read(source, size, place, rooms):
        yield place._replace(digest="")
        place = chunk.after
        rooms.give_back(chunk.room)


def _anywhere(_: Path) -> Find:
    return lambda row: (row, row)


def _row_groups(path: Path) -> Find:
    with require("pyarrow.parquet", "io", ".parquet").ParquetFile(path) as file:
        sizes = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
    starts = [0, *accumulate(sizes)]
    return lambda row: (row, bisect_right(starts, row) - 1)


def _chunks_of_zarr(path: Path) -> Find:
    group = require("zarr", "zarr", ".zarr").open_group(path, mode="r")
    step = max(array.chunks[0] for _, array in group.arrays())
    return lambda row: (row // step * step, row // step * step)


_FINDERS: dict[str, Callable[[Path], Find]] = {
    ".npy": _anywhere,
    ".npz": _anywhere,
    ".pcd": _anywhere,
    ".ply": _anywhere,
    ".las": _anywhere,
    ".laz": _anywhere,
    ".parquet": _row_groups,
    ".zarr": _chunks_of_zarr,
}


_AHEAD = 3  # tasks for each thread of the cluster: workers do not wait for the next one
_TOGETHER = 4  # parts in a task, at most: Dask takes 10 ms of a core for a task, a worker 170 for a part
_SHARED = 2  # times as many tasks as are handed out at once: when fewer are left, each has fewer parts
_TRIES = 3  # more, of a task that failed


class Work(NamedTuple):
    """What is to be done."""

    client: Any
    errand: Errand
    folder: Folder
    places: Iterator[Place]
    parts: int | None
    """How many there are, if the file tells."""
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
        self.waiting: dict[Any, list[Chosen]] = {}
        self._told: dict[int, Told] = {}  # of parts that wait for those before them
        rays, rows, met = (sum(getattr(told, name) for told in before) for name in ("rays", "rows", "met"))
        self.done = Done(rays, rows, met, rays)
        work.advance(rays, None)

    def go(self) -> None:
        """Hand out and take in; after a failure, what workers are at is still taken in."""
        ready = engine().as_completed(loop=self._work.client.loop, raise_errors=False)
        failed = self._hand_out(ready)
        for future in ready:
            some = self.waiting.pop(future)
            try:
                for part, told in zip(some, self._result(future, some), strict=False):
                    self._take(part.number, told)
            except RayboxError as error:
                failed = failed or error
            future.release()  # one that somebody still holds is done again when its worker dies (seen)
            failed = failed or self._hand_out(ready)
        if failed:
            raise failed

    def _hand_out(self, ready: Any) -> RayboxError | None:
        """Hand out tasks, and take in parts that are there; return what is wrong with the rays that come."""
        most = _most(self._work)
        while len(self.waiting) < most:
            some, wrong = self._choose(most)
            if some:
                ready.add(self._submit(some))
            if wrong or not some:
                return wrong
        return None

    def _choose(self, most: int) -> tuple[list[Chosen], RayboxError | None]:
        """Choose the parts of a task; tell what is wrong with the rays that come after them."""
        work, some = self._work, list[Chosen]()
        while not some or len(some) < self._together(some[0].number, most):
            try:
                number, place = next(self._numbered, (-1, Place()))
            except RayboxError as error:  # those before it are still to be answered
                return some, error
            if number < 0:
                break
            there = told_by(part_of(work.folder.path, number))
            if there and work.folder.same_input:
                self.done = self.done._replace(resumed=self.done.resumed + there.rays)
                self._take(number, there)
            else:
                some.append(Chosen(number, place, there and there.of))
        return some, None

    def _together(self, first: int, most: int) -> int:
        """Tell how many parts a task has that begins with one."""
        return min(_TOGETHER, ((self._work.parts or 0) - first) // (_SHARED * most))

    def _submit(self, some: list[Chosen]) -> Any:
        errand = self._work.errand
        key = f"raybox-{errand.token}-{some[0].number}:{len(some)}"
        how = {"key": key, "pure": False, "retries": _TRIES}
        future = self._work.client.submit(worker.do_parts, errand, some, **how)
        self.waiting[future] = some
        return future

    def _result(self, future: Any, some: list[Chosen]) -> Iterator[Told]:
        """Give what was done, or raise what went wrong; what died with its worker is waited for."""
        try:
            results = future.result()
        except (Exception, CancelledError) as error:
            said = f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"
            more = f" (or one of {len(some) - 1} after it)" if len(some) > 1 else ""
            problem = f"part {some[0].number}{more} cannot be done ({said})"
            raise RayboxError(f"{problem}; see the logs of the workers") from error
        for result in results:
            if isinstance(result, Failure):
                raise result.kind(result.text)
            yield Told(*result)

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
