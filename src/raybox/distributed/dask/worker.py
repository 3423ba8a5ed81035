"""What is done at workers: hold a scene, answer chunks of rays, each into a part of its own.

A worker holds the scene from when it joins, by a plugin; one that is started anew gets it in the same way.
Its arrays are mapped from files, so that workers on one machine share the memory they take. Of a worker's
threads, so many as are useful wait for the scene with a chunk that is read, or write one that is answered;
one at a time asks, with as many threads of ours as the worker has.
"""

import asyncio
import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import BoundedSemaphore, Lock
from typing import Any, NamedTuple

import numpy as np

from raybox._version import __version__
from raybox.compiler.code_origin import source_stamp
from raybox.distributed.dask import heartbeat
from raybox.distributed.dask.part_folder import ROWS, SCENE, Told, make_work, part_of, seal, told_by
from raybox.distributed.split import SplitScene
from raybox.errors import RayboxError
from raybox.geometry import Boxes, Mesh, Rays
from raybox.io import scene_files
from raybox.io.chunked import checksums, chunks
from raybox.io.chunked.chunks import Chunk, Place, Rooms, Source
from raybox.io.chunked.readers import open_source
from raybox.io.chunked.result_columns import Task, kinds, run_query
from raybox.io.chunked.writers import SINKS
from raybox.io.formats.common import Want
from raybox.queries.columns import Scratch
from raybox.scene.scene import Scene

IDS, READY = "ids.json", "ready"
_WAITING = 2  # chunks that are read or written while another is asked
_PATIENCE = 120.0  # seconds to wait for another process that compiles
_RAYS = 2048  # of a first question: more than are asked one by one
_HELD: dict[str, "Held"] = {}
_LOCK = Lock()


class Errand(NamedTuple):
    """What workers have to know; it is small, whatever the scene and the rays."""

    token: str
    folder: Path
    """Of the parts, with the scene's."""
    split: tuple[Path, int | None] | None
    """Where the parts of a split scene are, and how much memory they may take when open."""
    path: Path
    want: Want
    query: str
    size: int
    """Rays in a chunk."""
    threads: int
    suffix: str
    """Of the output."""
    kind: tuple[int, str]
    """D of the scene, and what it is made of."""
    made: tuple[str, str]
    """Which raybox it is for, see `facts`."""


class Failure(NamedTuple):
    """What is wrong with rays, and would be wrong again."""

    kind: type[RayboxError]
    text: str


class Chosen(NamedTuple):
    """A part that is to be done."""

    number: int
    place: Place
    known: str | None
    """The sum of the rays that it is of, if it was there before."""


class Bench(NamedTuple):
    """What parts are made with, one after the other.

    A folder of its own for each part had to be removed again, which waits for whoever has the disk write: a
    tenth of a worker's time (measured).
    """

    work: Path
    scratch: Scratch


class Held:
    """What a process keeps for an errand."""

    def __init__(self, errand: Errand, threads: int) -> None:
        if facts() != errand.made:
            raise RayboxError(
                f"a worker has another raybox than {errand.made[0]} of the client; install the same"
            )
        self.errand = errand
        self.threads = threads if errand.threads == -1 else errand.threads
        place = errand.folder / SCENE
        self.scene: Any = (
            SplitScene.open(errand.split[0], memory=errand.split[1])
            if errand.split
            else scene_files.found(place, near=True)
        )
        self.ids = json.loads((place / IDS).read_text(encoding="utf-8"))
        warm(errand)
        self.source: Source | None = None
        self.rooms, self.benches = Rooms(), list[Bench]()
        self.asking, self.entering = Lock(), BoundedSemaphore(1 + _WAITING)

    def source_of(self) -> Source:
        """Open the file of rays, once."""
        with self.asking:
            if self.source is None:
                self.source = open_source(self.errand.path, self.errand.want)
            return self.source

    @contextmanager
    def lend_bench(self) -> Iterator[Bench]:
        """Lend what a part is made with."""
        bench = self.benches.pop() if self.benches else Bench(make_work(self.errand.folder), {})
        yield bench
        self.benches.append(bench)


def hold(errand: Errand, threads: int) -> Held:
    """Return what is kept for an errand, made when first asked for."""
    with _LOCK:
        if errand.token not in _HELD:
            _HELD[errand.token] = Held(errand, threads)
        return _HELD[errand.token]


def let_go(token: str) -> None:
    """Forget an errand."""
    with _LOCK:
        _HELD.pop(token, None)


def do_parts(errand: Errand, parts: Sequence[Chosen]) -> list[Told | Failure]:
    """Do parts one after the other, up to one that cannot be done, or until nobody waits for them."""
    told = list[Told | Failure]()
    for part in parts:
        if told and (isinstance(told[-1], Failure) or errand.token not in _HELD):
            break
        told.append(_do_part(errand, part))
    return told


