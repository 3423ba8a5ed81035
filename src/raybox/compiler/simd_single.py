"""Vectors of eight float32 as values of compiled code.

Each function is one LLVM vector operation; LLVM selects the machine's instructions (one AVX register, two of
NEON).

``minimum`` and ``maximum`` return the *second* operand where either is NaN. The node test relies on it:
``0 * inf``, from a ray in the plane of a face, then constrains nothing.
"""

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, models, register_model

WIDTH = 8
_F32 = ir.FloatType()
_VEC = ir.VectorType(_F32, WIDTH)
_I32 = ir.IntType(32)


class _Float32x8(types.Type):
    """The Numba type of a vector of eight float32."""

    def __init__(self) -> None:
        super().__init__(name="Float32x8")


vec_type = _Float32x8()


@register_model(_Float32x8)
class _Float32x8Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VEC)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, position: Any) -> Any:
    """Return a vector's address at a flat position of an array.

    The array is C-contiguous, of 4-byte items.
    """
    data = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(
        builder.gep(builder.bitcast(data, _F32.as_pointer()), [position]), _VEC.as_pointer()
    )


@intrinsic
def load(_typing: Any, array: Any, position: Any) -> Any:
    """Return eight floats from a flat position of an array of 4-byte items."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_pointer(context, builder, sig.args[0], *args), align=4)

    return vec_type(array, types.intp), codegen


@intrinsic
def store(_typing: Any, array: Any, position: Any, value: Any) -> Any:
    """Store eight floats at a flat position of an array of 4-byte items."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _pointer(context, builder, sig.args[0], args[0], args[1]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.intp, vec_type), codegen


@intrinsic
def splat(_typing: Any, value: Any) -> Any:
    """Return a vector of one repeated float32."""

    def codegen(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        one = builder.insert_element(ir.Constant(_VEC, ir.Undefined), args[0], _I32(0))
        return builder.shuffle_vector(
            one, ir.Constant(_VEC, ir.Undefined), ir.Constant(ir.VectorType(_I32, WIDTH), [0] * WIDTH)
        )

    return vec_type(types.float32), codegen


def _binary(emit: Callable[[Any, Any, Any], Any], doc: str) -> Any:
    """Return an intrinsic of two vectors that emits an LLVM instruction."""

    def typer(_typing: Any, _a: Any, _b: Any) -> Any:
        def codegen(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
            return emit(builder, args[0], args[1])

        return vec_type(vec_type, vec_type), codegen

    typer.__doc__ = doc
    return intrinsic(typer)


sub = _binary(lambda b, x, y: b.fsub(x, y), "Return x - y.")
mul = _binary(lambda b, x, y: b.fmul(x, y), "Return x * y.")
minimum = _binary(
    lambda b, x, y: b.select(b.fcmp_ordered("<", x, y), x, y), "Return the lesser lanes; y if one is NaN."
)
maximum = _binary(
    lambda b, x, y: b.select(b.fcmp_ordered(">", x, y), x, y), "Return the greater lanes; y if one is NaN."
)


@intrinsic
def mask_le(_typing: Any, _a: Any, _b: Any) -> Any:
    """Return an integer whose bit k is set where ``a[k] <= b[k]``."""

    def codegen(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        bits = builder.bitcast(builder.fcmp_ordered("<=", args[0], args[1]), ir.IntType(WIDTH))
        return builder.zext(bits, ir.IntType(64))

    return types.int64(vec_type, vec_type), codegen


@intrinsic
def lowest_bit(_typing: Any, _mask: Any) -> Any:
    """Return the number of the lowest set bit.

    The mask must not be 0.
    """

    def codegen(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return builder.cttz(args[0], cgutils.true_bit)

    return types.int64(types.int64), codegen
