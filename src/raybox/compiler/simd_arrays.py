"""Arrays in vector code (`raybox.compiler.simd`): loads and stores of several lanes, and loops."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from raybox.compiler.llvm_ir import cgutils, ir
from raybox.compiler.simd import BYTES, I1, I8, I32, I64, Lanes, lined_up, short, splat
from raybox.compiler.target import has

_EIGHT, _BITS = 8, 4  # lanes of an AVX2 vector, and bits of a lane's number in the table
_TABLE = "raybox.squeezed"


class Memory:
    """An array's memory, addressed by item."""

    def __init__(self, builder: Any, item: Any, data: Any, size: Any = None) -> None:
        self.b = builder
        self.item = item
        self.data = builder.bitcast(data, item.as_pointer())
        self._size = size

    @property
    def size(self) -> Any:
        """Number of items."""
        return self._size() if callable(self._size) else self._size

    def as_items(self, item: Any) -> Memory:
        """Return the same memory as items of another type of equal size."""
        return Memory(self.b, item, self.data, self._size)

    def at(self, place: Any) -> Any:
        """Return the address of an item."""
        return self.b.gep(self.data, [_i64(self.b, place)])

    def get(self, place: Any) -> Any:
        """Return one item."""
        return self.b.load(self.at(place))

    def put(self, value: Any, place: Any) -> None:
        """Store one item."""
        self.b.store(value, self.at(place))

    def load(self, place: Any, count: int) -> Lanes:
        """Return consecutive items."""
        pointer = self.b.bitcast(self.at(place), ir.VectorType(self.item, count).as_pointer())
        return Lanes(self.b, self.b.load(pointer, align=BYTES[self.item]))

    def load_some(self, place: Any, mask: Lanes) -> Lanes:
        """Return consecutive items in the lanes of a mask, 0 in others, whose memory is not read."""
        kind, count = ir.VectorType(self.item, mask.count), mask.count
        pointer = self.b.bitcast(self.at(place), kind.as_pointer())
        function = cgutils.get_or_insert_function(
            self.b.module,
            ir.FunctionType(kind, [pointer.type, I32, mask.value.type, kind]),
            f"llvm.masked.load.v{count}{short(self.item)}.p0",
        )
        none = ir.Constant(kind, None)
        return Lanes(self.b, self.b.call(function, [pointer, I32(BYTES[self.item]), mask.value, none]))

    def store(self, value: Lanes, place: Any) -> None:
        """Store consecutive items."""
        pointer = self.b.bitcast(self.at(place), value.value.type.as_pointer())
        self.b.store(value.value, pointer, align=BYTES[self.item])

    def splat(self, place: Any, count: int) -> Lanes:
        """Return one item in every lane."""
        return splat(self.b, self.get(place), count)

    def gather(self, places: list[Any]) -> Lanes:
        """Return items at any places, by one load a lane."""
        return lined_up(self.b, [self.get(place) for place in places])

    def pick(self, places: Lanes, mask: Lanes | None = None) -> Lanes:
        """Return items at any places, a 64-bit vector, by one instruction.

        mask: whose items are read; others are 0.
        """
        count = places.count
        name = f"llvm.masked.gather.v{count}{short(self.item)}.v{count}p0"
        kind, pointers = ir.VectorType(self.item, count), self._addresses(places)
        all_lanes = ir.VectorType(ir.IntType(1), count)
        function = cgutils.get_or_insert_function(
            self.b.module, ir.FunctionType(kind, [pointers.type, I32, all_lanes, kind]), name
        )
        chosen = ir.Constant(all_lanes, [1] * count) if mask is None else mask.value
        none = ir.Constant(kind, ir.Undefined if mask is None else None)
        return Lanes(self.b, self.b.call(function, [pointers, I32(BYTES[self.item]), chosen, none]))

    def _addresses(self, places: Lanes) -> Any:
        to = splat(self.b, self.b.ptrtoint(self.data, I64), places.count) + places * BYTES[self.item]
        return self.b.inttoptr(to.value, ir.VectorType(self.data.type, places.count))

    def squeeze(self, value: Lanes, mask: Lanes, place: Any) -> None:
        """Store the lanes chosen by a mask consecutively.

        Items behind them are overwritten.
        """
        halves = BYTES[value.item] // 4
        if value.count * halves in (_EIGHT, 2 * _EIGHT) and has("avx2") and not has("avx512f"):
            lanes = [lane for lane in range(value.count) for _ in range(halves)]
            words = self.b.bitcast(value.value, ir.VectorType(I32, len(lanes)))
            begin = self.b.mul(_i64(self.b, place), I64(halves))
            self._squeeze_eights(Lanes(self.b, words), mask.permuted(lanes), begin)
            return
        name = f"llvm.experimental.vector.compress.v{value.count}{short(value.item)}"
        kind = ir.FunctionType(value.value.type, [value.value.type, mask.value.type, value.value.type])
        function = cgutils.get_or_insert_function(self.b.module, kind, name)
        none = ir.Constant(value.value.type, ir.Undefined)
        self.store(Lanes(self.b, self.b.call(function, [value.value, mask.value, none])), place)

    def _squeeze_eights(self, value: Lanes, mask: Lanes, place: Any) -> None:
        """Store chosen 32-bit lanes, eight at a time, by an AVX2 permutation.

        LLVM would go lane by lane.

        Queries of incoherent rays take 0.6 to 0.8 of the time.
        """
        b, kind = self.b, ir.VectorType(I32, _EIGHT)
        permute = cgutils.get_or_insert_function(
            b.module, ir.FunctionType(kind, [kind, kind]), "llvm.x86.avx2.permd"
        )
        table = Memory(b, I32, _squeezed(b.module))
        shifts = ir.Constant(kind, [_BITS * k for k in range(_EIGHT)])
        for eight, chosen in zip(value.eights(), mask.eights(), strict=True):
            some = chosen.mask()
            picks = b.lshr(table.splat(some, _EIGHT).value, shifts)
            squeezed = b.call(permute, [eight.value, picks])
            self.as_items(I32).store(Lanes(b, squeezed), place)
            place = b.add(place, b.ctpop(some))

    def scatter(self, value: Lanes, mask: Lanes, places: Lanes) -> None:
        """Store the lanes chosen by a mask, each at its own 64-bit place."""
        pointers = self._addresses(places)
        name = f"llvm.masked.scatter.v{value.count}{short(value.item)}.v{value.count}p0"
        kind = ir.FunctionType(ir.VoidType(), [value.value.type, pointers.type, I32, mask.value.type])
        function = cgutils.get_or_insert_function(self.b.module, kind, name)
        self.b.call(function, [value.value, pointers, I32(BYTES[self.item]), mask.value])

    def prefetch(self, place: Any, writing: bool = False, far: bool = False) -> None:
        """Prefetch the cache line of an item, to read or write it soon; far: to the second cache."""
        data = self.b.bitcast(self.at(place), I8.as_pointer())
        kind = ir.FunctionType(ir.VoidType(), [data.type, I32, I32, I32])
        function = cgutils.get_or_insert_function(self.b.module, kind, "llvm.prefetch.p0")
        self.b.call(function, [data, I32(int(writing)), I32(2 if far else 3), I32(1)])

    def put_past(self, value: Any, place: Any) -> None:
        """Store one item past the caches.

        Other threads can read it after this thread releases a lock, as Python does between any two kernels.
        """
        self._past(self.b.store(value, self.at(place)))

    def store_past(self, value: Lanes, place: Any) -> None:
        """Store consecutive items past the caches, as `put_past`; their address is aligned."""
        pointer = self.b.bitcast(self.at(place), value.value.type.as_pointer())
        self._past(self.b.store(value.value, pointer, align=BYTES[self.item] * value.count))

    def _past(self, stored: Any) -> None:
        stored.set_metadata("nontemporal", self.b.module.add_metadata([I32(1)]))

    def prefetch_row(self, place: Any) -> None:
        """Prefetch a row of three items, which may lie in two cache lines."""
        for end_of_row in (0, 2):
            self.prefetch(self.b.add(place, I64(end_of_row)))


