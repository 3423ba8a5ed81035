"""Which of a node's slots come first, by question.

Near slots, for whoever asks for the nearest box. Where any box will do, a ray goes first where it stays
longest, and a list of rays where most of them go: boxes are likely there. So rays that meet something look at
a fifth fewer nodes one by one, a twentieth in lists, which have one order for all, and half as many of those
that few rays reach. `occluded` takes 5 to 20 % less time at 10^5 and 10^6 boxes, 10 to 30 % at 10^7 (but a
picture that is not walked in packets 7 % more); on a skull, a city and voxels it is level to 20 % less
(measured: rays that start anywhere, or on surfaces).

How soon a ray enters a slot then says nothing of whether that is still of interest; whether the ray has ended
does.

Source: the question is that of Ize and Hansen 2011, "RTSAH Traversal Order for Occlusion Rays".
"""

from typing import Any

from raybox.compiler.decorators import device, dispatch
from raybox.queries.recorders import OccludedOf, PacketsOf
from raybox.traversal import node_test, stream_lists
from raybox.traversal.ray_setup import STOP
from raybox.traversal.workspace import Desk


@device
def _meet_nearest(_sink: Any, nodes: Any, desk: Desk, row: int, octant: int, ray: int) -> int:
    return node_test.meet(nodes, desk, row, octant, ray)


@device
def _meet_longest(_sink: OccludedOf, nodes: Any, desk: Desk, row: int, octant: int, ray: int) -> int:
    return node_test.meet_longest(nodes, desk, row, octant, ray)


@device
def _meet_packet(sink: PacketsOf, nodes: Any, desk: Desk, row: int, octant: int, ray: int) -> int:
    return meet(sink.sink, nodes, desk, row, octant, ray)


@device
def _rank_nearest(_sink: Any, nodes: Any, desk: Desk, row: int, octant: int) -> None:
    node_test.rank(nodes, desk, row, octant)


@device
def _rank_fullest(_sink: OccludedOf, _nodes: Any, desk: Desk, _row: int, _octant: int) -> None:
    node_test.rank_fullest(desk)


@device
def _rank_packets(sink: PacketsOf, nodes: Any, desk: Desk, row: int, octant: int) -> None:
    rank(sink.sink, nodes, desk, row, octant)


@device
def _keep(_sink: Any, desk: Any, begin: int, end: int) -> int:
    return stream_lists.keep(desk, begin, end)


@device
def _keep_open(_sink: OccludedOf, desk: Any, begin: int, end: int) -> int:
    return stream_lists.keep_open(desk, begin, end)


@device
def _starts_late(_sink: Any, desk: Desk, order: Any, ray: int) -> bool:
    return order > desk.probes[ray, STOP]


@device
def _has_ended(_sink: OccludedOf, desk: Desk, _order: Any, ray: int) -> bool:
    return desk.probes[ray, STOP] < 0.0


@device
def _packet_is_over(sink: PacketsOf, desk: Desk, order: Any, ray: int) -> bool:
    return is_over(sink.sink, desk, order, ray)


def meet(sink: Any, nodes: Any, desk: Desk, row: int, octant: int, ray: int) -> int:
    """Return a bit for each slot that one ray may meet; store the order of slots, least first."""
    raise NotImplementedError("compiled code only")


def keep(sink: Any, desk: Any, begin: int, end: int) -> int:
    """Drop the rays of a list to which its slot is of no interest any more; return where the list ends."""
    raise NotImplementedError("compiled code only")


def rank(sink: Any, nodes: Any, desk: Desk, row: int, octant: int) -> None:
    """Store which of a node's slots come first, of those that have lists: the least."""
    raise NotImplementedError("compiled code only")


def is_over(sink: Any, desk: Desk, order: Any, ray: int) -> bool:
    """Tell whether a slot is of no interest any more to a ray. order: what `meet` stored of the slot."""
    raise NotImplementedError("compiled code only")


_MEET = {OccludedOf: _meet_longest, PacketsOf: _meet_packet}
_RANK = {OccludedOf: _rank_fullest, PacketsOf: _rank_packets}
_OVER = {OccludedOf: _has_ended, PacketsOf: _packet_is_over}
dispatch(meet, lambda kind: _MEET.get(kind, _meet_nearest), inline=True)
dispatch(keep, lambda kind: _keep_open if kind is OccludedOf else _keep, inline=True)
dispatch(rank, lambda kind: _RANK.get(kind, _rank_nearest), inline=True)
dispatch(is_over, lambda kind: _OVER.get(kind, _starts_late), inline=True)
