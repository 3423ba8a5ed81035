"""raybox itself, and its variants."""

import inspect
from typing import Any

import numpy as np

import raybox as rb
from raybox.bench.data import BoxSet, RaySet
from raybox.bench.peers import Engine


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
