"""A small language for vector code: Python that writes LLVM vector operations, once for every machine.

A function under `vector_code` runs when Numba compiles its caller, and each operation on `Lanes`
emits one LLVM instruction; LLVM picks the machine's own (one AVX-512 register, two of AVX, four of
NEON). For Numba the whole of it is a single call, which compiles in a fraction of the time of as
much jitted Python.

Lesser and greater (`lesser`, `greater`) return the *second* value where either is NaN. The node
tests count on it: ``0 * inf``, a ray inside a slab's very face, then constrains nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from raybox.kernels.held import Held, load_data, load_field, load_size

I1, I8, I16, I32, I64 = (ir.IntType(bits) for bits in (1, 8, 16, 32, 64))
F32, F64 = ir.FloatType(), ir.DoubleType()
BYTES = {I32: 4, I64: 8, F32: 4, F64: 8}
_ARITHMETIC = {True: ("fadd", "fsub", "fmul"), False: ("add", "sub", "mul")}


class Lanes:
    """A vector in the making: arithmetic and comparisons lane by lane, with vectors or plain numbers."""

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
        """Compare lane by lane (``==`` stays Python's own)."""
        return self._compare("==", other)

    def choose(self, yes: Any, no: Any) -> Lanes:
        """Return `yes` in the lanes that are true here, else `no`; one of them is a vector."""
        like = yes if isinstance(yes, Lanes) else no
        return Lanes(self.b, self.b.select(self.value, like._of(yes), like._of(no)))

    def to(self, item: Any) -> Lanes:
        """Convert each lane to another item type."""
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
        """Read the same bits as items of another type of equal size."""
        return Lanes(self.b, self.b.bitcast(self.value, ir.VectorType(item, self.count)))

    def magnitude(self) -> Lanes:
        """Return the absolute value of float lanes."""
        whole = I32 if self.item == F32 else I64
        mask = (1 << (31 if self.item == F32 else 63)) - 1
        return (self.bits(whole) & mask).bits(self.item)

    def least(self) -> Lanes:
        """Return the least lane, alone; none may be NaN."""
        return self._folded(lesser)

    def greatest(self) -> Lanes:
        """Return the greatest lane, alone; none may be NaN."""
        return self._folded(greater)

    def _folded(self, better: Callable[[Lanes, Lanes], Lanes]) -> Lanes:
        left = self
        while left.count > 1:
            half = left.count // 2
            low, high = (left.shuffled(left, list(range(k, k + half))) for k in (0, half))
            left = better(low, high)
        return left

    def lane(self, k: int) -> Any:
        """Return one lane as a plain LLVM value."""
        return self.b.extract_element(self.value, I32(k))

    def mask(self) -> Any:
        """Return true lanes as the bits of a 64-bit number."""
        return self.b.zext(self.b.bitcast(self.value, ir.IntType(self.count)), I64)

    def any(self) -> Any:
        """Tell whether any lane is true, as a plain value."""
        return self.b.icmp_signed("!=", self.mask(), I64(0))

    def shuffled(self, other: Lanes, picks: list[int]) -> Lanes:
        """Pick lanes from this vector and another, numbered on past the end of this one."""
        return Lanes(self.b, self.b.shuffle_vector(self.value, other.value, _numbers(picks)))


def _numbers(picks: list[int]) -> Any:
    return ir.Constant(ir.VectorType(I32, len(picks)), picks)


def constant(builder: Any, item: Any, count: int, value: float) -> Lanes:
    """Return the same number in every lane."""
    return Lanes(builder, ir.Constant(ir.VectorType(item, count), [value] * count))


def fused(x: Lanes, y: Lanes, z: Lanes) -> Lanes:
    """Return x y + z rounded once."""
    kind = x.value.type
    function = cgutils.get_or_insert_function(
        x.b.module, ir.FunctionType(kind, [kind] * 3), f"llvm.fma.v{x.count}{_short(x.item)}"
    )
    return Lanes(x.b, x.b.call(function, [x.value, y.value, z.value]))


def lesser(x: Lanes, y: Lanes) -> Lanes:
    """Return the lesser lanes; where one is NaN, y's."""
    return (x < y).choose(x, y)


def greater(x: Lanes, y: Lanes) -> Lanes:
    """Return the greater lanes; where one is NaN, y's."""
    return (x > y).choose(x, y)


class Memory:
    """An array's memory, addressed by item."""

    def __init__(self, builder: Any, item: Any, data: Any, size: Any = None) -> None:
        self.b = builder
        self.item = item
        self.data = builder.bitcast(data, item.as_pointer())
        self._size = size

    @property
    def size(self) -> Any:
        """How many items there are."""
        return self._size() if callable(self._size) else self._size

    def as_items(self, item: Any) -> Memory:
        """See the same memory as items of another type of equal size."""
        return Memory(self.b, item, self.data, self._size)

    def at(self, place: Any) -> Any:
        """Return the address of an item."""
        return self.b.gep(self.data, [_i64(self.b, place)])

    def get(self, place: Any) -> Any:
        """Load one item."""
        return self.b.load(self.at(place))

    def put(self, value: Any, place: Any) -> None:
        """Store one item."""
        self.b.store(value, self.at(place))

    def load(self, place: Any, count: int) -> Lanes:
        """Load neighbouring items."""
        pointer = self.b.bitcast(self.at(place), ir.VectorType(self.item, count).as_pointer())
        return Lanes(self.b, self.b.load(pointer, align=BYTES[self.item]))

    def store(self, value: Lanes, place: Any) -> None:
        """Store neighbouring items."""
        pointer = self.b.bitcast(self.at(place), value.value.type.as_pointer())
        self.b.store(value.value, pointer, align=BYTES[self.item])

    def splat(self, place: Any, count: int) -> Lanes:
        """Load one item into every lane."""
        return splat(self.b, self.get(place), count)

    def gather(self, places: list[Any]) -> Lanes:
        """Load items from anywhere: one load a lane."""
        value: Any = ir.Constant(ir.VectorType(self.item, len(places)), ir.Undefined)
        for k, place in enumerate(places):
            value = self.b.insert_element(value, self.get(place), I32(k))
        return Lanes(self.b, value)

    def squeeze(self, value: Lanes, mask: Lanes, place: Any) -> None:
        """Store the lanes that are true in the mask, one after the other."""
        name = f"llvm.experimental.vector.compress.v{value.count}{_short(value.item)}"
        kind = ir.FunctionType(value.value.type, [value.value.type, mask.value.type, value.value.type])
        function = cgutils.get_or_insert_function(self.b.module, kind, name)
        none = ir.Constant(value.value.type, ir.Undefined)
        self.store(Lanes(self.b, self.b.call(function, [value.value, mask.value, none])), place)

    def scatter(self, value: Lanes, mask: Lanes, places: Lanes) -> None:
        """Store the lanes that are true in the mask, each in its own place (64-bit)."""
        pointers = ir.VectorType(self.data.type, value.count)
        to = splat(self.b, self.b.ptrtoint(self.data, I64), value.count) + places * BYTES[self.item]
        name = f"llvm.masked.scatter.v{value.count}{_short(value.item)}.v{value.count}p0"
        kind = ir.FunctionType(ir.VoidType(), [value.value.type, pointers, I32, mask.value.type])
        function = cgutils.get_or_insert_function(self.b.module, kind, name)
        given = [value.value, self.b.inttoptr(to.value, pointers), I32(BYTES[self.item]), mask.value]
        self.b.call(function, given)

    def prefetch(self, place: Any, writing: bool = False) -> None:
        """Ask for the cache line of an item, soon to be read, or written."""
        data = self.b.bitcast(self.at(place), I8.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [data.type, I32, I32, I32])
        function = cgutils.get_or_insert_function(self.b.module, kind, "llvm.prefetch.p0")
        self.b.call(function, [data, I32(int(writing)), I32(3), I32(1)])

    def put_past(self, value: Any, place: Any) -> None:
        """Store one item past the caches.

        Other threads see it once this one has let go of a lock, which Python does between any two kernels.
        """
        stored = self.b.store(value, self.at(place))
        stored.set_metadata("nontemporal", self.b.module.add_metadata([I32(1)]))

    def prefetch_row(self, place: Any) -> None:
        """Ask for a row of three, which may lie in two cache lines."""
        for end_of_row in (0, 2):
            self.prefetch(self.b.add(place, I64(end_of_row)))


def _short(item: Any) -> str:
    return {F32: "f32", F64: "f64", I32: "i32", I64: "i64"}[item]


def _i64(builder: Any, place: Any) -> Any:
    if isinstance(place, int):
        return I64(place)
    return builder.sext(place, I64) if place.type != I64 else place


def splat(builder: Any, value: Any, count: int) -> Lanes:
    """Repeat one plain LLVM value."""
    kind = ir.VectorType(value.type, count)
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, I32(0))
    none = ir.Constant(kind, ir.Undefined)
    return Lanes(builder, builder.shuffle_vector(one, none, _numbers([0] * count)))


