"""Structs: named tuples that compiled code gets as the address of their fields.

Passed by value, each call would pass every number of every array, hundreds in a traversal.
"""

from typing import TypeVar

from raybox.compiler.calls import register_struct

C = TypeVar("C", bound=type)
STRUCTS: set[type] = set()


def struct(cls: C) -> C:
    """Return the class of named tuples, registered as passed by address."""
    STRUCTS.add(cls)
    register_struct(cls)
    return cls
