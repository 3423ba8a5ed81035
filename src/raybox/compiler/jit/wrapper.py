"""The C function of an entry point, which Python calls: arguments and results are words of 64 bits.

It is `int32 symbol(const int64 *words, int64 *results)`. An array is its address and lengths, a struct the
address of its own words, a tuple its items, None nothing, a number one word. The result is the status of
Numba's calling convention: 0, unless memory is short.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import populate_array

from raybox.compiler.jit.struct_type import StructRef, by_value
from raybox.compiler.simd import I32, I64


def add_wrapper(context: Any, library: Any, fndesc: Any, symbol: str) -> None:
    """Add the C function of a compiled function to its library."""
    module = context.create_module("raybox_entry")
    callee = _declared(context, module, fndesc)
    function = ir.Function(module, ir.FunctionType(I32, [I64.as_pointer()] * 2), symbol)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    words = _Words(context, builder, function.args[0])
    args = [words.read(kind) for kind in fndesc.argtypes]
    status, result = context.call_conv.call_function(builder, callee, fndesc.restype, fndesc.argtypes, args)
    with builder.if_then(status.is_ok):
        for k, word in enumerate(_words_of(builder, fndesc.restype, result)):
            builder.store(word, builder.gep(function.args[1], [I64(k)]))
    builder.ret(status.code)
    library.add_ir_module(module)


def add_symbol(context: Any, library: Any, fndesc: Any, symbol: str) -> None:
    """Add a function with C's types of its own to the library of a compiled function."""
    module = context.create_module("raybox_apart")
    callee = _declared(context, module, fndesc)
    kinds = [context.get_value_type(kind) for kind in fndesc.argtypes]
    function = ir.Function(module, ir.FunctionType(context.get_value_type(fndesc.restype), kinds), symbol)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    args = list(function.args)
    _, result = context.call_conv.call_function(builder, callee, fndesc.restype, fndesc.argtypes, args)
    builder.ret(result)
    library.add_ir_module(module)


def _declared(context: Any, module: Any, fndesc: Any) -> Any:
    """Return a compiled function, declared in a module."""
    kind = context.call_conv.get_function_type(fndesc.restype, fndesc.argtypes)
    return ir.Function(module, kind, fndesc.llvm_func_name)


class _Words:
    """Words in memory, read one after the other."""

    def __init__(self, context: Any, builder: Any, place: Any) -> None:
        self._context, self._b, self._place = context, builder, place
        self._count = 0

    def _next(self) -> Any:
        word = self._b.load(self._b.gep(self._place, [I64(self._count)]))
        self._count += 1
        return word

    def read(self, kind: Any) -> Any:
        """Return the next value, of Numba's type `kind`."""
        if isinstance(kind, StructRef):
            return self._read_struct(kind)
        if isinstance(kind, types.Array):
            return self._read_array(kind)
        if isinstance(kind, types.BaseTuple):
            return self._context.make_tuple(self._b, kind, [self.read(one) for one in kind.types])
        if isinstance(kind, types.NoneType):
            return self._context.get_dummy_value()
        return self._number(kind, self._next())

    def _read_struct(self, kind: StructRef) -> Any:
        """Return the address of a struct, which is written to the stack."""
        b, value = self._b, self._read_members(kind)
        place = cgutils.alloca_once(b, value.type)
        b.store(value, place)
        opaque = ir.FunctionType(place.type, [place.type])
        return b.asm(opaque, "", "=r,0,~{memory}", [place], side_effect=True)

    def _read_members(self, kind: StructRef) -> Any:
        b = self._b
        inner = _Words(self._context, b, b.inttoptr(self._next(), I64.as_pointer()))
        members = [
            inner._read_members(one) if isinstance(one, StructRef) else inner.read(one) for one in kind.types
        ]
        return self._context.make_tuple(b, by_value(kind), members)

    def _read_array(self, kind: Any) -> Any:
        context, b = self._context, self._b
        array = context.make_array(kind)(context, b)
        data = b.inttoptr(self._next(), array.data.type)
        shape = [self._next() for _ in range(kind.ndim)]
        itemsize = I64(context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        strides, stride = list[Any](), itemsize
        for length in reversed(shape):
            strides.insert(0, stride)
            stride = b.mul(stride, length)
        populate_array(array, data, shape, strides, itemsize, None)
        return array._getvalue()

    def _number(self, kind: Any, word: Any) -> Any:
        b, to = self._b, self._context.get_value_type(kind)
        if isinstance(kind, types.Float):
            return b.bitcast(word if kind.bitwidth == 64 else b.trunc(word, I32), to)
        return b.trunc(word, to) if isinstance(kind, types.Boolean) else word


def _words_of(b: Any, kind: Any, value: Any) -> list[Any]:
    """Return a result as words."""
    if isinstance(kind, types.NoneType):
        return []
    if isinstance(kind, types.BaseTuple):
        items = [_words_of(b, one, b.extract_value(value, k)) for k, one in enumerate(kind.types)]
        return [word for words in items for word in words]
    if isinstance(kind, types.Float):
        return [b.bitcast(b.fpext(value, ir.DoubleType()) if kind.bitwidth == 32 else value, I64)]
    if isinstance(kind, types.Boolean):
        return [b.zext(b.trunc(value, ir.IntType(1)), I64)]
    return [value if kind.bitwidth == 64 else (b.sext if kind.signed else b.zext)(value, I64)]


def results_of(kind: Any) -> str:
    """Return the kinds of a result, as calls from Python name them."""
    if isinstance(kind, types.BaseTuple):
        return f"({''.join(map(results_of, kind.types))})"
    if isinstance(kind, types.NoneType):
        return "n"
    if isinstance(kind, types.Boolean):
        return "b"
    return "f" if isinstance(kind, types.Float) else "i"
