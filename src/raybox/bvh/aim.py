"""Rays as the tree sees them, sixteen at a time: in tree coordinates, in float32, and never too strict.

A *probe* is one row of 16 four-byte words::

    word   0       3       6          9         12    13      14      15
           | c near| c far | inverse | inverse | stop| answer| margin| timed|
           | xyz   | xyz   | near xyz| far xyz |

near time = plane * inverse + c, in units of the tree's length over the direction's, counted from a shift
that is kept beside: t * 2^n - shift. Answer and timed are for `raybox.bvh.notes`.

**Why no box is lost.** Times count from `shift`, before which the ray is in no box, so all that
matter are 0 or more. Let a plane at p be met at such a time T. The slot holds a plane b beyond p,
outward; for a near plane the origin o_near is shifted along the direction, for a far plane o_far
against it, by more than all rounding so far: N = (b - o_near)/w is at most T for near planes, and
at least T for far ones. What float32 computes is ``fl(b inv + c)``, rounded once, with an inverse
that is less by 2^-22 of itself for near planes and more for far ones (rounded by 2^-24), and c =
-o inv of that very inverse, rounded down for near planes and up for far ones: near times come out
at N at most where N > 0 (and at 0 or below otherwise, where it makes no difference), far times at
N at least. A parent's planes lie outside its child's, and rounding is monotone: ``b <= b'  =>
fl(b inv + c) <= fl(b' inv + c)`` for inv > 0, so a parent never refuses what its child accepts.

An axis along which the ray stands still has inv = 2^64, and c goes outward by the length of the
whole ray besides: near times at 0 or below, and far times past the ray's end, wherever the origin is
between the planes or on one, and times out of all reach where it is outside by more than a trifle.

**How far off times are at most.** Let e = 2^-20. Slots hold planes off by 2^-22 of themselves, the inverse
is off by 1.3 * 2^-22, c by 1.75 * 2^-23, and the last rounding adds 2^-24: a computed time T of a plane
stands for a true one within e |T| + M/4 of it. The margin M is four times e |c|, and what the origin is off
times the inverse, the worst of three axes; and enough to cover how far off the ends of the range are.
There is none (M is infinite) for rays with an axis that stands still, and for those far away.

Rays whose numbers are so large or small that float64 might over- or underflow on the way are left
to `raybox.bvh.traverse`, one at a time (`UNAIMED`, `DOUBT`).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import types

from raybox.bvh.layout import CHILD, EMPTY, FAR, NUDGE, ULP, WIDTH, Tree
from raybox.kernels.emitted import vector_code
from raybox.kernels.jit import device, whole
from raybox.kernels.lanes import F32, F64, I32, I64, Lanes, constant, greater, lesser, splat, transposed
from raybox.kernels.loops import loop

PROBE = 16
NUMBERS = 8  # of a ray, in a row: its origin, its direction, t_min and t_max
INVERSE, STOP, ANSWER, MARGIN, TIMED = 6, 12, 13, 14, 15
LANES = 16
CELLS = 8  # on each axis
PASSES, UNAIMED = -1.0, -2.0  # the stops of rays that meet nothing, and of those that are not for vectors
MISS = -1  # the answer to begin with
DOUBT = -2  # the answer of rays that are not for vectors
PAD = 2.0**-22
_SLOW = 2.0**-60  # direction parts below this share of the largest, but not 0, are for careful hands
_ROUND = 2.0**-50
_TAME = 2.0**500
_BIAS = 1023
_STILL = 2.0**64  # stands for 1/0
_OFF = 2.0**-20  # of a time computed from a slot, and of c: how far off it is at most
_NEAR = 2.0**20  # margins are for rays within so much of each other
_SAMPLE = 128  # nodes
_AHEAD = 64  # rays, to be fetched from memory in time


class Frame(NamedTuple):
    """Tree coordinates as vector code takes them, and the grid by which rays are sorted."""

    # float64: center xyz, scale, root's corners xyz xyz, grid's corner xyz, cells a unit xyz, a box's length
    numbers: Any
    exponent: int


def frame_of(tree: Tree) -> Frame:
    """Return a tree's frame."""
    return make_frame(tree.center, tree.exponent, tree.root, _grain(tree.nodes))


def make_frame(center: Any, exponent: int, root: Any, grain: float = 0.0) -> Frame:
    """Return the frame of boxes with these tree coordinates, and these bounds in them."""
    low, up = (np.clip(corner, -2.0, 2.0) for corner in root)
    size = np.maximum(up - low, 2.0**-30)
    numbers = np.concatenate([center, [2.0**exponent], root.ravel(), low, CELLS / size, [grain]])
    return Frame(numbers, exponent)


