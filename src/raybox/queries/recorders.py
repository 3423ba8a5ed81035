"""What becomes of the boxes that a walk with many rays proposes: one sink for each question.

``note(sink, job, desk, number)`` takes note of pairs of rays and primitives that were screened, in the
words of the rays' probes (`ANSWER`, and `STOP`: what comes later is of no interest any more), and never
guesses: a ray for which floats cannot tell is given up (`DOUBT`), for `raybox.traversal.single` to walk.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import NUDGE
from raybox.compiler.decorators import device, dispatch, inlined, no, whole, yes
from raybox.compiler.intrinsics import larger, smaller
from raybox.compiler.struct_ref import held
from raybox.exact.powers_of_two import power_of_two
from raybox.primitives.table import together
from raybox.traversal.ray_setup import ANSWER, DOUBT, LANES, LATER, MISS, PASSES, STOP, TIMED

DEEP = 64  # contacts of a ray in a packet; rays with more are left to others
_ROUND = 2.0**-50


@held
class NearestOf(NamedTuple):
    """The first contact: ANSWER is its number; if it is TIMED, its time is from times[r, 0] to times[r, 1].

    If not, it came in for sure (`raybox.queries.certain_hits`), and is screened when first there is need;
    TIMED then says by which plane it is entered, if that is known (`raybox.traversal.entry_plane`).
    """

    times: Any  # float64 (rays, 2)
    index: Any  # the answers of all rays, as for the rest below
    t: Any


@held
class OccludedOf(NamedTuple):
    """Whether anything was met: ANSWER is 1."""

    met: Any


@held
class CountOf(NamedTuple):
    """How many were met: ANSWER + 1."""

    number: Any


@held
class FirstOf(NamedTuple):
    """The nearest few, ANSWER + 1 of them so far, in order."""

    item: Any  # int32 (rays, k)
    low: Any  # float64 (rays, k): bounds of each one's time
    high: Any
    index: Any
    t: Any


@held
class CollectOf(NamedTuple):
    """All that were met: contacts in no order, then sorted ray by ray in `index` and `t`."""

    contacts: Any  # Pairs; those of packets are put to the room at once
    size: Any  # int64 (2,): how many contacts, also past the end of their room; how many are sorted
    starts: Any  # int64 (rays + 2,)
    room: Any  # Contacts: those of all groups so far, each ray's in one run
    where: Any  # for each ray: where its run begins (of a ray in a packet: -2 less that), and how long it is
    counts: Any


@held
class PacketsOf(NamedTuple):
    """What becomes of packets, sixteen rays that stay together: see `raybox.traversal.packet`."""

    sink: Any  # NearestOf, OccludedOf, CountOf or CollectOf
    words: Any  # float32 (packets, 10, 16): words of probes and answers, column by column
    answers: Any  # the same memory as whole numbers
    first: Any  # int32 (packets,): each one's first ray, from the base of the span
    octant: Any  # int32 (packets,)
    item: Any  # int32 (packets * 16 * DEEP + 16,): what each of the rays met so far, in no order, or holds
    unsure: Any  # int32 (packets,): 1 where a ray holds a box that it is not sure of


@device
def give_up(desk: Any, r: int) -> None:
    """Leave a ray to those who calculate exactly."""
    desk.answers[r, ANSWER] = DOUBT
    desk.probes[r, STOP] = PASSES


@device
def latest_for(desk: Any, r: int, t: float) -> Any:
    """Take a time to the units of a probe, rounded up to float32, and not before its beginning."""
    x = t * power_of_two(desk.power[r])
    shift = np.float64(desk.shift[r])
    y = x - shift + (abs(x) + abs(shift)) * _ROUND
    return np.float32(larger(y + (abs(y) * LATER + NUDGE), 0.0))


@device
def _end_at(desk: Any, r: int, t: float) -> None:
    """Note that nothing after t is of interest."""
    late = latest_for(desk, r, t)
    desk.probes[r, STOP] = min(desk.probes[r, STOP], late)


@device
def _note_nearest(sink: NearestOf, job: Any, desk: Any, number: int) -> None:
    pairs, answers = desk.pairs, desk.answers
    for p in range(number):
        verdict = pairs.verdict[p]
        r, i = pairs.ray[p], pairs.item[p]
        j = answers[r, ANSWER]
        if i == j:
            sink.times[r, 0], sink.times[r, 1] = pairs.low[p], pairs.high[p]
            if verdict < 1:
                give_up(desk, r)
            continue
        if verdict == 0 or j == DOUBT or (j >= 0 and pairs.low[p] > sink.times[r, 1]):
            continue
        if verdict > 0 and (j == MISS or pairs.high[p] < sink.times[r, 0]):
            answers[r, ANSWER] = answers[r, TIMED] = i
            sink.times[r, 0], sink.times[r, 1] = pairs.low[p], pairs.high[p]
            _end_at(desk, r, pairs.high[p])
        elif verdict > 0 and _tie(pairs.low[p], pairs.high[p], sink.times[r, 0], sink.times[r, 1]):
            answers[r, ANSWER] = answers[r, TIMED] = smaller(i, j)
        elif verdict > 0 and j >= 0 and together(job.rows, desk.exact, whole(r), whole(i), whole(j)):
            answers[r, ANSWER] = answers[r, TIMED] = smaller(i, j)
            low, high = larger(pairs.low[p], sink.times[r, 0]), smaller(pairs.high[p], sink.times[r, 1])
            sink.times[r, 0], sink.times[r, 1] = low, high
        else:
            give_up(desk, r)


@device
def _tie(low: float, high: float, other_low: float, other_high: float) -> bool:
    """Tell whether two times are known to be equal: both are the beginning of the ray's range."""
    return low == high and other_low == other_high and low == other_low


