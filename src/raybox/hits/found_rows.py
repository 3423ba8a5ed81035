"""`Rows` and `Neighbors`, the results of queries of points, boxes and distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from math import prod
from typing import Any, TypeVar, final

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry import Ids
from raybox.geometry.row_ids import ArrayIndex
from raybox.hits import runs
from raybox.hits.hit_ids import SceneRows, freeze_all, frozen
from raybox.hits.tables import HTML_ROWS, Columns, HitTables, first_indices
from raybox.validation import Array, Floats, Ints, freeze

F = TypeVar("F", bound="_Found")


@guard_class("index")
class _Found(HitTables):
    """Rows of a scene's geometries, by their numbers: those of geometries follow one another."""

    _scene: SceneRows

    def __init__(self, scene: SceneRows, numbers: Ints) -> None:
        freeze(numbers)
        self._scene, self._hit_id = scene, numbers

    @property
    def _scene_rows(self) -> SceneRows:
        return self._scene

    @property
    def index(self) -> Ints:
        """Row of each box that was found; -1 for none. Of `Instances`, the instance; of a grid, the cell."""
        return self._scene.primitives_of(self._hit_id).index

    @cached_property
    def geometry(self) -> Ints:
        """Number of the geometry of each box that was found; 0 in a scene of one, -1 for none."""
        return self._scene.geometry_of(self._hit_id)

    @cached_property
    def object(self) -> Ints:
        """Number of the object of each box that was found, in its geometry; see `Hits.object`."""
        return self._scene.objects_of(self._hit_id)

    @cached_property
    def ids(self) -> Ids:
        """The id of the object of each box that was found, of dtype object; see `Hits.ids`."""
        return self._scene.ids_of(self._hit_id)

    def _number_columns(self, row: Ints) -> Columns:
        """Return row and index; object, geometry and id where there are any."""
        columns: Columns = {"row": frozen(row), "index": self.index.reshape(-1)}
        if any(objects.numbers is not None for objects in self._scene.objects):
            columns["object"] = self.object.reshape(-1)
        if len(self._scene.parts) > 1:
            columns["geometry"] = self.geometry.reshape(-1)
        if self._scene.has_ids:
            columns["id"] = self.ids.reshape(-1)
        return columns


def _restored(kind: Callable[..., F], scene: SceneRows, *arrays: Array) -> F:
    """Return results that were pickled or copied, read-only again."""
    freeze_all(scene)
    return kind(scene, *arrays)


