"""MuJoCo: a geom for each box; ``mj_multiRay`` where all rays start at one point, ``mj_ray`` elsewhere."""

from typing import Any

import mujoco
import numpy as np

from raybox.bench.data import BoxSet, RaySet
from raybox.bench.peers.common import Engine


def form(boxes: BoxSet) -> Any:
    """Return centres and half sizes."""
    return (boxes.lower + boxes.upper) / 2, (boxes.upper - boxes.lower) / 2


def build(halves: Any, _threads: int) -> Engine:
    """Compile a model whose world holds the boxes; one thread answers."""
    spec = mujoco.MjSpec()
    for centre, half in zip(*halves, strict=True):
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=half, pos=centre)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)

    def ask(rays: RaySet) -> Any:
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

    def read(answer: Any) -> Any:
        index, t = answer
        return index.astype(np.int64), np.where(index < 0, np.inf, t)

    return Engine(prepare=lambda rays: rays, ask={"nearest": ask}, read={"nearest": read})
