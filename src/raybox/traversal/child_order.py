"""Which of a node's slots come first: the nearest, or those in which rays stay longest.

Where any box will do (`StreamHooks.longest_first`), a ray goes first where it stays longest, and a list of
rays where most of them go: boxes are likely there. So rays that hit something visit a fifth fewer nodes one
by one, and `occluded` takes 5 to 30 % less time. How soon a ray enters a slot then does not say whether the
slot still matters; whether the ray has ended does.

Source: Ize and Hansen 2011, "RTSAH Traversal Order for Occlusion Rays".
"""

from raybox.compiler.decorators import declare, inlined, no, yes
from raybox.traversal import node_test, stream_lists
from raybox.traversal.job import Recorder
from raybox.traversal.protocol import Flag, longest_first
from raybox.traversal.ray_setup import STOP
from raybox.traversal.workspace import PacketRecorder, Workspace
from raybox.validation import Ints32

_has_packets: Flag[Recorder] = declare("has_packets", lambda kind: yes if kind is PacketRecorder else no)


@inlined
def intersect_slots(
    recorder: Recorder, nodes: Ints32, workspace: Workspace, row: int, octant: int, ray: int
) -> int:
    """Return a bit for each slot that one ray may hit; store the order of slots, least first."""
    if longest_first(recorder):
        return node_test.intersect_slots_longest(nodes, workspace, row, octant, ray)
    return node_test.intersect_slots(nodes, workspace, row, octant, ray)


@inlined
def drop_ended(recorder: Recorder, workspace: Workspace, begin: int, end: int) -> int:
    """Drop the rays of a list that end before its slot; return where the list ends."""
    if longest_first(recorder) and not _has_packets(recorder):
        return stream_lists.drop_ended_open(workspace, begin, end)
    return stream_lists.drop_ended(workspace, begin, end)


@inlined
def rank_slots(recorder: Recorder, nodes: Ints32, workspace: Workspace, row: int, octant: int) -> None:
    """Store the order of a node's slots that have lists: the least comes first."""
    if longest_first(recorder):
        node_test.rank_slots_fullest(workspace)
    else:
        node_test.rank_slots(nodes, workspace, row, octant)


@inlined
def is_pruned(recorder: Recorder, workspace: Workspace, order: float, ray: int) -> bool:
    """Return whether a ray ends before a slot. order: what `intersect_slots` stored of the slot."""
    if longest_first(recorder):
        return workspace.packed_rays[ray, STOP] < 0.0
    return order > workspace.packed_rays[ray, STOP]
