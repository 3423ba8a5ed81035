"""Run a query on one geometry: few rays by the calling thread, many in batches on all threads.

A batch is sorted into streams and packets (`raybox.queries.batches`); the rays that stay undecided, and
geometries that vector code cannot test, go through the exact single-ray traversal.
"""

from bisect import bisect
from collections.abc import Callable
from functools import partial
from itertools import pairwise

from raybox.geometry import RayRows
from raybox.geometry.ray_rows import ray_count
from raybox.primitives.table import has_volumes
from raybox.queries import one_by_one
from raybox.queries.batches import BATCH, Recording, traverse_batch
from raybox.queries.per_ray import Opt, PerRay, Res, exact_job, select_rays
from raybox.threads.chunks import Run, check_workers, chunk_runner, uncounted
from raybox.traversal.job import Job, RaySpan, Recorder
from raybox.validation import Ints

# Bytes of nodes below which a tree is small, medium, large. Wider groups pay where nodes come from far
# memory, most where no ray ends early (10^6 boxes, width 16 over 4: times of `count` 0.73, of `all` 1.05).
_TREE_SIZES = 1 << 17, 1 << 20, 1 << 24
_CACHED = 1 << 21  # bytes of nodes that the caches of a core hold, about
EXACT_CHUNK = 64  # least number of rays in a chunk of those traversed one by one: up to 10 ms each
PACKET_WIDTH = 4


def goes_one_by_one(job: Job, rays: RayRows) -> bool:
    """Return whether rays are not sorted, and all are traversed by the calling thread."""
    count = ray_count(rays)
    if job.frame is None:
        return count <= one_by_one.PIECE
    most = one_by_one.MOST_RAYS
    return count <= most or (
        count <= 2 * most and job.tree.nodes.nbytes > _CACHED and not has_volumes(job.rows)
    )


def rays_each(job: Job) -> int:
    """Return how many rays a thread has, at least: with fewer, one is as fast as several."""
    return one_by_one.MOST_RAYS if job.frame else one_by_one.PIECE


def run(
    per_ray: PerRay[Res, Opt], job: Job, rays: RayRows, options: Opt, workers: int, progress: bool
) -> Res:
    """Return the results of a query for all rays."""
    if not goes_one_by_one(job, rays):
        return _run_many(per_ray, job, rays, options, workers, progress)
    if workers != -1:  # -1 is valid, and to count the cores costs a system call
        check_workers(workers)
    return _run_unsorted(per_ray, job, rays, options)


def _run_unsorted(per_ray: PerRay[Res, Opt], job: Job, rays: RayRows, options: Opt) -> Res:
    """Return the results of few rays without a thread pool, and with as few objects as it takes."""
    if job.frame is None:
        return per_ray.run_exact(exact_job(job._replace(rays=rays)), options)
    total = len(rays.directions)
    results = per_ray.allocate_misses(total, options)
    recorder = per_ray.recorder(results, one_by_one.room(total), options)
    if total <= one_by_one.PIECE:
        piece = one_by_one.PIECES[total]
        recorder, undecided = one_by_one.traverse_piece(job, rays, piece, recorder, per_ray.grow)
    else:
        recorder, undecided = one_by_one.traverse(job, rays, RaySpan(0, total), recorder, per_ray.grow)
    if per_ray.release is not None:
        per_ray.release(recorder)
    if undecided.size:
        write_exact(per_ray, job._replace(rays=rays), results, options, undecided)
    return results


def _run_many(
    per_ray: PerRay[Res, Opt], job: Job, rays: RayRows, options: Opt, workers: int, progress: bool
) -> Res:
    """Return the results of many rays, in batches on all threads."""
    total = ray_count(rays)
    results = per_ray.allocate(total, options)

    def write(rows: Ints | slice) -> None:
        write_exact(per_ray, job._replace(rays=rays), results, options, rows)

    with chunk_runner(total, workers=workers, progress=progress, least=rays_each(job)) as threads:
        if not job.frame:
            threads(lambda begin, end: write(slice(begin, end)), total, min_chunk=EXACT_CHUNK)
            return results
        recording = _recording(per_ray, job, results, options)
        for span in batches_of(total):
            with traverse_batch(job, rays, span, recording, threads) as traversed:
                write_all(threads, write, span.begin + traversed.undecided)
    return results


def _recording(per_ray: PerRay[Res, Opt], job: Job, results: Res, options: Opt) -> Recording[Recorder]:
    triangles, speed = has_volumes(job.rows), per_ray.speed

    def recorder(size: int) -> Recorder:
        return per_ray.recorder(results, size, options)

    return Recording(
        recorder,
        partial(per_ray.write_misses, results),
        group_width(job, speed.group_widths),
        grow=per_ray.grow,
        release=per_ray.release,
        packet_recorder=recorder if per_ray.packets(options) else None,
        scattered=speed.scattered,
        packet_width=PACKET_WIDTH,
        grains=speed.triangle_grains if triangles else speed.grains,
        packs_triangles=triangles and speed.triangle_grains > 0.0,
    )


def batches_of(total: int) -> list[RaySpan]:
    """Return the bounds of batches of nearly equal size."""
    ends = [total * k // -(-total // BATCH) for k in range(1 + -(-total // BATCH))] if total else []
    return [RaySpan(begin, end) for begin, end in pairwise(ends)]


def group_width(job: Job, widths: tuple[int, ...]) -> int:
    """Return the group-size multiplier for a tree of this size."""
    return widths[bisect(_TREE_SIZES, job.tree.nodes.nbytes)] if job.frame else 1


def write_exact(per_ray: PerRay[Res, Opt], job: Job, results: Res, options: Opt, rows: Ints | slice) -> None:
    """Write the results of some rays by the exact single-ray traversal."""
    exact = per_ray.run_exact(select_rays(job, rows), options)
    for array, part in zip(results, exact, strict=True):
        array[rows] = part


def write_all(threads: Run, write: Callable[[Ints], None], rows: Ints) -> None:
    """Write the results of rays that streams left undecided."""
    threads(lambda begin, end: write(rows[begin:end]), len(rows), done=uncounted, min_chunk=EXACT_CHUNK)
