"""What spatial queries run on: the boxes of each geometry of a scene, with their trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import NamedTuple, TypeAlias, TypedDict

from raybox.bvh.cell_tree import CellTree
from raybox.bvh.node import Tree
from raybox.geometry import BoxRows, GridRows
from raybox.geometry.rows import NO_STARTS
from raybox.hits.hit_ids import SceneRows
from raybox.validation import ArrayInput, Bools, Ints32, MaskInput

WhereInput: TypeAlias = MaskInput | Sequence[MaskInput]
"""Which boxes may be found, as users pass it."""


class TargetPart(NamedTuple):
    """The boxes of one geometry: cells of a grid, or boxes, also those of triangles and of instances."""

    rows: BoxRows | GridRows
    tree: Tree | CellTree
    """of a grid, a `CellTree`"""
    allowed: Bools
    """which rows may be found, (M,); empty: all"""
    first: int
    """the number of row 0, among the rows of all geometries"""

    @property
    def size(self) -> int:
        """The number of rows."""
        return prod(self.rows.shape.tolist()) if isinstance(self.rows, GridRows) else len(self.rows.lower)


class SearchTarget(NamedTuple):
    """The boxes of a scene, as one call searches them."""

    parts: tuple[TargetPart, ...]
    scene: SceneRows
    """each geometry as a row of boxes, with ids and labels"""
    dimension: int
    """D: 2 or 3"""
    starts: Ints32 = NO_STARTS
    """of queries: see `QueryBoxes.starts`"""


class SearchOptions(TypedDict, total=False):
    """How a scene is searched: arguments of all methods, with their defaults None, -1 and False."""

    where: WhereInput
    groups: ArrayInput | None
    workers: int
    progress: bool


class JoinTarget(NamedTuple):
    """The boxes of two scenes."""

    own: SearchTarget
    other: SearchTarget
    starts: tuple[Ints32, ...]
    """of the boxes of each geometry of `own`: see `QueryBoxes.starts`"""


class RunSettings(NamedTuple):
    """How a search is run; its result does not depend on it."""

    workers: int
    """threads; -1: all cores"""
    progress: bool
    """whether a bar is shown"""


class Searchable(ABC):
    """The base of the classes that give a scene the methods of spatial queries."""

    @property
    @abstractmethod
    def _dimension(self) -> int:
        """D: 2 or 3."""

    @abstractmethod
    def _target(
        self, method: str, shape: tuple[int, ...], where: WhereInput, groups: ArrayInput | None
    ) -> SearchTarget:
        """Return what queries of a shape run on; raise `InvalidInput` for geometries without an answer."""

    @abstractmethod
    def _joined(self, other: Searchable, where: WhereInput, other_where: WhereInput) -> JoinTarget:
        """Return what a join with a scene, which may be this one, runs on."""
