"""What paths are added to: the sums of rays (`integrate`), or of primitives (`deposit`).

A traversal calls `start_ray` once for a ray, `add_length` for each primitive that the ray is in, in any
order, and `finish_ray`. `ray` is a number among the rays of a group, `k` among all rays. A traversal that
takes rays one by one, in their order, may use whole arrays as those of a group: then both numbers are the
same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from raybox.compiler.atomics import add_float, add_integer
from raybox.compiler.decorators import device, dispatch, inlined
from raybox.compiler.intrinsics import prefetch, prefetch_to_write


class RaySums(NamedTuple):
    """Sums of rays: value times length, of each channel."""

    sums: Any  # float64 (rays of a group, C)
    values: Any  # float64 (M, C), or (0, C): all are 1
    results: Any  # float64 (all rays, C)


class ItemSums(NamedTuple):
    """Sums of primitives: weight times length, of each channel."""

    weights: Any  # float64 (rays of a group, C)
    given: Any  # float64 (all rays, C), or (0, C): all are 1
    sums: Any  # float64 (M, C)
    per_hit: bool  # whether every length counts 1
    shared: bool  # whether other threads add to the same memory


class FixedItemSums(NamedTuple):
    """Sums of primitives in fixed point: see `raybox.queries.path_sums.fixed_point`."""

    weights: Any  # as in `ItemSums`
    given: Any
    words: Any  # int64 (M, C, 2)
    scales: Any  # float64 (M,), or (1,) for all: powers of two
    limit: float  # of a term times its scale
    grain: float  # how many units of the second word are one of the first
    per_hit: bool
    shared: bool


def start_ray(sums: Any, ray: int, k: int, counts: bool) -> None:
    """Begin a ray of a group; counts: whether what is added for it counts, or comes from elsewhere."""
    raise NotImplementedError("compiled code only")


def add_length(sums: Any, ray: int, item: int, length: float) -> None:
    """Add the path of a ray inside of a primitive; 0 times inf counts 0."""
    raise NotImplementedError("compiled code only")


def prefetch_item(sums: Any, item: int) -> None:
    """Prefetch what `add_length` reads and writes of a primitive."""
    raise NotImplementedError("compiled code only")


def prefetch_ray(sums: Any, k: int) -> None:
    """Prefetch what `start_ray` reads, or `finish_ray` writes, of a ray."""
    raise NotImplementedError("compiled code only")


def finish_ray(sums: Any, ray: int, k: int) -> None:
    """Write the result of a ray that counts."""
    raise NotImplementedError("compiled code only")


@device
def _start_ray_sum(sums: RaySums, ray: int, _k: int, _counts: bool) -> None:
    for c in range(sums.sums.shape[1]):
        sums.sums[ray, c] = 0.0


@inlined
def _add_to_ray(sums: RaySums, ray: int, item: int, length: float) -> None:
    if sums.values.shape[0] == 0:
        sums.sums[ray, 0] += length
        return
    for c in range(sums.sums.shape[1]):
        value = sums.values[item, c]
        if value != 0.0:
            sums.sums[ray, c] += value * length


@inlined
def _prefetch_result(sums: RaySums, k: int) -> None:
    prefetch_to_write(sums.results, k * sums.results.shape[1])


@inlined
def _prefetch_weights(sums: Any, k: int) -> None:
    if sums.given.shape[0] > 0:
        prefetch(sums.given, k * sums.given.shape[1])


@inlined
def _prefetch_values(sums: RaySums, item: int) -> None:
    if sums.values.shape[0] > 0:
        prefetch(sums.values, item * sums.values.shape[1])


@inlined
def _prefetch_sums(sums: ItemSums, item: int) -> None:
    prefetch_to_write(sums.sums, item * sums.weights.shape[1])


@inlined
def _prefetch_words(sums: FixedItemSums, item: int) -> None:
    prefetch_to_write(sums.words, 2 * item * sums.weights.shape[1])
    prefetch(sums.scales, item)


@device
def _finish_ray_sum(sums: RaySums, ray: int, k: int) -> None:
    for c in range(sums.sums.shape[1]):
        sums.results[k, c] = sums.sums[ray, c]


@device
def _load_weights(sums: Any, ray: int, k: int, counts: bool) -> None:
    for c in range(sums.weights.shape[1]):
        weight = sums.given[k, c] if sums.given.shape[0] > 0 else 1.0
        sums.weights[ray, c] = weight if counts else 0.0


@inlined
def _add_to_item(sums: ItemSums, ray: int, item: int, length: float) -> None:
    for c in range(sums.weights.shape[1]):
        weight = sums.weights[ray, c]
        if weight != 0.0:
            more = weight if sums.per_hit else weight * length
            if sums.shared:
                add_float(sums.sums, item * sums.weights.shape[1] + c, more)
            else:
                sums.sums[item, c] += more


@inlined
def _add_to_fixed(sums: FixedItemSums, ray: int, item: int, length: float) -> None:
    scale = sums.scales[item if sums.scales.size > 1 else 0]
    limit, channels = sums.limit, sums.weights.shape[1]
    for c in range(channels):
        weight = sums.weights[ray, c]
        if weight != 0.0:
            more = (weight if sums.per_hit else weight * length) * scale
            more = min(max(more, -limit), limit)  # no true term is larger
            high = int(more)
            low = int((more - high) * sums.grain)
            place = 2 * (item * channels + c)
            if sums.shared:
                add_integer(sums.words, place, high)
                add_integer(sums.words, place + 1, low)
            else:
                sums.words[item, c, 0] += high
                sums.words[item, c, 1] += low


@device
def _nothing(_sums: Any, _ray: int, _k: int) -> None:
    pass


dispatch(start_ray, {RaySums: _start_ray_sum, ItemSums: _load_weights, FixedItemSums: _load_weights}.get)
dispatch(
    add_length, {RaySums: _add_to_ray, ItemSums: _add_to_item, FixedItemSums: _add_to_fixed}.get, inline=True
)
dispatch(
    prefetch_item,
    {RaySums: _prefetch_values, ItemSums: _prefetch_sums, FixedItemSums: _prefetch_words}.get,
    inline=True,
)
dispatch(
    prefetch_ray,
    {RaySums: _prefetch_result, ItemSums: _prefetch_weights, FixedItemSums: _prefetch_weights}.get,
    inline=True,
)
dispatch(finish_ray, {RaySums: _finish_ray_sum, ItemSums: _nothing, FixedItemSums: _nothing}.get)
