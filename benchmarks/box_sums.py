"""`Scene.integrate` on boxes beside `count`: ratios of processor times, alternated in one process.

Rays of a camera, which form packets, and rays that go any way from outside and from inside of the scene. Each
line has the medians of the ratios of neighbouring times, and their quartiles.
"""

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import raybox as rb

_SIZE = 100.0  # of the scene


def kinds_of_rays(count: int, rng: np.random.Generator) -> dict[str, rb.Rays]:
    """Return about so many rays of each kind."""
    directions = rng.normal(size=(count, 3))
    directions /= np.linalg.norm(directions, axis=-1, keepdims=True)
    points = rng.uniform(0, _SIZE, (count, 3))
    eye, middle = _SIZE * np.array([-0.6, -0.4, 0.8]), np.full(3, 0.5 * _SIZE)
    height = int(np.sqrt(3 * count / 4))
    camera = rb.Rays.pinhole(eye, middle, up=(0, 0, 1), fov=50, width=4 * height // 3, height=height)
    return {
        "camera": camera,
        "incoherent": rb.Rays(points - 2 * _SIZE * directions, directions),
        "inside": rb.Rays(points, directions),
    }


def seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(scene: rb.Scene, rays: rb.Rays, values: np.ndarray, rounds: int) -> str:
    """Return the ratios of the times of sums over those of counts."""
    calls = {
        "count": partial(scene.count, rays, workers=1),
        "lengths": partial(scene.integrate, rays, workers=1),
        "values": partial(scene.integrate, rays, values, workers=1),
        "reproducible": partial(scene.integrate, rays, values, reproducible=True, workers=1),
    }
    times = np.array([[seconds(call) for call in calls.values()] for _ in range(rounds + 1)])[1:]
    low, middle, high = np.percentile(times[:, 1:] / times[:, :1], [25, 50, 75], axis=0)
    parts = [f"{calls['count']().mean():.1f} hits a ray"]
    for name, *quartiles in zip(list(calls)[1:], middle, low, high, strict=True):
        parts.append("{} {:.2f} [{:.2f}, {:.2f}]".format(name, *quartiles))
    return ", ".join(parts)


def main() -> None:
    """Print the ratios of each kind of rays."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boxes", type=int, default=100_000)
    parser.add_argument("--rays", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    centers, sizes = rng.random((options.boxes, 3)) * _SIZE, 2 * rng.random((options.boxes, 3))
    scene, values = rb.Scene(rb.Boxes.from_centers(centers, sizes)), rng.random(options.boxes)
    for name, rays in kinds_of_rays(options.rays, rng).items():
        print(f"{name}: {measure(scene, rays, values, options.rounds)}", flush=True)


if __name__ == "__main__":
    main()
