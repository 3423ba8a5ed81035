"""SIMD vectors: Python operators that emit LLVM vector instructions, for every machine.

Each operation on `Lanes` emits one LLVM instruction while Numba compiles a function of
`raybox.compiler.intrinsics`; LLVM selects the machine's registers (one of AVX-512, two of AVX, four of NEON).

`lesser` and `greater` return the *second* value where either is NaN. The node tests rely on it: ``0 * inf``,
from a ray in the plane of a face, then constrains nothing.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

from raybox.compiler.target import has

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
BYTES = {I32: 4, I64: 8, F32: 4, F64: 8}
_ARITHMETIC = {True: ("fadd", "fsub", "fmul"), False: ("add", "sub", "mul")}


class Lanes:
    """An LLVM vector: arithmetic and comparisons by lane, with vectors or Python numbers."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.b = builder
        self.value = value
        self.item = value.type.element
        self.count = value.type.count
        self.is_float = self.item in (F32, F64)

    def _of(self, other: Any) -> Any:
        if isinstance(other, Lanes):
            return other.value
        return ir.Constant(self.value.type, [other] * self.count)

    def _emit(self, name: str, *others: Any) -> Lanes:
        return Lanes(self.b, getattr(self.b, name)(self.value, *(self._of(o) for o in others)))

    def __add__(self, other: Any) -> Lanes:
        return self._emit(_ARITHMETIC[self.is_float][0], other)

    def __sub__(self, other: Any) -> Lanes:
        return self._emit(_ARITHMETIC[self.is_float][1], other)

    def __mul__(self, other: Any) -> Lanes:
        return self._emit(_ARITHMETIC[self.is_float][2], other)

    def __truediv__(self, other: Any) -> Lanes:
        return self._emit("fdiv", other)

    def __and__(self, other: Any) -> Lanes:
        return self._emit("and_", other)

    def __or__(self, other: Any) -> Lanes:
        return self._emit("or_", other)

    def __xor__(self, other: Any) -> Lanes:
        return self._emit("xor", other)

    def __lshift__(self, bits: int) -> Lanes:
        return self._emit("shl", bits)

    def __rshift__(self, bits: int) -> Lanes:
        return self._emit("lshr", bits)

    def __invert__(self) -> Lanes:
        return Lanes(self.b, self.b.not_(self.value))

    def _compare(self, sign: str, other: Any) -> Lanes:
        compare = self.b.fcmp_ordered if self.is_float else self.b.icmp_signed
        return Lanes(self.b, compare(sign, self.value, self._of(other)))

    def __lt__(self, other: Any) -> Lanes:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Lanes:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Lanes:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Lanes:
        return self._compare(">=", other)

    def equals(self, other: Any) -> Lanes:
        """Return which lanes are equal; ``==`` compares Python objects."""
        return self._compare("==", other)

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
        """Return the greatest lane, as a vector of one.

        No lane may be NaN.
        """
        left = self
        while left.count > 1:
            left = greater(*left.halves())
        return left

    def lane(self, k: int) -> Any:
        """Return one lane as a scalar LLVM value."""
        return self.b.extract_element(self.value, I32(k))

    def mask(self) -> Any:
        """Return a mask as the bits of a 64-bit integer."""
        if self.count <= 8 or has("avx512f"):
            return self.b.zext(self.b.bitcast(self.value, ir.IntType(self.count)), I64)
        low, high = (
            half.mask() for half in self.halves()
        )  # of all lanes at once, LLVM would pack them to bytes first
        return self.b.or_(low, self.b.shl(high, I64(self.count // 2)))

    def any(self) -> Any:
        """Return whether any lane of a mask is true, as a scalar."""
        return self.b.icmp_signed("!=", self.mask(), I64(0))

    def halves(self) -> tuple[Lanes, Lanes]:
        """Return the first and the second half of the lanes."""
        half = self.count // 2
        low, high = (self.shuffled(self, list(range(k, k + half))) for k in (0, half))
        return low, high

    def eights(self) -> list[Lanes]:
        """Return the lanes as vectors of eight."""
        return [self.shuffled(self, list(range(k, k + 8))) for k in range(0, self.count, 8)]

    def shuffled(self, other: Lanes, picks: list[int]) -> Lanes:
        """Return lanes of this vector and `other`, whose numbers follow this one's."""
        return Lanes(self.b, self.b.shuffle_vector(self.value, other.value, _numbers(picks)))


def _numbers(picks: list[int]) -> Any:
    return ir.Constant(ir.VectorType(I32, len(picks)), picks)


def constant(builder: Any, item: Any, count: int, value: float) -> Lanes:
    """Return the same number in every lane."""
    return Lanes(builder, ir.Constant(ir.VectorType(item, count), [value] * count))


def multiply_add(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    """Return x * y + z: rounded once if the target has("fma"), else the product too.

    LLVM would call the C library for each lane of a fused operation that the target does not have.
    """
    if not has("fma"):
        return x * y + z
    kind = x.value.type
    function = cgutils.get_or_insert_function(
        x.b.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.v{x.count}{short(x.item)}"
    )
    return Lanes(x.b, x.b.call(function, [x.value, y.value, z.value]))


def lesser(x: Lanes, y: Lanes) -> Lanes:
    """Return the lesser lanes; where one is NaN, y's."""
    return (x < y).choose(x, y)


def greater(x: Lanes, y: Lanes) -> Lanes:
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


def lined_up(builder: Any, values: list[Any]) -> Lanes:
    """Return a vector of scalar LLVM values."""
    vector: Any = ir.Constant(ir.VectorType(values[0].type, len(values)), ir.Undefined)
    for k, value in enumerate(values):
        vector = builder.insert_element(vector, value, I32(k))
    return Lanes(builder, vector)


def joined(parts: list[Lanes]) -> Lanes:
    """Return the concatenation of vectors, a power of two of them."""
    while len(parts) > 1:
        every = list(range(2 * parts[0].count))
        parts = [one.shuffled(other, every) for one, other in zip(parts[::2], parts[1::2], strict=True)]
    return parts[0]


def steps(builder: Any, start: Any, count: int) -> Lanes:
    """Return start, start + 1, ... as 64-bit lanes."""
    iota = ir.Constant(ir.VectorType(I64, count), list(range(count)))
    return splat(builder, start, count) + Lanes(builder, iota)


def transposed(rows: list[Lanes]) -> list[Lanes]:
    """Return the columns of n vectors of n lanes, in n log2 n shuffles.

    n is 8 or 16 for items of 4 bytes, 8 for items of 8 bytes.
    """
    count = rows[0].count
    block = 16 // BYTES[rows[0].item]  # lanes in 16 bytes: shuffles within such a block are the cheapest
    groups, step = [[row] for row in rows], 1
    while step < block:
        low = [q + k for q in range(0, count, block) for k in _interleaved(step, block, count)]
        high = [k + block // 2 for k in low]
        groups = [
            [r.shuffled(s, picks) for r, s in zip(one, other, strict=True) for picks in (low, high)]
            for one, other in zip(groups[::2], groups[1::2], strict=True)
        ]
        step *= 2
    even = [k + n for n in (0, count) for q in range(0, count, 2 * block) for k in range(q, q + block)]
    odd = [k + block for k in even]
    return [column for blocks in _columns(groups, even, odd) for column in blocks]


def eight_columns(rows: list[Lanes]) -> list[Lanes]:
    """Return the columns of 8 or 16 vectors of eight 4-byte lanes.

    This takes 24 or 32 shuffles.
    """
    if len(rows) == 2 * rows[0].count:  # pairs make 8 vectors of 16 lanes, for `transposed`
        rows = [joined([rows[k], rows[k + 4]]) for k in (*range(4), *range(8, 12))]
    return transposed(rows)


def _columns(groups: list[list[Lanes]], even: list[int], odd: list[int]) -> list[list[Lanes]]:
    """Return groups of columns, from 2 or 4 groups of vectors.

    The vectors hold blocks of 2 or 4 columns.
    """
    pairs = list(zip(groups[::2], groups[1::2], strict=True))
    halves = [
        [[r.shuffled(s, picks) for r, s in zip(one, other, strict=True)] for one, other in pairs]
        for picks in (even, odd)
    ]
    if len(pairs) == 1:
        return [half[0] for half in halves]
    (first, third), (second, fourth) = (_columns(half, even, odd) for half in halves)
    return [first, second, third, fourth]


def _interleaved(step: int, block: int, count: int) -> list[int]:
    """Return the picks that interleave two vectors' first lanes by `step`, within a block."""
    return [0, count, 1, count + 1] if step < block // 2 else [*range(step), *range(count, count + step)]
