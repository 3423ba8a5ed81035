"""``cast``: from arguments to a complete file, on a cluster."""

import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from raybox.compiler.float_environment import in_default_environment
from raybox.distributed.dask import cluster as dask_cluster
from raybox.distributed.dask import job_files, tasks, worker
from raybox.distributed.dask.job_plugin import make_plugin
from raybox.distributed.dask.join_parts import Joiner
from raybox.distributed.dask.part_folder import SCENE, PartFolder, open_part_folder, running_mark
from raybox.distributed.dask.tasks import CastTotals, ClusterJob, chunk_count, positions
from raybox.distributed.dask.worker import WorkerJob
from raybox.errors import RayboxError
from raybox.geometry import Invalid
from raybox.io import checksums, own_files
from raybox.io.chunked import output_folder, pipeline
from raybox.io.chunked.cast_checks import (
    check_arguments,
    check_dimension,
    check_target,
    job_facts,
    read_options,
    write_error,
)
from raybox.io.chunked.casting import Summary
from raybox.io.chunked.chunks import CHUNK, RayFile
from raybox.io.chunked.object_columns import ObjectColumns, object_columns, spec_of
from raybox.io.chunked.readers import open_ray_file
from raybox.io.chunked.result_columns import run_one_ray
from raybox.io.formats.common import ReadOptions, path_of
from raybox.queries.query import FileQuery
from raybox.scene.scene import Scene
from raybox.split import SplitScene
from raybox.threads.chunks import check_workers

if TYPE_CHECKING:
    import distributed
    from raybox.distributed.dask.cluster import ClusterInput


@in_default_environment
def cast(  # noqa: PLR0913
    scene: Scene | SplitScene,
    rays: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    cluster: "ClusterInput",
    query: FileQuery = "nearest",
    ids: Sequence[str] | None = None,
    origin: Sequence[float] | None = None,
    invalid: Invalid = "raise",
    workers: int = -1,
    progress: bool = False,
    chunk: int = CHUNK,
) -> Summary:
    """Run a query for all rays of a file on a cluster, as `raybox.stream.cast` does here.

    The output is that of `raybox.stream.cast`, byte for byte. A task casts some chunks of rays, each into a
    part of the output, in ``OUT.raybox-parts``. Workers map the scene's files, once. A task that fails, or
    whose worker dies, runs again, on any worker. If the call is interrupted, complete parts are stored, and
    the same call continues from there, on any cluster.

    Parameters
    ----------
    scene : Scene or SplitScene
        Of any geometry. A `SplitScene` must be in a folder that all workers see.
    rays, out : str or path
        As for `raybox.stream.cast`, in folders that all workers see under the same names.
    cluster : str, or Client or cluster of Dask's
        The scheduler's address, like ``"tcp://10.0.0.1:8786"``.
    query, ids, origin, invalid, chunk
        As for `raybox.stream.cast`, but for ``deposit``. Labels are not written: join the output to them by
        ``object``, or by ``index``.
    workers : int
        Threads of the query in each worker process; -1 for as many as it has.
    progress : bool
        Show a bar on stderr, with the rate and the time left.

    Returns
    -------
    Summary
        Rays, rays that hit anything, rows, rays done before, seconds.

    Raises
    ------
    FileFormatError
        A file cannot be read or written, or holds wrong numbers, or another call has started the output.
    InvalidInput
        An argument has another value than those above.
    RayboxError
        No scheduler answers; a worker has no raybox, or another one, or does not see the files; a part cannot
        be written; dask.distributed is not installed.

    Examples
    --------
    >>> import raybox as rb, tempfile
    >>> from distributed import LocalCluster
    >>> folder = tempfile.mkdtemp()
    >>> rb.save(f"{folder}/rays.npy", rb.Rays([0, 0, 0], [[1, 0, 0], [0, 1, 0], [-1, 0, 0]]))
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster:
    ...     done = rb.cluster.cast(
    ...         scene, f"{folder}/rays.npy", f"{folder}/out.csv", cluster=cluster, query="occluded"
    ...     )
    >>> done.rays, done.hit_count
    (3, 1)
    >>> print(open(f"{folder}/out.csv").read())
    ray,occluded
    0,1
    1,0
    2,0
    <BLANKLINE>
    """
    dask_cluster.check_query(query)
    check_arguments(scene, query, ids, chunk)
    options = read_options(origin, invalid)
    target, rays_file = path_of(out), path_of(rays)
    check_target(target, [rays_file], scene)
    if workers != -1:
        check_workers(workers)
    source = open_ray_file(rays_file.resolve(), options)
    check_dimension(scene, source)
    run_one_ray(scene, query, source.dimension)
    started = time.perf_counter()
    objects = object_columns(scene, ids)
    call = _Call(scene, source, options, target, query, ids, objects, int(chunk), workers, progress)
    with dask_cluster.connect(cluster) as client:
        dask_cluster.check_workers(client)
        try:
            facts = job_facts(scene, query, objects.ids, options, call.size) | objects.facts()
            with open_part_folder(target, facts, checksums.fingerprint(source.path)) as folder:
                done = _cast(call, client, folder)
        except RayboxError:
            raise
        except OSError as error:
            raise write_error(target, error) from error
    return Summary(done.rays, done.hit_count, done.rows, done.resumed, time.perf_counter() - started)


