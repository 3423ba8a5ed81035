"""The libraries that raybox is measured beside: one line of the table and one adapter each."""

from raybox.bench.peers import Peer

_SPLIT = "12 triangles a box, float32; id and t; rays split over Python threads"
_NTHREADS = "12 triangles a box, float32; nthreads = threads"
_COLUMNS = "columns of boxes, float32; no memory made in the loop"

PEERS = (
    Peer(
        "raybox proposals",
        "raybox",
        "raybox_peers.raybox_float32",
        "what the tree proposes in float32",
    ),
    Peer("embreex", "embreex", "raybox_peers.embreex_mesh", _SPLIT, "surface", max_boxes=2_000_000),
    Peer("open3d", "open3d", "raybox_peers.open3d_mesh", _NTHREADS, "surface", max_boxes=2_000_000),
    Peer(
        "trimesh",
        "trimesh",
        "raybox_peers.trimesh_mesh",
        "12 triangles a box, over embreex",
        "surface",
        200_000,
        1,
    ),
    Peer(
        "trimesh rtree",
        "rtree",
        "raybox_peers.trimesh_mesh",
        "12 triangles a box, trimesh over rtree",
        *("surface", 200_000, 1, "build_rtree"),
        max_rays=2048,  # more rays need tens of GB
    ),
    Peer(
        "warp",
        "warp-lang",
        "raybox_peers.warp_bvh",
        "boxes, float32; wp.Bvh (sah), CPU kernels",
        max_boxes=10_000_000,
    ),
    Peer(
        "mujoco",
        "mujoco",
        "raybox_peers.mujoco_geoms",
        "a geom a box; mj_multiRay or mj_ray",
        "surface",
        10_000,
        1,
    ),
    Peer("numpy", "numpy", "raybox_peers.numpy_brute", _COLUMNS, "solid", 10_000_000, 1),
    Peer(
        "numpy recipe",
        "numpy",
        "raybox_peers.numpy_brute",
        "rays[:, None] against boxes, float32",
        *("solid", 1_000_000, 1, "build_recipe"),
    ),
)
