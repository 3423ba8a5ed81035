"""SIMD vectors: Python operators that emit LLVM vector instructions, for every machine.

Each operation on `Lanes` emits one LLVM instruction while Numba compiles a function of
`raybox.compiler.intrinsics`; LLVM selects the machine's registers (one of AVX-512, two of AVX, four of NEON).

`lesser` and `greater` return the *second* value where either is NaN. The node tests rely on it: ``0 * inf``,
from a ray in the plane of a face, then constrains nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from raybox.compiler.llvm_ir import cgutils, ir
from raybox.compiler.target import has

Builder: TypeAlias = ir.IRBuilder
Scalar: TypeAlias = ir.Value  # a number in vector code
I1, I8, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
BYTES = {I32: 4, I64: 8, F32: 4, F64: 8}
_ARITHMETIC = ("add", "sub", "mul", "div", "neg")  # of floats, with "f" before
_Operator: TypeAlias = "Callable[[Lanes, Any], Lanes]"


def _operator(name: str) -> _Operator:
    """Return a method that emits an instruction of LLVM, by the builder's name of it."""

    def emit(self: Lanes, other: Any) -> Lanes:
        return Lanes(self.b, getattr(self.b, self._instruction(name))(self.value, self._of(other)))

    return emit


def _comparison(sign: str) -> _Operator:
    """Return a method that compares lanes; where one is NaN, they are not."""

    def compare(self: Lanes, other: Any) -> Lanes:
        emit = self.b.fcmp_ordered if self.is_float else self.b.icmp_signed
        return Lanes(self.b, emit(sign, self.value, self._of(other)))

    return compare