@final
@guard_class("__init__", "offsets", "shape")
class Rows(_Found):
    """The boxes that each point or box finds, in compressed rows.

    Query i has ``offsets[i]`` to ``offsets[i + 1]``, sorted by geometry and index. Queries are numbered in C
    order, whatever their shape.

    Indexing is NumPy's over the shape of the queries, and `len` is its first number. The index of one query
    gives the array of its boxes; slices, masks and other indices of several give `Rows`.

    Examples
    --------
    >>> import raybox as rb
    >>> scene = rb.Scene(rb.Boxes([[0, 0], [1, 0], [5, 5]], [[1, 1], [2, 1], [6, 6]]))
    >>> rows = scene.containing([[1, 0.5], [9, 9], [5, 6]])
    >>> rows.offsets, rows.index, rows.row
    (array([0, 2, 2, 3]), array([0, 1, 2]), array([0, 0, 2]))
    >>> rows[0], rows[1:]
    (array([0, 1]), Rows(shape=(2,), 1 found))
    """

    _AS_ARRAY = "rows.index and rows.offsets, or rows.to_pandas()"

    def __init__(self, scene: SceneRows, numbers: Ints, offsets: Ints, shape: tuple[int, ...]) -> None:
        freeze(offsets)
        super().__init__(scene, numbers)
        self._offsets, self._shape = offsets, shape

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _restored, (Rows, self._scene, self._hit_id, self._offsets, self._shape)

    @property
    def offsets(self) -> Ints:
        """First box of each of N queries, shape (N + 1,)."""
        return self._offsets

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the queries."""
        return self._shape

    @cached_property
    def row(self) -> Ints:
        """Flat number of the query of each box that was found."""
        return frozen(runs.row_of_each(self._offsets))

    def _compared(self) -> Iterable[Any]:
        return self._offsets, self.index, self.geometry, self.object, self._shape, *self._named

    @property
    def _columns(self) -> Columns:
        return self._number_columns(self.row)

    @property
    def _first_columns(self) -> tuple[Columns, int]:
        queries = int(np.searchsorted(self._offsets, HTML_ROWS))  # whose boxes fill the rows
        some: Rows = self[first_indices(self.shape, queries) or (None,)]
        return some._columns, len(self._hit_id)

    def __len__(self) -> int:
        if not self._shape:
            raise TypeError("len() of a single query, of shape (); rows[()] is the array of its boxes")
        return self._shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: ArrayIndex) -> Any:
        """Return the index array of one query, or `Rows` of several, by any NumPy index over `shape`."""
        chosen = np.arange(prod(self._shape), dtype=np.int64).reshape(self._shape)[index]
        if not isinstance(chosen, np.ndarray):
            return self.index[self._offsets[chosen] : self._offsets[chosen + 1]]
        offsets, places = runs.choose(self._offsets, chosen.reshape(-1))
        return Rows(self._scene, self._hit_id[places], offsets, chosen.shape)

    def __bool__(self) -> bool:
        raise InvalidInput(
            f"bool() of the boxes found by queries of shape {self._shape} is ambiguous. Use "
            "len(rows.index) > 0, or count=True."
        )

    def __repr__(self) -> str:
        return f"Rows(shape={self._shape}, {len(self._hit_id)} found)"


@final
@guard_class("__init__", "distance", "shape")
class Neighbors(_Found):
    """The k boxes nearest to each point, nearest first: arrays of shape ``(..., k)``.

    Where fewer boxes are near enough, index is -1 and distance +inf. Indexing is NumPy's over that shape.

    Examples
    --------
    >>> import raybox as rb
    >>> scene = rb.Scene(rb.Boxes([[0, 0], [3, 0]], [[1, 1], [4, 1]]))
    >>> neighbors = scene.closest([[0.5, 0.5], [1.5, 1]], k=2)
    >>> neighbors.index, neighbors.distance
    (array([[0, 1],
           [0, 1]]), array([[0. , 2.5],
           [0.5, 1.5]]))
    """

    _AS_ARRAY = "neighbors.index and neighbors.distance, or neighbors.to_pandas()"

    def __init__(self, scene: SceneRows, numbers: Ints, distance: Floats, row: Ints | None = None) -> None:
        super().__init__(scene, numbers)
        freeze(distance)
        self._distance, self._row = distance, row

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _restored, (Neighbors, self._scene, self._hit_id, self._distance, self._row)

    @property
    def distance(self) -> Floats:
        """The exact distance of each box, rounded once; 0 of a box that holds the point, +inf for none."""
        return self._distance

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the points, with k at the end."""
        return self._distance.shape

    @cached_property
    def row(self) -> Ints:
        """Flat number of the point of each box."""
        if self._row is not None:
            return frozen(self._row)
        numbers = np.arange(prod(self.shape[:-1]), dtype=np.int64).reshape(*self.shape[:-1], 1)
        return frozen(np.broadcast_to(numbers, self.shape))

    def _compared(self) -> Iterable[Any]:
        return self.index, self.geometry, self.object, self._distance, *self._named

    @property
    def _columns(self) -> Columns:
        return self._number_columns(self.row.reshape(-1)) | {"distance": self._distance.reshape(-1)}

    @property
    def _first_columns(self) -> tuple[Columns, int]:
        some: Neighbors = self[first_indices(self.shape, HTML_ROWS) or (None,)]
        return some._columns, self._hit_id.size

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a single neighbor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Neighbors]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: ArrayIndex) -> Neighbors:
        """Return neighbours by any NumPy index over `shape`."""
        numbers, row = np.asarray(self._hit_id[index]), np.asarray(self.row[index])
        return Neighbors(self._scene, numbers, np.asarray(self._distance[index]), row)

    def __bool__(self) -> bool:
        raise InvalidInput(
            f"bool() of neighbours of shape {self.shape} is ambiguous. Use (neighbors.index >= 0).any()."
        )

    def __repr__(self) -> str:
        return f"Neighbors(shape={self.shape}, {np.count_nonzero(self._hit_id >= 0)} found)"
