"""What compiled code calls at run time: new arrays without NumPy's checks, and a wait for another thread."""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from raybox.compiler.decorators import FLAGS, add_overload, allocating, backend, entry
from raybox.compiler.intrinsics import vector_code

_HAS_PAUSE = platform.machine().lower() in {"x86_64", "amd64"}


def _empty_words(size: int) -> Any:
    """Return an uninitialised array of 64-bit words."""
    raise NotImplementedError("compiled code only")


add_overload(_empty_words, lambda _size: backend().empty_words, FLAGS | {"_nrt": True})


@allocating
def zero_words(size: int) -> Any:
    """Return an array of 64-bit zeros."""
    words = _empty_words(size)
    for k in range(size):
        words[k] = 0
    return words


@vector_code(types.int64)
def _pause_and_load(b: Any, signal: Any, index: Any) -> Any:
    """Return signal[index], loaded atomically, after a pause that frees the core's other hyperthread."""
    if _HAS_PAUSE:
        nothing = ir.FunctionType(ir.VoidType(), [])
        b.call(cgutils.get_or_insert_function(b.module, nothing, "llvm.x86.sse2.pause"), [])
    return b.load_atomic(signal.at(index), "acquire", 8)


@entry
def spin_while(signal: Any, index: int, low: int, high: int, reads: int) -> None:
    """Return when signal[index] leaves low to high, or after this many reads; the GIL is released."""
    for _ in range(reads):
        if not low <= _pause_and_load(signal, index) <= high:
            return
