"""``cast``: from arguments to a complete file."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple
from typing import cast as typed

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import OutOfMemory, RayboxError
from raybox.geometry import Invalid
from raybox.io import checksums
from raybox.io.chunked import cast_arguments, result_columns
from raybox.io.chunked.carried_columns import carried
from raybox.io.chunked.cast_checks import (
    check_arguments,
    check_dimension,
    check_target,
    job_facts,
    read_options,
    write_error,
)
from raybox.io.chunked.chunks import CHUNK, ChunkBuffers, position_of_row
from raybox.io.chunked.joined_files import open_ray_files, paths_of
from raybox.io.chunked.journal import CastProgress, Journal, open_journal
from raybox.io.chunked.object_columns import object_columns, spec_of, with_labels
from raybox.io.chunked.output import write_output
from raybox.io.chunked.partitioned import AnyScene
from raybox.io.chunked.pipeline import CastJob
from raybox.io.chunked.result_columns import OutputSpec
from raybox.io.chunked.stages import StageThreads
from raybox.io.chunked.writers import WRITERS, CsvStreamWriter, check_place
from raybox.io.formats.common import ReadOptions, file_error, path_of
from raybox.queries.names import Per
from raybox.queries.query import FileQuery
from raybox.threads.chunks import check_workers
from raybox.validation import ArrayInput, MaskInput


class Summary(NamedTuple):
    """The totals of a cast."""

    rays: int
    """Rays of the file."""
    hit_count: int
    """Rays that hit anything; of ``all`` and ``segments``: hits; of ``deposit``: sums that are not zero."""
    rows: int
    """Rows of the output."""
    resumed: int
    """Rays that an earlier call had done."""
    seconds: float
    """Time for the others, reading and writing included."""


@in_default_environment
def cast(  # noqa: PLR0913
    scene: AnyScene,
    rays: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str] | BinaryIO,
    *,
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
    workers: int = -1,
    progress: bool = False,
    chunk: int = CHUNK,
) -> Summary:
    """Write the results of a query for all rays of a file, in bounded memory.

    The output equals that of ``load``, the query and ``save``, bit for bit. If the call is interrupted, there
    is no incomplete output: results so far are stored in ``OUT.raybox-part``, and the same call continues
    from there. The resumed output is byte-identical to an uninterrupted one.

    Parameters
    ----------
    scene : Scene or SplitScene
        Of any geometry, or of several; for ``deposit``, of one. After ``index`` follow the columns
        ``object`` if a mesh has objects, ``geometry`` of several, ``primitive`` of `Instances`.
    rays : str or path, or a sequence of them
        Several files are read one after the other, and their rays numbered on. Read chunk by chunk:
        ``.parquet .npy .csv .las .laz``, uncompressed ``.npz``, and ``.zarr`` (version 3: a group of
        ``origins directions [t_min t_max]``, or of ``points``). ``.ply .pcd`` and other ``.npz`` are loaded
        whole.
    out : str, path, or binary file
        ``.parquet .npy .csv .npz .zarr``. An open file gets CSV, and cannot be resumed.
    query : {"nearest", "occluded", "count", "all", "segments", "integrate", "deposit"}
        The query. The output of ``deposit`` has a row for each box or cell: the sum over all rays.
    values : array_like, shape (M,) or (M, C), or of a grid's shape, optional
        For ``integrate``: see `Scene.integrate`. Sums are reproducible.
    weights : array_like, shape (N,) or (N, C), optional
        For ``deposit``, a row for each ray of the file; may be mapped, as by ``np.load(..., mmap_mode="r")``.
    per : {"length", "hit"}, optional
        For ``deposit``: see `Scene.deposit`. Sums do not depend on workers, nor on interruptions, if the
        scene is bounded; last bits may depend on `chunk`.
    where : array_like of bool, shape (M,), or str, optional
        Which primitives may be hit, or an expression of the labels of their objects: see `Scene.nearest`.
    ids : sequence of str, optional
        One for each object of the scene: the column ``id``. Default: those of the geometry.
    labels : sequence of str
        Labels of the object of each hit that the output gets, too, ``["all"]`` for all; missing for a miss.
        One with the name of a column of results gets the prefix ``object_``. In ``.npy .npz .zarr``, numbers
        and bools that can be missing are float64, with NaN, and text has the width of the longest.
    carry : sequence of str
        Columns of the file of rays (``.csv`` or ``.parquet``) that the output (``.csv`` or ``.parquet``)
        gets, too, at the end; ``["all"]`` for all that are no columns of rays. Those with the name of a
        column of results get the prefix ``ray_``. Columns of CSV are text; those of Parquet keep their type.
    origin : X, Y, Z, optional
        Start of the rays to a set of points, as in :func:`raybox.load`.
    invalid : {"raise", "miss"}
        How to handle rays with NaN, as in :class:`raybox.Rays`. Results before such a ray are stored; the
        call continues with ``invalid="miss"``, or with a corrected file.
    workers : int
        Threads of the query; -1 for all cores.
    progress : bool
        Show a bar on stderr, with the rate and the time left.
    chunk : int
        Rays that are in memory together, about a million by default. Memory grows with it.

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
        A format needs a package that is not installed.

    Examples
    --------
    >>> import raybox as rb, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> rb.save(f"{folder}/rays.npy", rb.Rays([0, 0, 0], [[1, 0, 0], [0, 1, 0], [-1, 0, 0]]))
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> done = rb.stream.cast(scene, f"{folder}/rays.npy", f"{folder}/out.csv", query="occluded")
    >>> done.rays, done.hit_count
    (3, 1)
    >>> print(open(f"{folder}/out.csv").read())
    ray,occluded
    0,1
    1,0
    2,0
    <BLANKLINE>
    """
    check_arguments(scene, query, ids, chunk)
    options, mask = read_options(origin, invalid), cast_arguments.masks(scene, where)
    worker_count = check_workers(workers)
    target, paths = path_of(out) if isinstance(out, str | os.PathLike) else None, paths_of(rays)
    if target:
        check_target(target, paths, scene, values, weights)
    source = open_ray_files(paths, options)
    check_dimension(scene, source)
    given = {"values": values, "weights": weights, "per": per}
    arguments = cast_arguments.checked(scene, query, source.total, **given)
    threads, objects = StageThreads(), object_columns(scene, ids)
    spec = spec_of(query, source.dimension, objects, "" if target is None else target.suffix, **arguments)
    if labels:
        objects = with_labels(objects, scene, labels, spec)
        spec = spec.with_columns(objects)
    extra = carried(source, carry, options, query, target, list(spec.dtypes))
    if extra:
        spec = spec.with_columns(extra)
    spec = spec._replace(check=threads.check)
    job = CastJob(
        source,
        scene,
        query,
        int(chunk),
        worker_count,
        threads,
        progress,
        ChunkBuffers(),
        arguments | mask,
        extra,
        objects,
    )
    result_columns.run_one_ray(scene, query, source.dimension, **job.arguments)
    started = time.perf_counter()
    if target is None:
        resumed, done = 0, write_output(job, spec, lambda: CsvStreamWriter(spec, typed(BinaryIO, out)), None)
    else:
        resumed, done = _cast_to_file(job, spec, target, options)
    seconds = time.perf_counter() - started
    return Summary(done.position.first, done.hit_count, done.rows, resumed, seconds)


def _cast_to_file(
    job: CastJob, spec: OutputSpec, target: Path, options: ReadOptions
) -> tuple[int, CastProgress]:
    """Cast the rest of a file; return the rays done before, and the progress.

    An error gets a note on the results that are stored.
    """
    facts = job_facts(job.scene, job.query, spec.ids, options, job.size)
    facts |= cast_arguments.facts(job.arguments)
    facts |= {"carry": job.carried.names} if job.carried else {}
    facts |= job.objects.facts() if job.objects else {}
    fingerprint = checksums.fingerprint_of(job.source.paths)
    journal: Journal | None = None
    try:
        with open_journal(target, facts, fingerprint) as journal:
            return _resume(job, spec, journal)
    except MemoryError as error:
        problem = (
            f"{job.source.path}: chunks of {job.size:,} rays do not fit into memory; give a smaller chunk"
        )
        raise _with_progress(OutOfMemory(problem), journal) from error
    except RayboxError as error:
        raise _with_progress(error, journal) from error
    except OSError as error:
        raise _with_progress(write_error(target, error), journal) from error
    except KeyboardInterrupt as error:
        if journal and journal.progress.position.first:
            error.add_note(_progress_text(journal))
        raise


def _resume(job: CastJob, spec: OutputSpec, journal: Journal) -> tuple[int, CastProgress]:
    before = journal.progress.position.first
    if not journal.is_placed:
        check_place(journal.given)
        _check_rays_done(job, journal)
        journal.save()
        make_writer = WRITERS[journal.output.suffix]
        spec = spec._replace(folder=journal.folder)
        journal.progress = write_output(
            job, spec, lambda: make_writer(spec, journal.progress.lengths), journal
        )
        journal.place_output()
    done = journal.progress
    journal.remove()
    return before, done


def _check_rays_done(job: CastJob, journal: Journal) -> None:
    """Raise if the file of rays has changed and the rays that are done are not its first."""
    position = journal.progress.position
    if journal.same_input or not position.first:
        return
    now = None if job.carried else position_of_row(job.source, job.size, position.first)
    if now is None or now.checksum != position.checksum:
        raise file_error(
            job.source.path,
            "has changed, and columns are carried from it"
            if job.carried
            else f"has changed: its first {position.first:,} rays are not those that are done",
            f"restore the old one, or remove the folder {journal.folder} and start again",
        )
    journal.progress = journal.progress._replace(position=now)


def _with_progress(error: RayboxError, journal: Journal | None) -> RayboxError:
    """Return an error whose text also gives the results that are stored."""
    if journal is None or not journal.progress.position.first:
        return error
    return type(error)(f"{error}; {_progress_text(journal)}")


def _progress_text(journal: Journal) -> str:
    return (
        f"{journal.progress.position.first:,} rays are done and stored in {journal.folder.name}; "
        "the same command continues from there"
    )
