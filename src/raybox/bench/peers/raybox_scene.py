"""raybox itself, and its variants."""

import inspect
from typing import Any

import numpy as np

import raybox as rb
from raybox.bench.data import BoxSet, RaySet
from raybox.bench.float32_only import plan
from raybox.bench.peers.common import Engine
from raybox.bvh.build import build as build_tree
from raybox.queries.batches import traverse_batch
from raybox.threads.chunks import chunk_runner
from raybox.traversal.ray_setup import frame_of
from raybox.traversal.single import Job


def form(boxes: BoxSet) -> rb.Boxes:
    """Return the boxes of a scene."""
    return rb.Boxes(boxes.lower, boxes.upper)


def build(boxes: rb.Boxes, threads: int, **options: Any) -> Engine:
    """Return a scene; ``workers`` other than ``threads`` serves to compare the two."""
    workers = options.pop("workers", threads)
    known = inspect.signature(rb.Scene).parameters
    if "workers" in known:
        options["workers"] = workers
    if unknown := options.keys() - known.keys():
        raise TypeError(f"this raybox has no Scene(..., {', '.join(sorted(unknown))}=)")
    return engine(rb.Scene(boxes, **options), workers)


def build_float32_only(boxes: rb.Boxes, threads: int) -> Engine:
    """Return a scene whose nearest box is the nearest candidate of the float32 tree."""
    rows, everything = boxes.rows(), np.empty(0, np.bool_)
    everything.flags.writeable = False
    tree = build_tree(*rows, threads=threads)

    def nearest(rays: rb.Rays) -> Any:
        index, t = np.full(len(rays), -1), np.full(len(rays), np.inf)
        job = Job(tree, rows, rays.rows(), everything, frame_of(tree))

        recorder_plan = plan(index, t)
        with (
            chunk_runner(len(rays), workers=threads) as run,
            traverse_batch(job, (0, len(rays)), recorder_plan, run),
        ):
            return index, t

    return Engine(prepare=rays_of, run={"nearest": nearest}, read={"nearest": lambda found: found})


def engine(scene: rb.Scene, workers: int) -> Engine:
    """Return the queries of a scene."""
    how: dict[str, Any] = {"workers": workers}
    return Engine(
        prepare=rays_of,
        run={
            "nearest": lambda rays: scene.nearest(rays, **how),
            "occluded": lambda rays: scene.occluded(rays, **how),
            "count": lambda rays: scene.count(rays, **how),
            "all": lambda rays: scene.all(rays, **how),
        },
        read={
            "nearest": lambda hits: (hits.index, hits.t),
            "occluded": np.asarray,
            "count": np.asarray,
            "all": lambda found: (found.ray, found.index),
        },
    )


def rays_of(rays: RaySet) -> rb.Rays:
    """Return raybox's rays."""
    return rb.Rays(rays.origins, rays.directions)
