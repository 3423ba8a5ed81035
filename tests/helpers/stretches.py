"""A recorder of the stretches of rays in cells, as kernels compute them."""

from typing import Any, NamedTuple

from raybox.compiler.decorators import device
from raybox.traversal.protocol import SegmentHooks, register


class Rounded(NamedTuple):
    """Stretches with times that are not rounded once: ray, cell, begin and end, from used[0] on."""

    numbers: Any
    times: Any
    used: Any


@device
def _begin(_recorder: Any, k: int) -> int:
    return k


@device
def _record(recorder: Any, k: int, _ray: Any, cell: int, t_enter: float, t_exit: float) -> int:
    at = recorder.used[0]
    recorder.numbers[at, 0], recorder.numbers[at, 1] = k, cell
    recorder.times[at, 0], recorder.times[at, 1] = t_enter, t_exit
    recorder.used[0] += 1
    return k


@device
def _end(_recorder: Any, _state: int, _k: int) -> bool:
    return True


register(SegmentHooks(Rounded, _begin, _record, _end))
