"""Slab coefficients: when a ray crosses near and far planes, axis by axis; made of its eight packed words.

Packed rays have half as many words as coefficients: rays that are tested together are expanded once a node, a
single ray once. A packet's coefficients are those of no ray: its whole row is stored, and of its packed ray
only the end. See `raybox.traversal.ray_setup` for why no box is lost. A row is ::

    word   0      3     6       9      12
           | near | far | steep | flat | margin
           | xyz  | xyz | xyz   | xyz  |
"""

from typing import NamedTuple

from raybox.compiler.intrinsics import Fields, vector_code, void
from raybox.compiler.simd import F32, I32, I64, Builder, Lanes, Scalar, constant, greater, multiply_add
from raybox.compiler.simd_arrays import Memory
from raybox.compiler.simd_transpose import eight_columns, transposed
from raybox.traversal.ray_setup import INVERSE, PACKED_WORDS, SLACK, STOP, margins
from raybox.traversal.workspace import SLAB_WORDS, PacketRecorder

NEAR, FAR, STEEP, FLAT, MARGIN = 0, 3, 6, 9, 12
_PARTS = NEAR, FAR, STEEP, FLAT
_MARGIN = 3.0  # times that error, the worst of three axes
_HALF, _LOW = 16, 0xFFFF  # of a word
_MORE = 1.25  # times the error of the range


class SlabCoefficients(NamedTuple):
    """Near times are plane * steep + near, far ones plane * flat + far, axis by axis."""

    near: list[Lanes]
    far: list[Lanes]
    steep: list[Lanes]
    flat: list[Lanes]


class LoadedRays(NamedTuple):
    """Rays that are tested together: coefficients, ends and margins."""

    coefficients: SlabCoefficients
    stop: Lanes
    margin: Lanes


def coefficients_of(words: list[Lanes]) -> SlabCoefficients:
    """Return the coefficients in the words of a row."""
    return SlabCoefficients(*(words[k : k + 3] for k in _PARTS))


def packed_parts(words: list[Lanes]) -> tuple[list[Lanes], list[Lanes], Lanes]:
    """Return the words of a packed ray that coefficients are made of: c, inverse, slack."""
    return words[:INVERSE], words[INVERSE:SLACK], words[SLACK]


def expand(c: list[Lanes], inverse: list[Lanes], slack: Lanes) -> SlabCoefficients:
    """Return the slab coefficients of packed rays."""
    errors = _errors(c, inverse, slack)
    near = [offset - error for offset, error in zip(c, errors, strict=True)]
    factor = constant(slack.b, F32, slack.count, margins().far_factor)
    far = [multiply_add(offset, factor, error) for offset, error in zip(c, errors, strict=True)]
    return SlabCoefficients(near, far, inverse, [steep * factor for steep in inverse])


def margin_of(c: list[Lanes], inverse: list[Lanes], slack: Lanes) -> Lanes:
    """Return the error of times beside a share of themselves."""
    return _margin(_errors(c, inverse, slack), slack)


def _margin(errors: list[Lanes], slack: Lanes) -> Lanes:
    x, y, z = errors
    margin = constant(slack.b, F32, slack.count, _MARGIN)
    return multiply_add(greater(greater(x, y), z), margin, range_error(slack))


def pack_slack(slack: Lanes, ends: Lanes) -> Lanes:
    """Return slack and the error of the range in one word: the upper halves of both, rounded up.

    As a number, the word is slack and a little more.
    """
    return join_halves(slack, (((ends * _MORE).bits(I32) + _LOW) >> _HALF).bits(F32))


def join_halves(number: Lanes, other: Lanes) -> Lanes:
    """Return words with the upper halves of numbers, rounded up, and the lower halves of other words."""
    return ((number.bits(I32) & ~_LOW) + (_LOW + 1) | (other.bits(I32) & _LOW)).bits(F32)


def range_error(word: Lanes) -> Lanes:
    """Return by how much the range may begin late, or end early: the lower half of a word."""
    return (word.bits(I32) << _HALF).bits(F32)


def _errors(c: list[Lanes], inverse: list[Lanes], slack: Lanes) -> list[Lanes]:
    """Return by how much near times are lowered, and far ones raised."""
    off = constant(slack.b, F32, slack.count, margins().offset)
    return [
        multiply_add(offset.magnitude(), off, steep.magnitude() * slack)
        for offset, steep in zip(c, inverse, strict=True)
    ]


def load_rays(b: Builder, recorder: Fields, workspace: Fields, rays: Lanes) -> LoadedRays:
    """Return the coefficients, ends and margins of rays, or of packets."""
    if isinstance(recorder, PacketRecorder):
        words = []
        for part in range(0, SLAB_WORDS, rays.count):
            places = [b.add(place, I64(part)) for place in rows_of(b, rays, SLAB_WORDS)]
            words += transposed([workspace.packet_slabs.load(place, rays.count) for place in places])
        return LoadedRays(coefficients_of(words), stops_of(b, workspace, rays), words[MARGIN])
    words = eight_columns([workspace.packed_rays.load(place, PACKED_WORDS) for place in rows_of(b, rays)])
    slabs = packed_parts(words)
    return LoadedRays(expand(*slabs), words[STOP], margin_of(*slabs))


def stops_of(b: Builder, workspace: Fields, rays: Lanes) -> Lanes:
    """Return where rays, or packets, end."""
    stops: Lanes = workspace.packed_rays.gather([b.add(place, I64(STOP)) for place in rows_of(b, rays)])
    return stops


def rows_of(b: Builder, rays: Lanes, words: int = PACKED_WORDS) -> list[Scalar]:
    """Return the places of packed rays, or of rows of so many words."""
    return [b.mul(b.sext(rays.lane(k), I64), I64(words)) for k in range(rays.count)]


def expand_row(b: Builder, packed_rays: Memory, base: Scalar) -> tuple[SlabCoefficients, Lanes]:
    """Return a ray's coefficients, axes side by side in four lanes, and its margin; base: its place."""
    c, inverse = (packed_rays.load(b.add(base, I64(k)), 4) for k in (0, INVERSE))
    slack = packed_rays.splat(b.add(base, I64(SLACK)), 4)
    (error,) = _errors([c], [inverse], slack)
    axes = [error.permuted([k]) for k in range(3)]
    return expand([c], [inverse], slack), _margin(axes, slack.permuted([0]))


@vector_code(void)
def load_single_ray(b: Builder, recorder: Fields, workspace: Fields, ray: Scalar) -> None:
    """Write the coefficients and the margin of the single ray, or packet, that goes on."""
    if isinstance(recorder, PacketRecorder):
        workspace.single.store(workspace.packet_slabs.load(b.mul(ray, I64(SLAB_WORDS)), SLAB_WORDS), I64(0))
        return
    coefficients, margin = expand_row(b, workspace.packed_rays, b.mul(ray, I64(PACKED_WORDS)))
    for place, (four,) in zip(_PARTS, coefficients, strict=True):
        workspace.single.store(four, I64(place))
    workspace.single.store(margin, I64(MARGIN))


def single_ray(workspace: Fields, count: int) -> tuple[SlabCoefficients, Lanes]:
    """Return the coefficients and the margin of the single ray, in every lane."""
    words = [workspace.single.splat(I64(k), count) for k in range(MARGIN + 1)]
    return coefficients_of(words), words[MARGIN]
