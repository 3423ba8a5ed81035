"""Frozen containers of geometry: rays, boxes, planes and triangle meshes; each checks its input once."""

from raybox.geometry.boxes import Boxes, BoxRows
from raybox.geometry.mesh import Mesh, TriangleRows
from raybox.geometry.planes import PlaneRows, Planes
from raybox.geometry.rays import RayRows, Rays

__all__ = ["BoxRows", "Boxes", "Mesh", "PlaneRows", "Planes", "RayRows", "Rays", "TriangleRows"]