def steps(builder: Any, start: Any, count: int) -> Lanes:
    """Return start, start + 1, ... as 64-bit lanes."""
    iota = ir.Constant(ir.VectorType(I64, count), list(range(count)))
    return splat(builder, start, count) + Lanes(builder, iota)


def transposed(rows: list[Lanes]) -> list[Lanes]:
    """Turn n vectors of n lanes, 16 of 4 bytes or 8 of 8 bytes, into their columns, in n log2 n shuffles."""
    count = len(rows)
    block = count // 4  # lanes in 16 bytes: shuffles within such a block are the cheapest
    groups, step = [[row] for row in rows], 1
    while step < block:
        low = [q + k for q in range(0, count, block) for k in _interleaved(step, count)]
        groups = [
            [half for r, s in zip(one, other, strict=True) for half in _halves(r, s, low, step)]
            for one, other in zip(groups[::2], groups[1::2], strict=True)
        ]
        step *= 2
    even = [k + n for n in (0, count) for q in (0, 2 * block) for k in range(q, q + block)]
    odd = [k + block for k in even]
    columns: list[Any] = [None] * count
    for column, (a, b, c, d) in enumerate(zip(*groups, strict=True)):
        for first, picks in enumerate((even, odd)):
            one, other = a.shuffled(b, picks), c.shuffled(d, picks)
            columns[block * first + column] = one.shuffled(other, even)
            columns[block * (first + 2) + column] = one.shuffled(other, odd)
    return columns


