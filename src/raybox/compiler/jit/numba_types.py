"""Numba's types of raybox's functions and values, and how compiled code calls them."""

import inspect
from functools import cache, partial
from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.registry import cpu_target
from numba.extending import intrinsic, models, overload, register_model, typeof_impl
from numba.np.arrayobj import _empty_nd_impl

from raybox.compiler.decorators import OVERLOADS, ApartFunction, DeviceFunction
from raybox.compiler.intrinsics import LanesType, Number, VectorCode, larger_of
from raybox.compiler.jit.linking import CalleeCompiler
from raybox.compiler.jit.struct_type import StructRef, load_data, load_field, load_size
from raybox.compiler.simd import I64, Lanes, short
from raybox.compiler.simd_arrays import Memory

_CALLEE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": CalleeCompiler}


class NumbaLanes(types.Type):
    """Numba's type of `Lanes`."""

    def __init__(self, kind: LanesType) -> None:
        super().__init__(name=f"Lanes({kind.lanes} x {short(kind.item)})")
        self.kind = kind


@register_model(NumbaLanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, kind: NumbaLanes) -> None:
        super().__init__(dmm, kind, ir.VectorType(kind.kind.item, kind.kind.lanes))


@cache
def numba_type(kind: Number | LanesType) -> Any:
    """Return Numba's type of what vector code returns."""
    return NumbaLanes(kind) if isinstance(kind, LanesType) else getattr(types, kind.name)


# Functions


@typeof_impl.register(DeviceFunction)
def _type_of_device(value: DeviceFunction, context: Any) -> Any:
    return typeof_impl(_dispatcher(value), context)


@cache
def _dispatcher(value: DeviceFunction) -> Any:
    """Return Numba's dispatcher of a function that is linked into entry points."""
    return njit(**value.flags, **_CALLEE)(value.py_func)


@typeof_impl.register(VectorCode)
def _type_of_vector_code(value: VectorCode, _context: Any) -> Any:
    known = _intrinsic(value)
    cpu_target.typing_context.refresh()  # Numba does so when a compilation begins, not within it
    return cpu_target.typing_context.resolve_value_type(known)


@typeof_impl.register(ApartFunction)
def _type_of_apart(value: ApartFunction, _context: Any) -> Any:
    return cpu_target.typing_context.resolve_value_type(external(value))


@cache
def external(value: ApartFunction) -> Any:
    """Return Numba's description of a function that is called by its symbol."""
    result, args = value.signature
    return types.ExternalFunction(value.symbol, numba_type(result)(*map(numba_type, args)))


def register_overloads() -> None:
    """Register with Numba the stubs that were declared since the last call."""
    while OVERLOADS:
        stub, pick, flags = OVERLOADS[0]
        overload(stub, jit_options=flags | _CALLEE, strict=False)(pick)
        OVERLOADS.pop(0)


# Vector code


@cache
def _intrinsic(code: VectorCode) -> Any:
    def typer(_typing: Any, *args: Any) -> Any:
        kinds = [types.unliteral(arg) for arg in args]

        def codegen(context: Any, builder: Any, sig: Any, values: Any) -> Any:
            operands = [_operand(context, builder, *pair) for pair in zip(sig.args, values, strict=True)]
            emitted = code.write(builder, *operands)
            if isinstance(emitted, Lanes):
                return emitted.value
            return context.get_dummy_value() if emitted is None else emitted

        return _result(code.result, kinds)(*kinds), codegen

    typer.__doc__, typer.__name__ = code.__doc__, code.write.__name__
    typer.__signature__ = inspect.signature(code.write)  # type: ignore[attr-defined]
    return intrinsic(typer)


def _result(kind: Number | LanesType, args: list[Any]) -> Any:
    if kind == larger_of:
        return types.float64 if types.float64 in args else types.int64
    return numba_type(kind)


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
    if isinstance(kind, NumbaLanes):
        return Lanes(builder, value)
    if isinstance(kind, StructRef):
        return StructFields(context, builder, kind, value)
    if isinstance(kind, types.BaseTuple):
        items = [builder.extract_value(value, k) for k in range(len(kind))]
        operands = [_operand(context, builder, *pair) for pair in zip(kind.types, items, strict=True)]
        return kind.instance_class(*operands) if isinstance(kind, types.BaseNamedTuple) else operands
    return builder.sext(value, I64) if isinstance(kind, types.Integer) and kind.bitwidth < 64 else value


# New arrays

_WORDS = types.Array(types.uint64, 1, "C")


@intrinsic
def _new_words(_typing: Any, _size: Any) -> Any:
    """Return an uninitialised array of 64-bit words."""

    def codegen(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return _empty_nd_impl(context, builder, _WORDS, [args[0]])._getvalue()

    return _WORDS(types.intp), codegen


def empty_words(size: int) -> Any:
    """Return an uninitialised array.

    `np.empty` compiles the formatting of its errors, too, which takes 2 s; sizes are never wrong here.
    """
    return _new_words(size)
