"""The order that a batch's rays are in, and those of them that are undecided."""

from typing import Any, NamedTuple

from raybox.compiler.decorators import device
from raybox.compiler.struct_ref import struct

NEXT, UNDECIDED_RAYS = 0, 1  # places in `Order.place`: where the next group begins; how many are undecided


@struct
class Order(NamedTuple):
    """Rays from a base on by key: that of ray base + order[k] has starts[key] <= k < starts[key + 1]."""

    keys: Any  # int32 (rays + 16,): of those that may hit anything, as threads list them
    numbers: Any  # int32 (rays + 16,): which rays these are, from the base on
    rows: Any  # float64 (rays + 16, 8): their origins, directions, t_min and t_max
    order: Any  # int32 (rays + 16,)
    where: Any  # int32 (rays + 16,): in which row ray base + order[k] is
    starts: Any  # int64 (MISS_KEY + 1,); none for few rays, which are in no order
    undecided: Any  # int32: numbers from the base of undecided rays; room for all rays
    place: Any  # int64 (2,): NEXT and UNDECIDED_RAYS


class Span(NamedTuple):
    """Rays base + k, or base + order[k], for begin <= k < end."""

    base: int
    begin: int
    end: int


class PacketGroup(NamedTuple):
    """The first ray of the batch, and how many packets there are."""

    base: int
    count: int  # type: ignore[assignment]  # not the method of tuples


@device
def list_undecided(order: Order, k: int) -> None:
    """List a ray for the exact fallback."""
    order.undecided[order.place[UNDECIDED_RAYS]] = k
    order.place[UNDECIDED_RAYS] += 1
