"""What becomes of the primitives that a walk proposes: one sink for each question.

``offer(sink, rows, ray, i)`` decides primitive i exactly, takes note, and returns the time up to
which the walk is still of interest: a later contact cannot change the answer any more. NaN: no
contact can.
"""

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device, dispatch, inlined
from raybox.primitives.ray import Ray
from raybox.primitives.table import intersect, tie
from raybox.queries.hit_sorting import ORDERS


class Nearest(NamedTuple):
    """The first contact: arrays of one item each, index -1 for none yet."""

    index: Any
    t: Any


class Occluded(NamedTuple):
    """Whether anything was met: an array of one item."""

    met: Any


class Count(NamedTuple):
    """How many were met: an array of one item."""

    number: Any


class Collect(NamedTuple):
    """All that were met, in no order; number[0] counts on past the end of the arrays."""

    index: Any
    t: Any
    number: Any


class Propose(NamedTuple):
    """All that may be met, undecided; number[0] counts on past the end of the array."""

    index: Any
    number: Any


class First(NamedTuple):
    """The nearest few, in order; number[0] of them so far."""

    index: Any
    t: Any
    number: Any


class Exactly(NamedTuple):
    """Order one ray's contacts by exact time, then by number."""

    rows: Any
    ray: Ray


@device
def before(rows: Any, ray: Ray, one: tuple[int, float], other: tuple[int, float]) -> bool:
    """Tell which of two contacts (index, t) comes first: exactly, and by index where they tie."""
    i, t_i = one
    j, t_j = other
    if t_i != t_j:
        return t_i < t_j
    order = tie(rows, ray, i, j)
    return order < 0 or (order == 0 and i < j)


@device
def _before_exactly(how: Exactly, one: tuple[int, float], other: tuple[int, float]) -> bool:
    return before(how.rows, how.ray, one, other)


ORDERS[Exactly] = _before_exactly


@inlined
def _offer_nearest(sink: Nearest, rows: Any, ray: Ray, i: int) -> float:
    met, t = intersect(rows, ray, i)
    j = sink.index[0]
    if met and (j < 0 or before(rows, ray, (i, t), (j, sink.t[0]))):
        sink.index[0] = i
        sink.t[0] = t
    return sink.t[0]


@inlined
def _offer_occluded(sink: Occluded, rows: Any, ray: Ray, i: int) -> float:
    if intersect(rows, ray, i)[0]:
        sink.met[0] = True
        return np.nan
    return np.inf


@inlined
def _offer_count(sink: Count, rows: Any, ray: Ray, i: int) -> float:
    if intersect(rows, ray, i)[0]:
        sink.number[0] += 1
    return np.inf


@inlined
def _offer_collect(sink: Collect, rows: Any, ray: Ray, i: int) -> float:
    met, t = intersect(rows, ray, i)
    if met:
        place = sink.number[0]
        if place < sink.index.size:
            sink.index[place] = i
            sink.t[place] = t
        sink.number[0] = place + 1
    return np.inf


@inlined
def _offer_propose(sink: Propose, _rows: Any, _ray: Ray, i: int) -> float:
    place = sink.number[0]
    if place < sink.index.size:
        sink.index[place] = i
    sink.number[0] = place + 1
    return np.inf


@inlined
def _offer_first(sink: First, rows: Any, ray: Ray, i: int) -> float:
    met, t = intersect(rows, ray, i)
    size = sink.index.size
    if met:
        place = sink.number[0]
        if place == size:
            place -= 1
            if not before(rows, ray, (i, t), (sink.index[place], sink.t[place])):
                return sink.t[place]
        else:
            sink.number[0] = place + 1
        while place > 0 and before(rows, ray, (i, t), (sink.index[place - 1], sink.t[place - 1])):
            sink.index[place] = sink.index[place - 1]
            sink.t[place] = sink.t[place - 1]
            place -= 1
        sink.index[place] = i
        sink.t[place] = t
    return sink.t[size - 1] if sink.number[0] == size else np.inf


_TABLE = {
    Nearest: _offer_nearest,
    Occluded: _offer_occluded,
    Count: _offer_count,
    Collect: _offer_collect,
    Propose: _offer_propose,
    First: _offer_first,
}


def offer(sink: Any, rows: Any, ray: Any, i: int) -> float:
    """Decide primitive i and note it; see the module's head."""
    raise NotImplementedError("compiled code only")


dispatch(offer, _TABLE.get)
