"""What compiled code calls at run time: new arrays without NumPy's checks, and a wait for another thread."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.decorators import FLAGS, OVERLOADS, Overload, allocating, stub
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import int64, vector_code
from raybox.compiler.llvm_ir import cgutils, ir
from raybox.compiler.simd import Builder, Scalar
from raybox.compiler.simd_arrays import Memory
from raybox.compiler.target import compile_target

Words: TypeAlias = NDArray[np.uint64]
_empty_words = stub("empty_words")  # of 64 bits; not initialised


def _pick_new_words(_size: object) -> object:
    from raybox.compiler.jit.numba_types import empty_words

    return empty_words


OVERLOADS.append(Overload(_empty_words, _pick_new_words, FLAGS | {"_nrt": True}))


@allocating
def zero_words(size: int) -> Words:
    """Return an array of 64-bit zeros."""
    words: Words = _empty_words(size)
    for k in range(size):
        words[k] = 0
    return words


@vector_code(int64)
def _pause_and_load(b: Builder, signal: Memory, index: Scalar) -> Scalar:
    """Return signal[index], loaded atomically, after a pause that frees the core's other hyperthread."""
    if compile_target().triple.startswith(("x86_64", "amd64")):
        nothing = ir.FunctionType(ir.VoidType(), [])
        b.call(cgutils.get_or_insert_function(b.module, nothing, "llvm.x86.sse2.pause"), [])
    return b.load_atomic(signal.at(index), "acquire", 8)


@entry
def spin_while(signal: Any, index: int, low: int, high: int, reads: int) -> None:
    """Return when signal[index] leaves low to high, or after this many reads; the GIL is released."""
    for _ in range(reads):
        if not low <= _pause_and_load(signal, index) <= high:
            return