def on_stack(builder: Any, item: Any, size: int) -> Memory:
    """Return uninitialised memory on the stack, for this many items."""
    return Memory(builder, item, cgutils.alloca_once(builder, ir.ArrayType(item, size)))


def vector_at(builder: Any, vectors: Memory, number: Any) -> Any:
    """Return where a vector of three begins; an array of one vector has it at any number."""
    several = builder.icmp_signed(">", vectors.size, I64(3))
    return builder.select(several, builder.mul(number, I64(3)), I64(0))


def _squeezed(module: Any) -> Any:
    """Return a module's table of the true lanes of 8-bit masks.

    An entry has four bits for each true lane.
    """
    if _TABLE not in module.globals:
        lanes = [[k for k in range(_EIGHT) if mask >> k & 1] for mask in range(1 << _EIGHT)]
        numbers = [sum(lane << _BITS * k for k, lane in enumerate(some)) for some in lanes]
        table = ir.Constant(ir.ArrayType(I32, len(numbers)), numbers)
        cgutils.global_constant(module, _TABLE, table)
    return module.globals[_TABLE]


def _i64(builder: Any, place: Any) -> Any:
    if isinstance(place, int):
        return I64(place)
    return builder.sext(place, I64) if place.type != I64 else place


@contextmanager
def loop(builder: Any, stop: Any, step: int = 1) -> Any:
    """Emit a loop; yield its counter, from 0 while less than stop."""
    count = builder.sdiv(builder.add(stop, I64(step - 1)), I64(step))
    with cgutils.for_range(builder, count, intp=I64) as each:
        yield builder.mul(each.index, I64(step))


@contextmanager
def while_any(builder: Any, left: Register) -> Any:
    """Emit a loop that runs while any bit of a register is set."""

    def test() -> Any:
        some = left.value
        if isinstance(some.type, ir.VectorType):
            some = (left.lanes > 0).mask()
        return builder.icmp_signed("!=", some, I64(0))

    with while_true(builder, test):
        yield


@contextmanager
def while_true(builder: Any, test: Callable[[], Any]) -> Any:
    """Emit a loop that runs while what the test emits is true."""
    head, body, done = (builder.append_basic_block(name) for name in ("while", "true", "false"))
    builder.branch(head)
    builder.position_at_end(head)
    builder.cbranch(test(), body, done)
    builder.position_at_end(body)
    yield
    builder.branch(head)
    builder.position_at_end(done)


@contextmanager
def bits(builder: Any, mask: Any) -> Any:
    """Emit a loop over the set bits of a mask.

    Yield their numbers, lowest first.
    """
    left = Register(builder, mask)
    with while_any(builder, left):
        yield builder.cttz(left.value, I1(1))
        left.value = builder.and_(left.value, builder.sub(left.value, I64(1)))


class Register:
    """A mutable variable, which loops may change."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.b = builder
        self.place = cgutils.alloca_once_value(builder, value)

    @property
    def value(self) -> Any:
        """Current value."""
        return self.b.load(self.place)

    @value.setter
    def value(self, value: Any) -> None:
        self.b.store(value, self.place)

    @property
    def lanes(self) -> Lanes:
        """Current value, as `Lanes`."""
        return Lanes(self.b, self.value)
