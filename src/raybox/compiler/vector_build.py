"""LLVM vector code of the builders: operators on vectors, and intrinsics made of them.

Such an intrinsic takes almost no compile time; a Python function takes Numba a tenth of a second.
"""

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature
from typing import Any, NamedTuple

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

INF = float("inf")
F32, F64 = ir.FloatType(), ir.DoubleType()
I1, I32, I64 = (ir.IntType(bits) for bits in (1, 32, 64))
_BYTES = ir.IntType(8).as_pointer()
LOW, UP = [0, 1, 2, 3], [4, 5, 6, 7]


class _Row(types.Type):
    """The Numba type of a box row: eight float32."""

    def __init__(self) -> None:
        super().__init__(name="BoxRow")


class _Cell(types.Type):
    """The Numba type of a box's bins on three axes.

    Four int32, the last unused.
    """

    def __init__(self) -> None:
        super().__init__(name="BoxCell")


row_type, cell_type = _Row(), _Cell()
ROW8, CELL4 = ir.VectorType(F32, 8), ir.VectorType(I32, 4)
BITS8 = ir.VectorType(I32, 8)


@register_model(_Row)
class _RowModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, ROW8)


@register_model(_Cell)
class _CellModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, CELL4)


def vector_of(item: Any, count: int) -> Any:
    """Return the LLVM type of a vector."""
    return ir.VectorType(item, count)


def constant(kind: Any, value: Any) -> Any:
    """Return a constant of an LLVM type; of a vector: from a list."""
    return ir.Constant(kind, value)


class V:
    """An LLVM vector whose operators emit instructions."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.b, self.value = builder, value

    def _other(self, other: Any) -> Any:
        """Return an operand as an LLVM vector.

        A number is repeated in every lane.
        """
        if isinstance(other, V):
            return other.value
        return ir.Constant(self.value.type, [other] * self.value.type.count)

    def __add__(self, other: Any) -> "V":
        return V(self.b, self.b.fadd(self.value, self._other(other)))

    def __sub__(self, other: Any) -> "V":
        return V(self.b, self.b.fsub(self.value, self._other(other)))

    def __mul__(self, other: Any) -> "V":
        return V(self.b, self.b.fmul(self.value, self._other(other)))

    def __neg__(self) -> "V":
        return V(self.b, self.b.fneg(self.value))

    def __lt__(self, other: Any) -> "V":
        return V(self.b, self.b.fcmp_ordered("<", self.value, self._other(other)))

    def __gt__(self, other: Any) -> "V":
        return V(self.b, self.b.fcmp_ordered(">", self.value, self._other(other)))

    def then(self, yes: Any, no: Any) -> "V":
        """Return lanes of `yes` where this mask is true, else of `no`.

        One may be a number.
        """
        like = yes if isinstance(yes, V) else no
        return V(self.b, self.b.select(self.value, like._other(yes), like._other(no)))

    def max(self, other: Any) -> "V":
        """Return the greater lanes; where one is NaN, the other's."""
        return (self > other).then(self, other)

    def min(self, other: Any) -> "V":
        """Return the lesser lanes; where one is NaN, the other's."""
        return (self < other).then(self, other)

    def shuffle(self, lanes: Sequence[int], other: "V | None" = None) -> "V":
        """Return lanes of this vector, and of `other`, whose numbers follow."""
        second = other.value if other else ir.Constant(self.value.type, ir.Undefined)
        mask = ir.Constant(ir.VectorType(I32, len(lanes)), list(lanes))
        return V(self.b, self.b.shuffle_vector(self.value, second, mask))

    def bits(self, kind: Any) -> "V":
        """Return the same bits as another type."""
        return V(self.b, self.b.bitcast(self.value, kind))

    def any(self) -> Any:
        """Return whether any lane of a mask is true, as a scalar."""
        bits = self.b.bitcast(self.value, ir.IntType(self.value.type.count))
        return self.b.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    def lane(self, k: int) -> Any:
        """Return one lane's value."""
        return self.b.extract_element(self.value, I32(k))

    def with_lane(self, k: int, value: Any) -> "V":
        """Return the vector with one lane replaced."""
        return V(self.b, self.b.insert_element(self.value, value, I32(k)))


def corners(row: V) -> tuple[V, V]:
    """Return a row's negated lower corner and its upper corner.

    Their last lanes are 0.

    The integers of a row are denormal as float32, and arithmetic on those is slow.
    """
    zeros = V(row.b, ir.Constant(ROW8, [0.0] * 8))
    return row.shuffle([0, 1, 2, 8], zeros), row.shuffle([4, 5, 6, 8], zeros)


class Code(NamedTuple):
    """Context and builder of an intrinsic, and the Numba types of its arguments."""

    context: Any
    b: Any  # llvmlite's builder
    kinds: Any

    def v(self, value: Any) -> V:
        """Return an LLVM vector as `V`."""
        return V(self.b, value)

    def vector(self, kind: Any, values: Sequence[Any]) -> V:
        """Return a vector of scalar LLVM values."""
        made = self.v(ir.Constant(ir.VectorType(kind, len(values)), ir.Undefined))
        for k, value in enumerate(values):
            made = made.with_lane(k, value)
        return made

    def address(self, which: int, array: Any, position: Any, to: Any) -> Any:
        """Return the address of an array's item as a pointer to the type `to`.

        which: number of the array among the intrinsic's arguments. position: in items of `to`.
        """
        data = self.context.make_array(self.kinds[which])(self.context, self.b, array).data
        item = to.element if isinstance(to, ir.VectorType) else to
        place = self.b.gep(self.b.bitcast(data, item.as_pointer()), [position])
        return self.b.bitcast(place, to.as_pointer())

    def at(self, index: Any, stride: int, offset: int = 0) -> Any:
        """Return index * stride + offset."""
        return self.b.add(self.b.mul(index, I64(stride)), I64(offset))

    def load(self, which: int, array: Any, position: Any, kind: Any) -> Any:
        """Return a value or a vector of an array."""
        return self.b.load(self.address(which, array, position, kind), align=4)

    def prefetch(self, which: int, array: Any, position: Any, kind: Any) -> None:
        """Prefetch the cache line of an array's item, to read it soon."""
        function = self.b.module.declare_intrinsic(
            "llvm.prefetch", [_BYTES], ir.FunctionType(ir.VoidType(), [_BYTES, I32, I32, I32])
        )
        item = self.b.bitcast(self.address(which, array, position, kind), _BYTES)
        self.b.call(function, [item, I32(0), I32(3), I32(1)])  # to be read, into every cache, data

    def store(self, value: Any, which: int, array: Any, position: Any) -> None:
        """Store a value or a vector into an array."""
        self.b.store(value, self.address(which, array, position, value.type), align=4)


def op(result: Any, *params: Any) -> Callable[[Callable[..., Any]], Any]:
    """Return a decorator for functions (code, *values) -> value that emit an intrinsic's code.

    result, params: Numba types; None as a parameter accepts any type, for arrays.
    """

    def make(write: Callable[..., Any]) -> Any:
        def typed(_typing: Any, *args: Any) -> Any:
            kinds = (want or kind for want, kind in zip(params, args, strict=True))

            def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
                value = write(Code(context, builder, sig.args), *args)
                return context.get_dummy_value() if value is None else value

            return result(*kinds), codegen

        names = ["_typing", *(f"p{k}" for k in range(len(params)))]
        typed.__name__, typed.__doc__ = write.__name__, write.__doc__
        parameters = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        vars(typed)["__signature__"] = Signature(
            parameters
        )  # for Numba, which checks the number of arguments
        return intrinsic(typed)

    return make
