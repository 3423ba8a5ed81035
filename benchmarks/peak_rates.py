"""Peak rates of this core, as a reference: of fused vector operations, and of slab tests.

The first is a loop of twelve independent chains of ``a = a * b + c`` on vectors of sixteen float32: enough to
occupy two units with a latency of four to five cycles. LLVM splits vectors that the machine does not have;
sixteen lanes count as one operation.

The second is a loop of slab tests: one ray against sixteen boxes whose planes are in the L1 cache. Some cores
have separate units for minima and comparisons, so that the first rate does not bound the second.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import float32, int64, vector_code
from raybox.compiler.simd import F32, I64, constant, multiply_add, splat
from raybox.compiler.simd_arrays import Register, loop
from raybox.traversal.node_test import clip, slab_times
from raybox.traversal.slab_coefficients import coefficients_of
from raybox.validation import Floats32

LANES = 16
CHAINS = 12
SETS = 8  # of sixteen boxes


@vector_code(float32)
def _chains(b: Any, steps: Any, seed: Any) -> Any:
    """Return the sum of all lanes after some steps, so that no chain is optimized away."""
    added = splat(b, seed, LANES)
    starts = [added]  # all different, or LLVM would merge the chains
    for _ in range(1, CHAINS):
        starts.append(starts[-1] + added)
    chains = [Register(b, start.value) for start in starts]
    with loop(b, steps):
        for chain in chains:
            chain.value = multiply_add(chain.lanes, added, added).value
    total = sum((chain.lanes for chain in chains[1:]), chains[0].lanes)
    result = total.lane(0)
    for lane in range(1, LANES):
        result = b.fadd(result, total.lane(lane))
    return result


@entry
def run_chains(steps: int, seed: np.float32) -> float:
    """Return the sum of all lanes after some steps."""
    return _chains(steps, seed)


def make() -> Callable[[int], float]:
    """Return the compiled loop of fused operations; it is called with a number of steps."""
    run_chains(1, np.float32(0.5))
    return lambda steps: run_chains(steps, np.float32(0.5))


def fused_per_second(run: Callable[[int], float], steps: int = 4_000_000) -> float:
    """Return fused operations on sixteen lanes a second, on one thread."""
    started = time.perf_counter()
    run(steps)
    return steps * CHAINS / (time.perf_counter() - started)


@vector_code(int64)
def _slabs(b: Any, planes: Any, ray: Any, steps: Any) -> Any:
    """Return the number of hits of a ray with one set of boxes after the other."""
    lines = coefficients_of([ray.splat(k, LANES) for k in range(12)])
    count = Register(b, I64(0))
    with loop(b, steps) as step:
        row = b.mul(b.and_(step, I64(SETS - 1)), I64(6 * LANES))
        sides = [planes.load(b.add(row, I64(k * LANES)), LANES) for k in range(6)]
        stop = constant(b, F32, LANES, np.inf)
        near, far = clip(slab_times(lambda axis: sides[2 * axis : 2 * axis + 2], lines), stop)
        count.value = b.add(count.value, b.ctpop((near <= far).mask()))
    return count.value


@entry
def run_slabs(planes: Floats32, ray: Floats32, steps: int) -> int:
    """Return the number of hits of a ray with one set of boxes after the other."""
    return _slabs(planes, ray, steps)


def make_slabs() -> Callable[[int], int]:
    """Return the compiled loop of slab tests; it is called with a number of steps.

    A step is sixteen tests.
    """
    # Near and far planes of boxes along the ray; every other box is far from it.
    planes = np.zeros((SETS, 3, 2, LANES), np.float32)
    planes[:, :, 0] = np.arange(LANES)
    planes[:, :, 1] = planes[:, :, 0] + 0.5
    planes[:, 0, :, 1::2] += 100.0
    ray = np.repeat(np.array([0.0, 1.0], np.float32), 6)
    run_slabs(planes.ravel(), ray, 1)
    return lambda steps: run_slabs(planes.ravel(), ray, steps)
