"""Compressed rows: what each of N rays or queries has, one after the other."""

from typing import NamedTuple

import numpy as np

from raybox.validation import Ints


class Runs(NamedTuple):
    """Some rows of compressed rows, as rows of their own."""

    offsets: Ints
    """(n + 1,): the first item of each row, and the end"""
    places: Ints
    """where the items are among those of all rows"""


def offsets_of(counts: Ints) -> Ints:
    """Return where the items of each row begin, and where the last ones end."""
    offsets = np.empty(counts.size + 1, np.int64)
    offsets[0] = 0
    np.cumsum(counts, out=offsets[1:])
    return offsets


def places_of(first: Ints, counts: Ints) -> Ints:
    """Return the places of the items of rows that begin at `first` and have as many as counted."""
    ends = np.cumsum(counts)
    return np.repeat(first - ends + counts, counts) + np.arange(counts.sum(), dtype=np.int64)


def row_of_each(offsets: Ints) -> Ints:
    """Return the number of each item's row."""
    return np.repeat(np.arange(len(offsets) - 1, dtype=np.int64), np.diff(offsets))


def choose(offsets: Ints, rows: Ints) -> Runs:
    """Return rows of compressed rows, by their numbers."""
    first = offsets[rows]
    counts = offsets[rows + 1] - first
    return Runs(offsets_of(counts), places_of(first, counts))
