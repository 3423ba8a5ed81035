"""Structs: named tuples that compiled code gets as the address of their fields.

Passed by value, each call would pass every number of every array, hundreds in a traversal.
"""

from typing import TypeVar, cast

from raybox.compiler.calls import Plan, register_struct

C = TypeVar("C", bound=type)
T = TypeVar("T")
STRUCTS: set[type] = set()


def struct(cls: C) -> C:
    """Return the class of named tuples, registered as passed by address."""
    STRUCTS.add(cls)
    register_struct(cls)
    return cls


def plan_of(value: T) -> T:
    """Return a struct with its words laid out once, which counts as the struct in any call."""
    return cast(T, Plan(cast("tuple[object, ...]", value)))
