"""Set up packets: sixteen neighbouring rays, packed side by side, and the bounds of them all."""

from __future__ import annotations

from typing import Any

from numba import types

from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import F32, F64, I32, I64, constant, greater
from raybox.compiler.simd_loops import Register
from raybox.primitives.status import MISS_INDEX
from raybox.traversal.packed_rays import pack_rays, store_float64
from raybox.traversal.packet_bounds import PacketRays, bound
from raybox.traversal.packet_recorder import COLUMNS, NO_OCTANT, UNFIT
from raybox.traversal.protocol import REGISTERED
from raybox.traversal.ray_bounds import ClippedRays, Float64Rays, clip_rays
from raybox.traversal.ray_keys import bounds_in_a_row, load_columns
from raybox.traversal.ray_setup import HIGH, LANES, LOW

_BLOCK = COLUMNS * LANES
_WIDE = 2.0**20  # the bounds of scenes that have packets


@vector_code(types.int64)
def set_up_packet(b: Any, job: Any, workspace: Any, recorder: Any, at: Any, packet: Any) -> Any:
    """Make a packet of the rays from `at` on; return their octant, NO_OCTANT or UNFIT."""
    clipped, given = _load_sixteen(b, job, at)
    octant = Register(b, I64(NO_OCTANT))
    with b.if_then(clipped.alive.any()):
        octant.value = _set_up(b, job, workspace, recorder, (clipped, given), packet)
    return octant.value


def _set_up(
    b: Any, job: Any, workspace: Any, recorder: Any, rays: tuple[ClippedRays, Float64Rays], packet: Any
) -> Any:
    """Make a packet of rays of which some may hit something; return their octant or UNFIT."""
    clipped, given = rays
    words = pack_rays(clipped)
    results = [words.result, constant(b, I32, LANES, MISS_INDEX)]
    base = b.mul(packet, I64(_BLOCK))
    for k, column in enumerate([*words.columns(), *(column.bits(F32) for column in results)]):
        recorder.words.store(column, b.add(base, I64(LANES * k)))
    if REGISTERED.packet[recorder.inner.__class__].needs_rays64:
        store_float64(b, given, b.mul(packet, I64(LANES)), workspace.rays64)
    alive = clipped.alive & clipped.tame
    bound(b, job.frame, workspace, PacketRays(words, clipped, alive), packet)
    everyone = alive.mask()
    fit = b.icmp_signed("==", (clipped.alive & ~clipped.tame).mask(), I64(0))
    octant = I64(0)
    for k in range(3):
        for flags in (clipped.backward[k], clipped.moves[k]):
            mask = (flags & alive).mask()
            none, same = b.icmp_signed("==", mask, I64(0)), b.icmp_signed("==", mask, everyone)
            fit = b.and_(fit, b.or_(none, same))
        octant = b.or_(octant, b.shl(b.zext((clipped.backward[k] & alive).any(), I64), I64(k)))
    for k in range(3):
        size = constant(b, F64, 1, 0.0)
        for corner in (LOW + k, HIGH + k):
            size = greater(size, job.frame.numbers.splat(corner, 1).magnitude())
        fit = b.and_(fit, (size < _WIDE).lane(0))
    return b.select(fit, octant, I64(UNFIT))


def _load_sixteen(b: Any, job: Any, at: Any) -> Any:
    """Load sixteen neighbouring rays: whole vectors, transposed by shuffles."""
    o, d = (load_columns(b, v, at) for v in (job.rays.origins, job.rays.directions))
    ends = [bounds_in_a_row(b, bound, at) for bound in (job.rays.t_min, job.rays.t_max)]
    given = Float64Rays(o, d, *ends)
    return clip_rays(b, given, job.frame), given
