"""Warp's tree of boxes (wp.Bvh) on the CPU; it returns candidates, which the kernels here test."""

from typing import Any

import numpy as np
import warp as wp

from raybox.bench.data import BoxSet
from raybox.bench.peers import Engine
from raybox_peers.common import on_threads, singles

wp.config.quiet = True
_DEVICE = "cpu"


@wp.func
def enter(o: wp.vec3, inverse: wp.vec3, low: wp.vec3, high: wp.vec3) -> float:
    """Return where a ray enters a box, 0 if it starts inside, -1 for a miss."""
    a, b = wp.cw_mul(low - o, inverse), wp.cw_mul(high - o, inverse)
    near, far = wp.max(wp.max(wp.min(a, b)), 0.0), wp.min(wp.max(a, b))
    if near <= far:
        return near
    return -1.0


@wp.kernel
def nearest_kernel(  # noqa: PLR0917 - kernels take no tuples
    tree: wp.uint64,
    low: wp.array(dtype=wp.vec3),
    high: wp.array(dtype=wp.vec3),
    origins: wp.array(dtype=wp.vec3),
    directions: wp.array(dtype=wp.vec3),
    begin: int,
    index: wp.array(dtype=wp.int32),
    times: wp.array(dtype=wp.float32),
) -> None:
    """Write the nearest box and its t; farther nodes are not visited."""
    k = begin + wp.tid()
    o, d = origins[k], directions[k]
    inverse = wp.vec3(1.0 / d[0], 1.0 / d[1], 1.0 / d[2])
    best = float(wp.inf)
    which = int(-1)  # noqa: RUF046, UP018 - a variable, to Warp
    i = int(0)  # noqa: RUF046, UP018
    query = wp.bvh_query_ray(tree, o, d)
    while wp.bvh_query_next(query, i, best):
        t = enter(o, inverse, low[i], high[i])
        if t >= 0.0 and t < best:
            best = t
            which = i
    index[k] = which
    times[k] = best


@wp.kernel
def occluded_kernel(  # noqa: PLR0917
    tree: wp.uint64,
    low: wp.array(dtype=wp.vec3),
    high: wp.array(dtype=wp.vec3),
    origins: wp.array(dtype=wp.vec3),
    directions: wp.array(dtype=wp.vec3),
    begin: int,
    hit: wp.array(dtype=wp.int32),
) -> None:
    """Write 1 for rays that hit a box, else 0."""
    k = begin + wp.tid()
    o, d = origins[k], directions[k]
    inverse = wp.vec3(1.0 / d[0], 1.0 / d[1], 1.0 / d[2])
    found = int(0)  # noqa: RUF046, UP018
    i = int(0)  # noqa: RUF046, UP018
    query = wp.bvh_query_ray(tree, o, d)
    while found == 0 and wp.bvh_query_next(query, i):
        if enter(o, inverse, low[i], high[i]) >= 0.0:
            found = 1
    hit[k] = found


@wp.kernel
def count_kernel(  # noqa: PLR0917
    tree: wp.uint64,
    low: wp.array(dtype=wp.vec3),
    high: wp.array(dtype=wp.vec3),
    origins: wp.array(dtype=wp.vec3),
    directions: wp.array(dtype=wp.vec3),
    begin: int,
    number: wp.array(dtype=wp.int32),
) -> None:
    """Write the number of boxes hit."""
    k = begin + wp.tid()
    o, d = origins[k], directions[k]
    inverse = wp.vec3(1.0 / d[0], 1.0 / d[1], 1.0 / d[2])
    found = int(0)  # noqa: RUF046, UP018
    i = int(0)  # noqa: RUF046, UP018
    query = wp.bvh_query_ray(tree, o, d)
    while wp.bvh_query_next(query, i):
        if enter(o, inverse, low[i], high[i]) >= 0.0:
            found += 1
    number[k] = found


def form(boxes: BoxSet) -> Any:
    """Return Warp's arrays."""
    return tuple(
        wp.array(corner.astype(np.float32), dtype=wp.vec3, device=_DEVICE)
        for corner in (boxes.lower, boxes.upper)
    )


def build(bounds: Any, threads: int) -> Engine:
    """Return the tree as Warp's manual advises for rays: SAH splits, one box a leaf."""
    tree = wp.Bvh(*bounds, constructor="sah", leaf_size=1)

    def run(rays: Any, kernel: Any, *kinds: Any) -> Any:
        """Return output arrays of a kernel launched for each thread's part of the rays."""
        total = len(rays[0])
        out = [wp.empty(total, dtype=kind, device=_DEVICE) for kind in kinds]

        def launch(begin: int, end: int) -> None:
            inputs = [tree.id, *bounds, *rays, begin]
            wp.launch(kernel, dim=end - begin, inputs=inputs, outputs=out, device=_DEVICE)

        on_threads(launch, total, threads)
        return out

    return Engine(
        prepare=lambda rays: tuple(wp.array(a, dtype=wp.vec3, device=_DEVICE) for a in singles(rays)),
        run={
            "nearest": lambda rays: run(rays, nearest_kernel, wp.int32, wp.float32),
            "occluded": lambda rays: run(rays, occluded_kernel, wp.int32),
            "count": lambda rays: run(rays, count_kernel, wp.int32),
        },
        read={
            "nearest": lambda out: (out[0].numpy().astype(np.int64), out[1].numpy()),
            "occluded": lambda out: out[0].numpy() > 0,
            "count": lambda out: out[0].numpy().astype(np.int64),
        },
    )
