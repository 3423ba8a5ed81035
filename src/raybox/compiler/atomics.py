"""Atomic additions to array items, which several threads may add to."""

from __future__ import annotations

from typing import Any

from raybox.compiler.intrinsics import vector_code
from raybox.compiler.value_types import void


@vector_code(void)
def add_float(b: Any, array: Any, place: Any, value: Any) -> None:
    """Add to an item of a float64 array, by flat index, atomically; the order of additions is any."""
    b.atomic_rmw("fadd", array.at(place), value, "monotonic")


@vector_code(void)
def add_integer(b: Any, array: Any, place: Any, value: Any) -> None:
    """Add to an item of an int64 array, by flat index, atomically."""
    b.atomic_rmw("add", array.at(place), value, "monotonic")
