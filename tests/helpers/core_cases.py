"""A short core: five queries on boxes, and the nearest hits of packets and of each other geometry."""

from typing import NamedTuple

import numpy as np

import raybox as rb
from test_private_query import cells, cube_rays, cubes, grid_rays, picture
from test_scene_mesh import CUBE

UNSORTED = 20  # rays: so few are traversed in one group, in the order in which they came


class Case(NamedTuple):
    """A geometry, rays, and the queries that are run: all, or nearest and others."""

    geometry: rb.Boxes | rb.Grid | rb.Mesh | rb.Instances | rb.Planes
    rays: rb.Rays
    queries: tuple[str, ...]


def planes() -> rb.Planes:
    """Return half-spaces, some of them with a common face, that few rays start in."""
    return rb.Planes(np.concatenate([np.eye(3), 2 * np.eye(3)]), [-3.0, -3.0, -3.0, -6.0, -7.0, -6.0])


CASES = {
    "boxes": lambda: Case(cells(1), grid_rays(2, 250), ("nearest", "occluded", "count", "first", "all")),
    "nearest and all": lambda: Case(cells(1), grid_rays(6, 250), ("nearest", "all")),
    "packets": lambda: Case(cells(3), picture(), ("nearest",)),
    "mesh": lambda: Case(rb.Mesh(*CUBE), cube_rays(4, 200), ("nearest",)),
    "instances": lambda: Case(cubes(), cube_rays(5, 120), ("nearest",)),
    "grid": lambda: Case(rb.Grid.uniform([-2, -2, -2], 0.5, (8, 8, 8)), grid_rays(7, 250), ("nearest",)),
    "planes": lambda: Case(planes(), grid_rays(8, 250), ("nearest",)),
}
