"""The mask of a grid's cells as bits: one a cell at most, next to nothing where no cell is occupied.

A word has the bits of 64 cells that follow each other in C order, the lowest bit first. Only words that are
not 0 are stored, one after the other. A block has a bit for each of 64 words: whether it is stored. Where
a quarter of the words are not 0, all words of all blocks are stored, so that a cell's word is found at once.
"""

from typing import NamedTuple

import numpy as np

from raybox.validation import Bools, Ints, freeze

_CELLS_IN_BLOCK = 64 * 64
_CELLS_AT_ONCE = 1024 * _CELLS_IN_BLOCK  # so that packing needs little memory
_COUNTS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)


class CellBits(NamedTuple):
    """Which cells of a grid are occupied. Both arrays are frozen, and empty if all cells are."""

    blocks: Ints
    """(K, 2): a bit for each word of a block, whether it is stored, and the row of the first that is"""
    words: Ints
    """(W,): a bit for each cell, whether it is occupied"""


def pack(mask: Bools) -> CellBits:
    """Return the bits of a mask, of any shape."""
    cells = mask.reshape(-1)
    if cells.all():
        return FULL
    masks, stored = [], []
    for begin in range(0, cells.size, _CELLS_AT_ONCE):
        words = _packed(cells[begin : begin + _CELLS_AT_ONCE])
        masks.append(_packed(words != 0))
        stored.append(words[words != 0])
    blocks = np.stack([np.concatenate(masks)] * 2, axis=1)
    counts = _COUNTS[blocks[:, :1].copy().view(np.uint8)].sum(axis=1, dtype=np.int64)
    blocks[:, 1] = np.cumsum(counts) - counts
    words = np.concatenate(stored)
    if 4 * words.size > 64 * len(blocks):
        words = _all_words(blocks, words)
        blocks[:, 0], blocks[:, 1] = -1, 64 * np.arange(len(blocks))
    return _frozen(blocks, words)


def unpack(bits: CellBits, begin: int, end: int) -> Bools:
    """Return a flag for each cell from ``begin`` to ``end``, in C order; not all cells may be occupied."""
    first = begin // _CELLS_IN_BLOCK
    blocks = bits.blocks[first : -(-end // _CELLS_IN_BLOCK)]
    words = _all_words(blocks, bits.words[blocks[0, 1] :])
    return _unpacked(words)[begin - first * _CELLS_IN_BLOCK : end - first * _CELLS_IN_BLOCK]


def count(bits: CellBits) -> int:
    """Return how many cells are occupied; not all may be."""
    return int(_COUNTS[bits.words.view(np.uint8)].sum(dtype=np.int64))


def broken_rule(bits: CellBits, size: int) -> str:
    """Return the first rule that the bits of a grid of `size` cells break, or an empty text."""
    blocks, words = bits
    if not blocks.size:
        return "words without blocks" if words.size else ""
    if len(blocks) != -(-size // _CELLS_IN_BLOCK):
        return "a mask of another number of cells"
    counts = _COUNTS[blocks[:, :1].copy().view(np.uint8)].sum(axis=1, dtype=np.int64)
    if words.size != counts.sum() or not np.array_equal(blocks[:, 1], np.cumsum(counts) - counts):
        return "a mask of another number of words"
    last = unpack(bits, (len(blocks) - 1) * _CELLS_IN_BLOCK, len(blocks) * _CELLS_IN_BLOCK)
    return (
        "a cell that does not exist"
        if last[size - len(blocks) * _CELLS_IN_BLOCK :].any() and size % _CELLS_IN_BLOCK
        else ""
    )


def _all_words(blocks: Ints, stored: Ints) -> Ints:
    """Return all words of some blocks; ``stored`` begins with the first that they store."""
    is_stored = _unpacked(blocks[:, 0].copy())
    words = np.zeros(is_stored.size, np.int64)
    words[is_stored] = stored[: np.count_nonzero(is_stored)]
    return words


def _packed(flags: Bools) -> Ints:
    """Return flags as bits of integers, 64 in each, filled up with zeros."""
    found = np.packbits(flags, bitorder="little")
    return np.pad(found, (0, -found.size % 8)).view("<i8")


def _unpacked(words: Ints) -> Bools:
    return np.unpackbits(words.view(np.uint8), bitorder="little").view(np.bool_)


def _frozen(blocks: Ints, words: Ints) -> CellBits:
    freeze(blocks, words)
    return CellBits(blocks, words)


FULL = _frozen(np.empty((0, 2), np.int64), np.empty(0, np.int64))
