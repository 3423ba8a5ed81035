"""Thousands of small worlds of moving boxes and one ground: groups beside boxes moved apart, and peers.

A step moves all boxes, updates the scene and casts all rays. Processor time of one thread, medians of steps
taken in turns. Warp and MuJoCo are timed where they are installed; their times are float32's, or of rays
alone.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import NamedTuple

import numpy as np

import raybox as rb
from raybox.bench import timing

FLOOR = np.array([[-1e3, -1e3, -1.0]]), np.array([[1e3, 1e3, 0.0]])
APART = 1024.0  # between worlds that are moved apart by hand
RANGE = 500.0


class Worlds(NamedTuple):
    """Boxes (worlds, boxes, 3) and rays (worlds, rays, 3)."""

    lower: np.ndarray
    upper: np.ndarray
    origins: np.ndarray
    directions: np.ndarray


def worlds(count: int, boxes: int, rays: int) -> Worlds:
    """Return worlds on ten by ten metres: boxes that fill them alike, and a lidar near the middle."""
    rng = np.random.default_rng(2)
    centers = rng.random((count, boxes, 3)) * [10, 10, 1]
    half = (0.1 + 0.4 * rng.random((count, boxes, 3))) * min(1.0, (30 / boxes) ** 0.5)
    eye = np.concatenate([3 + 4 * rng.random((count, 1, 2)), np.full((count, 1, 1), 1.2)], axis=2)
    angles = np.linspace(0, 2 * np.pi, rays, endpoint=False) + rng.random((count, 1))
    way = np.stack([np.cos(angles), np.sin(angles), np.full_like(angles, -0.15)], axis=2)
    return Worlds(centers - half, centers + half, np.broadcast_to(eye, way.shape).copy(), way)


def flat(worlds: Worlds, offsets: np.ndarray | float = 0.0) -> tuple[rb.Boxes, rb.Rays]:
    """Return the boxes of all worlds, the ground last, and their rays."""
    lower, upper = ((x + offsets).reshape(-1, 3) for x in worlds[:2])
    floor = FLOOR if isinstance(offsets, float) else [x * [1e3, 1e3, 1] for x in FLOOR]
    boxes = rb.Boxes(np.concatenate([lower, floor[0]]), np.concatenate([upper, floor[1]]))
    origins = (worlds.origins + offsets).reshape(-1, 3)
    return boxes, rb.Rays(origins, worlds.directions.reshape(-1, 3), t_max=RANGE)


def own_steps(made: Worlds) -> dict[str, Callable[[], object]]:
    """Return the steps of raybox: with groups, and with boxes moved apart."""
    count, boxes, rays = *made.lower.shape[:2], made.origins.shape[1]
    groups, of_rays = np.append(np.repeat(np.arange(count), boxes), -1), np.repeat(np.arange(count), rays)
    side = int(np.ceil(count**0.5))
    place = np.stack(np.divmod(np.arange(count), side), axis=1) * APART
    offsets = np.concatenate([place, np.zeros((count, 1))], axis=1)[:, None]
    whole, moved = flat(made), flat(made, offsets)
    one, apart = rb.Scene(whole[0], groups=groups, workers=1), rb.Scene(moved[0], workers=1)
    hits, others = one.nearest(whole[1], groups=of_rays), apart.nearest(moved[1])
    differ = np.mean(hits.t != others.t)
    print(f"hit {hits.hit.mean():.2f}; apart, {differ:.0%} of times are not those of the worlds", flush=True)

    def grouped() -> None:
        one.update(rb.Boxes(whole[0].lower, whole[0].upper))
        one.nearest(whole[1], groups=of_rays, workers=1)

    def by_hand() -> None:
        boxes, rays = flat(made, offsets)
        apart.update(boxes)
        apart.nearest(rays, workers=1)

    return {
        "groups: nearest": lambda: one.nearest(whole[1], groups=of_rays, workers=1),
        "groups: boxes, update, nearest": grouped,
        "apart: nearest": lambda: apart.nearest(moved[1], workers=1),
        "apart: move, boxes, update, rays, nearest": by_hand,
    }


def warp_step(made: Worlds) -> Callable[[], object]:
    """Return a refit and the rays of Warp's grouped tree, by its kernel for boxes."""
    import warp as wp

    from raybox_peers.warp_bvh import enter

    wp.init()
    count, boxes, rays = *made.lower.shape[:2], made.origins.shape[1]
    number = np.append(np.repeat(np.arange(count), boxes), count).astype(np.int32)

    @wp.kernel
    def cast(  # noqa: PLR0917  # a kernel takes its arrays one by one
        tree: wp.uint64,
        lower: wp.array(dtype=wp.vec3),
        upper: wp.array(dtype=wp.vec3),
        origins: wp.array(dtype=wp.vec3),
        ways: wp.array(dtype=wp.vec3),
        each: int,
        common: int,
        out: wp.array(dtype=int),
    ):
        k = wp.tid()
        inverse = wp.cw_div(wp.vec3(1.0, 1.0, 1.0), ways[k])
        best = wp.float32(1e30)  # a variable, where 1e30 would be a constant of the kernel
        found = wp.int32(-1)
        i = wp.int32(0)
        turn = wp.int32(0)
        while turn < 2:
            root = wp.bvh_get_group_root(tree, wp.where(turn == 0, k / each, common))
            turn += 1
            query = wp.bvh_query_ray(tree, origins[k], ways[k], root)
            while wp.bvh_query_next(query, i, best):
                t = enter(origins[k], inverse, lower[i], upper[i])
                if t >= 0.0 and t < best:
                    best = t
                    found = i
        out[k] = found

    with wp.ScopedDevice("cpu"):
        corners = [
            wp.array(np.concatenate([x.reshape(-1, 3), floor]).astype(np.float32), dtype=wp.vec3)
            for x, floor in zip(made[:2], FLOOR, strict=True)
        ]
        lines = [wp.array(x.reshape(-1, 3).astype(np.float32), dtype=wp.vec3) for x in made[2:]]
        tree = wp.Bvh(*corners, groups=wp.array(number, dtype=int))
        out = wp.empty(count * rays, dtype=int)

        def step() -> None:
            tree.refit()
            given = [tree.id, *corners, *lines, rays, count, out]
            wp.launch(cast, dim=count * rays, inputs=given, device="cpu")

        return step


