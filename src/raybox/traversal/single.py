"""The single-ray traversal of any geometry: every decision is exact."""

from raybox.compiler.entry_points import entry
from raybox.geometry import GridRows, InstanceRows
from raybox.traversal.grid import traverse_grid, traverse_grid_rays
from raybox.traversal.instances import traverse_instances
from raybox.traversal.job import Job, RaySpan, Recorder
from raybox.traversal.tree import (
    RAY_TRAVERSALS,
    SPAN_TRAVERSALS,
    TREE_TRAVERSALS,
    Scratch,
    make_scratch,
    traverse,
    traverse_span,
)

__all__ = ["RaySpan", "make_scratch", "traverse_ray", "traverse_rays"]

RAY_TRAVERSALS[GridRows] = traverse_grid
SPAN_TRAVERSALS[GridRows] = traverse_grid_rays
TREE_TRAVERSALS[InstanceRows] = traverse_instances


@entry
def traverse_rays(job: Job, span: RaySpan, scratch: Scratch, recorder: Recorder) -> int:
    """Write the results of a span of rays; return the first without room, or its end."""
    return traverse_span(job.rows, job, span, scratch, recorder)


@entry
def traverse_ray(job: Job, k: int, scratch: Scratch, recorder: Recorder) -> None:
    """Resolve every allowed primitive that ray k may hit, until none matters; write no result."""
    traverse(job, k, recorder, scratch)
