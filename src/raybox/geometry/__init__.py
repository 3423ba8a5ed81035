"""Frozen containers of geometry: rays, boxes, planes and triangle meshes; each checks its input once."""

from raybox.geometry.boxes import Boxes, BoxRows
from raybox.geometry.mesh import Mesh, TriangleRows
from raybox.geometry.movers import MoverRows, Movers
from raybox.geometry.planes import PlaneRows, Planes
from raybox.geometry.rays import RayRows, Rays
from raybox.geometry.sides import Cull, facing

Bounded = Boxes | Mesh
"""What a scene can be made of: rows that boxes go round."""

Geometry = Bounded | Planes
"""What rays can meet."""

__all__ = [
    "Bounded",
    "BoxRows",
    "Boxes",
    "Cull",
    "Geometry",
    "Mesh",
    "MoverRows",
    "Movers",
    "PlaneRows",
    "Planes",
    "RayRows",
    "Rays",
    "TriangleRows",
    "facing",
]