def _interleaved(step: int, count: int) -> list[int]:
    """Return the picks, within a block, of two vectors' first lanes in turns of `step`."""
    return (
        [0, count, 1, count + 1] if (count, step) == (16, 1) else [*range(step), *range(count, count + step)]
    )


def _halves(one: Lanes, other: Lanes, low: list[int], step: int) -> list[Lanes]:
    """Interleave the lower and the upper halves of each block."""
    high = [k + (2 if one.count == 16 else 1) for k in low]
    return [one.shuffled(other, low), one.shuffled(other, high)]


@contextmanager
def loop(builder: Any, stop: Any, step: int = 1) -> Any:
    """Emit a loop; yields its counter, from 0 while less than stop."""
    count = builder.sdiv(builder.add(stop, I64(step - 1)), I64(step))
    with cgutils.for_range(builder, count, intp=I64) as each:
        yield builder.mul(each.index, I64(step))


@contextmanager
def while_any(builder: Any, left: Register) -> Any:
    """Emit a loop that goes on while any bit is set in a register's number or lanes."""
    head, body, done = (builder.append_basic_block(name) for name in ("while", "any", "none"))
    builder.branch(head)
    builder.position_at_end(head)
    some = left.value
    if isinstance(some.type, ir.VectorType):
        some = (left.lanes > 0).mask()
    builder.cbranch(builder.icmp_signed("!=", some, I64(0)), body, done)
    builder.position_at_end(body)
    yield
    builder.branch(head)
    builder.position_at_end(done)


@contextmanager
def bits(builder: Any, mask: Any) -> Any:
    """Emit a loop over the bits that are set in a mask; yields their numbers, lowest first."""
    left = Register(builder, mask)
    with while_any(builder, left):
        yield builder.cttz(left.value, I1(1))
        left.value = builder.and_(left.value, builder.sub(left.value, I64(1)))


class Register:
    """A value that loops change."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.b = builder
        self.place = cgutils.alloca_once_value(builder, value)

    @property
    def value(self) -> Any:
        """The value by now."""
        return self.b.load(self.place)

    @value.setter
    def value(self, value: Any) -> None:
        self.b.store(value, self.place)

    @property
    def lanes(self) -> Lanes:
        """The value by now, a vector."""
        return Lanes(self.b, self.value)


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
