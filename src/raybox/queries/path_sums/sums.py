"""What paths are added to: the sums of rays (`integrate`), or of primitives (`deposit`).

A traversal calls `start_ray` once for a ray, `add_length` for each primitive that the ray is in, in any
order, and `finish_ray`. `ray` is a number among the rays of a group, `k` among all rays. A traversal that
takes rays one by one, in their order, may use whole arrays as those of a group: then both numbers are the
same.
"""

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeAlias, TypeVar, cast

from raybox.compiler.decorators import Namesakes, device, inlined
from raybox.compiler.intrinsics import add_float, add_integer, prefetch, prefetch_to_write
from raybox.validation import Floats, Ints

S = TypeVar("S")


class RaySums(NamedTuple):
    """Sums of rays: value times length, of each channel."""

    sums: Floats  # (rays of a group, C)
    values: Floats  # (M, C), or (0, C): all are 1
    results: Floats  # (all rays, C)


class ItemSums(NamedTuple):
    """Sums of primitives: weight times length, of each channel."""

    weights: Floats  # (rays of a group, C)
    given: Floats  # (all rays, C), or (0, C): all are 1
    sums: Floats  # (M, C)
    per_hit: bool  # whether every length counts 1
    shared: bool  # whether other threads add to the same memory


class FixedItemSums(NamedTuple):
    """Sums of primitives in fixed point: see `raybox.queries.path_sums.fixed_point`."""

    weights: Floats  # as in `ItemSums`
    given: Floats
    words: Ints  # (M, C, 2)
    scales: Floats  # (M,), or (1,) for all: powers of two
    limit: float  # of a term times its scale
    grain: float  # how many units of the second word are one of the first
    per_hit: bool
    shared: bool


PathSums: TypeAlias = RaySums | ItemSums | FixedItemSums


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
def _prefetch_weights(sums: ItemSums | FixedItemSums, k: int) -> None:
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
def _load_weights(sums: ItemSums | FixedItemSums, ray: int, k: int, counts: bool) -> None:
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
def _nothing(_sums: PathSums, _ray: int, _k: int) -> None:
    pass


class SumHooks(NamedTuple, Generic[S]):
    """What a class of sums does with the paths of ray number `ray` of a group, `k` of all rays."""

    start_ray: Callable[[S, int, int, bool], None]
    """Begin a ray (ray, k); the flag: whether what is added for it counts, or comes from elsewhere."""
    add_length: Callable[[S, int, int, float], None]
    """Add the path of a ray inside of a primitive (ray, primitive, length); 0 times inf counts 0."""
    prefetch_item: Callable[[S, int], None]
    """Prefetch what `add_length` reads and writes of a primitive."""
    prefetch_ray: Callable[[S, int], None]
    """Prefetch what `start_ray` reads, or `finish_ray` writes, of ray k."""
    finish_ray: Callable[[S, int, int], None]
    """Write the result of a ray that counts (ray, k)."""


_TABLE = {
    RaySums: SumHooks(_start_ray_sum, _add_to_ray, _prefetch_values, _prefetch_result, _finish_ray_sum),
    ItemSums: SumHooks(_load_weights, _add_to_item, _prefetch_sums, _prefetch_weights, _nothing),
    FixedItemSums: SumHooks(_load_weights, _add_to_fixed, _prefetch_words, _prefetch_weights, _nothing),
}
_CALLED = cast("SumHooks[PathSums]", Namesakes(_TABLE))
_INLINED = cast("SumHooks[PathSums]", Namesakes(_TABLE, inline=True))
start_ray, finish_ray = _CALLED.start_ray, _CALLED.finish_ray
add_length = _INLINED.add_length
prefetch_item, prefetch_ray = _INLINED.prefetch_item, _INLINED.prefetch_ray
