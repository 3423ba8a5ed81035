"""Grow those parts of a tree anew that moves have made poor, and leave the others as they are.

A part is poor by its *excess*: what its nodes add to the tree's cost, less what they did when it was
grown. Its root does not count: where a part's boxes are, its bounds must be, however it is grown.

The boxes of a part stay together wherever they go, so what spoils a tree stays in few parts. Built anew
as a whole it has strays mingle with all others, and the next moves spoil every part: of 10^5 boxes 1 %
taking steps of 0.03 in the unit cube make one part poor every 11 frames, or the whole, as often (measured).
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from raybox.bvh.build import Piece, as_parts, grow_part, join
from raybox.bvh.build_threads import TaskRunner, build_pool
from raybox.bvh.frame import Boxes, aligned, frozen, to_rows
from raybox.bvh.node import CHILD, EMPTY, WIDTH, Tree
from raybox.bvh.refit import area_of, bulk_limits, cost_of
from raybox.bvh.sah_parallel import Part, Task

# Both are times what the tree cost when built. Parts are grown until _AIM should be left: with 1.2, a tenth
# more nodes on rays' ways than with 1.02, and no update faster (measured, 10^6 boxes, 1 % of them moving).
# What would be left, or is, beyond _ENOUGH is given up for a whole tree: half way to poor (see
# `raybox.bvh.refit_policy`). With 1.3 rays visit up to twice as many nodes as in a tree built anew, with 1.2
# half as many again; updates are a quarter slower for it, where boxes jump a tenth of the scene at once, else
# not.
_AIM = 1.02
_ENOUGH = 1.2


class Costs(NamedTuple):
    """What a tree costs (see `raybox.bvh.refit`), and what the nodes under each part's root add to that."""

    whole: float
    parts: Any


class _Place(NamedTuple):
    """Where a part is: its rows, the slot that its root hangs from, and the root's depth."""

    begin: int
    end: int
    node: int
    slot: int
    depth: int


def measure(tree: Tree, lower: Any, upper: Any, *, threads: int = 1) -> Costs:
    """Measure the costs of a tree round these boxes; its nodes are such as may be written to."""
    with build_pool(threads) as run_each:
        return _measure(run_each, tree, bulk_limits(tree, lower, upper))


def rebuild_parts(
    tree: Tree, boxes: tuple[Any, Any], built: Costs, *, quality: str, threads: int = 1
) -> tuple[Tree, Costs] | None:
    """Grow the poorest parts of a refitted tree anew; None where that would not do, or be most of the work.

    Return (the tree, by what costs it is to be measured from now on).
    """
    lower, upper = map(frozen, boxes)
    inside, limits = Boxes(lower, upper, tree.center, tree.scale), bulk_limits(tree, lower, upper)
    if not tree.parts.size or np.isnan(limits).any():  # one piece; or its coordinates are no good any more
        return None
    with build_pool(threads) as run_each:
        now = _measure(run_each, tree, limits)
        places = _places(tree)
        chosen = _choose(tree.nodes, places, now, built, len(lower))
        poor = list(chosen)
        asked = [(inside, chosen[k], places[k].depth, quality) for k in poor]
        grown = run_each.largest_first(_grow, asked, map(len, chosen.values()))

        # See what has come of it before anything is put together.
        areas = run_each(area_of, [(words, 1, len(words), limits) for words in grown])
        parts = built.parts.copy()
        parts[poor] = _shares(areas, tree, limits)
        if now.whole + (parts - now.parts)[poor].sum() > _ENOUGH * built.whole:
            return None
        return _replace(run_each, tree, places, dict(zip(poor, grown, strict=True))), built._replace(
            parts=parts
        )


def _measure(run_each: TaskRunner, tree: Tree, limits: Any) -> Costs:
    """Measure the costs of a tree."""
    begins = tree.parts.tolist()
    ends = [*begins, len(tree.nodes)]
    spans = [(1, ends[0]), *((begin, begin + 1) for begin in begins)]
    spans += [(begin + 1, end) for begin, end in zip(begins, ends[1:], strict=True)]
    areas = run_each(area_of, [(tree.nodes, *span, limits) for span in spans])
    whole = float(cost_of(sum(areas), tree.root, limits))
    return Costs(whole, _shares(areas[1 + len(begins) :], tree, limits))


def _shares(areas: Iterable[float], tree: Tree, limits: Any) -> Any:
    """Return what nodes of these areas add to a tree's cost."""
    return np.array([cost_of(area, tree.root, limits) - 1.0 for area in areas])


def _choose(nodes: Any, places: list[_Place], now: Costs, built: Costs, number: int) -> dict[int, Any]:
    """Return parts with the most excess, as many as it takes, each with its boxes; none where that is no way.

    It is none where so much would be left that it is not worth it, or half of all boxes were to be grown.
    """
    excess = now.parts - built.parts
    left, room = now.whole, (number - 1) // 2
    chosen = {}
    for k in np.argsort(-excess, kind="stable").tolist():
        boxes = _boxes_in(nodes, places[k])
        if left <= _AIM * built.whole or excess[k] <= 0.0 or len(boxes) > room:
            break
        chosen[k] = boxes
        left -= excess[k]
        room -= len(boxes)
    return chosen if left <= _ENOUGH * built.whole else {}


def _places(tree: Tree) -> list[_Place]:
    """Return where each part is."""
    begins = tree.parts.tolist()
    top = tree.nodes[: begins[0] if begins else 0, CHILD:]
    depths = [1] * len(top)
    slots = {}
    for node, slot in np.argwhere(top >= 0).tolist():  # parents before their children
        child = int(top[node, slot])
        if child < len(top):
            depths[child] = depths[node] + 1
        else:
            slots[child] = node, slot, depths[node] + 1
    ends = [*begins[1:], len(tree.nodes)]
    return [_Place(begin, end, *slots[begin]) for begin, end in zip(begins, ends, strict=False)]


def _boxes_in(nodes: Any, place: _Place) -> Any:
    """Return the numbers of a part's boxes, in the order of its slots."""
    children = nodes[place.begin : place.end, CHILD:]
    return ~children[(children < 0) & (children != EMPTY)]


def _grow(boxes: Boxes, numbers: Any, depth: int, quality: str) -> Any:
    """Return the nodes of a part of these boxes, its root at this depth."""
    some = boxes._replace(lower=frozen(boxes.lower[numbers]), upper=frozen(boxes.upper[numbers]))
    rows, bounds = aligned(len(numbers), WIDTH, np.float32), np.empty((2, WIDTH), np.float32)
    to_rows(some, 0, len(numbers), rows, bounds)
    rows.view(np.int32)[:, 3] = numbers
    return grow_part(rows, Task(Part(0, 0, len(numbers), *bounds), -1, -1, depth), quality)


def _replace(run_each: TaskRunner, tree: Tree, places: list[_Place], anew: dict[int, Any]) -> Tree:
    """Return the tree with other nodes for some parts: of the same boxes, so that no bounds above change."""
    pieces = [
        Piece(anew[k], 0, at.node, at.slot)
        if k in anew
        else Piece(tree.nodes[at.begin : at.end], at.begin, at.node, at.slot)
        for k, at in enumerate(places)
    ]
    nodes, begins = join(run_each, tree.nodes[: places[0].begin], pieces)
    return tree._replace(nodes=nodes, parts=as_parts(begins))
