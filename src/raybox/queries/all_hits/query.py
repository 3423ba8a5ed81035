"""`all`: every hit of every ray, sorted by (t, index) along it."""

from __future__ import annotations

import numpy as np

from raybox.compiler.decorators import no
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
    Query,
    Request,
    RunOne,
)
from raybox.traversal.packed_rays import store_rows
from raybox.traversal.protocol import PacketHooks, StreamHooks, register


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
register(*QUERY.hooks)
