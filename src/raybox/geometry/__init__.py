"""Frozen containers of arrays: rays, boxes, grids, planes, triangle meshes, instances and regions."""

from raybox.geometry.boxes import Boxes
from raybox.geometry.container import Cull, Geometry, facing
from raybox.geometry.grid import Grid
from raybox.geometry.instances import InstanceRows, Instances, with_scratch
from raybox.geometry.labels import Labels, checked_labels, column_of, with_facts, without_ids
from raybox.geometry.mesh import Mesh, object_count, stored_objects
from raybox.geometry.mesh_joining import join_meshes
from raybox.geometry.moving_boxes import MovingBoxes
from raybox.geometry.object_rows import NO_OBJECTS, ObjectRows, object_rows, row_mask, row_masks
from raybox.geometry.planes import Planes
from raybox.geometry.ray_input import Invalid
from raybox.geometry.rays import Rays
from raybox.geometry.region import Frustum, Region
from raybox.geometry.row_ids import Ids
from raybox.geometry.rows import (
    BoxRows,
    GridRows,
    MovingBoxRows,
    PlaneRows,
    PrimitiveRows,
    RayRows,
    TriangleRows,
)
from raybox.geometry.transforms import around

Bounded = Boxes | Mesh
"""Geometries with a bounding box for each row."""

__all__ = [
    "NO_OBJECTS",
    "Bounded",
    "BoxRows",
    "Boxes",
    "Cull",
    "Frustum",
    "Geometry",
    "Grid",
    "GridRows",
    "Ids",
    "InstanceRows",
    "Instances",
    "Invalid",
    "Labels",
    "Mesh",
    "MovingBoxRows",
    "MovingBoxes",
    "ObjectRows",
    "PlaneRows",
    "Planes",
    "PrimitiveRows",
    "RayRows",
    "Rays",
    "Region",
    "TriangleRows",
    "around",
    "checked_labels",
    "column_of",
    "facing",
    "join_meshes",
    "object_count",
    "object_rows",
    "row_mask",
    "row_masks",
    "stored_objects",
    "with_facts",
    "with_scratch",
    "without_ids",
]
