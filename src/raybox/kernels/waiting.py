"""Waiting for another thread without going to sleep: looks at a number that it writes, the GIL released."""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from raybox.kernels.emitted import vector_code
from raybox.kernels.jit import entry

_PAUSES = platform.machine().lower() in {"x86_64", "amd64"}


@vector_code(types.int64)
def _look(b: Any, bell: Any, place: Any) -> Any:
    """Return a number as it is now, after a moment in which the core is left to others that share it."""
    if _PAUSES:
        nothing = ir.FunctionType(ir.VoidType(), [])
        b.call(cgutils.get_or_insert_function(b.module, nothing, "llvm.x86.sse2.pause"), [])
    return b.load_atomic(bell.at(place), "acquire", 8)


@entry
def wait_while(bell: Any, place: int, least: int, most: int, looks: int) -> None:
    """Return as soon as bell[place] is less than `least` or more than `most`, or after so many looks."""
    for _ in range(looks):
        if not least <= _look(bell, place) <= most:
            return