def _do_part(errand: Errand, part: Chosen) -> Told | Failure:
    """Answer the rays of a chunk into a part.

    One that has come since is this chunk's, by a worker that died before it could say so.
    """
    try:
        with _entered(errand) as held:
            return _do(held, part)
    except RayboxError as error:
        return Failure(type(error), str(error))


def rays_of(errand: Errand, place: Place) -> str | None:
    """Return the sum of the rays of a chunk, as its part tells it; None if they cannot be asked."""
    try:
        with _entered(errand) as held:
            chunk, of = _read(held, place)
            held.rooms.give_back(chunk.room)
            return of
    except (RayboxError, StopIteration):  # the latter: no ray is there
        return None


@contextmanager
def _entered(errand: Errand) -> Iterator[Held]:
    """Lend what is kept for an errand to as many threads at once as have a use for it."""
    from distributed import get_worker

    held = hold(errand, get_worker().state.nthreads)
    with held.entering:
        yield held


def _read(held: Held, place: Place) -> tuple[Chunk, str]:
    """Read a chunk of rays; return it, and their sum as its part tells it."""
    chunk = next(chunks.read(held.source_of(), held.errand.size, place, held.rooms))
    return chunk, checksums.of_text(chunk.after.digest)


def _do(held: Held, part: Chosen) -> Told:
    errand = held.errand
    path = part_of(errand.folder, part.number)
    if part.known is None and (done := told_by(path)):
        return done
    chunk, of = _read(held, part.place)
    if part.known == of and (before := told_by(path)):
        held.rooms.give_back(chunk.room)
        return before
    with held.lend_bench() as bench:
        rows, met = _write(held, chunk, bench)
        made = bench.work / f"answers{ROWS[errand.suffix]}"
        told = Told(chunk.after.first - chunk.first, rows, met, made.stat().st_size, of)
        seal(made, told)
        os.replace(made, path)
    held.rooms.give_back(chunk.room)
    return told


def _write(held: Held, chunk: Chunk, bench: Bench) -> tuple[int, int]:
    """Answer the rays of a chunk into a file; return how many rows that are, and how many are met."""
    errand, rows, met = held.errand, 0, 0
    task = Task(bench.work, kinds(errand.query, errand.kind[0], held.ids), held.ids)
    with closing(SINKS[ROWS[errand.suffix]](task, {})) as sink:
        for answer in _asked(held, chunk.rays, chunk.first):
            columns = answer.columns(bench.scratch)
            sink.add(columns)
            rows, met = rows + len(columns["ray"]), met + answer.hit
            del answer, columns
        sink.finish(rows)
    return rows, met


def _asked(held: Held, rays: Rays, first: int) -> Iterator[Any]:
    """Ask, one thread of this process at a time."""
    answers = run_query(held.scene, held.errand.query, rays, first, held.threads)
    while True:
        with held.asking:
            answer = next(answers, None)
        if answer is None:
            return
        yield answer


def warm(errand: Errand) -> None:
    """Have a question compiled, or loaded, by one process of a machine at a time: the others find it done."""
    dimension, kind = errand.kind
    cells = Boxes.of_voxels(np.ones((3,) * dimension, int), origin=[0] * dimension, pitch=1)
    corners = np.arange(len(cells) // 3 * 3).reshape(-1, 3)
    small = Scene(cells if kind == "boxes" else Mesh(cells.lower, corners), workers=1)
    starts = np.random.default_rng(0).integers(-3, 6, (_RAYS, dimension))
    rays = Rays(starts, 1.0 - starts, t_min=np.zeros(_RAYS), t_max=np.full(_RAYS, 2.0))
    with _alone():
        for answer in run_query(small, errand.query, rays, 0, 1):
            answer.columns({})


@contextmanager
def _alone() -> Iterator[None]:
    """Keep other processes of this machine and user waiting, on systems with such locks."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    try:
        file = (Path(tempfile.gettempdir()) / f"raybox-{os.getuid()}.lock").open("w")
    except OSError:  # then several compile
        yield
        return
    with file:
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            with suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.05)
        yield


def facts() -> tuple[str, str]:
    """Tell which raybox a process has: its version, and a sum of its compiled code's sources."""
    return __version__, source_stamp()


def unseen(paths: list[Path]) -> list[Path]:
    """Tell which paths a process does not see."""
    return [path for path in paths if not path.exists()]


def plugin(errand: Errand) -> Any:
    """Return what has workers hold the scene from when they join."""
    from distributed import WorkerPlugin

    class Holding(WorkerPlugin):  # type: ignore[misc]
        name = f"raybox-{errand.token}"

        async def setup(self, worker: Any) -> None:
            await asyncio.to_thread(hold, errand, worker.state.nthreads)
            heartbeat.slow(worker)

        def teardown(self, worker: Any) -> None:
            heartbeat.hasten(worker)
            let_go(errand.token)

    return Holding()