class _Call(NamedTuple):
    """The checked arguments of `cast`."""

    scene: Scene | SplitScene
    source: RayFile
    options: ReadOptions
    target: Path
    query: str
    ids: Sequence[str] | None
    """None: those of the scene."""
    objects: ObjectColumns
    size: int
    """Rays in a chunk."""
    workers: int
    progress: bool


def _cast(call: _Call, client: "distributed.Client", folder: PartFolder) -> CastTotals:
    """Cast the missing parts on the workers, and move the output to its place."""
    split = [call.scene.folder.resolve()] if isinstance(call.scene, SplitScene) else []
    dask_cluster.check_folders(client, folder.path, call.source.path, *split)
    job = _worker_job(call, folder)
    _write_scene(call, folder)
    plugin, mark = make_plugin(job), running_mark(folder.path, job.token)
    mark.touch()
    try:
        dask_cluster.register(client, plugin)
        with pipeline.progress(call.source, 0, call.progress) as advance:
            starts, part_count = positions(call.source, call.size), chunk_count(call.source, call.size)
            done = _cast_and_join(call, ClusterJob(client, job, folder, starts, part_count, advance))
    except (RayboxError, KeyboardInterrupt) as error:
        raise folder.with_progress(error) from error
    finally:
        mark.unlink(missing_ok=True)  # before: a worker that loads the scene later looks for it afterwards
        dask_cluster.unregister(client, plugin)
    folder.place_output(folder.output / f"results{job.suffix}")
    return done


def _cast_and_join(call: _Call, job: ClusterJob) -> CastTotals:
    """Cast the missing parts, and join all as they come."""
    folder = job.folder
    joined = folder.joined()
    if not folder.same_input:
        joined = tasks.still_valid(job, joined, positions(call.source, call.size))
    own_files.make_folder(folder.output)
    spec = spec_of(call.query, call.source.dimension, call.objects, job.worker_job.suffix)
    spec = spec._replace(folder=folder.output, ids=None)  # those of parts are texts
    with closing(Joiner(folder.log, spec, job.worker_job.suffix, joined)) as joiner:
        with output_folder.background_sync(joiner.sync):
            done = tasks.run(job, joiner)
        joiner.finish(done.rows)
    return done


def _write_scene(call: _Call, folder: PartFolder) -> None:
    """Write the scene's files and the ids, unless they exist and are whole."""
    path = folder.path / SCENE
    if not job_files.are_valid(path, call.scene):
        own_files.remove(path, ignore_errors=True)
        path.mkdir()
        job_files.write(path, call.scene, call.ids)


def _worker_job(call: _Call, folder: PartFolder) -> WorkerJob:
    """Return what workers need for a cast."""
    scene = call.scene
    return WorkerJob(
        token=uuid4().hex[:12],
        folder=folder.path,
        split=job_files.place_of(scene) if isinstance(scene, SplitScene) else None,
        path=call.source.path,
        options=call.options,
        query=call.query,
        size=call.size,
        threads=call.workers,
        suffix=call.target.suffix.lower(),
        dimension=call.source.dimension,
        version=worker.code_version(),
        job_id=folder.job_id,
    )
