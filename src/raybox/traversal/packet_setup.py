"""Set up packets: sixteen neighbouring rays, packed side by side, and the bounds of them all.

The slab coefficients of a packet bound those of its sixteen rays; see `raybox.traversal.packet` for why
chords do. All are computed at once: the least of each of twelve vectors takes 36 operations on whole vectors,
not twelve times eight on parts of them.

**Without fused operations** the time of a plane b on a line is off by u abs(b slope) and u of itself, for u =
2^-24: by 2u of itself and u of the line's offset at most. So the lines of rays are lowered by 3u of their
offsets (`_lowered`): by u for the values at the ends of the chord, by u for the node test of the ray. The
packet's line is below the chord by 4u of all sizes there (`_lines_below`): its node test rounds off u abs(b
slope) and u of its time, that of the ray 2u of a time that is no earlier than the chord's, and less 2u of
itself still is not. So no packet refuses what one of its rays accepts, here too.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.node import NUDGE
from raybox.compiler.intrinsics import Fields, int64, vector_code
from raybox.compiler.simd import (
    F32,
    F64,
    I32,
    I64,
    Builder,
    Lanes,
    Scalar,
    constant,
    greater,
    lesser,
    multiply_add,
    splat,
)
from raybox.compiler.simd_arrays import Register
from raybox.compiler.target import has
from raybox.primitives.box_simd import Float64Rays
from raybox.primitives.status import MISS_INDEX
from raybox.primitives.table import has_volumes
from raybox.traversal.packed_rays import PackedRays, pack_rays
from raybox.traversal.packet_box import BLOCK
from raybox.traversal.packet_tiles import coherent, load_bounds, load_vectors, rows_of
from raybox.traversal.packet_triangles import store_ways
from raybox.traversal.protocol import PACKET
from raybox.traversal.ray_bounds import SINGLE, ClippedRays, clip_rays
from raybox.traversal.ray_setup import HIGH, LANES, LOW, PACKED_WORDS, STOP
from raybox.traversal.slab_coefficients import FAR, FLAT, MARGIN, NEAR, STEEP, SlabCoefficients, expand
from raybox.traversal.workspace import NO_OCTANT, SLAB_WORDS, UNFIT

_AXES = (0, 1, 2, 2)  # the fourth lane is not used
_ROUGH = 2.0**-21
_ROUND = 2.0**-48
_UNFUSED = 2.0**-22  # four times what products round off in float32, where operations are not fused
_EDGE = 2.0**-10
_APART = 2.0**-30  # where all is flat, chords are so long: slopes stay within float32


class PacketRays(NamedTuple):
    """The rays of a packet."""

    words: PackedRays
    clipped: ClippedRays
    alive: Lanes  # which may hit anything


class _Chord(NamedTuple):
    """Where the chords of three axes begin and end, four lanes each: float32 numbers in float64."""

    begin: Lanes
    end: Lanes


def bound(b: Builder, frame: Fields, workspace: Fields, rays: PacketRays, packet: Scalar) -> None:
    """Write the slab coefficients of a packet, and where it ends."""
    row = b.mul(packet, I64(SLAB_WORDS))
    chord = _span(b, frame, rays)
    offset, slope = _lines_below(chord, *_ends(chord, rays))
    for k in range(3):
        for side, away in enumerate((1.0, -1.0)):
            for part, lines in (((NEAR, FAR)[side], offset), ((STEEP, FLAT)[side], slope)):
                workspace.packet_slabs.store(lines.permuted([4 * side + k]) * away, b.add(row, I64(part + k)))
    workspace.packet_slabs.store(constant(b, F32, 1, np.inf), b.add(row, I64(MARGIN)))
    end_packet(b, workspace, packet, rays.words.stop)


def end_packet(b: Builder, workspace: Fields, packet: Scalar, stops: Lanes) -> None:
    """Write where a packet ends: with the last of its rays."""
    workspace.packed_rays.store(stops.greatest(), b.add(b.mul(packet, I64(PACKED_WORDS)), I64(STOP)))


def _span(b: Builder, frame: Fields, rays: PacketRays) -> _Chord:
    """Return between which planes lies all that the rays may hit."""
    words, clipped, alive = rays
    places = []
    for away in (-1.0, 1.0):
        for k in range(3):
            rough = words.slack * 4.0 + words.x[k].magnitude() * _ROUGH + NUDGE
            places.append(alive.choose(words.x[k] * -away - rough, np.inf))
    least = _least(places)
    first, last = (least.permuted([3 * side + k for k in _AXES]).to(F64) for side in (0, 1))
    low, up = (frame.numbers.load(at, 4) for at in (LOW, HIGH))
    room = (up - low) * _EDGE + (low.magnitude() + up.magnitude()) * 2.0**-20 + _APART
    back: Any = None
    for k, axis in enumerate(_AXES):
        some = splat(b, (clipped.backward[axis] & alive).any(), 4)
        back = some if back is None else back.shuffled(some, [*range(k), 4, *range(k + 1, 4)])
    begin = back.choose(low - room, lesser(first, up - room))
    end = back.choose(greater(-last, low + room), up + room)
    return _Chord(begin.to(F32).to(F64), end.to(F32).to(F64))


def _ends(chord: _Chord, rays: PacketRays) -> tuple[Lanes, Lanes]:
    """Return bounds below all lines where chords begin and end: of near times, and of far ones negated."""
    values, own = [], _lowered(expand(rays.words.c, rays.words.inverse, rays.words.slack))
    for place in chord:
        at = place.to(F32)
        for offsets, slopes, away in ((own.near, own.steep, 1.0), (own.far, own.flat, -1.0)):
            for k in _AXES:
                there = at.permuted([k] * LANES)
                values.append(rays.alive.choose(multiply_add(slopes[k], there, offsets[k]) * away, np.inf))
    least = _least(values)
    first, last = (half.to(F64) for half in least.halves())
    return first - first.magnitude() * SINGLE - NUDGE, last - last.magnitude() * SINGLE - NUDGE


def _lowered(slabs: SlabCoefficients) -> SlabCoefficients:
    """Return lines of earlier near times and later far times, unless operations are fused."""
    if has("fma"):
        return slabs
    near = [offset - offset.magnitude() * _UNFUSED for offset in slabs.near]
    far = [offset + offset.magnitude() * _UNFUSED for offset in slabs.far]
    return slabs._replace(near=near, far=far)


def _lines_below(chord: _Chord, first: Lanes, last: Lanes) -> tuple[Lanes, Lanes]:
    """Return lines through two values each, or below, rounded downward: what is added, and the slope."""
    begin, end = (place.permuted([0, 1, 2, 3] * 2) for place in chord)
    slope = ((last - first) / (end - begin)).to(F32)
    steep = slope.to(F64)
    rough = first.magnitude() + last.magnitude()
    rough = rough + steep.magnitude() * (begin.magnitude() + end.magnitude())
    offset = lesser(first - steep * begin, last - steep * end)
    lost = rough * (_ROUND if has("fma") else _ROUND + _UNFUSED)
    return (offset - offset.magnitude() * SINGLE - lost - NUDGE).to(F32), slope


def _least(vectors: list[Lanes]) -> Lanes:
    """Return the least of each vector, of up to sixteen of sixteen lanes, in the lane of its number."""
    for step in (1, 2, 4, 8):
        low = [k - step + LANES if k & step else k for k in range(LANES)]
        high = [k + LANES if k & step else k + step for k in range(LANES)]
        pairs = [(vectors[k], vectors[min(k + 1, len(vectors) - 1)]) for k in range(0, len(vectors), 2)]
        vectors = [lesser(one.shuffled(other, low), one.shuffled(other, high)) for one, other in pairs]
    return vectors[0]


_WIDE = 2.0**20  # the bounds of scenes that have packets


@vector_code(int64)
def set_up_packet(
    b: Builder, job: Fields, workspace: Fields, recorder: Fields, form: Fields, at: list[Scalar]
) -> Scalar:
    """Make a packet of the rays of a tile; return their octant, NO_OCTANT or UNFIT."""
    first, packet = at
    given = _load_tile(b, job, rows_of(b, first, form.stride))
    octant = Register(b, I64(UNFIT))
    with b.if_then(coherent(b, (given.origin, given.direction), job.frame.numbers, form)):
        clipped = clip_rays(b, given, job.frame)
        octant.value = I64(NO_OCTANT)
        with b.if_then(clipped.alive.any()):
            octant.value = _set_up(b, job, workspace, recorder, (clipped, given), packet)
    return octant.value


def _set_up(
    b: Builder,
    job: Fields,
    workspace: Fields,
    recorder: Fields,
    rays: tuple[ClippedRays, Float64Rays],
    packet: Scalar,
) -> Scalar:
    """Make a packet of rays of which some may hit something; return their octant or UNFIT."""
    clipped, given = rays
    words = pack_rays(clipped)
    results = [words.result, *[constant(b, I32, LANES, MISS_INDEX)] * 2]
    base = b.mul(packet, I64(BLOCK))
    for k, column in enumerate([*words.columns(), *(column.bits(F32) for column in results)]):
        recorder.words.store(column, b.add(base, I64(LANES * k)))
    store = PACKET[recorder.inner.__class__].store_rays
    if store:
        store(b, recorder.inner, workspace, given, packet)
    if has_volumes(job.rows):
        store_ways(b, recorder, words, packet)
    alive = clipped.alive & clipped.tame
    bound(b, job.frame, workspace, PacketRays(words, clipped, alive), packet)
    everyone = alive.mask()
    fit = b.icmp_signed("==", (clipped.alive & ~clipped.tame).mask(), I64(0))
    octant = I64(0)
    for k in range(3):
        for flags in (clipped.backward[k], clipped.moves[k]):
            mask = (flags & alive).mask()
            none, same = b.icmp_signed("==", mask, I64(0)), b.icmp_signed("==", mask, everyone)
            fit = b.and_(fit, b.or_(none, same))
        octant = b.or_(octant, b.shl(b.zext((clipped.backward[k] & alive).any(), I64), I64(k)))
    for k in range(3):
        size = constant(b, F64, 1, 0.0)
        for corner in (LOW + k, HIGH + k):
            size = greater(size, job.frame.numbers.splat(corner, 1).magnitude())
        fit = b.and_(fit, (size < _WIDE).lane(0))
    return b.select(fit, octant, I64(UNFIT))


def _load_tile(b: Builder, job: Fields, rows: list[Scalar]) -> Float64Rays:
    """Load the rays of a tile: whole vectors, transposed by shuffles. rows: the first ray of each row."""
    o, d = load_vectors(b, job.rays, rows)
    return Float64Rays(o, d, *(load_bounds(bound, rows) for bound in (job.rays.t_min, job.rays.t_max)))
