"""What spatial queries run on: the boxes of each geometry of a scene, with their trees."""

from typing import NamedTuple

from raybox.bvh.cell_tree import CellTree
from raybox.bvh.node import Tree
from raybox.geometry import BoxRows, GridRows
from raybox.hits.hit_ids import SceneRows
from raybox.validation import Bools


class TargetPart(NamedTuple):
    """The boxes of one geometry: cells of a grid, or boxes, also those of triangles and of instances."""

    rows: BoxRows | GridRows
    tree: Tree | CellTree
    """of a grid, a `CellTree`"""
    allowed: Bools
    """which rows may be found, (M,); empty: all"""
    first: int
    """the number of row 0, among the rows of all geometries"""


class Target(NamedTuple):
    """The boxes of a scene."""

    parts: tuple[TargetPart, ...]
    scene: SceneRows
    """each geometry as a row of boxes, with ids and labels"""
    dimension: int
    """D: 2 or 3"""
