"""``cast``, and what other schedulers call: ``cast_blocks`` and ``finish``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias

from raybox.casting import engine, job_files
from raybox.casting.blocks import BLOCK
from raybox.casting.call import prepare
from raybox.casting.cast_folder import system_errors
from raybox.casting.finishing import Summary
from raybox.casting.job import CastJob
from raybox.casting.readers import paths_of
from raybox.casting.runner import ThreadRunner
from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import Invalid
from raybox.io.formats.common import ReadOptions
from raybox.io.formats.loading import check_options
from raybox.queries.names import Per
from raybox.queries.query import GroupsInput
from raybox.scene.file_queries import columns_of, file_queries
from raybox.scene.scene import Scene
from raybox.threads.chunks import check_workers
from raybox.validation import ArrayInput, MaskInput

if TYPE_CHECKING:
    from raybox.casting.cluster import ClusterInput

DatasetFormat: TypeAlias = Literal["parquet", "zarr"]


@in_default_environment
def cast(  # noqa: PLR0913
    scene: Scene,
    rays: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] | BinaryIO,
    *,
    query: str = "nearest",
    cluster: ClusterInput | None = None,
    blocks: Sequence[int] | None = None,
    values: ArrayInput | None = None,
    weights: ArrayInput | None = None,
    per: Per | None = None,
    where: MaskInput = None,
    groups: GroupsInput = None,
    k: int | None = None,
    max_distance: float | None = None,
    ids: Sequence[str] | None = None,
    labels: Sequence[str] = (),
    carry: Sequence[str] = (),
    origin: Sequence[float] | None = None,
    invalid: Invalid = "raise",
    layout: str | None = None,
    workers: int = -1,
    progress: bool = False,
    chunk: int = BLOCK,
    format: DatasetFormat | None = None,
) -> Summary:
    """Write the results of a query for all rays of a file, in bounded memory.

    The output equals that of ``load``, the query and ``save``, bit for bit. If the call is interrupted, there
    is no incomplete output: results so far are stored in ``OUT.raybox``, and the same call continues from
    there, on this machine or on a cluster. The resumed output is byte-identical to an uninterrupted one.

    Parameters
    ----------
    scene : Scene
        Of any geometry, or of several; for ``deposit``, of one. After ``index`` follow the columns
        ``object`` if a mesh has objects, ``geometry`` of several, ``primitive`` of `Instances`.
    rays : str or path, or a sequence of them
        Several files are read one after the other, and their rays numbered on. Read chunk by chunk:
        ``.parquet .npy .csv .las .laz``, uncompressed ``.npz``, and ``.zarr`` (version 3: a group of
        ``origins directions [t_min t_max]``, or of ``points``). ``.ply .pcd`` and other ``.npz`` are loaded
        whole.
    out : str, path, or binary file
        ``.parquet .npy .csv .npz .zarr``. With a slash at the end, as ``"hits/"``: a folder of Parquet files
        of `chunk` rays each, a dataset as pandas, polars, DuckDB and Dask read it. An open file gets CSV, and
        cannot be resumed.
    query : str
        ``nearest occluded count all segments integrate deposit``, of rays. The output of ``deposit`` has a
        row for each box or cell: the sum over all rays. ``containing closest``: `rays` is a file of points;
        ``overlapping``: of boxes, or of a scene, whose objects' boxes are taken. The first column is then
        ``row``, the number of the point or box.
    cluster : str, or Client or cluster of Dask's, optional
        The scheduler's address, like ``"tcp://10.0.0.1:8786"``: its workers cast the blocks. `rays` and `out`
        are then in folders that all workers see under the same names.
    blocks : sequence of int, optional
        Numbers of blocks of `chunk` rays: these alone are cast, and their results stored in ``OUT.raybox``,
        with all that `cast_blocks` and `finish` need, for other schedulers. Numbers past the end are left
        out. None: all, and then the output.
    values : array_like, shape (M,) or (M, C), or of a grid's shape, optional
        For ``integrate``: see `Scene.integrate`. Sums are reproducible.
    weights : array_like, shape (N,) or (N, C), optional
        For ``deposit``, a row for each ray of the file; may be mapped, as by ``np.load(..., mmap_mode="r")``.
    per : {"length", "hit"}, optional
        For ``deposit``: see `Scene.deposit`. Sums do not depend on workers, on interruptions, nor on a
        `chunk` of up to a million, if the scene is bounded.
    where : array_like of bool, shape (M,), or str, optional
        Which primitives may be hit, or an expression of the labels of their objects: see `Scene.nearest`.
    groups : int, array_like of int, shape (N,), or str, optional
        The groups of rays in a scene that has groups, as for `Scene.nearest`; not for ``segments``: a row for
        each ray of the file (may be mapped), one for all, or the name of a column of the file of rays
        (``.csv`` or ``.parquet``) that holds them.
    k, max_distance : number, optional
        For ``closest``: how many boxes of each point, which are `k` rows, and the largest distance. See
        `Scene.closest`.
    ids : sequence of str, optional
        One for each object of the scene: the column ``id``. Default: those of the geometry.
    labels : sequence of str
        Labels of the object of each hit that the output gets, too, ``["all"]`` for all; missing for a miss.
        One with the name of a column of results gets the prefix ``object_``. In ``.npy .npz .zarr``, numbers
        and bools that can be missing are float64, with NaN, and text has the width of the longest.
    carry : sequence of str
        Columns of the file of rays (``.csv`` or ``.parquet``) that the output (``.csv`` or ``.parquet``)
        gets, too, at the end; ``["all"]`` for all that are no columns of rays. Those with the name of a
        column of results get the prefix ``ray_``, or ``row_``. Columns of CSV are text; those of Parquet keep
        their type.
    origin : X, Y, Z, optional
        Start of the rays to a set of points, as in :func:`raybox.load`.
    invalid : {"raise", "miss"}
        How to handle rays with NaN, as in :class:`raybox.Rays`; points and boxes that "miss" find nothing.
        Results before such a ray are stored; the
        call continues with ``invalid="miss"``, or with a corrected file.
    layout : str, optional
        The columns of rays without names, as in :func:`raybox.load`.
    workers : int
        Threads of the query, in each process; -1 for all cores.
    progress : bool
        Show a bar on stderr, with the rate and the time left.
    chunk : int
        Rays that are in memory together, about a million by default. Memory grows with it.
    format : {"parquet", "zarr"}, optional
        That of a dataset: `out` is then a folder. Of Zarr: a group of one array for each column, for queries
        with a row for each ray.

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
        A format needs a package that is not installed. No scheduler answers; a worker has no raybox, or
        another one, or does not see the files.

    Examples
    --------
    >>> import raybox as rb, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> rb.save(f"{folder}/rays.npy", rb.Rays([0, 0, 0], [[1, 0, 0], [0, 1, 0], [-1, 0, 0]]))
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> done = rb.cast(scene, f"{folder}/rays.npy", f"{folder}/out.csv", query="occluded")
    >>> done.rays, done.hit_count
    (3, 1)
    >>> print(open(f"{folder}/out.csv").read())
    ray,occluded
    0,1
    1,0
    2,0
    <BLANKLINE>
    """
    start = None if origin is None else tuple(map(float, origin))
    options = check_options(ReadOptions("rays", start, False, invalid, layout=layout))
    reads = columns_of(query).reads if query in file_queries() else "rays"
    if start is not None and reads != "rays":
        raise InvalidInput(f"origin turns points into rays, and {query} takes {reads}. Leave it out.")
    options = options._replace(kind=reads, boxes=reads == "boxes")
    job = CastJob(tuple(paths_of(rays)), options, query, chunk, tuple(labels), tuple(carry))
    given: dict[str, Any] = {"values": values, "weights": weights, "per": per, "groups": groups}
    given |= {"k": k, "max_distance": max_distance}
    call = prepare(scene, job, out, format, ids, where=where, **given)
    threads = check_workers(workers)
    is_open = call.target is None
    if is_open and (cluster is not None or blocks is not None):
        raise InvalidInput(
            "an open file is written by one process; give the name of a file with cluster, blocks."
        )
    if blocks is not None:
        if cluster is not None:
            raise InvalidInput(
                "blocks are cast here, and cluster casts all of them; leave one of the two out."
            )
        return engine.cast_numbers(call, partial(ThreadRunner, workers=threads), blocks, stored=True)
    stream: Any = out if is_open else None
    if cluster is None:
        threaded = partial(ThreadRunner, workers=threads, extends=True)
        return engine.run(call, stream, threaded, shown=progress)
    from raybox.casting.cluster import DaskRunner, connect

    with connect(cluster) as client:
        return engine.run(call, stream, partial(DaskRunner, client, threads=workers), shown=progress)


@in_default_environment
def cast_blocks(folder: str | os.PathLike[str], numbers: Sequence[int], *, workers: int = -1) -> Summary:
    """Cast some blocks of a cast that ``cast(..., blocks=...)`` has begun; any process may, at any time.

    Parameters
    ----------
    folder : path
        ``OUT.raybox``.
    numbers : sequence of int
        Of the blocks, as in `cast`. Of sums, give numbers that follow one another: they become one part.
    workers : int
        Threads of the query; -1 for all cores.

    Returns
    -------
    Summary
        Of these blocks.

    Raises
    ------
    FileFormatError
        If the folder is none of a cast, or a file cannot be read or written.
    """
    threads = check_workers(workers)
    with system_errors(Path(folder)):
        call = job_files.call_in(Path(folder))
    return engine.cast_numbers(call, partial(ThreadRunner, workers=threads), numbers)


@in_default_environment
def finish(folder: str | os.PathLike[str]) -> Summary:
    """Write the output of a cast, once all blocks are cast, and remove its folder.

    Parameters
    ----------
    folder : path
        ``OUT.raybox``.

    Returns
    -------
    Summary
        Of all rays.

    Raises
    ------
    FileFormatError
        If blocks are missing, or were cast from other rays than the files hold now.
    """
    with system_errors(Path(folder)):
        call = job_files.call_in(Path(folder))
    return engine.run(call, None, None, shown=False)
