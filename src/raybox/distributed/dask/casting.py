"""``cast``: from arguments to a finished file, on a cluster."""

import json
import os
import shutil
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from raybox.distributed.dask import cluster as crew
from raybox.distributed.dask import tasks, worker
from raybox.distributed.dask.join_parts import Joiner
from raybox.distributed.dask.part_folder import SCENE, Folder, opened
from raybox.distributed.dask.tasks import Done, Work, count, places
from raybox.distributed.dask.worker import Errand
from raybox.distributed.split import SplitScene
from raybox.errors import RayboxError
from raybox.io import scene_files
from raybox.io.chunked import checksums, output_folder, pipeline
from raybox.io.chunked.casting import (
    Summary,
    ask_one,
    asked_of,
    check_arguments,
    check_target,
    kind_of,
    unwritable,
    want_of,
)
from raybox.io.chunked.chunks import CHUNK, Source
from raybox.io.chunked.readers import open_source
from raybox.io.chunked.result_columns import Task, kinds
from raybox.io.formats.common import Want
from raybox.scene.scene import Scene
from raybox.threads.chunks import check_workers


def cast(  # noqa: PLR0913
    scene: Scene | SplitScene,
    rays: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    cluster: Any,
    query: str = "nearest",
    ids: Sequence[str] | None = None,
    origin: Sequence[float] | None = None,
    invalid: str = "raise",
    workers: int = -1,
    progress: bool = False,
    chunk: int = CHUNK,
) -> Summary:
    """Put one question to every ray of a file on a cluster: `raybox.stream.cast` by workers anywhere.

    The output is that of `raybox.stream.cast`, byte for byte. A task is a chunk of rays: a worker reads it,
    asks, and writes a part of the output, in ``OUT.raybox-parts``. Workers map the scene's files, once. A
    task that fails, or whose worker dies, is done again, by whoever is there. Whatever stops it, parts that
    are whole are kept, and the same call goes on from there, on any cluster.

    Parameters
    ----------
    scene : Scene or SplitScene
        What is asked, of Boxes or of a Mesh. A `SplitScene` has to be in a folder that all workers see.
    rays, out : str or path
        As for `raybox.stream.cast`, in folders that all workers see under the same names.
    cluster : str, or Client or cluster of Dask's
        The scheduler's address, like ``"tcp://10.0.0.1:8786"``.
    query, ids, origin, invalid, chunk
        As for `raybox.stream.cast`.
    workers : int
        Threads that ask in each worker process; -1 for as many as it has.
    progress : bool
        Show a bar on stderr, with the rate and the time left.

    Returns
    -------
    Summary
        How many rays, how many met anything, rows, how many were done before, seconds.

    Raises
    ------
    FileFormatError
        A file cannot be read or written, or holds wrong numbers, or another call has begun the output.
    InvalidInput
        An argument is none of those above.
    RayboxError
        No scheduler answers; a worker has no raybox, or another one, or does not see the files; a part cannot
        be done; dask.distributed is not installed.

    Examples
    --------
    >>> import raybox as rb, tempfile
    >>> from distributed import LocalCluster
    >>> folder = tempfile.mkdtemp()
    >>> rb.save(f"{folder}/rays.npy", rb.Rays([0, 0, 0], [[1, 0, 0], [0, 1, 0], [-1, 0, 0]]))
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
    ...     done = rb.cluster.cast(
    ...         scene, f"{folder}/rays.npy", f"{folder}/counts.csv", cluster=cluster, query="count"
    ...     )
    >>> done.rays, done.met
    (3, 1)
    >>> print(open(f"{folder}/counts.csv").read())
    ray,count
    0,2
    1,0
    2,0
    <BLANKLINE>
    """
    check_arguments(scene, query, ids, chunk)
    want = want_of(origin, invalid)
    target = Path(out)
    check_target(target, Path(rays))
    if workers != -1:
        check_workers(workers)
    source = open_source(Path(rays).resolve(), want)
    ask_one(scene, query, source.dimension)
    started = time.perf_counter()
    names = None if ids is None else [str(name) for name in ids]
    job = _Job(scene, source, want, target, query, names, int(chunk), workers, progress)
    with crew.connected(cluster) as client:
        crew.check_workers(client)
        try:
            asked = asked_of(scene, query, names, want, job.size)
            with opened(target, asked, checksums.of_file(source.path)) as folder:
                done = _done(job, client, folder)
        except OSError as error:
            raise unwritable(target, error) from error
    return Summary(done.rays, done.met, done.rows, done.resumed, time.perf_counter() - started)


class _Job(NamedTuple):
    """What `cast` was asked for."""

    scene: Scene | SplitScene
    source: Source
    want: Want
    target: Path
    query: str
    ids: list[str] | None
    size: int
    workers: int
    progress: bool


def _done(job: _Job, client: Any, folder: Folder) -> Done:
    """Have the workers do what is left to be done, and put it in its place."""
    parts = [job.scene.folder.resolve()] if isinstance(job.scene, SplitScene) else []
    crew.check_folders(client, folder.path, job.source.path, *parts)
    errand = _errand(job, folder)
    _keep(job, folder)
    worker.warm(errand)
    plugin = worker.plugin(errand)
    crew.send(client, plugin)
    try:
        with pipeline.progress(job.source, 0, job.progress) as advance:
            where, number = places(job.source, job.size), count(job.source, job.size)
            done = _joined(job, Work(client, errand, folder, where, number, advance))
    except (RayboxError, KeyboardInterrupt) as error:
        raise folder.told(error) from error
    finally:
        crew.take_back(client, plugin)
    folder.place(folder.whole / f"answers{errand.suffix}")
    return done


def _joined(job: _Job, work: Work) -> Done:
    """Have all parts done, and joined as they come."""
    folder = work.folder
    notes = folder.notes()
    if not folder.same_input:
        notes = tasks.still_good(work, notes, places(job.source, job.size))
    folder.whole.mkdir(exist_ok=True)
    task = Task(folder.whole, kinds(job.query, job.source.dimension, job.ids), job.ids)
    with closing(Joiner(folder.log, task, work.errand.suffix, notes)) as joiner:
        with output_folder.settling(joiner.settle):
            done = tasks.run(work, joiner)
        joiner.finish(done.rows)
    return done


def _keep(job: _Job, folder: Folder) -> None:
    """Write the scene's files, unless they are there."""
    place = folder.path / SCENE
    if not (place / worker.READY).exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir()
        if isinstance(job.scene, Scene):
            scene_files.keep(place, job.scene)
        (place / worker.IDS).write_text(json.dumps(job.ids), encoding="utf-8")
        (place / worker.READY).touch()


def _errand(job: _Job, folder: Folder) -> Errand:
    """Put together what workers have to know."""
    scene = job.scene
    return Errand(
        token=uuid4().hex[:12],
        folder=folder.path,
        split=(scene.folder.resolve(), scene.memory) if isinstance(scene, SplitScene) else None,
        path=job.source.path,
        want=job.want,
        query=job.query,
        size=job.size,
        threads=job.workers,
        suffix=job.target.suffix.lower(),
        kind=(job.source.dimension, kind_of(scene)),
        made=worker.facts(),
    )
