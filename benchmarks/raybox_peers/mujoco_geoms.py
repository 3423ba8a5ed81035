"""MuJoCo: a geom for each box; ``mj_multiRay`` if all rays start at one point, else ``mj_ray``."""

from typing import Any

import mujoco
import numpy as np

from raybox.bench.data import BoxSet, RaySet
from raybox.bench.peers import Engine


def form(boxes: BoxSet) -> Any:
    """Return centres and half sizes."""
    return (boxes.lower + boxes.upper) / 2, (boxes.upper - boxes.lower) / 2


def build(halves: Any, _threads: int) -> Engine:
    """Return a compiled model of the boxes, for one thread."""
    spec = mujoco.MjSpec()
    for centre, half in zip(*halves, strict=True):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=half, pos=centre)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)

    def nearest(rays: RaySet) -> Any:
        origins, directions = rays
        index, t = np.full(len(origins), -1, np.int32), np.empty(len(origins))
        if len(origins) > 1 and (origins == origins[0]).all():
            flat = directions.ravel()
            mujoco.mj_multiRay(
                model, data, origins[0], flat, None, True, -1, index, t, None, len(t), mujoco.mjMAXVAL
            )
            return index, t
        one = np.empty(1, np.int32)
        for k in range(len(origins)):
            t[k] = mujoco.mj_ray(model, data, origins[k], directions[k], None, True, -1, one)
            index[k] = one[0]
        return index, t

    def read(results: Any) -> Any:
        index, t = results
        return index.astype(np.int64), np.where(index < 0, np.inf, t)

    return Engine(prepare=lambda rays: rays, run={"nearest": nearest}, read={"nearest": read})
