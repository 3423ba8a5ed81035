"""Sort the pairs of a group by ray, then by primitive: a radix sort, as a ray may hit any number of them."""

from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import device, whole
from raybox.queries.hit_pairs import HitPairs

_BITS = 10  # of a digit
_DIGITS = 1 << _BITS


class PairOrder(NamedTuple):
    """Memory for sorting pairs."""

    codes: Any  # int64 (pairs,): ray and primitive in one number
    spare: Any
    counters: Any  # int64: of digits


def make_pair_order(pairs: int) -> PairOrder:
    """Return memory for sorting so many pairs."""
    return PairOrder(*(np.empty(size, np.int64) for size in (pairs, pairs, _DIGITS)))


@device
def _bits_of(numbers: Any, count: int) -> int:
    """Return how many bits the largest of so many numbers has."""
    most, bits = whole(0), whole(0)
    for p in range(count):
        most = max(most, whole(numbers[p]))
    while most >> bits > 0:
        bits += 1
    return bits


@device
def _sort_by_digit(codes: Any, sorted_codes: Any, counters: Any, count: int, shift: int) -> None:
    """Copy codes in the order of one digit; codes with the same digit stay in their order."""
    counters[:] = 0
    for p in range(count):
        counters[codes[p] >> shift & _DIGITS - 1] += 1
    begin = whole(0)
    for digit in range(_DIGITS):
        number = counters[digit]
        counters[digit] = begin
        begin += number
    for p in range(count):
        digit = codes[p] >> shift & _DIGITS - 1
        sorted_codes[counters[digit]] = codes[p]
        counters[digit] += 1


@device
def sort_pairs(pairs: HitPairs, order: PairOrder, count: int) -> None:
    """Sort so many pairs by ray, then by primitive."""
    item_bits = _bits_of(pairs.item, count)
    bits = item_bits + _bits_of(pairs.ray, count)
    codes, spare = order.codes, order.spare
    for p in range(count):
        codes[p] = whole(pairs.ray[p]) << item_bits | whole(pairs.item[p])
    for shift in range(0, bits, _BITS):
        _sort_by_digit(codes, spare, order.counters, count, shift)
        codes, spare = spare, codes
    for p in range(count):
        pairs.ray[p], pairs.item[p] = codes[p] >> item_bits, codes[p] & (1 << item_bits) - 1
