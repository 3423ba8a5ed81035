"""A seeded sweep of queries, whose results do not depend on the processor that code is compiled for.

`write` is called in a process with another target: ``python -c "import target_sweep; ..."``.
"""

from typing import NamedTuple
from unittest import mock

import numpy as np

import families
import families_surfaces
import raybox as rb
from ray_cases import BOX_SETS, as_rays_or_miss, make_rays_at
from raybox.compiler.target import has
from raybox.queries import one_by_one
from raybox.traversal import packet_batches
from raybox.traversal.ray_setup import at_a_time
from scenes import random_scene

QUERIES = ("nearest", "count", "all")
MANY = 2048  # rays that are sorted


class Case(NamedTuple):
    geometry: rb.Boxes | rb.Mesh | rb.Instances
    rays: rb.Rays


def cases() -> dict[str, Case]:
    """Return scenes and rays by name: the first rays of each are the hardest."""
    made = {}
    for name in families.FAMILIES:
        pairs = families.scene(name, 141, 64, 64)
        made[name] = Case(rb.Boxes(*pairs[4:]), as_rays_or_miss(pairs))
    for name, boxes in BOX_SETS.items():
        pairs = make_rays_at(142, *boxes(), n=64)
        made[f"rays at {name}"] = Case(rb.Boxes(*pairs[4:]), as_rays_or_miss(pairs))
    rng = np.random.default_rng(143)
    pairs = random_scene(144, 3000, MANY, size=0.2)
    made["random"] = Case(rb.Boxes(*pairs[4:]), as_rays_or_miss(pairs))
    x, y = (a.ravel() for a in np.meshgrid(np.linspace(-0.2, 0.2, 256), np.linspace(-0.01, 0.01, 16)))
    eye = np.tile([0.013, 0.027, -3.0], (len(x), 1))
    picture = rb.Rays(eye, np.stack([x, y, np.ones(len(x))], axis=1))
    made["picture"] = Case(rb.Boxes(*pairs[4:]), picture)
    triangles = families_surfaces.triangles(145, 64)
    rays = as_rays_or_miss(triangles)
    made["triangles"] = Case(_mesh(triangles.corners), rays)
    corners = rng.uniform(-1, 1, (1000, 1, 3)) + rng.uniform(-0.1, 0.1, (1000, 3, 3))
    made["mesh"] = Case(_mesh(corners), made["random"].rays)
    turned = rb.Instances.from_poses(
        made["triangles"].geometry,
        rng.uniform(-9, 9, (12, 3)),
        quaternions=rng.normal(size=(12, 4)),
        scales=0.5,
    )
    origins = rng.uniform(-12, 12, (64, 3))
    made["turned triangles"] = Case(turned, rb.Rays(origins, rng.uniform(-9, 9, (64, 3)) - origins))
    return made


def _mesh(corners: np.ndarray) -> rb.Mesh:
    return rb.Mesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))


def queries_of(geometry) -> tuple[str, ...]:
    """Return the queries of a case: of boxes all, of others one, since each takes long to compile."""
    return QUERIES if isinstance(geometry, rb.Boxes) else ("nearest",)


def results() -> dict[str, np.ndarray]:
    """Return the arrays of every query of every case, and the number of batches that had packets."""
    call, found = packet_batches.traverse_packets, {}
    with (
        mock.patch.object(one_by_one, "MOST_RAYS", MANY // 2),
        mock.patch.object(packet_batches, "traverse_packets", side_effect=call) as spy,
    ):
        for name, (geometry, rays) in cases().items():
            scene = rb.Scene(geometry)
            for query in queries_of(geometry):
                for part, array in _arrays(getattr(scene, query)(rays)).items():
                    found[f"{name}: {query} {part}"] = array
    return found | {"batches with packets": np.array(spy.call_count)}


def _arrays(got) -> dict[str, np.ndarray]:
    if isinstance(got, np.ndarray):
        return {"": got}
    names = ("index", "primitive", "offsets", "t", "t_enter", "t_exit")
    return {name: np.asarray(getattr(got, name)) for name in names if hasattr(got, name)}


def write(path: str) -> None:
    """Save the results of this process, whether it has fused operations, and how wide its vectors are."""
    np.savez(path, fused=np.array(has("fma")), width=np.array(at_a_time()), **results())
