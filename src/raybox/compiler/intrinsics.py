"""`vector_code`, a decorator for functions that emit LLVM code, and the simplest of these.

Numba compiles such a function in a fraction of the time of equivalent Python, which is about 0.1 s.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

from raybox.compiler.simd import F64, I1, I64, Builder, Lanes, Scalar, short
from raybox.compiler.simd_arrays import Memory
from raybox.compiler.struct_ref import StructRef, load_data, load_field, load_size


class LanesType(types.Type):
    """The Numba type of `Lanes` that compiled code passes from one function of `vector_code` to another."""

    def __init__(self, item: Any, count: int) -> None:
        super().__init__(name=f"Lanes({count} x {short(item)})")
        self.item = item
        self.count = count


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, kind: LanesType) -> None:
        super().__init__(dmm, kind, ir.VectorType(kind.item, kind.count))


def vector_code(result: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for functions (builder, *arguments) that emit LLVM code.

    The decorated function is callable from compiled code. Arrays arrive as `Memory`, numbers as scalar LLVM
    values (integers in 64 bits), vectors as `Lanes`, tuples as lists of these, structs and named tuples as
    `Fields`. The function returns a value of the type `result`, or None for void.
    """

    def decorate(write: Callable[..., Any]) -> Any:
        def typer(_typing: Any, *args: Any) -> Any:
            kinds = [types.unliteral(arg) for arg in args]

            def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
                operands = [_operand(context, builder, *pair) for pair in zip(sig.args, values, strict=True)]
                emitted = write(builder, *operands)
                if isinstance(emitted, Lanes):
                    return emitted.value
                return context.get_dummy_value() if emitted is None else emitted

            return result(*kinds), codegen

        typer.__doc__ = write.__doc__
        typer.__name__ = write.__name__
        typer.__signature__ = inspect.signature(write)  # type: ignore[attr-defined]
        return intrinsic(typer)

    return decorate


class Fields(Protocol):
    """A struct or a named tuple in vector code, with the operands of `vector_code` as attributes."""

    def __getattr__(self, name: str, /) -> Any: ...


class StructFields:
    """A struct in memory, whose fields are loaded on access."""

    def __init__(self, context: Any, builder: Any, kind: StructRef, value: Any) -> None:
        self._how = context, builder, kind, value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """Class of the named tuple, for `isinstance`."""
        return self._how[2].instance_class

    def __getattr__(self, name: str) -> Any:
        context, builder, kind, value = self._how
        member = kind.types[kind.fields.index(name)]
        if isinstance(member, types.Array):
            place = cgutils.gep_inbounds(builder, value, 0, kind.fields.index(name))
            data, size = (partial(load, context, builder, member, place) for load in (load_data, load_size))
            return Memory(builder, context.get_data_type(member.dtype), data(), size)
        return _operand(context, builder, member, load_field(context, builder, kind, value, name))


def _operand(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Return an argument in the form that functions of `vector_code` receive."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        return Memory(builder, context.get_data_type(kind.dtype), array.data, array.nitems)
    if isinstance(kind, LanesType):
        return Lanes(builder, value)
    if isinstance(kind, StructRef):
        return StructFields(context, builder, kind, value)
    if isinstance(kind, types.BaseTuple):
        items = [builder.extract_value(value, k) for k in range(len(kind))]
        operands = [_operand(context, builder, *pair) for pair in zip(kind.types, items, strict=True)]
        return kind.instance_class(*operands) if isinstance(kind, types.BaseNamedTuple) else operands
    return builder.sext(value, I64) if isinstance(kind, types.Integer) and kind.bitwidth < 64 else value


def _common(*kinds: Any) -> Any:
    """Return the signature of a choice among numbers, all int64 or all float64."""
    return (types.float64 if types.float64 in kinds else types.int64)(*kinds)


def _is_less(b: Builder, one: Scalar, other: Scalar) -> Scalar:
    return (b.fcmp_ordered if one.type == F64 else b.icmp_signed)("<", one, other)


@vector_code(_common)
def smaller(b: Builder, one: Scalar, other: Scalar) -> Scalar:
    """Return the lesser number, as `min` does.

    Numba would compile `min` for each pair of types.
    """
    return b.select(_is_less(b, other, one), other, one)


@vector_code(_common)
def larger(b: Builder, one: Scalar, other: Scalar) -> Scalar:
    """Return the greater number as `max` does."""
    return b.select(_is_less(b, one, other), other, one)


@vector_code(types.int64)
def lowest_bit(b: Any, mask: Any) -> Any:
    """Return the number of the lowest set bit of a mask, which must not be 0."""
    return b.cttz(mask, I1(1))


@vector_code(types.int64)
def popcount(b: Builder, mask: Scalar) -> Scalar:
    """Return how many bits of an integer are set."""
    return b.ctpop(mask)


@vector_code(types.void)
def prefetch(_b: Builder, array: Memory, place: Scalar) -> None:
    """Prefetch an array's item, by flat index, for reading."""
    array.prefetch(place)


@vector_code(types.void)
def prefetch_to_write(_b: Builder, array: Memory, place: Scalar) -> None:
    """Prefetch an array's item, by flat index, for writing."""
    array.prefetch(place, writing=True)


@vector_code(types.void)
def put_past(_b: Builder, array: Memory, place: Scalar, value: Scalar) -> None:
    """Store an array's item, by flat index, past the caches.

    For items that are read much later.
    """
    array.put_past(value, place)
