"""``cast``: from arguments to a complete file, on a cluster."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from raybox.cast import checks
from raybox.cast.blocks import BLOCK
from raybox.cast.call import CastRequest, Summary, prepare, run
from raybox.cast.casting import DatasetFormat
from raybox.cast.dask import connection
from raybox.cast.dask.runner import DaskRunner
from raybox.cast.job import CastJob
from raybox.cast.readers import paths_of
from raybox.compiler.float_environment import in_default_environment
from raybox.geometry import Invalid
from raybox.queries.names import Per
from raybox.queries.query import FileQuery
from raybox.scene.scene import Scene
from raybox.split import SplitScene
from raybox.threads.chunks import check_workers
from raybox.validation import ArrayInput, MaskInput

if TYPE_CHECKING:
    from raybox.cast.dask.connection import ClusterInput


@in_default_environment
def cast(  # noqa: PLR0913
    scene: Scene | SplitScene,
    rays: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    cluster: ClusterInput,
    format: DatasetFormat | None = None,
    query: FileQuery = "nearest",
    values: ArrayInput | None = None,
    weights: ArrayInput | None = None,
    per: Per | None = None,
    where: MaskInput = None,
    ids: Sequence[str] | None = None,
    labels: Sequence[str] = (),
    carry: Sequence[str] = (),
    origin: Sequence[float] | None = None,
    invalid: Invalid = "raise",
    layout: str | None = None,
    workers: int = -1,
    progress: bool = False,
    chunk: int = BLOCK,
) -> Summary:
    """Run a query for all rays of a file on a cluster, as `raybox.stream.cast` does here.

    The output is that of `raybox.stream.cast`, byte for byte. A task casts some blocks of rays, each into a
    part of the output, in ``OUT.raybox``. Workers map the scene's files, once. A task that fails, or whose
    worker dies, runs again, on any worker. If the call is interrupted, complete parts are stored, and the
    same call continues from there, on any cluster, or `raybox.stream.cast` does on one machine.

    Parameters
    ----------
    scene : Scene or SplitScene
        Of any geometry. A `SplitScene` must be in a folder that all workers see.
    rays, out : str or path
        As for `raybox.stream.cast`, but for open files, in folders that all workers see under the same names.
    cluster : str, or Client or cluster of Dask's
        The scheduler's address, like ``"tcp://10.0.0.1:8786"``.
    format, query, values, weights, per, where, ids, labels, carry, origin, invalid, layout, chunk
        As for `raybox.stream.cast`. Arrays are copied to ``OUT.raybox`` for the workers.
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
    paths, options = (
        tuple(path.resolve() for path in paths_of(rays)),
        checks.read_options(origin, invalid, layout),
    )
    job = CastJob(paths, options, query, chunk, tuple(labels), tuple(carry))
    given = {"values": values, "weights": weights, "per": per}
    request = CastRequest(scene, job, ids, given, where)
    threads = workers if workers == -1 else check_workers(workers)
    call = prepare(request, out, format)
    with connection.connect(cluster) as client, connection.scheduler_watched(client):
        connection.check_workers(client)
        return run(call, out, lambda caster: DaskRunner(client, caster, threads), shown=progress)
