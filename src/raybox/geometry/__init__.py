"""Frozen containers of arrays: rays, boxes, planes, triangle meshes and instances."""

from raybox.geometry.boxes import Boxes, BoxRows
from raybox.geometry.container import Cull, Geometry, facing
from raybox.geometry.instances import InstanceRows, Instances, with_scratch
from raybox.geometry.mesh import Mesh, TriangleRows
from raybox.geometry.moving_boxes import MovingBoxes, MovingBoxRows
from raybox.geometry.planes import PlaneRows, Planes
from raybox.geometry.rays import RayRows, Rays
from raybox.geometry.transforms import around

Bounded = Boxes | Mesh
"""Geometries with a bounding box for each row."""

__all__ = [
    "Bounded",
    "BoxRows",
    "Boxes",
    "Cull",
    "Geometry",
    "InstanceRows",
    "Instances",
    "Mesh",
    "MovingBoxRows",
    "MovingBoxes",
    "PlaneRows",
    "Planes",
    "RayRows",
    "Rays",
    "TriangleRows",
    "around",
    "facing",
    "with_scratch",
]
