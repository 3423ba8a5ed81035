"""Functions whose LLVM code is written as Numba compiles their callers, and the smallest of them.

For Numba the whole of such a function is a single call, which compiles in a fraction of the time of as
much jitted Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from raybox.compiler.simd import F64, I64
from raybox.compiler.simd_arrays import Memory
from raybox.compiler.struct_ref import Held, load_data, load_field, load_size


def vector_code(result: Any) -> Callable[[Callable[..., Any]], Any]:
    """Make a function of (builder, arguments) that writes LLVM code callable from jitted code.

    Arrays arrive as `Memory`, numbers as plain LLVM values (whole ones of 64 bits), tuples as lists of them,
    named tuples as themselves; what is returned is a value of `result`'s type.
    """

    def decorate(write: Callable[..., Any]) -> Any:
        def typer(_typing: Any, *args: Any) -> Any:
            kinds = [types.unliteral(arg) for arg in args]

            def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
                given = [_given(context, builder, *pair) for pair in zip(sig.args, values, strict=True)]
                answer = write(builder, *given)
                if answer is None:
                    return context.get_dummy_value()
                return answer

            return result(*kinds), codegen

        typer.__doc__ = write.__doc__
        typer.__name__ = write.__name__
        typer.__signature__ = inspect.signature(write)  # type: ignore[attr-defined]
        return intrinsic(typer)

    return decorate


class Fields:
    """What is held of a named tuple, loaded where it is asked for."""

    def __init__(self, context: Any, builder: Any, kind: Held, value: Any) -> None:
        self._how = context, builder, kind, value

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The class of the tuple, as who asks by `isinstance` is told, too."""
        return self._how[2].instance_class

    def __getattr__(self, name: str) -> Any:
        context, builder, kind, value = self._how
        member = kind.types[kind.fields.index(name)]
        if isinstance(member, types.Array):
            place = cgutils.gep_inbounds(builder, value, 0, kind.fields.index(name))
            data, size = (partial(load, context, builder, member, place) for load in (load_data, load_size))
            return Memory(builder, context.get_data_type(member.dtype), data(), size)
        return _given(context, builder, member, load_field(context, builder, kind, value, name))


def _given(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        return Memory(builder, context.get_data_type(kind.dtype), array.data, array.nitems)
    if isinstance(kind, Held):
        return Fields(context, builder, kind, value)
    if isinstance(kind, types.BaseTuple):
        items = [builder.extract_value(value, k) for k in range(len(kind))]
        given = [_given(context, builder, *pair) for pair in zip(kind.types, items, strict=True)]
        return kind.instance_class(*given) if isinstance(kind, types.BaseNamedTuple) else given
    return builder.sext(value, I64) if isinstance(kind, types.Integer) and kind.bitwidth < 64 else value


def _common(*kinds: Any) -> Any:
    """Return the signature of what gives one of some numbers, all whole or all float64."""
    return (types.float64 if types.float64 in kinds else types.int64)(*kinds)


def _before(b: Any, one: Any, other: Any) -> Any:
    return (b.fcmp_ordered if one.type == F64 else b.icmp_signed)("<", one, other)


@vector_code(_common)
def smaller(b: Any, one: Any, other: Any) -> Any:
    """Return the lesser number, as `min` does: Numba would compile that for each pair of types."""
    return b.select(_before(b, other, one), other, one)


@vector_code(_common)
def larger(b: Any, one: Any, other: Any) -> Any:
    """Return the greater number as `max` does."""
    return b.select(_before(b, one, other), other, one)


@vector_code(types.void)
def prefetch(_b: Any, array: Any, place: Any) -> None:
    """Ask for the cache line of an array's item (numbered flat), soon to be read."""
    array.prefetch(place)


@vector_code(types.void)
def prefetch_to_write(_b: Any, array: Any, place: Any) -> None:
    """Ask for the cache line of an array's item (numbered flat), soon to be written."""
    array.prefetch(place, writing=True)


@vector_code(types.void)
def put_past(_b: Any, array: Any, place: Any, value: Any) -> None:
    """Write an array's item (numbered flat) past the caches: it is read long after."""
    array.put_past(value, place)