def _grain(nodes: Any) -> float:
    """Return how long boxes are, the median of the mean of three axes, of a few hundred boxes at most."""
    some = nodes[np.linspace(0, len(nodes) - 1, min(len(nodes), _SAMPLE)).astype(np.int64)]
    children = some[:, CHILD:]
    planes = some[:, :CHILD].view(np.float32).reshape(-1, 2, 3, WIDTH)
    with np.errstate(invalid="ignore"):
        sizes = (planes[:, 1] - planes[:, 0]).mean(axis=1)[(children < 0) & (children != EMPTY)]
    return float(np.median(sizes)) if sizes.size else 0.0


class Seen(NamedTuple):
    """What every lane's ray is like in tree coordinates."""

    v: list[Lanes]  # origin
    w: list[Lanes]  # direction, its longest part in [1/2, 1)
    inverse: list[Lanes]
    moves: list[Lanes]
    backward: list[Lanes]
    slack: list[Lanes]  # how far off v may be
    start: Lanes  # the range clipped to the bounds of everything, rounded outward
    stop: Lanes
    tame: Lanes
    alive: Lanes
    size: Lanes  # times are multiplied by two to this power


class Given(NamedTuple):
    """Sixteen rays as they came."""

    origin: list[Lanes]
    direction: list[Lanes]
    t_min: Lanes
    t_max: Lanes


def _given(rows: list[Lanes]) -> Given:
    """Turn sixteen rows of origin, direction, t_min and t_max into columns."""
    halves = transposed(rows[:8]), transposed(rows[8:])
    columns = [one.shuffled(other, list(range(LANES))) for one, other in zip(*halves, strict=True)]
    return Given(columns[:3], columns[3:6], columns[6], columns[7])


def see(b: Any, given: Given, frame: Any) -> Seen:
    """Take rays to tree coordinates."""
    numbers, exponent = frame.numbers, frame.exponent
    o, d, low_t, high_t = given

    def const(k: int) -> Lanes:
        return numbers.splat(k, LANES)

    # Take the ray to tree coordinates.
    v = [(o[k] - const(k)) * const(3) for k in range(3)]
    longest = greater(d[0].magnitude(), greater(d[1].magnitude(), d[2].magnitude()))
    power = longest.bits(I64) >> 52  # biased exponent; the size is power - 1022
    scale = ((power * -1 + (2 * _BIAS - 1)) << 52).bits(F64)
    w = [d[k] * scale for k in range(3)]
    size = splat(b, exponent, LANES) + power - (_BIAS - 1)
    unit = ((size + _BIAS) << 52).bits(F64)
    tame = (longest < _TAME) & (longest > 1 / _TAME) & (size < 1000) & (size > -1000)
    for k in range(3):
        small = d[k].magnitude()
        tame = tame & (o[k].magnitude() < _TAME) & ((small > longest * _SLOW) | small.equals(0.0))
        tame = tame & (v[k].magnitude() < FAR)

    # Clip it to the bounds of everything.
    first, last = low_t * unit, high_t * unit
    start = first - first.magnitude() * _ROUND - NUDGE
    stop = last + last.magnitude() * _ROUND + NUDGE
    inside = start <= stop
    inverse, moves, slack = [], [], []
    for k in range(3):
        low, up = const(4 + k), const(7 + k)
        slack.append(v[k].magnitude() * _ROUND)
        moves.append(~w[k].equals(0.0))
        inverse.append(splat(b, F64(1.0), LANES) / moves[k].choose(w[k], 1.0))
        one, other = (low - v[k]) * inverse[k], (up - v[k]) * inverse[k]
        near, far = lesser(one, other), greater(one, other)
        pad = slack[k] * inverse[k].magnitude()
        near = near - near.magnitude() * _ROUND - pad
        far = far + far.magnitude() * _ROUND + pad
        start = moves[k].choose(greater(near, start), start)
        stop = moves[k].choose(lesser(far, stop), stop)
        apart = (v[k] + slack[k] < low) | (v[k] - slack[k] > up)
        inside = inside & (moves[k] | ~apart)
    tame = tame & (start.magnitude() < FAR) & (stop > -FAR)
    real = (low_t <= high_t) & (low_t < np.inf) & (high_t > -np.inf)
    alive = real & (~tame | (inside & (start <= stop)))
    backward = [moves[k] & (w[k] < 0.0) for k in range(3)]
    seen = (v, w, inverse, moves, backward, slack, start, stop, tame, alive)
    return Seen(*seen, size.to(I32))


def _places(b: Any, begin: Any, end: Any) -> list[Any]:
    """Return the numbers of 16 rays from begin on; past the end, the last again."""
    last = b.sub(end, I64(1))
    lanes = [b.add(begin, I64(k)) for k in range(LANES)]
    return [b.select(b.icmp_signed("<", p, last), p, last) for p in lanes]


class Words(NamedTuple):
    """The words of sixteen probes, column by column."""

    near: list[Lanes]
    far: list[Lanes]
    steep: list[Lanes]  # the inverse for near planes
    flat: list[Lanes]  # and for far ones
    stop: Lanes
    answer: Lanes
    margin: Lanes
    shift: Lanes
    x: list[Lanes]  # float64: where the rays are at time 0, on each axis
    slack: list[Lanes]  # and how far off that may be

    def columns(self) -> list[Lanes]:
        """Return the sixteen words of a row."""
        timed = constant(self.stop.b, I32, LANES, MISS)
        last = [self.stop, self.answer.bits(F32), self.margin, timed.bits(F32)]
        return [*self.near, *self.far, *self.steep, *self.flat, *last]


