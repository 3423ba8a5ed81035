"""The order that a batch's rays are in, and those of them in doubt."""

from typing import Any, NamedTuple

from raybox.compiler.decorators import device
from raybox.compiler.struct_ref import held

PACKED = -2  # where runs of rays in packets begin, counted down from here


@held
class Order(NamedTuple):
    """Rays from a base on by key: that of ray base + order[k] has starts[key] <= k < starts[key + 1]."""

    keys: Any  # int32 (rays + 16,): of those that are not lost, as threads list them
    kept: Any  # int32 (rays + 16,): which rays these are, from the base on
    rows: Any  # float64 (rays + 16, 8): their origins, directions, t_min and t_max
    order: Any  # int32 (rays + 16,)
    where: Any  # int32 (rays + 16,): in which row ray base + order[k] is
    starts: Any  # int64 (LOST + 1,); none for few rays, which are in no order
    doubts: Any  # int32: numbers from the base of rays in doubt; room for all that are asked for
    place: Any  # int64 (2,): where the next group begins, and how many doubts


@device
def doubt(order: Order, k: int) -> None:
    """List a ray as one for which floats could not tell."""
    order.doubts[order.place[1]] = k
    order.place[1] += 1
