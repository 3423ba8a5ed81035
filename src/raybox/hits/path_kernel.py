"""Lengths of many paths, in compiled code."""

from typing import Any

from raybox.compiler.decorators import entry, inlined
from raybox.hits import path_lengths

path_length = inlined(path_lengths.path_length)


@entry
def write_lengths(near: Any, far: Any, directions: Any, ray_of: Any, lengths: Any) -> None:
    """Write the length of each path; path k is of ray ray_of[k]."""
    for k in range(lengths.size):
        r = ray_of[k]
        direction = directions[r, 0], directions[r, 1], directions[r, 2]
        lengths[k] = path_length(near[k], far[k], direction)
