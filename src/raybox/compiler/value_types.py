"""Types of what vector code and separate functions return, named without Numba."""

from __future__ import annotations

from typing import NamedTuple

from raybox.compiler.llvm_ir import ir


class Number(NamedTuple):
    """A number in compiled code, by Numba's name of its type; `void` is no value at all."""

    name: str


class LanesType(NamedTuple):
    """`Lanes` that compiled code passes from one function of `vector_code` to another."""

    item: ir.Type
    lanes: int


class Signature(NamedTuple):
    """The types of a function of `apart`."""

    result: Number
    args: tuple[Number, ...]


void, int32, int64 = Number("void"), Number("int32"), Number("int64")
float32, float64 = Number("float32"), Number("float64")
larger_of = Number("larger")  # int64, or float64 where an argument is
