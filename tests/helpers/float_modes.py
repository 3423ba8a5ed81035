"""Set the floating-point modes of this thread, by instructions: shares nothing with the library."""

import ctypes
import mmap
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager

_IS_ARM = platform.machine().lower() in {"aarch64", "arm64"}
# "word at the address of the first argument = control word; return", and the other way round.
_X86 = ("0fae19c3", "0fae11c3") if os.name == "nt" else ("0fae1fc3", "0fae17c3")  # stmxcsr, ldmxcsr
_ARM = "01443bd5010000f9c0035fd6", "010040f901441bd5c0035fd6"  # mrs, str; ldr, msr

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

_CODE = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_uint64))


def _function(place: int, code: str) -> "ctypes._CFunctionType":
    _CODE[place : place + len(code) // 2] = bytes.fromhex(code)
    return _SIGNATURE(ctypes.addressof(ctypes.c_char.from_buffer(_CODE, place)))


_read, _write = (_function(64 * k, code) for k, code in enumerate(_ARM if _IS_ARM else _X86))


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
