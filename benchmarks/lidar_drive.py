"""Time the drive of docs/howto/lidar_drive.md beside Open3D and trimesh with Embree.

    python benchmarks/lidar_drive.py CITY.city.json [--turns 10] [--rounds 5]

Each library casts the same rays at the same triangles, in turns: from poses to the range of each first hit.
Open3D and Embree compute in float32; their vertices and origins are moved near 0 first, as users do.
`batch` passes all rays at once, `loop` those of one pose at a time, as a script for one scan does.
Prints medians, and how many ranges differ from raybox's by more than 1 cm.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median

import numpy as np

import raybox as rb

START, END = np.array([84897, 447514, 1.9]), np.array([84967, 447568, 2.1])
FIRINGS = 360  # of a turn, which takes a second


def drive(turns: int) -> rb.Rays:
    """Return the rays of the drive of the page, over so many turns."""
    clock = np.arange(FIRINGS * turns) / FIRINGS
    path = START + clock[:, None] / turns * (END - START)
    angle = np.arctan2(*(END - START)[[1, 0]]) - 2 * np.pi * clock
    cos, sin, zero = np.cos(angle), np.sin(angle), np.zeros(len(clock))
    rotation = np.stack([cos, -sin, zero, sin, cos, zero, zero, zero, zero + 1], axis=-1).reshape(-1, 3, 3)
    offsets = np.tile([-4.2, -1.4, 1.4, 4.2], 8)[:, None]
    return rb.Rays.lidar(path, offsets, np.linspace(-25, 15, 32), rotation=rotation)


def casts(city: rb.Mesh, turns: int) -> dict[str, Callable[[], np.ndarray]]:
    """Return functions that cast the drive, from poses to ranges; those of libraries that are installed."""
    scene, middle = rb.Scene(city), city.bounds.mean(axis=0)
    found: dict[str, Callable[[], np.ndarray]] = {
        "raybox batch": lambda: scene.nearest(drive(turns)).t.reshape(-1),
        "raybox loop": lambda: np.concatenate([scene.nearest(one).t.reshape(-1) for one in drive(turns)]),
    }
    vertices = city.vertices - middle
    try:
        import open3d

        other = open3d.t.geometry.RaycastingScene()
        other.add_triangles(vertices.astype(np.float32), city.faces.astype(np.uint32))

        def open3d_ranges(rays: rb.Rays) -> np.ndarray:
            both = np.concatenate([rays.origins - middle, rays.directions], axis=-1).astype(np.float32)
            return other.cast_rays(both)["t_hit"].numpy().reshape(-1)

        found["Open3D batch"] = lambda: open3d_ranges(drive(turns))
        found["Open3D loop"] = lambda: np.concatenate([open3d_ranges(one) for one in drive(turns)])
    except ImportError as error:
        print(f"without Open3D: {error}")
    try:
        import trimesh
        from trimesh.ray.ray_pyembree import RayMeshIntersector

        embree = RayMeshIntersector(trimesh.Trimesh(vertices, city.faces, process=False))

        def embree_ranges(rays: rb.Rays) -> np.ndarray:
            origins, directions = (x.reshape(-1, 3) for x in (rays.origins - middle, rays.directions))
            points, ray, _ = embree.intersects_location(origins, directions, multiple_hits=False)
            ranges = np.full(len(origins), np.inf)
            ranges[ray] = np.linalg.norm(points - origins[ray], axis=1)
            return ranges

        found["trimesh, Embree batch"] = lambda: embree_ranges(drive(turns))
        found["trimesh, Embree loop"] = lambda: np.concatenate([embree_ranges(one) for one in drive(turns)])
    except ImportError as error:
        print(f"without trimesh and Embree: {error}")
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("city")
    parser.add_argument("--turns", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    functions = casts(rb.load(options.city), options.turns)
    ranges = {name: function() for name, function in functions.items()}  # the first call compiles, or loads
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(options.rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name].append(time.perf_counter() - start)
    exact = ranges["raybox batch"]
    print(f"{len(exact):,} rays of {len(exact) // 32:,} poses, {np.isfinite(exact).sum():,} hits")
    for name, found in ranges.items():
        both = np.isfinite(exact) & np.isfinite(found)
        other = np.isfinite(exact) != np.isfinite(found)
        differ = other.sum() + (np.abs(exact[both] - found[both]) > 0.01).sum()
        print(f"{name:24} {median(seconds[name]):8.3f} s  {differ:6,} ranges differ by more than 1 cm")


if __name__ == "__main__":
    main()
