"""Frozen containers of geometry: rays, boxes, planes and triangle meshes; each checks its input once."""

from raybox.geometry.boxes import Boxes, BoxRows
from raybox.geometry.culling import Cull, facing
from raybox.geometry.image_bounds import around
from raybox.geometry.instances import CopyRows, Instances, noting
from raybox.geometry.mesh import Mesh, TriangleRows
from raybox.geometry.moving_boxes import MoverRows, Movers
from raybox.geometry.planes import PlaneRows, Planes
from raybox.geometry.rays import RayRows, Rays

Bounded = Boxes | Mesh
"""Rows that boxes go round."""

Surveyed = Bounded | Planes
"""What rays can be set beside, row by row."""

Geometry = Surveyed | Instances
"""What rays can meet, and scenes be made of."""

__all__ = [
    "Bounded",
    "BoxRows",
    "Boxes",
    "CopyRows",
    "Cull",
    "Geometry",
    "Instances",
    "Mesh",
    "MoverRows",
    "Movers",
    "PlaneRows",
    "Planes",
    "RayRows",
    "Rays",
    "Surveyed",
    "TriangleRows",
    "around",
    "facing",
    "noting",
]
