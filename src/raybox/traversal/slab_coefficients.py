"""A ray's lines: when it meets near and far planes, by axis; made of the eight words of its probe.

Half as many words are stored, read and turned into columns as lines have: rays that are tested together are
unfolded once a node, a ray that walks by itself once. Of a packet, whose lines are those of no ray, the whole
row is kept, and of its probe only the stop. See `raybox.traversal.ray_setup` for why lines hold. A row is ::

    word   0      3     6       9      12
           | near | far | steep | flat | margin
           | xyz  | xyz | xyz   | xyz  |
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import types

from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F32, I32, I64, Lanes, constant, eight_columns, fused, greater, transposed
from raybox.compiler.simd_arrays import Memory
from raybox.queries.recorders import PacketsOf
from raybox.traversal.ray_setup import INVERSE, PROBE, SLACK, STOP
from raybox.traversal.workspace import LINES

NEAR, FAR, STEEP, FLAT, MARGIN = 0, 3, 6, 9, 12
_PARTS = NEAR, FAR, STEEP, FLAT
_WIDER = 1.0 + 2.0**-21  # K in `raybox.traversal.ray_setup`: what far times are multiplied by
_OFF = 3.25 * 2.0**-24  # of c, beside slack
_MARGIN = 3.0  # times that error, the worst of three axes
_HALF, _LOW = 16, 0xFFFF  # of a word
_MORE = 1.25  # times what the ends of the range are off


class Lines(NamedTuple):
    """Near times are plane * steep + near, far ones plane * flat + far, axis by axis."""

    near: list[Lanes]
    far: list[Lanes]
    steep: list[Lanes]
    flat: list[Lanes]


class Several(NamedTuple):
    """Rays that are tested together."""

    lines: Lines
    stop: Lanes
    margin: Lanes


def lines_of(words: list[Lanes]) -> Lines:
    """Return the lines that the words of a row are."""
    return Lines(*(words[k : k + 3] for k in _PARTS))


def probe_of(words: list[Lanes]) -> tuple[list[Lanes], list[Lanes], Lanes]:
    """Return the words of a probe that lines are made of."""
    return words[:INVERSE], words[INVERSE:SLACK], words[SLACK]


def unfold(c: list[Lanes], inverse: list[Lanes], slack: Lanes) -> Lines:
    """Return the lines of rays."""
    errors = _errors(c, inverse, slack)
    near = [offset - error for offset, error in zip(c, errors, strict=True)]
    wider = constant(slack.b, F32, slack.count, _WIDER)
    far = [fused(offset, wider, error) for offset, error in zip(c, errors, strict=True)]
    return Lines(near, far, inverse, [steep * _WIDER for steep in inverse])


def margin_of(c: list[Lanes], inverse: list[Lanes], slack: Lanes) -> Lanes:
    """Return what times may be off beside a share of themselves."""
    return _margin(_errors(c, inverse, slack), slack)


def _margin(errors: list[Lanes], slack: Lanes) -> Lanes:
    x, y, z = errors
    ends = (slack.bits(I32) << _HALF).bits(F32)
    return fused(greater(greater(x, y), z), constant(slack.b, F32, slack.count, _MARGIN), ends)


def packed(slack: Lanes, ends: Lanes) -> Lanes:
    """Return slack in one word with what the ends of the range are off: the upper halves of both, rounded up.

    As a number, the word is slack and a little more.
    """
    upper = (slack.bits(I32) & ~_LOW) + (_LOW + 1)
    return (upper | ((ends * _MORE).bits(I32) + _LOW) >> _HALF).bits(F32)


def _errors(c: list[Lanes], inverse: list[Lanes], slack: Lanes) -> list[Lanes]:
    """Return by how much lines are taken down, or up."""
    off = constant(slack.b, F32, slack.count, _OFF)
    return [
        fused(offset.magnitude(), off, steep.magnitude() * slack)
        for offset, steep in zip(c, inverse, strict=True)
    ]


def read(b: Any, sink: Any, desk: Any, rays: Lanes) -> Several:
    """Return what is known of rays, or of packets."""
    if isinstance(sink, PacketsOf):
        words = []
        for part in range(0, LINES, rays.count):
            places = [b.add(place, I64(part)) for place in rows_of(b, rays, LINES)]
            words += transposed([desk.lines.load(place, rays.count) for place in places])
        return Several(lines_of(words), stops_of(b, desk, rays), words[MARGIN])
    words = eight_columns([desk.probes.load(place, PROBE) for place in rows_of(b, rays)])
    probe = probe_of(words)
    return Several(unfold(*probe), words[STOP], margin_of(*probe))


def stops_of(b: Any, desk: Any, rays: Lanes) -> Lanes:
    """Return where rays stop, or packets."""
    stops: Lanes = desk.probes.gather([b.add(place, I64(STOP)) for place in rows_of(b, rays)])
    return stops


def rows_of(b: Any, rays: Lanes, words: int = PROBE) -> list[Any]:
    """Return where the probes of rays are, or their rows of so many words."""
    return [b.mul(b.sext(rays.lane(k), I64), I64(words)) for k in range(rays.count)]


def unfold_row(b: Any, probes: Memory, base: Any) -> tuple[Lines, Lanes]:
    """Return the lines of a ray, axes side by side in four lanes, and its margin; base: its probe's place."""
    c, inverse = (probes.load(b.add(base, I64(k)), 4) for k in (0, INVERSE))
    slack = probes.splat(b.add(base, I64(SLACK)), 4)
    (error,) = _errors([c], [inverse], slack)
    axes = [error.shuffled(error, [k]) for k in range(3)]
    return unfold([c], [inverse], slack), _margin(axes, slack.shuffled(slack, [0]))


@vector_code(types.void)
def go_alone(b: Any, sink: Any, desk: Any, ray: Any) -> None:
    """Write the lines and the margin of a ray, or of a packet, that walks by itself from now on."""
    if isinstance(sink, PacketsOf):
        desk.alone.store(desk.lines.load(b.mul(ray, I64(LINES)), LINES), I64(0))
        return
    lines, margin = unfold_row(b, desk.probes, b.mul(ray, I64(PROBE)))
    for place, (four,) in zip(_PARTS, lines, strict=True):
        desk.alone.store(four, I64(place))
    desk.alone.store(margin, I64(MARGIN))


def alone(desk: Any, count: int) -> tuple[Lines, Lanes]:
    """Return the lines and the margin of the ray that walks by itself, in every lane."""
    words = [desk.alone.splat(I64(k), count) for k in range(MARGIN + 1)]
    return lines_of(words), words[MARGIN]
