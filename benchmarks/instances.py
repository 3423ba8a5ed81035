"""10,000 instances of a mesh of 10,000 triangles: memory, time, and results beside the expanded scene's.

The expanded scene would have 10^8 triangles. So for each ray of a sample, the instances whose boxes it hits
are expanded, with vertices rounded to float64, and all pairs are tested. Where the nearest hits differ, the
ray passes an edge within that rounding: such rays are counted.
"""

import argparse
import time

import numpy as np

import raybox as rb


def ball(rings: int, segments: int) -> rb.Mesh:
    """Return a bumpy ball of 2 * rings * segments triangles, open at its poles."""
    u, v = np.meshgrid(np.arange(segments) * 2 * np.pi / segments, np.linspace(0.05, np.pi - 0.05, rings + 1))
    radius = 1 + 0.1 * np.sin(5 * u) * np.sin(4 * v)
    points = np.stack([np.cos(u) * np.sin(v), np.sin(u) * np.sin(v), np.cos(v)], axis=-1) * radius[..., None]
    corner = np.arange(rings)[:, None] * segments
    here, there = corner + np.arange(segments), corner + (np.arange(segments) + 1) % segments
    faces = np.stack([here, here + segments, there, there, here + segments, there + segments], axis=-1)
    return rb.Mesh(points.reshape(-1, 3), faces.reshape(-1, 3))


def expanded(instances: rb.Instances, which: np.ndarray) -> rb.Mesh:
    """Return one mesh of some instances, with rounded vertices."""
    mesh, maps = instances.geometry, instances.transforms[which]
    points = np.einsum("mij,vj->mvi", maps[:, :, :3], mesh.vertices) + maps[:, None, :, 3]
    faces = mesh.faces + np.arange(len(which))[:, None, None] * len(mesh.vertices)
    return rb.Mesh(points.reshape(-1, 3), faces.reshape(-1, 3))


def compare(instances: rb.Instances, rays: rb.Rays, hits: rb.Hits) -> tuple[int, float]:
    """Return (rays whose hit differs in the expanded scene, largest relative difference in t)."""
    around, size, other, worst = rb.Scene(instances.boxes()), len(instances.geometry), 0, 0.0
    for k in range(len(rays)):
        which = around.all(rays[k : k + 1]).index
        if not which.size:
            other += bool(hits.hit[k])
            continue
        each = rb.intersect(rays[k], expanded(instances, which))
        best = int(each.t.argmin())
        same = each.hit[best] == hits.hit[k] and (
            not hits.hit[k] or (which[best // size], best % size) == (hits.index[k], hits.primitive[k])
        )
        other += not same
        if same and hits.hit[k]:
            worst = max(worst, abs(each.t[best] - hits.t[k]) / hits.t[k])
    return other, worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=10_000)
    parser.add_argument("--rays", type=int, default=100_000)
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    mesh = ball(50, 100)
    instances = rb.Instances.from_poses(
        mesh,
        rng.uniform(-40, 40, (options.instances, 3)),
        quaternions=rng.normal(size=(options.instances, 4)),
        scales=rng.uniform(0.3, 1.2, options.instances),
    )
    one = rb.Scene(mesh)
    start = time.perf_counter()
    scene = rb.Scene(instances)
    seconds = time.perf_counter() - start
    print(f"{len(instances):,} instances of {len(mesh):,} triangles; built in {seconds:.2f} s")
    rows = 3 * 3 * 8 * len(mesh)
    matrices = 8 * (12 + 9 + 9 + 6) * len(instances)
    alone, together = one.stats()["bytes"] + rows, scene.stats()["bytes"] + rows + matrices
    print(f"one mesh: {alone / 1e6:.1f} MB; all: {together / 1e6:.1f} MB")
    origins = rng.uniform(-45, 45, (options.rays, 3))
    rays = rb.Rays(origins, rng.uniform(-30, 30, (options.rays, 3)) - origins)
    for query in ("nearest", "occluded", "count"):
        getattr(scene, query)(rays[:10], workers=1)
        start = time.perf_counter()
        getattr(scene, query)(rays, workers=options.workers)
        print(f"{query}: {options.rays / (time.perf_counter() - start) / 1e6:.2f} million rays a second")
    print(f"{scene.occluded(rays).mean():.1%} of rays hit")
    sample = rays[: options.sample]
    other, worst = compare(instances, sample, scene.nearest(sample))
    print(f"expanded, of {len(sample)} rays: {other} have another hit; t differs by at most {worst:.1e}")


if __name__ == "__main__":
    main()
