"""`vector_code`, a decorator for functions that emit LLVM code, and the simplest of these.

Numba compiles such a function in a fraction of the time of equivalent Python, which is about 0.1 s.
"""

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, NamedTuple, Protocol

from raybox.compiler.llvm_ir import ir
from raybox.compiler.simd import F64, I1, Builder, Scalar
from raybox.compiler.simd_arrays import Memory


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


class VectorCode:
    """A function of compiled code: `write`, called by the compiler, emits its instructions."""

    def __init__(self, write: Callable[..., Any], result: Number | LanesType) -> None:
        self.write, self.result = write, result
        update_wrapper(self, write)

    def __call__(self, *_: Any) -> Any:
        """Raise TypeError: only compiled code calls it."""
        raise TypeError(f"{self.write.__qualname__} is for compiled code alone")


def vector_code(result: Number | LanesType) -> Callable[[Callable[..., Any]], VectorCode]:
    """Return a decorator for functions (builder, *arguments) that emit LLVM code.

    The decorated function is callable from compiled code. Arrays arrive as `Memory`, numbers as scalar LLVM
    values (integers in 64 bits), vectors as `Lanes`, tuples as lists of these, structs and named tuples as
    `Fields`. The function returns a value of the type `result`, or None for void.
    """
    return lambda write: VectorCode(write, result)


class Fields(Protocol):
    """A struct or a named tuple in vector code, with the operands of `vector_code` as attributes."""

    def __getattr__(self, name: str, /) -> Any: ...


def _is_less(b: Builder, one: Scalar, other: Scalar) -> Scalar:
    return (b.fcmp_ordered if one.type == F64 else b.icmp_signed)("<", one, other)


@vector_code(larger_of)
def smaller(b: Builder, one: Scalar, other: Scalar) -> Scalar:
    """Return the lesser number, as `min` does.

    Numba would compile `min` for each pair of types.
    """
    return b.select(_is_less(b, other, one), other, one)


@vector_code(larger_of)
def larger(b: Builder, one: Scalar, other: Scalar) -> Scalar:
    """Return the greater number as `max` does."""
    return b.select(_is_less(b, one, other), other, one)


@vector_code(int64)
def lowest_bit(b: Any, mask: Any) -> Any:
    """Return the number of the lowest set bit of a mask, which must not be 0."""
    return b.cttz(mask, I1(1))


@vector_code(int64)
def popcount(b: Builder, mask: Scalar) -> Scalar:
    """Return how many bits of an integer are set."""
    return b.ctpop(mask)


@vector_code(void)
def prefetch(_b: Builder, array: Memory, place: Scalar) -> None:
    """Prefetch an array's item, by flat index, for reading."""
    array.prefetch(place)


@vector_code(void)
def prefetch_to_write(_b: Builder, array: Memory, place: Scalar) -> None:
    """Prefetch an array's item, by flat index, for writing."""
    array.prefetch(place, writing=True)


@vector_code(void)
def put_past(_b: Builder, array: Memory, place: Scalar, value: Scalar) -> None:
    """Store an array's item, by flat index, past the caches.

    For items that are read much later.
    """
    array.put_past(value, place)


@vector_code(void)
def add_float(b: Any, array: Any, place: Any, value: Any) -> None:
    """Add to an item of a float64 array, by flat index, atomically; the order of additions is any."""
    b.atomic_rmw("fadd", array.at(place), value, "monotonic")


@vector_code(void)
def add_integer(b: Any, array: Any, place: Any, value: Any) -> None:
    """Add to an item of an int64 array, by flat index, atomically."""
    b.atomic_rmw("add", array.at(place), value, "monotonic")
