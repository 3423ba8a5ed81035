"""Packets: sixteen neighbouring rays that go nearly the same way, walked as if they were one.

A packet has lines, as a ray has, but they bound those of all sixteen. The near times of a plane at b are
lines in b, one for each ray; the least of them is concave, so between two places the chord lies below: the
chord over all of the scene that the rays have before them is the packet's near time. (Far times: greatest,
convex, above.) Rounding is monotone, so no packet refuses what one of its rays accepts. The walk is that of
`raybox.traversal.stream`, with packets for rays; only a box is tested against each ray, all sixteen at once.
No ray is sorted, and what is known of a packet lies side by side.

What a ray meets for sure counts, as in `raybox.queries.certain_hits`. A box that it is not sure of, it holds
until the packet has been everywhere; then `raybox.traversal.packet_undecided` decides. A ray that would hold
too many is LEFT to others. (Where boxes share planes, as a city's and a mesh's do, those that are left took a
third of the time of `nearest` when no ray held any; measured.)

Source: Wald et al. 2007, "Ray tracing deformable scenes using dynamic bounding volume hierarchies", 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from raybox.bvh.node import CHILD, ROW
from raybox.compiler.decorators import device, dispatch, no, whole, yes
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F32, F64, I32, I64, Lanes, constant, greater, splat, steps
from raybox.compiler.simd_loops import Register
from raybox.compiler.simd_single import lowest_bit
from raybox.primitives.table import fetch
from raybox.queries.recorders import DEEP, CollectOf, CountOf, NearestOf, OccludedOf, PacketsOf
from raybox.traversal.node_test import clip, reach, sides_of, surely, unsure
from raybox.traversal.packed_rays import keep_exact, words_of
from raybox.traversal.packet_bounds import Sixteen, bound, end_packet
from raybox.traversal.ray_bounds import Given, Seen, see
from raybox.traversal.ray_keys import bounds_in_a_row, load_columns
from raybox.traversal.ray_setup import LANES, MISS, PASSES, STOP
from raybox.traversal.slab_coefficients import margin_of, probe_of, unfold

LEFT = -3  # the answer of rays that are left to others
ANSWERS, HELD = 8, 9  # columns of words past those of probes: answers, how many boxes rays hold, less one
NONE, UNFIT = 8, 9  # no octant: no ray meets anything; these rays are no packet
HOLDS = 4  # boxes that a ray may hold
_SETTLED = NearestOf, CollectOf  # times are float64, of every ray; else rays are copied if they hold boxes
COLUMNS = 10
_BLOCK = COLUMNS * LANES
_WIDE = 2.0**20  # the bounds of scenes that have packets


@vector_code(types.int64)
def aim_packet(b: Any, job: Any, desk: Any, sink: Any, at: Any, packet: Any) -> Any:
    """Make a packet of the rays from `at` on; return the octant they run into, or NONE, or UNFIT."""
    seen, given = _look_at(b, job, at)
    octant = Register(b, I64(NONE))
    with b.if_then(seen.alive.any()):
        octant.value = _aim(b, job, desk, sink, (seen, given), packet)
    return octant.value


def _aim(b: Any, job: Any, desk: Any, sink: Any, rays: tuple[Seen, Given], packet: Any) -> Any:
    """Make a packet of rays of which some may meet something; return as `aim_packet` does."""
    seen, given = rays
    words = words_of(seen)
    answers = [words.answer, constant(b, I32, LANES, MISS)]
    base = b.mul(packet, I64(_BLOCK))
    for k, column in enumerate([*words.columns(), *(answer.bits(F32) for answer in answers)]):
        sink.words.store(column, b.add(base, I64(LANES * k)))
    if isinstance(sink.sink, _SETTLED):
        keep_exact(b, given, b.mul(packet, I64(LANES)), desk.exact)
    meets = seen.alive & seen.tame
    bound(b, job.frame, desk, Sixteen(words, seen, meets), packet)
    everyone = meets.mask()
    fit = b.icmp_signed("==", (seen.alive & ~seen.tame).mask(), I64(0))
    octant = I64(0)
    for k in range(3):
        for flags in (seen.backward[k], seen.moves[k]):
            mask = (flags & meets).mask()
            none, same = b.icmp_signed("==", mask, I64(0)), b.icmp_signed("==", mask, everyone)
            fit = b.and_(fit, b.or_(none, same))
        octant = b.or_(octant, b.shl(b.zext((seen.backward[k] & meets).any(), I64), I64(k)))
    for k in range(3):
        size = constant(b, F64, 1, 0.0)
        for corner in (4 + k, 7 + k):
            size = greater(size, job.frame.numbers.splat(corner, 1).magnitude())
        fit = b.and_(fit, (size < _WIDE).lane(0))
    return b.select(fit, octant, I64(UNFIT))


def _look_at(b: Any, job: Any, at: Any) -> Any:
    """Load sixteen neighbouring rays: whole vectors, sorted out by shuffles."""
    o, d = (load_columns(b, v, at) for v in (job.rays.origins, job.rays.directions))
    ends = [bounds_in_a_row(b, bound, at) for bound in (job.rays.t_min, job.rays.t_max)]
    given = Given(o, d, *ends)
    return see(b, given, job.frame), given


class _Struck(NamedTuple):
    """Sixteen rays at a box."""

    near: Lanes
    far: Lanes
    margin: Lanes
    stop: Lanes
    answer: Lanes
    item: Any
    packets: PacketsOf
    packet: Any


def _strike(decide: Any) -> Any:
    """Make the function that tests a packet against a box; `decide` returns new stops and answers."""

    @vector_code(types.void)
    def write(b: Any, sink: Any, job: Any, desk: Any, spot: Any, packet: Any) -> None:
        row, octant, slot = spot
        planes, base = job.tree.nodes.as_items(F32), b.mul(packet, I64(_BLOCK))

        def word(k: int) -> Lanes:
            return sink.words.load(b.add(base, I64(LANES * k)), LANES)

        def planes_of(axis: int) -> list[Lanes]:
            return [planes.splat(b.add(side, slot), LANES) for side in sides_of(b, row, octant, axis)]

        stop, probe = word(STOP), probe_of([word(k) for k in range(STOP)])
        near, far = clip(planes_of, unfold(*probe), stop)
        with b.if_then((near <= far).any()):
            item = b.not_(job.tree.nodes.get(b.add(b.add(row, I64(CHILD)), slot)))
            answer = word(ANSWERS).bits(I32)
            struck = _Struck(near, far, margin_of(*probe), stop, answer, item, sink, packet)
            stop, answer = decide(b, struck)
            sink.words.store(stop, b.add(base, I64(LANES * STOP)))
            sink.answers.store(answer, b.add(base, I64(LANES * ANSWERS)))
            end_packet(b, desk, packet, stop)

    @device
    def strike(_sink: Any, packets: PacketsOf, job: Any, desk: Any, spot: Any, packet: int) -> None:
        write(packets, job, desk, spot, packet)

    return strike


def _nearest(b: Any, at: _Struck) -> tuple[Lanes, Lanes]:
    late = reach(at.near, at.margin)
    sure = surely(late, at.far, at.margin)
    left = _hold(b, at, unsure(at.near, at.far, sure))
    answer = left.choose(LEFT, sure.choose(splat(b, at.item, LANES), at.answer))
    return left.choose(PASSES, sure.choose(late, at.stop)), answer


def _occluded(b: Any, at: _Struck) -> tuple[Lanes, Lanes]:
    sure = surely(at.near, at.far, at.margin * 2.0)
    left = _hold(b, at, unsure(at.near, at.far, sure))  # a later box may settle it
    answer = sure.choose(constant(b, I32, LANES, 1), left.choose(LEFT, at.answer))
    return sure.choose(PASSES, at.stop), answer


def _count(b: Any, at: _Struck) -> tuple[Lanes, Lanes]:
    sure = surely(at.near, at.far, at.margin * 2.0)
    left = _hold(b, at, unsure(at.near, at.far, sure))
    return left.choose(PASSES, at.stop), left.choose(LEFT, at.answer + sure.to(I32))


def _hold(b: Any, at: _Struck, doubtful: Lanes) -> Lanes:
    """Have rays that are not sure of a box hold it; return those that hold enough already."""
    left = Register(b, constant(b, I32, LANES, 0).value)
    with b.if_then(doubtful.any()):
        place = b.add(b.mul(at.packet, I64(_BLOCK)), I64(LANES * HELD))
        last = at.packets.answers.load(place, LANES)
        some = doubtful & (last < HOLDS - 1)
        last = last + some.to(I32)
        ray = steps(b, b.mul(at.packet, I64(LANES)), LANES)
        at.packets.item.scatter(splat(b, at.item, LANES), some, ray * DEEP + last.to(I64))
        at.packets.answers.store(last, place)
        at.packets.unsure.put(I32(1), at.packet)
        left.value = (doubtful & ~some).to(I32).value
    return left.lanes > 0


def _collect(b: Any, at: _Struck) -> tuple[Lanes, Lanes]:
    # what may be met where the range begins ties with others there
    sure = surely(at.near, at.far, at.margin * 2.0) & (at.near > at.margin) & (at.answer < DEEP - 1)
    left = unsure(at.near, at.far, sure)
    answer = at.answer + sure.to(I32)
    ray = steps(b, b.mul(at.packet, I64(LANES)), LANES)
    at.packets.item.scatter(splat(b, at.item, LANES), sure, ray * DEEP + answer.to(I64))
    return left.choose(PASSES, at.stop), left.choose(LEFT, answer)


TABLE = {
    NearestOf: _strike(_nearest),
    OccludedOf: _strike(_occluded),
    CountOf: _strike(_count),
    CollectOf: _strike(_collect),
}


def strike(sink: Any, packets: PacketsOf, job: Any, desk: Any, spot: Any, packet: int) -> None:
    """Test a packet's rays against a box. spot: its node's row, octant, slot; `sink`: that of `packets`."""
    raise NotImplementedError("compiled code only")


def reads(sink: Any) -> bool:
    """Tell whether boxes that packets are tested against are soon to be read; `sink`: theirs.

    Others are sure of nearly all: to fetch them took a fifth of `count` in 10^6 boxes (measured).
    """
    raise NotImplementedError("compiled code only")


dispatch(strike, TABLE.get)
dispatch(reads, lambda kind: yes if kind is NearestOf else no)


@device
def strike_lists(sink: PacketsOf, job: Any, desk: Any, node: int, octant: int, mask: int) -> None:
    """Decide the boxes in some slots of a node for the packets of their lists."""
    while mask != 0:
        slot = lowest_bit(mask)
        mask &= mask - 1
        if reads(sink.sink):
            fetch(job.rows, whole(~job.tree.nodes[node, CHILD + slot]))
        for k in range(desk.starts[slot], desk.starts[slot] + desk.lengths[slot]):
            strike(sink.sink, sink, job, desk, (node * ROW, octant, slot), whole(desk.arena[k]))


@device
def strike_alone(sink: PacketsOf, job: Any, desk: Any, slots: tuple[int, int, int, int], packet: int) -> None:
    """Decide boxes for one packet."""
    node, octant, mask, _ = slots
    while mask != 0:
        slot = lowest_bit(mask)
        mask &= mask - 1
        if reads(sink.sink):
            fetch(job.rows, whole(~job.tree.nodes[node, CHILD + slot]))
        strike(sink.sink, sink, job, desk, (node * ROW, octant, slot), packet)