def words_of(seen: Seen) -> Words:
    """Return probes. Those that meet nothing, or are not for vectors, stop before they start."""
    b = seen.start.b
    shift = (seen.start - seen.start.magnitude() * ULP - NUDGE).to(F32)
    moved = shift.to(F64)
    length = seen.stop - moved + (seen.stop.magnitude() + moved.magnitude()) * _ROUND
    near: list[Lanes] = []
    far: list[Lanes] = []
    steep: list[Lanes] = []
    flat: list[Lanes] = []
    places: list[Lanes] = []
    slacks: list[Lanes] = []
    off = seen.start * 0.0
    for k in range(3):
        walked = moved * seen.w[k]
        x = seen.v[k] + walked
        slack = seen.slack[k] + (seen.v[k].magnitude() + walked.magnitude()) * _ROUND
        places.append(x)
        slacks.append(slack)
        ahead, behind = x + slack, x - slack
        size = seen.inverse[k].magnitude()
        error = (x.magnitude() * _OFF + (slack + NUDGE) * 4.0) * size
        off = greater(off, seen.moves[k].choose(error, np.inf))
        backward, inverse = seen.backward[k], seen.inverse[k]
        for offsets, slopes, origin, slope, away in (
            (near, steep, backward.choose(behind, ahead), inverse * (1.0 - PAD), -1.0),
            (far, flat, backward.choose(ahead, behind), inverse * (1.0 + PAD), 1.0),
        ):
            single = seen.moves[k].choose(slope.to(F32), _STILL)
            offset = origin * single.to(F64) * -1.0
            still = seen.moves[k].choose(offset * 0.0, length)
            offsets.append((offset + (offset.magnitude() * ULP + NUDGE + still) * away).to(F32))
            slopes.append(single)
    ends = (seen.start.magnitude() + seen.stop.magnitude()) * (_OFF / 4) + 4 * NUDGE
    margin = (off < _NEAR).choose((off + ends) * 4.0, np.inf).to(F32)
    return Words(near, far, steep, flat, *_ends(b, seen, length), margin, shift, places, slacks)


def _ends(b: Any, seen: Seen, length: Lanes) -> tuple[Lanes, Lanes]:
    """Return stops, and answers to begin with."""
    meets = seen.alive & seen.tame
    none = (seen.alive & ~seen.tame).choose(constant(b, F32, LANES, UNAIMED), PASSES)
    stop = meets.choose((length + length.magnitude() * ULP + NUDGE).to(F32), none)
    return stop, seen.tame.choose(seen.size * 0 + MISS, seen.alive.choose(seen.size * 0 + DOUBT, MISS))


@device
def octant_of(probes: Any, r: int) -> int:
    """Return the octant that a ray runs into, by its probe."""
    octant = whole(0)
    for axis in range(3):
        octant |= int(probes[r, INVERSE + axis] < 0.0) << axis
    return octant


@vector_code(types.void)
def aim(b: Any, frame: Any, desk: Any, rows: Any, where: Any, place: Any) -> None:
    """Write the probes of the rays in rows[where[k]], begin <= k < end, and their numbers in float64.

    place: (begin, end).
    """
    begin, end = place
    with loop(b, b.sub(end, begin), LANES) as at:
        first = b.add(begin, at)
        for soon in _places(b, b.add(first, I64(_AHEAD)), end):
            rows.prefetch(_row(b, where.get(soon)))
        given = [rows.load(_row(b, where.get(k)), NUMBERS) for k in _places(b, first, end)]
        for k, row in enumerate(given):
            desk.exact.store(row, b.mul(b.add(at, I64(k)), I64(NUMBERS)))
        seen = see(b, _given(given), frame)
        words = words_of(seen)
        desk.power.store(seen.size, at)
        desk.shift.store(words.shift, at)
        for k, row in enumerate(transposed(words.columns())):
            desk.probes.store(row, b.add(b.mul(at, I64(PROBE)), I64(PROBE * k)))


def _row(b: Any, number: Any) -> Any:
    return b.mul(b.sext(number, I64), I64(NUMBERS))


def keep_exact(b: Any, given: Given, at: Any, exact: Any) -> None:
    """Store rays as rows of origin, direction, t_min, t_max."""
    columns = [*given.origin, *given.direction, given.t_min + 0.0, given.t_max]  # -0.0 becomes 0.0
    halves = zip(*(column.halves() for column in columns), strict=True)
    for k, row in enumerate(row for half in halves for row in transposed(list(half))):
        exact.store(row, b.mul(b.add(at, I64(k)), I64(NUMBERS)))
