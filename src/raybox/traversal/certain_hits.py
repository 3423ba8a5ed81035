"""Boxes that rays hit for certain by float32 alone: recorded sixteen rays at a time, without float64.

A query that records such hits derives a class from `CertainHits` (`StreamHooks.certain_hits`). What it does
not record stays in the lists, as candidates. See `raybox.traversal.node_test` for what certain means.
"""

from __future__ import annotations

from functools import cache, partial
from typing import Any

from numba import types

from raybox.compiler.decorators import closing_over, device, dispatch
from raybox.compiler.intrinsics import Fields, vector_code
from raybox.compiler.simd import I64, Builder, Lanes, Scalar
from raybox.primitives.table import fills_boxes
from raybox.traversal.job import Job, Recorder
from raybox.traversal.node_test import RayVector, Slots, intersect_lists_with
from raybox.traversal.protocol import REGISTERED
from raybox.traversal.ray_setup import PACKED_WORDS, RESULT, STATE_WORDS, STOP
from raybox.traversal.workspace import Workspace


class CertainHits:
    """Sixteen rays at the slots of a node; this one records nothing: every box is a candidate."""

    timed = True  # whether lists store entry times: not where that prunes nothing (saves 1 to 7 %)
    records_most = False  # whether most boxes are recorded: a branch past the lists then saves 5 to 9 %

    def __init__(
        self, b: Builder, recorder: Fields, rows: Fields, workspace: Fields, rays: RayVector, slots: Slots
    ) -> None:
        self.b, self.recorder, self.rows, self.workspace = b, recorder, rows, workspace
        self.rays, self.slots = rays, slots

    def record(self, _slot: Scalar, near: Lanes, far: Lanes) -> Lanes:
        """Record the rays that hit a slot's box for certain; return the others that may hit it."""
        return near <= far

    def finish(self) -> None:
        """Write what was recorded to the state of the rays."""

    def ray(self, lane: Scalar) -> Scalar:
        """Return the number of one of the rays."""
        return self.b.sext(self.workspace.lists.get(self.b.add(self.rays.begin, lane)), I64)

    def write(self, ray: Scalar, result: Scalar, stop: Scalar) -> None:
        """Write a ray's result so far, and where it now ends."""
        self.workspace.state.put(result, self.state_at(ray, RESULT))
        self.workspace.packed_rays.put(stop, self.b.add(self.b.mul(ray, I64(PACKED_WORDS)), I64(STOP)))

    def state_at(self, ray: Scalar, word: int) -> Scalar:
        """Return the place of a word of a ray's state."""
        return self.b.add(self.b.mul(ray, I64(STATE_WORDS)), I64(word))


@cache
def _intersection(certain_hits: type[CertainHits]) -> Any:
    """Return the compiled function that tests lists and records hits by this class."""

    @vector_code(types.void)
    def write(
        b: Builder, recorder: Fields, job: Fields, workspace: Fields, node: list[Scalar], span: list[Scalar]
    ) -> None:
        # a ray that hits the box of another primitive may miss the primitive
        chosen = certain_hits if certain_hits is CertainHits or fills_boxes(job.rows) else CertainHits
        make = partial(chosen, b, recorder, job.rows, workspace)
        intersect_lists_with(make, b, (recorder, job.tree.nodes), workspace, node, span)

    @device
    def intersect(
        recorder: Recorder,
        job: Job,
        workspace: Workspace,
        node: tuple[int, int, int, int],
        span: tuple[int, int],
    ) -> None:
        write(recorder, job, workspace, node, span)

    return closing_over(intersect, certain_hits)


def intersect_lists(
    recorder: Recorder, job: Job, workspace: Workspace, node: tuple[int, int, int, int], span: tuple[int, int]
) -> None:
    """Write to the lists of a node's slots the rays of a list that may hit them, less certain hits."""
    raise NotImplementedError("compiled code only")


def _intersection_of(kind: type) -> Any:
    hooks = REGISTERED.stream.get(kind)
    return hooks and _intersection(hooks.certain_hits or CertainHits)


dispatch(intersect_lists, _intersection_of)
