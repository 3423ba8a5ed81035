"""What this core can do at most of fused vector operations, and of slab tests: to hold others against.

The first is a loop of twelve independent chains of ``a = a * b + c`` on vectors of sixteen float32, nothing
else: as many as it takes to keep two units with a latency of four to five cycles busy. LLVM splits the
vectors where the machine has none so wide; what is counted is sixteen lanes at a time.

The second is a loop of nothing but slab tests: one ray against sixteen boxes, whose planes lie in the first
cache. Some cores have units of their own for minima and comparisons, so what they do of fused operations
does not tell what they could do of tests.
"""

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F32, I64, constant
from raybox.compiler.simd_loops import Register, loop
from raybox.traversal.node_test import clip
from raybox.traversal.slab_coefficients import coefficients_of

LANES = 16
CHAINS = 12
SETS = 8  # of sixteen boxes
_VECTOR = ir.VectorType(ir.FloatType(), LANES)


@intrinsic
def _chains(_typing: Any, _steps: Any, _seed: Any) -> Any:
    """Run the chains for some steps; return the sum of all lanes, so that nothing is left out."""

    def codegen(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        steps, seed = args
        splat = ir.Constant(_VECTOR, ir.Undefined)
        for lane in range(LANES):
            splat = builder.insert_element(splat, seed, ir.IntType(32)(lane))
        starts = [splat]  # all unlike, or LLVM would keep but one chain
        for _ in range(1, CHAINS):
            starts.append(builder.fadd(starts[-1], splat))
        fused = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(_VECTOR, [_VECTOR] * 3), f"llvm.fmuladd.v{LANES}f32"
        )
        before = builder.basic_block
        loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        left = builder.phi(steps.type)
        left.add_incoming(steps, before)
        chains = [builder.phi(_VECTOR) for _ in range(CHAINS)]
        moved = [builder.call(fused, [chain, splat, splat]) for chain in chains]
        for chain, start, after_step in zip(chains, starts, moved, strict=True):
            chain.add_incoming(start, before)
            chain.add_incoming(after_step, loop)
        less = builder.sub(left, steps.type(1))
        left.add_incoming(less, loop)
        builder.cbranch(builder.icmp_signed(">", less, steps.type(0)), loop, after)
        builder.position_at_end(after)
        total = moved[0]
        for chain in moved[1:]:
            total = builder.fadd(total, chain)
        result = builder.extract_element(total, ir.IntType(32)(0))
        for lane in range(1, LANES):
            result = builder.fadd(result, builder.extract_element(total, ir.IntType(32)(lane)))
        return result

    return types.float32(types.int64, types.float32), codegen


def make() -> Callable[[int], Any]:
    """Compile the probe: a call with so many steps."""

    @numba.njit(nogil=True)
    def run(steps: Any, seed: Any) -> Any:
        return _chains(steps, seed)

    run(1, np.float32(0.5))
    return lambda steps: run(steps, np.float32(0.5))


def fused_per_second(run: Callable[[int], Any], steps: int = 4_000_000) -> float:
    """Return how many fused operations on sixteen lanes were done in a second of one thread."""
    started = time.perf_counter()
    run(steps)
    return steps * CHAINS / (time.perf_counter() - started)


@vector_code(types.int64)
def _slabs(b: Any, planes: Any, ray: Any, steps: Any) -> Any:
    """Test a ray against one set of boxes after the other; return how many it meets."""
    lines = coefficients_of([ray.splat(k, LANES) for k in range(12)])
    met = Register(b, I64(0))
    with loop(b, steps) as step:
        row = b.mul(b.and_(step, I64(SETS - 1)), I64(6 * LANES))
        sides = [planes.load(b.add(row, I64(k * LANES)), LANES) for k in range(6)]
        stop = constant(b, F32, LANES, np.inf)
        near, far = clip(lambda axis, of=sides: of[2 * axis : 2 * axis + 2], lines, stop)
        met.value = b.add(met.value, b.ctpop((near <= far).mask()))
    return met.value


def make_slabs() -> Callable[[int], Any]:
    """Compile the loop of slab tests: a call with so many steps, of sixteen tests each."""

    @numba.njit(nogil=True)
    def run(planes: Any, ray: Any, steps: Any) -> Any:
        return _slabs(planes, ray, steps)

    # near and far planes of boxes that lie along the ray, and every other one far from it
    planes = np.zeros((SETS, 3, 2, LANES), np.float32)
    planes[:, :, 0] = np.arange(LANES)
    planes[:, :, 1] = planes[:, :, 0] + 0.5
    planes[:, 0, :, 1::2] += 100.0
    ray = np.repeat(np.array([0.0, 1.0], np.float32), 6)
    run(planes.ravel(), ray, 1)
    return lambda steps: run(planes.ravel(), ray, steps)