def mujoco_step(made: Worlds, some: int) -> Callable[[], object]:
    """Return the rays of some worlds by `mj_multiRay`, world by world; without moving their boxes."""
    import mujoco

    calls = []
    for lower, upper, origins, ways in zip(*(x[:some] for x in made), strict=True):
        spec = mujoco.MjSpec()
        boxes = [*zip(lower, upper, strict=True), *zip(*FLOOR, strict=True)]
        for low, up in boxes:
            box = mujoco.mjtGeom.mjGEOM_BOX
            spec.worldbody.add_geom(type=box, pos=(low + up) / 2, size=(up - low) / 2)
        model = spec.compile()
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        number = len(ways)
        out = np.empty(number, np.int32), np.empty(number), np.empty(3 * number)
        calls.append((model, data, origins[0], ways.reshape(-1), number, out))

    def step() -> None:
        for model, data, eye, ways, number, (ids, far, normal) in calls:
            mujoco.mj_multiRay(model, data, eye, ways, None, 1, -1, ids, far, normal, number, RANGE)

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=4096)
    parser.add_argument("--boxes", type=int, default=30)
    parser.add_argument("--rays", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    made = worlds(options.worlds, options.boxes, options.rays)
    steps, some = own_steps(made), min(options.worlds, 64)
    of_some = f"MuJoCo: rays of {some} worlds"
    peers = {"Warp: refit, rays": lambda: warp_step(made), of_some: lambda: mujoco_step(made, some)}
    for name, make in peers.items():
        try:
            steps[name] = make()
        except ImportError as error:
            print(f"{name}: {error}")
    for step in steps.values():
        step()
    for name, times in timing.alternate(steps, options.rounds, time.process_time).items():
        spent = median(times)
        scale = options.worlds / some if "MuJoCo" in name else 1.0
        note = f", all {options.worlds}: {spent * scale * 1e3:.0f} ms" if scale > 1 else ""
        print(f"{name}: {spent * 1e3:.1f} ms{note}")


if __name__ == "__main__":
    main()
