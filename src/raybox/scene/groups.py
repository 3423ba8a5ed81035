"""Groups: the world of each primitive, and that of each ray.

-1 is common to all. A ray of group g hits primitives of g and of -1, a ray of -1 those of -1 alone.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from raybox import validation
from raybox.bvh.forest import TreeGroups
from raybox.errors import InvalidInput
from raybox.geometry import Geometry, Grid
from raybox.geometry.rows import NO_STARTS
from raybox.queries.query import GroupsInput
from raybox.spatial.query_boxes import ALL_GROUPS
from raybox.validation import ArrayInput, Ints, Ints32, freeze

COMMON = -1
RULE = "groups must be -1, for all, or a number from 0 on"
WAY_OUT = "Number worlds from 0 on, and give -1 to what is common to all"


class GroupRows(NamedTuple):
    """The groups of a geometry's primitives."""

    numbers: Ints
    """(G,): those of the whole scene from 0 on, ascending; each has row 1 + k of `Tree.starts`"""
    of_rows: Ints
    """(M,): of each primitive, -1 or one of these"""

    def of_tree(self) -> TreeGroups:
        """Return the groups as a tree has them: numbered from 1 on, 0 for what is common."""
        return TreeGroups(_places(self.numbers, self.of_rows), len(self.numbers))


def checked_groups(
    groups: GroupsInput | Sequence[GroupsInput], geometries: list[Geometry], is_list: bool
) -> list[GroupRows | None]:
    """Return the groups of the primitives of each geometry; None of a `Grid`, and of all without groups."""
    if groups is None:
        return [None] * len(geometries)
    given: Any = groups if is_list else [groups]
    if not isinstance(given, list | tuple) or len(given) != len(geometries):
        raise InvalidInput(
            f"groups must be a list of {len(geometries)}, an array or None for each geometry of the scene; "
            f"got {type(given).__name__}. None: the geometry is common to all."
        )
    arrays = [_of_rows(one, geometry) for one, geometry in zip(given, geometries, strict=True)]
    numbers = np.unique(np.concatenate([one for one in arrays if one is not None] or [np.empty(0, np.int64)]))
    numbers = numbers[np.searchsorted(numbers, 0) :]
    freeze(numbers)
    return [None if one is None else GroupRows(numbers, one) for one in arrays]


def _of_rows(groups: GroupsInput, geometry: Geometry) -> Ints | None:
    """Return the group of each primitive of a geometry, checked and read-only."""
    if isinstance(geometry, Grid):
        if groups is not None:
            raise InvalidInput(
                "a Grid has no groups: its cells are those of one world. Mask cells by where=, or pass "
                "Boxes.of_voxels(occupancy) with groups."
            )
        return None
    if groups is None:
        made = np.full(len(geometry), COMMON, np.int64)
    else:
        made = _checked(groups, "primitive")
        if made.shape != (len(geometry),):
            raise InvalidInput(
                f"groups must have shape ({len(geometry)},), one for each row of the geometry; got shape "
                f"{made.shape}. Repeat those of worlds: np.repeat(np.arange(worlds), sizes)."
            )
    freeze(made)
    return made


def _checked(groups: ArrayInput, noun: str) -> Ints:
    made = validation.integers(groups, "groups")
    if (low := made < COMMON).any():
        validation.refuse_rows(low, RULE, {"groups": made}, noun, WAY_OUT)
    return made


def starts_of(
    groups: GroupRows | None, given: GroupsInput, shape: tuple[int, ...], noun: str = "ray"
) -> Ints32:
    """Return at which row of `Tree.starts` each ray, or query, starts: (1,) if it is the same for all.

    groups: those of a geometry of the scene; given: those of the rays.
    """
    many = {"ray": "rays", "query": "queries"}[noun]
    if groups is None:
        raise InvalidInput(
            f"{many} have groups, and the scene has none. Make it with them, Scene(geometry, groups=...), or "
            "leave groups out."
        )
    if given is None:
        raise InvalidInput(
            f"{many} need groups, as the scene has some: each hits what is in its own, and what is common to "
            f"all. Pass groups=, one for each {noun} or one for all; {many} of -1 hit what is common alone."
        )
    numbers = validation.spread(_checked(given, noun), "groups", shape, many)
    starts = _places(groups.numbers, numbers).astype(np.int32)
    if starts.size > 1 and (starts == starts[0]).all():
        starts = starts[:1].copy()
    freeze(starts)
    return starts


def join_starts(groups: GroupRows | None, own: GroupRows | None) -> Ints32:
    """Return at which row of `Tree.starts` of a scene the boxes of a geometry start, or `ALL_GROUPS`.

    groups: of the scene; own: of the geometry, which is common to all without.
    """
    if groups is None:
        return NO_STARTS
    numbers = np.full(1, COMMON) if own is None else own.of_rows
    starts = np.where(numbers == COMMON, ALL_GROUPS, _places(groups.numbers, numbers)).astype(np.int32)
    freeze(starts)
    return starts


def _places(numbers: Ints, some: Ints) -> Ints:
    """Return 1 + the place of each among the numbers; 0 of those that are not there."""
    if not numbers.size:
        return np.zeros(some.shape, np.int64)
    if numbers[-1] == len(numbers) - 1:  # no gaps
        return np.where(some < len(numbers), some, COMMON) + 1
    place = np.searchsorted(numbers, some)
    place[place == len(numbers)] = 0
    return np.where(numbers[place] == some, place + 1, 0)
