"""`last`: the hit of each ray with the largest t; of several at exactly the same t, the lowest index.

A whole query in one file: the class of its results, by the protocol of `raybox.queries.hit_query`.
"""

from typing import Any, NamedTuple

from raybox.compiler.struct_ref import struct
from raybox.queries.hit_query import I, hit_query
from raybox.validation import Floats, Ints


@struct
class Last(NamedTuple):
    """The last hit of each ray."""

    index: Ints  # type: ignore[assignment]  # not the method of tuples
    t: Floats

    def prefers(self, order: I, one: I, other: I) -> Any:
        """Return whether the first of two hits comes last, or ties and has the lower index."""
        return (order > 0) | ((order == 0) & (one < other))


QUERY = hit_query("last", Last)
