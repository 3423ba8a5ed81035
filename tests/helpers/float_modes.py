"""Set the floating-point modes of this thread, by instructions: shares nothing with the library."""

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm

_IS_ARM = platform.machine().lower() in {"aarch64", "arm64"}

_X86 = """
declare void @llvm.x86.sse.stmxcsr(i8*)
declare void @llvm.x86.sse.ldmxcsr(i8*)
define void @read(i8* %word) { call void @llvm.x86.sse.stmxcsr(i8* %word) ret void }
define void @write(i8* %word) { call void @llvm.x86.sse.ldmxcsr(i8* %word) ret void }
"""
_ARM = """
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)
define void @read(i64* %word) { %a = call i64 @llvm.aarch64.get.fpcr() store i64 %a, i64* %word ret void }
define void @write(i64* %word) { %a = load i64, i64* %word call void @llvm.aarch64.set.fpcr(i64 %a) ret void }
"""

if _IS_ARM:  # one flag flushes operands and results
    _NEAREST, _DOWN, _UP, _ZERO = (k << 22 for k in (0, 2, 1, 3))
    _DAZ = _FTZ = 1 << 24
else:
    _NEAREST, _DOWN, _UP, _ZERO = (k << 13 for k in range(4))
    _DAZ, _FTZ = 1 << 6, 1 << 15
_STATUS = 0 if _IS_ARM else 0x3F  # flags of exceptions that were raised

MODES = {
    "FTZ": _FTZ,
    "DAZ": _DAZ,
    "FTZ and DAZ": _FTZ | _DAZ,
    "down": _DOWN,
    "up": _UP,
    "towards zero": _ZERO,
    "FTZ, DAZ, up": _FTZ | _DAZ | _UP,
}
"""Bits of the control word, by name; none of them is set by default."""


def _compile() -> llvm.ExecutionEngine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(_ARM if _IS_ARM else _X86), machine)
    engine.finalize_object()
    return engine


_ENGINE = _compile()
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64))
_read, _write = (_SIGNATURE(_ENGINE.get_function_address(name)) for name in ("read", "write"))


def control_word() -> int:
    """Return the control word of this thread, without the flags of exceptions."""
    word = ctypes.c_uint64()
    _read(ctypes.byref(word))
    return word.value & ~_STATUS


def set_control_word(word: int) -> None:
    _write(ctypes.byref(ctypes.c_uint64(word)))


@contextmanager
def modes(name: str) -> Iterator[int]:
    """Run the body in modes of these names; yield the control word."""
    before = control_word()
    set_control_word(before | MODES[name])
    try:
        yield before | MODES[name]
    finally:
        set_control_word(before)
