"""NumPy alone: every ray against every box, float32; the fastest form found, and the usual recipe."""

from typing import Any

import numpy as np

from raybox.bench.data import BoxSet
from raybox.bench.peers import Engine
from raybox_peers.common import singles


def form(boxes: BoxSet) -> Any:
    """Return lower and upper bounds, one row an axis."""
    return [np.ascontiguousarray(c.T.astype(np.float32)) for c in (boxes.lower, boxes.upper)]


def build(columns: Any, _threads: int) -> Engine:
    """Return queries that loop over rays, on one thread; there is nothing to build."""
    low, high = columns
    bounds = [np.empty_like(low), np.empty_like(low)]
    spans = [np.empty(low.shape[1], np.float32) for _ in range(2)]

    def slabs(origin: Any, inverse: Any) -> tuple[Any, Any]:
        near, far = bounds
        for out, bound in ((near, low), (far, high)):
            np.subtract(bound, origin[:, None], out=out)
            np.multiply(out, inverse[:, None], out=out)
        for k in np.flatnonzero(inverse < 0):
            spans[0][:], near[k] = near[k], far[k]
            far[k] = spans[0]
        np.maximum.reduce(near, axis=0, out=spans[0])
        np.minimum.reduce(far, axis=0, out=spans[1])
        np.maximum(spans[0], 0.0, out=spans[0])
        return spans[0], spans[1]

    def spans_of(rays: Any) -> Any:
        for origin, inverse in zip(*rays, strict=True):
            yield slabs(origin, inverse)

    def nearest(rays: Any) -> Any:
        index, t = np.full(len(rays[0]), -1), np.full(len(rays[0]), np.inf)
        for k, (near, far) in enumerate(spans_of(rays)):
            near[near > far] = np.inf
            best = near.argmin()
            t[k], index[k] = near[best], best if near[best] < np.inf else -1
        return index, t

    def count(rays: Any) -> Any:
        return np.array([np.count_nonzero(near <= far) for near, far in spans_of(rays)])

    def prepare(rays: Any) -> Any:
        origins, directions = singles(rays)
        with np.errstate(divide="ignore"):
            return origins, 1.0 / directions

    return Engine(
        prepare, run={"nearest": nearest, "count": count}, read={"nearest": tuple, "count": np.asarray}
    )


def build_recipe(columns: Any, _threads: int) -> Engine:
    """Return the usual recipe: rays[:, None] against boxes[None], in blocks that fit memory."""
    low, high = (np.ascontiguousarray(column.T) for column in columns)
    block = max(1, 2_000_000 // max(1, len(low)))

    def slabs(rays: Any) -> Any:
        for k in range(0, len(rays[0]), block):
            origins, inverse = (part[k : k + block, None] for part in rays)
            one, two = (low - origins) * inverse, (high - origins) * inverse
            near = np.maximum(np.minimum(one, two).max(axis=-1), 0.0)
            yield near, np.maximum(one, two).min(axis=-1)

    def nearest(rays: Any) -> Any:
        found = []
        for near, far in slabs(rays):
            t = np.where(near <= far, near, np.inf)
            index = t.argmin(axis=-1)
            t = t[np.arange(len(t)), index]
            found.append((np.where(t < np.inf, index, -1), t))
        return tuple(map(np.concatenate, zip(*found, strict=True)))

    def count(rays: Any) -> Any:
        return np.concatenate([np.count_nonzero(near <= far, axis=-1) for near, far in slabs(rays)])

    engine = build(columns, 1)
    return engine._replace(run={"nearest": nearest, "count": count})
