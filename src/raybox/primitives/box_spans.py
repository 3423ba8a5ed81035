"""Where lines enter and leave the boxes that they hit, eight hits at a time, each time rounded once."""

from typing import NamedTuple

import numpy as np

from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import Fields, vector_code, void
from raybox.compiler.simd import F64, I1, I64, Builder, Lanes, Scalar, constant
from raybox.compiler.simd_arrays import Memory, loop, vector_at
from raybox.geometry import BoxRows, RayRows
from raybox.primitives.box import span
from raybox.primitives.box_simd import (
    AHEAD,
    LANES,
    NearPlanes,
    contact,
    inverse_of,
    is_tame_divisor,
    prefetch_box,
)
from raybox.primitives.ray import get_ray
from raybox.validation import Floats, Ints


@entry
def write_spans(
    rays: RayRows, boxes: BoxRows, ray_of: Ints, index: Ints, t_enter: Floats, t_exit: Floats
) -> None:
    """Write where each line enters and leaves the box that it hits; NaN for a miss."""
    eights = index.size // LANES * LANES if boxes.lower.size else 0
    _write_certain_spans(rays, boxes, (ray_of, index), (t_enter, t_exit), eights)
    for k in range(index.size):
        if index[k] < 0:
            t_enter[k] = t_exit[k] = np.nan
        elif k >= eights or np.isnan(t_enter[k]):
            t_enter[k], t_exit[k] = span(boxes, get_ray(rays, ray_of[k]), index[k])


@vector_code(void)
def _write_certain_spans(
    b: Builder, rays: Fields, boxes: Fields, hits: list[Memory], out: list[Memory], number: Scalar
) -> None:
    """Write the spans of a multiple of eight hits; NaN where float64 cannot round them for certain."""
    ray_of, index = hits
    with loop(b, number, LANES) as at:
        soon = b.add(at, I64(AHEAD))
        with b.if_then(b.icmp_signed("<", soon, number)):
            for box in _numbers(b, index, soon):
                prefetch_box(b, boxes, box)
        spans = _spans(b, rays, boxes, _numbers(b, ray_of, at), _numbers(b, index, at))
        for times, memory in zip((spans.enter, spans.leave), out, strict=True):
            memory.store(spans.known.choose(times, np.nan), at)


def _numbers(b: Builder, memory: Memory, at: Scalar) -> list[Scalar]:
    """Return eight numbers of rays or boxes; 0 for a miss."""
    numbers = (memory.get(b.add(at, I64(k))) for k in range(LANES))
    return [b.select(b.icmp_signed("<", n, I64(0)), I64(0), n) for n in numbers]


class _Spans(NamedTuple):
    """Where lines enter and leave boxes, and whether both times are known."""

    known: Lanes
    enter: Lanes
    leave: Lanes


class _Side(NamedTuple):
    """Planes by which lines enter boxes, and their times within three roundings."""

    planes: NearPlanes
    times: list[Lanes]


def _spans(b: Builder, rays: Fields, boxes: Fields, ray_of: list[Scalar], index: list[Scalar]) -> _Spans:
    """Return where lines enter and leave boxes."""
    origins, directions, lower, upper = (
        [memory.gather([b.add(vector_at(b, memory, n), I64(k)) for n in numbers]) for k in range(3)]
        for memory, numbers in (
            (rays.origins, ray_of),
            (rays.directions, ray_of),
            (boxes.lower, index),
            (boxes.upper, index),
        )
    )
    known, endless = constant(b, I1, LANES, 1), constant(b, F64, LANES, -np.inf)
    enter, leave = (_Side(NearPlanes([], [], [], []), []) for _ in range(2))
    for o, d, low, up in zip(origins, directions, lower, upper, strict=True):
        inverse = inverse_of(d)
        backward = inverse < 0.0
        near, far = backward.choose(up, low), backward.choose(low, up)
        known = known & (is_tame_divisor(d) | d.equals(0.0))
        # to leave is to enter against the direction
        for side, plane, sign in ((enter, near, 1.0), (leave, far, -1.0)):
            known = known & (((plane - o).magnitude() < np.inf) | plane.magnitude().equals(np.inf))
            t = (plane - o) * (inverse * sign)
            for numbers, number in zip(side.planes, (plane, o, d * sign, inverse * sign), strict=True):
                numbers.append(number)
            side.times.append((t > -np.inf).choose(t, -np.inf))
    certain, first = contact(*enter, endless)
    also_certain, last = contact(*leave, endless)
    return _Spans(known & certain & also_certain, first, last * -1.0 + 0.0)
