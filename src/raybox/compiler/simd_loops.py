"""Loops in vector code (`raybox.compiler.simd`), and variables that they change."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils

from raybox.compiler.simd import I1, I64, Lanes


@contextmanager
def loop(builder: Any, stop: Any, step: int = 1) -> Any:
    """Emit a loop; yield its counter, from 0 while less than stop."""
    count = builder.sdiv(builder.add(stop, I64(step - 1)), I64(step))
    with cgutils.for_range(builder, count, intp=I64) as each:
        yield builder.mul(each.index, I64(step))


@contextmanager
def while_any(builder: Any, left: Register) -> Any:
    """Emit a loop that runs while any bit of a register is set."""
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
