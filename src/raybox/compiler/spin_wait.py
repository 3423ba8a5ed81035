"""Busy-wait for a number that another thread writes, with the GIL released."""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from raybox.compiler.decorators import entry
from raybox.compiler.intrinsics import vector_code

_HAS_PAUSE = platform.machine().lower() in {"x86_64", "amd64"}


@vector_code(types.int64)
def _pause_and_load(b: Any, signal: Any, index: Any) -> Any:
    """Return signal[index], loaded atomically, after a pause that frees the core's other hyperthread."""
    if _HAS_PAUSE:
        nothing = ir.FunctionType(ir.VoidType(), [])
        b.call(cgutils.get_or_insert_function(b.module, nothing, "llvm.x86.sse2.pause"), [])
    return b.load_atomic(signal.at(index), "acquire", 8)


@entry
def spin_while(signal: Any, index: int, low: int, high: int, reads: int) -> None:
    """Return when signal[index] leaves low to high, or after this many reads."""
    for _ in range(reads):
        if not low <= _pause_and_load(signal, index) <= high:
            return
