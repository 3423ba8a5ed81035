"""The peers: one line of the table and one adapter each; missing packages are no errors."""

import importlib
from importlib import metadata
from typing import Any, NamedTuple

MODULES = "raybox.bench.peers"


class Peer(NamedTuple):
    """A library that is measured, with its limits.

    ``meaning``: where a ray that starts inside a box hits it; a ``solid`` at t = 0, a ``surface`` where the
    ray leaves it. The peer gets up to ``max_boxes`` boxes and ``max_rays`` rays on up to ``threads`` threads.
    """

    name: str
    distribution: str
    adapter: str
    given: str
    meaning: str = "solid"
    max_boxes: int = 10**9
    threads: int = 10**9
    build: str = "build"
    options: dict[str, Any] = {}  # noqa: RUF012 - never written to
    max_rays: int = 10**9


_SPLIT = "12 triangles a box, float32; id and t; rays split over Python threads"
_NTHREADS = "12 triangles a box, float32; nthreads = threads"
_COLUMNS = "columns of boxes, float32; no memory made in the loop"

PEERS = (
    Peer("raybox", "raybox", "raybox_scene", "boxes, float64, exact answers"),
    Peer("raybox fast", "raybox", "raybox_scene", "quality='fast'", options={"quality": "fast"}),
    Peer("raybox balanced", "raybox", "raybox_scene", "quality='balanced'", options={"quality": "balanced"}),
    Peer("raybox, 1 worker", "raybox", "raybox_scene", "workers=1", options={"workers": 1}),
    Peer("raybox, 2 workers", "raybox", "raybox_scene", "workers=2", options={"workers": 2}),
    Peer(
        "raybox proposals",
        "raybox",
        "raybox_scene",
        "what the tree proposes in float32",
        build="build_float32_only",
    ),
    Peer("embreex", "embreex", "embreex_mesh", _SPLIT, "surface", max_boxes=2_000_000),
    Peer("open3d", "open3d", "open3d_mesh", _NTHREADS, "surface", max_boxes=2_000_000),
    Peer("trimesh", "trimesh", "trimesh_mesh", "12 triangles a box, over embreex", "surface", 200_000, 1),
    Peer(
        "trimesh rtree",
        "rtree",
        "trimesh_mesh",
        "12 triangles a box, trimesh over rtree",
        *("surface", 200_000, 1, "build_rtree"),
        max_rays=2048,  # more rays need tens of GB
    ),
    Peer("warp", "warp-lang", "warp_bvh", "boxes, float32; wp.Bvh (sah), CPU kernels", max_boxes=10_000_000),
    Peer("mujoco", "mujoco", "mujoco_geoms", "a geom a box; mj_multiRay or mj_ray", "surface", 10_000, 1),
    Peer("numpy", "numpy", "numpy_brute", _COLUMNS, "solid", 10_000_000, 1),
    Peer(
        "numpy recipe",
        "numpy",
        "numpy_brute",
        "rays[:, None] against boxes, float32",
        *("solid", 1_000_000, 1, "build_recipe"),
    ),
)
BY_NAME = {peer.name: peer for peer in PEERS}
OTHERS = tuple(peer.name for peer in PEERS if not peer.name.startswith("raybox"))


def load(peer: Peer) -> Any:
    """Return a peer's adapter; raise `ImportError` if the peer cannot be imported."""
    try:
        return importlib.import_module(f"{MODULES}.{peer.adapter}")
    except OSError as error:  # one of its shared libraries is missing
        raise ImportError(str(error)) from error


def version(peer: Peer) -> str | None:
    """Return the version of a peer, None if it is not installed."""
    try:
        return metadata.version(peer.distribution)
    except metadata.PackageNotFoundError:
        return None