class Lanes:
    """An LLVM vector: arithmetic and comparisons by lane.

    Operands are vectors, or Python numbers: one, or a list with one for each lane.
    """

    def __init__(self, builder: Any, value: Any) -> None:
        self.b = builder
        self.value = value
        self.item = value.type.element
        self.count = value.type.count
        self.is_float = self.item in (F32, F64)

    def _of(self, other: Any) -> Any:
        if isinstance(other, Lanes):
            return other.value
        numbers = other if isinstance(other, list) else [other] * self.count
        return ir.Constant(self.value.type, numbers)

    def _instruction(self, name: str) -> str:
        return f"f{name}" if self.is_float and name in _ARITHMETIC else name

    __add__, __sub__, __mul__ = _operator("add"), _operator("sub"), _operator("mul")
    __truediv__, __lshift__, __rshift__ = _operator("div"), _operator("shl"), _operator("lshr")
    __and__, __or__, __xor__ = _operator("and_"), _operator("or_"), _operator("xor")
    __lt__, __le__ = _comparison("<"), _comparison("<=")
    __gt__, __ge__ = _comparison(">"), _comparison(">=")
    equals = _comparison("==")  # not `==`, which compares Python objects

    def __neg__(self) -> Lanes:
        return Lanes(self.b, getattr(self.b, self._instruction("neg"))(self.value))

    def __invert__(self) -> Lanes:
        return Lanes(self.b, self.b.not_(self.value))

    def choose(self, yes: Any, no: Any) -> Lanes:
        """Return `yes` in true lanes of this mask, else `no`.

        One must be a vector.
        """
        like = yes if isinstance(yes, Lanes) else no
        return Lanes(self.b, self.b.select(self.value, like._of(yes), like._of(no)))

    def to(self, item: Any) -> Lanes:
        """Return the lanes converted to another item type."""
        kind = ir.VectorType(item, self.count)
        name = {
            (F64, F32): "fptrunc",
            (F32, F64): "fpext",
            (F64, I32): "fptosi",
            (F32, I32): "fptosi",
            (I32, F32): "sitofp",
            (I1, I32): "zext",
            (I1, I64): "zext",
            (I64, I32): "trunc",
            (I32, I64): "sext",
        }[self.item, item]
        return Lanes(self.b, getattr(self.b, name)(self.value, kind))

    def bits(self, item: Any) -> Lanes:
        """Return the same bits as items of another type of equal size."""
        return Lanes(self.b, self.b.bitcast(self.value, ir.VectorType(item, self.count)))

    def magnitude(self) -> Lanes:
        """Return the absolute value of float lanes."""
        whole = I32 if self.item == F32 else I64
        mask = (1 << (31 if self.item == F32 else 63)) - 1
        return (self.bits(whole) & mask).bits(self.item)

    def greatest(self) -> Lanes:
        """Return the greatest lane, none NaN, as a vector of one."""
        left = self
        while left.count > 1:
            left = greater(*left.halves())
        return left

    def lane(self, k: int) -> Any:
        """Return one lane as a scalar LLVM value."""
        return self.b.extract_element(self.value, I32(k))

    def with_lane(self, k: int, value: Any) -> Lanes:
        """Return the vector with one lane replaced by a scalar LLVM value."""
        return Lanes(self.b, self.b.insert_element(self.value, value, I32(k)))

    def mask(self) -> Any:
        """Return a mask as the bits of a 64-bit integer."""
        if self.count <= 8 or has("avx512f"):
            return self.b.zext(self.b.bitcast(self.value, ir.IntType(self.count)), I64)
        # Of all lanes at once, LLVM would pack them to bytes first.
        low, high = (half.mask() for half in self.halves())
        return self.b.or_(low, self.b.shl(high, I64(self.count // 2)))

    def any(self) -> Any:
        """Return whether any lane of a mask is true, as a scalar."""
        return self.b.icmp_signed("!=", self.mask(), I64(0))

    def halves(self) -> tuple[Lanes, Lanes]:
        """Return the first and the second half of the lanes."""
        half = self.count // 2
        low, high = (self.permuted(range(k, k + half)) for k in (0, half))
        return low, high

    def eights(self) -> list[Lanes]:
        """Return the lanes as vectors of eight."""
        return [self.permuted(range(k, k + 8)) for k in range(0, self.count, 8)]

    def shuffled(self, other: Lanes, picks: Sequence[int]) -> Lanes:
        """Return lanes of this vector and `other`, whose numbers follow this one's."""
        return Lanes(self.b, self.b.shuffle_vector(self.value, other.value, _numbers(picks)))

    def permuted(self, picks: Sequence[int]) -> Lanes:
        """Return lanes of this vector by their numbers, which may repeat."""
        return self.shuffled(self, picks)


def _numbers(picks: Sequence[int]) -> Any:
    return ir.Constant(ir.VectorType(I32, len(picks)), list(picks))


def constant(builder: Any, item: Any, count: int, value: float) -> Lanes:
    """Return the same number in every lane."""
    return Lanes(builder, ir.Constant(ir.VectorType(item, count), [value] * count))


def multiply_add(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    """Return x * y + z: rounded once if the target has("fma"), else the product too.

    LLVM would call the C library for each lane of a fused operation that the target does not have.
    """
    return _call("fma", x, y, z) if has("fma") else x * y + z


def square_root(x: Lanes) -> Lanes:
    """Return the square root, rounded once; NaN below 0."""
    return _call("sqrt", x)


def truncated(x: Lanes) -> Lanes:
    """Return floats without their fractions."""
    return _call("trunc", x)


def _call(name: str, *operands: Lanes) -> Lanes:
    """Return the result of an LLVM intrinsic of vectors of one type."""
    x = operands[0]
    kind = x.value.type
    function = cgutils.get_or_insert_function(
        x.b.module, ir.FunctionType(kind, [kind] * len(operands)), f"llvm.{name}.v{x.count}{short(x.item)}"
    )
    return Lanes(x.b, x.b.call(function, [operand.value for operand in operands]))


def lesser(x: Lanes, y: Any) -> Lanes:
    """Return the lesser lanes; where one is NaN, y's."""
    return (x < y).choose(x, y)


def greater(x: Lanes, y: Any) -> Lanes:
    """Return the greater lanes; where one is NaN, y's."""
    return (x > y).choose(x, y)


def short(item: Any) -> str:
    """Return LLVM's name of an item's type."""
    return {F32: "f32", F64: "f64", I32: "i32", I64: "i64"}[item]


def splat(builder: Any, value: Any, count: int) -> Lanes:
    """Return a scalar LLVM value in every lane."""
    kind = ir.VectorType(value.type, count)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
    none = ir.Constant(kind, ir.Undefined)
    return Lanes(builder, builder.shuffle_vector(one, none, _numbers([0] * count)))


def mask_of(builder: Any, bits: Any, count: int) -> Lanes:
    """Return the mask whose lanes are the bits of an integer: the inverse of `Lanes.mask`."""
    whole = builder.trunc(bits, ir.IntType(count))
    return Lanes(builder, builder.bitcast(whole, ir.VectorType(I1, count)))


def lined_up(builder: Any, values: list[Any]) -> Lanes:
    """Return a vector of scalar LLVM values."""
    vector = Lanes(builder, ir.Constant(ir.VectorType(values[0].type, len(values)), ir.Undefined))
    for k, value in enumerate(values):
        vector = vector.with_lane(k, value)
    return vector


def joined(parts: list[Lanes]) -> Lanes:
    """Return the concatenation of vectors, a power of two of them."""
    while len(parts) > 1:
        every = list(range(2 * parts[0].count))
        parts = [one.shuffled(other, every) for one, other in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def looked_up(table: Lanes, numbers: Lanes) -> Lanes:
    """Return the items of a table of eight float32 by their numbers, int32 lanes from 0 to 7."""
    b, count = numbers.b, numbers.count
    if not has("avx2"):
        return lined_up(b, [b.extract_element(table.value, numbers.lane(k)) for k in range(count)])
    if count > 8 and not has("avx512f"):
        return joined([looked_up(table, eight) for eight in numbers.eights()])
    wide = table.permuted(list(range(8)) * (count // 8))
    kind = ir.FunctionType(wide.value.type, [wide.value.type, numbers.value.type])
    name = {8: "avx2.permps", 16: "avx512.permvar.sf.512"}[count]
    function = cgutils.get_or_insert_function(b.module, kind, f"llvm.x86.{name}")
    return Lanes(b, b.call(function, [wide.value, numbers.value]))


def steps(builder: Any, start: Any, count: int) -> Lanes:
    """Return start, start + 1, ... as 64-bit lanes."""
    return splat(builder, start, count) + list(range(count))
