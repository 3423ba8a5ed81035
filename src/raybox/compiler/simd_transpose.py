"""Rows of vectors into columns, in vector code (`raybox.compiler.simd`)."""

from raybox.compiler.simd import BYTES, Lanes, joined


def transposed(rows: list[Lanes]) -> list[Lanes]:
    """Return the columns of n vectors of n lanes, in n log2 n shuffles.

    n is 8 or 16 for items of 4 bytes, 8 for items of 8 bytes.
    """
    count = rows[0].count
    block = 16 // BYTES[rows[0].item]  # lanes in 16 bytes: shuffles within such a block are the cheapest
    groups, step = [[row] for row in rows], 1
    while step < block:
        low = [q + k for q in range(0, count, block) for k in _interleaved(step, block, count)]
        high = [k + block // 2 for k in low]
        groups = [
            [r.shuffled(s, picks) for r, s in zip(one, other, strict=True) for picks in (low, high)]
            for one, other in zip(groups[::2], groups[1::2], strict=True)
        ]
        step *= 2
    even = [k + n for n in (0, count) for q in range(0, count, 2 * block) for k in range(q, q + block)]
    odd = [k + block for k in even]
    return [column for blocks in _columns(groups, even, odd) for column in blocks]


def eight_columns(rows: list[Lanes]) -> list[Lanes]:
    """Return the columns of 8 or 16 vectors of eight 4-byte lanes.

    This takes 24 or 32 shuffles.
    """
    if len(rows) == 2 * rows[0].count:  # pairs make 8 vectors of 16 lanes, for `transposed`
        rows = [joined([rows[k], rows[k + 4]]) for k in (*range(4), *range(8, 12))]
    return transposed(rows)


def _columns(groups: list[list[Lanes]], even: list[int], odd: list[int]) -> list[list[Lanes]]:
    """Return groups of columns, from 2 or 4 groups of vectors.

    The vectors hold blocks of 2 or 4 columns.
    """
    pairs = list(zip(groups[::2], groups[1::2], strict=True))
    halves = [
        [[r.shuffled(s, picks) for r, s in zip(one, other, strict=True)] for one, other in pairs]
        for picks in (even, odd)
    ]
    if len(pairs) == 1:
        return [half[0] for half in halves]
    (first, third), (second, fourth) = (_columns(half, even, odd) for half in halves)
    return [first, second, third, fourth]


def _interleaved(step: int, block: int, count: int) -> list[int]:
    """Return the picks that interleave two vectors' first lanes by `step`, within a block."""
    return [0, count, 1, count + 1] if step < block // 2 else [*range(step), *range(count, count + step)]
