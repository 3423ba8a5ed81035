"""`all`: every hit of every ray, sorted by (t, index) along it."""

from __future__ import annotations

from typing import Never

import numpy as np

from raybox.compiler.decorators import no
from raybox.geometry import Cull, Rays
from raybox.hits import AllHits
from raybox.hits.hit_ids import Source
from raybox.queries import hit_pairs
from raybox.queries.all_hits import hit_rows, recorder
from raybox.queries.all_hits.file_columns import file_columns
from raybox.queries.all_hits.recorder import AllHitsRecorder
from raybox.queries.all_hits.run import EXACT_HOOKS, AllResults, run
from raybox.queries.merge import (
    FlatHits,
    merge_hits,
)
from raybox.queries.query import (
    ExcludeInput,
    ExcludeObjectInput,
    GroupsInput,
    Query,
    Request,
    RunOne,
    RunsQueries,
    refuse_more,
)
from raybox.traversal.packed_rays import store_rows
from raybox.traversal.protocol import PacketHooks, StreamHooks
from raybox.validation import MaskInput


def _merge_geometries(request: Request, run_one: RunOne[None, AllResults], _options: None) -> AllResults:
    parts = [run_one(job, request.rays) for job in request.jobs]
    rays = np.arange(len(parts[0].offsets) - 1, dtype=np.int64)
    flat = [FlatHits(np.repeat(rays, np.diff(part.offsets)), part.index, part.t) for part in parts]
    hits = merge_hits(request, flat)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(hits.ray, minlength=rays.size))])
    return AllResults(offsets, hits.id, hits.t)


def _present(results: AllResults, _shape: tuple[int, ...], source: Source, _options: None) -> AllHits:
    return AllHits(results.offsets, results.index, results.t, source)


QUERY: Query[None, AllResults, AllHits] = Query(
    name="all",
    hooks=(
        StreamHooks(
            AllHitsRecorder,
            record=hit_pairs.record,
            write_results=hit_rows.write_results,
            certain_hits=recorder.CertainAllHits,
            record_certain=recorder.record_certain,
            ends_rays=no,
            has_unwritten=hit_pairs.has_unwritten,
        ),
        PacketHooks(
            AllHitsRecorder,
            intersect_box=recorder.intersect_box,
            write_packets=hit_rows.write_packets,
            write_misses=recorder.write_misses,
            has_room=recorder.has_room,
            store_rays=store_rows,
        ),
        EXACT_HOOKS,
    ),
    run=run,
    merge_geometries=_merge_geometries,
    present=_present,
    columns=file_columns("all"),
)


class AllMethod(RunsQueries):
    """Gives a scene its method `all`."""

    def all(
        self,
        rays: Rays,
        *more: Never,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
        groups: GroupsInput = None,
        exclude: ExcludeInput = None,
        exclude_object: ExcludeObjectInput = None,
    ) -> AllHits:
        """Return every hit of each ray, sorted by (t, index) along it. Parameters as for `nearest`.

        Of a mesh, each triangle is a hit; `AllHits.by_object` has a row for each object.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[5, -1], [2, -1]], [[6, 1], [4, 1]]))
        >>> all_hits = scene.all(rb.Rays([[0, 0], [0, 9]], [1, 0]))
        >>> all_hits.offsets, all_hits.index, all_hits.lengths
        (array([0, 2, 2]), array([1, 0]), array([2., 1.]))
        """
        refuse_more(more, "all")
        return self._run(
            QUERY,
            rays,
            workers=workers,
            progress=progress,
            where=where,
            cull=cull,
            groups=groups,
            exclude=exclude,
            exclude_object=exclude_object,
        )