@device
def _note_occluded(sink: OccludedOf, _job: Any, desk: Any, number: int) -> None:
    answers = desk.answers
    for p in range(number):
        r, verdict = desk.pairs.ray[p], desk.pairs.verdict[p]
        if verdict > 0:
            answers[r, ANSWER] = 1
            desk.probes[r, STOP] = PASSES
        elif verdict < 0 and answers[r, ANSWER] == MISS:
            answers[r, ANSWER] = DOUBT  # a later box may settle it


@device
def _note_count(sink: CountOf, _job: Any, desk: Any, number: int) -> None:
    answers = desk.answers
    for p in range(number):
        r, verdict = desk.pairs.ray[p], desk.pairs.verdict[p]
        if verdict < 0:
            give_up(desk, r)
        elif answers[r, ANSWER] != DOUBT:
            answers[r, ANSWER] += verdict


@device
def _note_collect(sink: CollectOf, _job: Any, desk: Any, number: int) -> None:
    pairs, contacts = desk.pairs, sink.contacts
    size = sink.size[0]
    for p in range(number):
        if pairs.verdict[p] < 0:
            give_up(desk, pairs.ray[p])
        elif pairs.verdict[p] > 0:
            if size + LANES <= contacts.ray.size:
                contacts.ray[size], contacts.item[size] = pairs.ray[p], pairs.item[p]
                contacts.high[size] = pairs.high[p]
            size += 1
    sink.size[0] = size


@device
def _note_first(sink: FirstOf, job: Any, desk: Any, number: int) -> None:
    pairs, answers = desk.pairs, desk.answers
    for p in range(number):
        r = int(pairs.ray[p])
        if pairs.verdict[p] == 0 or answers[r, ANSWER] == DOUBT:
            continue
        full = answers[r, ANSWER] + 1 == sink.item.shape[1]
        place = _place_of(sink, job, desk, (p, r), answers[r, ANSWER] + 1)
        if full and place == sink.item.shape[1]:
            continue
        if pairs.verdict[p] < 0 or place < 0:
            give_up(desk, r)
            continue
        last = answers[r, ANSWER] if full else answers[r, ANSWER] + 1
        for k in range(last, place, -1):
            sink.item[r, k] = sink.item[r, k - 1]
            sink.low[r, k], sink.high[r, k] = sink.low[r, k - 1], sink.high[r, k - 1]
        sink.item[r, place] = pairs.item[p]
        sink.low[r, place], sink.high[r, place] = pairs.low[p], pairs.high[p]
        answers[r, ANSWER] = last
        if last + 1 == sink.item.shape[1]:
            _end_at(desk, r, sink.high[r, last])


@inlined
def _place_of(sink: FirstOf, job: Any, desk: Any, pair: tuple[int, int], number: int) -> int:
    """Return where a pair comes among a ray's contacts so far; -1 where floats cannot tell."""
    p, r = pair
    pairs, place = desk.pairs, number
    while place > 0:
        low, high = sink.low[r, place - 1], sink.high[r, place - 1]
        if pairs.low[p] > high:
            return place
        if not pairs.high[p] < low:
            i, j = whole(pairs.item[p]), whole(sink.item[r, place - 1])
            tied = _tie(pairs.low[p], pairs.high[p], low, high)
            if not tied and not together(job.rows, desk.exact, whole(r), i, j):
                return -1
            if i > j:
                return place
        place -= 1
    return place


TABLE = {
    NearestOf: _note_nearest,
    OccludedOf: _note_occluded,
    CountOf: _note_count,
    FirstOf: _note_first,
    CollectOf: _note_collect,
}


@device
def _propose(_sink: Any, desk: Any, number: int, r: int, i: int) -> int:
    desk.pairs.ray[number], desk.pairs.item[number] = r, i
    return number + 1


@device
def _propose_nearest(_sink: NearestOf, desk: Any, number: int, r: int, i: int) -> int:
    j = desk.answers[r, ANSWER]
    if j >= 0 and j != desk.answers[r, TIMED]:
        desk.answers[r, TIMED] = j
        desk.pairs.ray[number], desk.pairs.item[number] = r, j
        number += 1
    desk.pairs.ray[number], desk.pairs.item[number] = r, i
    return number + 1


def propose(sink: Any, desk: Any, number: int, r: int, i: int) -> int:
    """Add a ray and a primitive to the pairs to be screened; return how many there are now."""
    raise NotImplementedError("compiled code only")


def note(sink: Any, job: Any, desk: Any, number: int) -> None:
    """Take note of the pairs of a desk, which were screened; see the module's head."""
    raise NotImplementedError("compiled code only")


@device
def _as_one_ray_does(sink: PacketsOf) -> bool:
    return prunes(sink.sink)


SPARES: set[type] = {NearestOf, OccludedOf, CountOf}
_PRUNES = {CountOf: no, CollectOf: no, PacketsOf: _as_one_ray_does}


def prunes(sink: Any) -> bool:
    """Tell whether rays may end before they have met everything: which node is first then matters."""
    raise NotImplementedError("compiled code only")


@device
def _collected(sink: CollectOf) -> bool:
    return sink.size[0] > 0


def spares(sink: Any) -> bool:
    """Tell whether few boxes are looked up before rays are answered."""
    raise NotImplementedError("compiled code only")


def waits(sink: Any) -> bool:
    """Tell whether a group was walked whose answers there was no room for."""
    raise NotImplementedError("compiled code only")


dispatch(note, TABLE.get)
dispatch(waits, lambda kind: _collected if kind is CollectOf else no)
dispatch(propose, lambda kind: _propose_nearest if kind is NearestOf else _propose)
dispatch(spares, lambda kind: yes if kind in SPARES else no)
dispatch(prunes, lambda kind: _PRUNES.get(kind, yes))
