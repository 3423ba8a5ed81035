"""`Index`: the queries of rtree's class, computed by a `Scene`. rtree itself is not imported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, SupportsIndex, TypeAlias, cast, final

import numpy as np
from numpy.typing import NDArray

from raybox.adapters.rtree_entries import (
    CoordinateOrder,
    Entries,
    HasDimension,
    IndexItem,
    IndexProperty,
    Objects,
    Row,
    box_of,
    deinterleave,
    dimension_of,
    entries_of,
    interleave,
)
from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry import Boxes
from raybox.scene.box_targets import target_of
from raybox.scene.scene import Scene, state_of
from raybox.spatial.arguments import check_boxes, distances_of, neighbor_count
from raybox.spatial.closest_ties import find_closest_and_ties
from raybox.spatial.query_boxes import QueryBoxes
from raybox.spatial.search import FoundRows, find_rows, searched
from raybox.spatial.single_query import find_closest_of_one, find_rows_of_one
from raybox.spatial.slot_boxes import BoxTree
from raybox.spatial.target import RunSettings
from raybox.validation import ArrayInput, Floats, Ints, freeze

__all__ = ["Index", "Item", "Property"]

Item, Property = IndexItem, IndexProperty
Counts: TypeAlias = NDArray[np.uint64]
_NO_LIMIT = np.array([np.inf])
freeze(_NO_LIMIT)


@final
@guard_class("interleaved", "interleave", "deinterleave", "insert", "add", "delete", "get_size", "scene")
class Index:
    """A replacement for `rtree.index.Index`, of boxes that are all given at once.

    Boxes are closed, and comparisons exact. Results are in the order in which the boxes were given; those of
    `nearest` by distance, then in that order. Objects are stored as they are, not pickled.

    Parameters
    ----------
    stream : iterable of (id, coordinates, object), or tuple of arrays (ids, mins, maxs), optional
        Coordinates are those of boxes or of points. Arrays have the shapes (n,), (n, D) and (n, D).
    interleaved : bool
        The order of coordinates. True: xmin, ymin, ..., xmax, ymax, ...; False: xmin, xmax, ymin, ymax, ...
    properties : Property, optional
        Its ``dimension`` is D, 2 or 3. It may be one of rtree.
    workers : int
        Threads; -1 for all cores.
    **others
        Other arguments of rtree, without effect.

    Raises
    ------
    InvalidInput
        If D is neither 2 nor 3, the index would be in a file or of moving boxes, ids are not integers, a
        coordinate is NaN, or a minimum is above its maximum.

    Examples
    --------
    >>> from raybox.adapters import rtree as index
    >>> boxes = [(10, (0, 0, 1, 1), "a"), (20, (1, 0, 2, 1), "b"), (30, (5, 5, 6, 6), None)]
    >>> idx = index.Index(boxes)
    >>> list(idx.intersection((1, 0.5, 3, 3))), list(idx.nearest((1, 0.5), 1, objects="raw"))
    ([10, 20], ['a', 'b'])
    """

    def __init__(
        self,
        stream: Iterable[Row] | tuple[ArrayInput, ...] | None = None,
        *more: object,
        interleaved: bool = True,
        properties: HasDimension | None = None,
        workers: int = -1,
        **others: object,
    ) -> None:
        self.properties = Property() if properties is None else properties
        layout = CoordinateOrder(bool(interleaved), dimension_of(self.properties))
        self._set(entries_of((stream, *more) if more else stream, layout), layout, workers)

    def _set(self, entries: Entries, layout: CoordinateOrder, workers: int) -> None:
        self._entries, self._layout, self._how = entries, layout, RunSettings(workers, progress=False)
        self._scene = Scene(entries.boxes, workers=workers)
        self._target = target_of(state_of(self._scene).parts, None, "overlapping")
        self._tree = cast(BoxTree, searched(self._target, self._target.parts[0]))

    @property
    def interleaved(self) -> bool:
        """The order of coordinates; see the parameter."""
        return self._layout.interleaved

    @property
    def scene(self) -> Scene:
        """A `Scene` of the boxes, in the order given. The index does not follow its updates."""
        return self._scene

    def intersection(self, coordinates: ArrayInput, objects: Objects = False) -> Iterator[Any]:
        """Return the ids of the boxes that share a point with a box.

        Parameters
        ----------
        coordinates : array_like, shape (2 D,) or (D,)
            A box, or a point.
        objects : bool or "raw"
            True: return an `Item` of each; "raw": the objects that were given.
        """
        return self._entries.results(find_rows_of_one(self._tree, self._query(coordinates)), objects)

    def count(self, coordinates: ArrayInput) -> int:
        """Return how many boxes share a point with a box, or contain a point."""
        return len(find_rows_of_one(self._tree, self._query(coordinates)))

    def contains(self, coordinates: ArrayInput, objects: Objects = False) -> Iterator[Any]:
        """Return the boxes that lie in a box; they may touch its faces. See `intersection`."""
        query, boxes = self._query(coordinates), self._entries.boxes
        rows, axes = find_rows_of_one(self._tree, query), np.s_[:, : boxes.ndim_space]
        inside = (boxes.lower[rows] >= query.lower[axes]) & (boxes.upper[rows] <= query.upper[axes])
        return self._entries.results(rows[inside.all(axis=1)], objects)

    def nearest(
        self, coordinates: ArrayInput, num_results: SupportsIndex = 1, objects: Objects = False
    ) -> Iterator[Any]:
        """Return the boxes nearest to a box, and all that tie with the last of them.

        Boxes that overlap are at distance 0. Ties are exact. See `intersection`.
        """
        k = neighbor_count(num_results, "num_results")
        query = self._query(coordinates)._replace(distances=_NO_LIMIT)
        rows = find_closest_of_one(self._tree, query, k) if k < len(self) else None
        if rows is None:
            rows = find_closest_and_ties(self._target, query, k, self._how).found.numbers
        return self._entries.results(rows, objects)

    def intersection_v(self, mins: ArrayInput, maxs: ArrayInput) -> tuple[Ints, Counts]:
        """Return the ids of boxes that share a point with each of n boxes, and how many each has.

        Parameters
        ----------
        mins, maxs : array_like, shape (n, D)
        """
        return self._ids(find_rows(self._target, self._queries(mins, maxs), self._how))

    def nearest_v(
        self,
        mins: ArrayInput,
        maxs: ArrayInput,
        *,
        num_results: SupportsIndex = 1,
        max_dists: ArrayInput | None = None,
        strict: bool = False,
        return_max_dists: bool = False,
    ) -> tuple[Ints, Counts] | tuple[Ints, Counts, Floats]:
        """Return the ids of the boxes nearest to each of n boxes, and how many each has.

        Parameters
        ----------
        mins, maxs : array_like, shape (n, D)
        num_results : int
            How many boxes for each, at least 1; more where others tie with the last of them.
        max_dists : array_like, shape (n,), optional
            The largest distance that counts. 0 sets no limit, as in rtree.
        strict : bool
            True: not more than `num_results`; of boxes that tie, the first.
        return_max_dists : bool
            True: return the distance of the last box of each, too, rounded once; 0 where there is none.

        Raises
        ------
        InvalidInput
            If bounds are not those of boxes, num_results is below 1, or a distance is below 0.
        """
        queries, distances = self._queries(mins, maxs), _NO_LIMIT
        if max_dists is not None:
            given = distances_of(max_dists, "max_dists", (len(queries.lower),), "box")
            distances = np.where(given == 0.0, np.inf, given)
            freeze(distances)
        queries = queries._replace(distances=distances)
        nearest = find_closest_and_ties(
            self._target, queries, neighbor_count(num_results, "num_results"), self._how, ties=not strict
        )
        ids, counts = self._ids(nearest.found)
        if not return_max_dists:
            return ids, counts
        return ids, counts, np.where(counts > 0, nearest.farthest, 0.0)

    def get_bounds(self, coordinate_interleaved: bool | None = None) -> list[float]:
        """Return the bounds of all boxes, in the given order of coordinates; None: in that of the index.

        Those of no boxes are the largest number and its negative, as in rtree.
        """
        ends = self._entries.boxes.bounds
        if not len(self):
            ends = np.copysign(np.finfo(np.float64).max, ends)
        in_order = self.interleaved if coordinate_interleaved is None else coordinate_interleaved
        return (ends if in_order else ends.T).ravel().tolist()

    bounds = property(get_bounds)

    def get_size(self) -> int:
        """Return the number of boxes."""
        return len(self)

    def insert(self, *_: object, **__: object) -> NoReturn:
        """Raise `InvalidInput`: an index does not change."""
        raise InvalidInput(
            "boxes of an Index of raybox must be given at once: Index(stream). For boxes that move: "
            "scene = raybox.Scene(boxes), then scene.update(moved_boxes)."
        )

    add = delete = insert

    interleave, deinterleave = staticmethod(interleave), staticmethod(deinterleave)

    def __len__(self) -> int:
        return len(self._entries.ids)

    def __repr__(self) -> str:
        return f"{type(self).__module__}.Index(bounds={self.bounds}, size={len(self)})"

    def __getstate__(self) -> tuple[object, ...]:
        return self.properties, self._entries, self._layout, self._how.workers

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.properties, *rest = state
        self._set(*rest)

    def _query(self, coordinates: ArrayInput) -> QueryBoxes:
        return QueryBoxes(*box_of(coordinates, self._layout))

    def _queries(self, mins: ArrayInput, maxs: ArrayInput) -> QueryBoxes:
        return QueryBoxes(*check_boxes(Boxes(mins, maxs), self._layout.dimension)._rows())

    def _ids(self, found: FoundRows) -> tuple[Ints, Counts]:
        return self._entries.ids[found.numbers], np.diff(found.offsets).astype(np.uint64)
