"""`AllHits`, the result of queries that return every hit of each ray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any, Literal, final

import numpy as np
from numpy.typing import ArrayLike

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry import Ids, Rays
from raybox.geometry.row_ids import ArrayIndex
from raybox.hits import runs
from raybox.hits.hit_ids import (
    PrimitiveIds,
    Source,
    derive,
    derive_exactly,
    distances_of,
    frozen,
    normals_of,
    points_of,
    restored,
    spans,
)
from raybox.hits.object_hits import ObjectHits, by_object
from raybox.hits.path_lengths import path_lengths
from raybox.hits.ray_hits import RayHits
from raybox.hits.sparse import sparse_matrix
from raybox.hits.tables import HTML_ROWS, Columns, HitTables, first_indices, number_columns
from raybox.validation import Floats, Ints, freeze

if TYPE_CHECKING:
    from scipy.sparse import csr_array


SparseValues = Literal["lengths", "t", "t_enter", "t_exit"]


@final
@guard_class("__init__", "offsets", "index", "primitive", "t", "t_enter", "t_exit", "shape")
class AllHits(HitTables):
    """All hits of all rays, in compressed rows: ray i has ``offsets[i]`` to ``offsets[i + 1]``.

    Fields are those of `Hits`, flat: rays are numbered in C order, whatever their shape. Each ray's hits are
    sorted by exact (t, index).

    Indexing is NumPy's over the rays' shape, and `len` is its first number. The index of one ray gives its
    `RayHits`, whose `len` is their number; slices, masks and other indices of several rays give `AllHits`,
    with rays numbered anew.

    Examples
    --------
    >>> import raybox as rb
    >>> scene = rb.Scene(rb.Boxes([[5, -1], [2, -1]], [[6, 1], [4, 1]]))
    >>> all_hits = scene.all(rb.Rays([[0, 0], [0, 9], [0, 1]], [1, 0]))
    >>> all_hits[0].index, [len(hits) for hits in all_hits]
    (array([1, 0]), [2, 0, 2])
    >>> all_hits[1:]
    AllHits(shape=(2,), 2 hits)
    """

    def __init__(self, offsets: Ints, hit_id: Ints, t: Floats, source: Source) -> None:
        freeze(offsets, hit_id, t)
        self._offsets, self._hit_id, self._t, self._source = offsets, hit_id, t, source

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return restored, (AllHits, self._source, self._offsets, self._hit_id, self._t)

    @cached_property
    def _primitives(self) -> PrimitiveIds:
        return self._source.scene.primitives_of(self._hit_id)

    @property
    def _rays(self) -> Rays:
        assert isinstance(self._source.rays, Rays)  # as a sweep has one hit a box
        return self._source.rays

    @cached_property
    def _numbers(self) -> Ints:
        return frozen(np.arange(prod(self.shape), dtype=np.int64).reshape(self.shape))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the rays."""
        return self._source.rays.shape

    @property
    def offsets(self) -> Ints:
        """First hit of each of N rays, shape (N + 1,)."""
        return self._offsets

    @property
    def index(self) -> Ints:
        """Row of each hit. For `Instances`, the instance."""
        return self._primitives.index

    @property
    def primitive(self) -> Ints:
        """Row of the geometry of `Instances` of each hit; otherwise `index`."""
        return self._primitives.primitive

    @cached_property
    def geometry(self) -> Ints:
        """Number of the geometry of each hit.

        0 in a scene of one.
        """
        return self._source.scene.geometry_of(self._hit_id)

    @cached_property
    def object(self) -> Ints:
        """Number of the object of each hit, in its geometry; see `Hits.object`."""
        return self._source.scene.objects_of(self._hit_id)

    @cached_property
    def ids(self) -> Ids:
        """The id of the object of each hit, of dtype object: str or int.

        None for hits of a geometry that has no ids, in a scene of several.

        Raises
        ------
        InvalidInput
            If no geometry of the scene has ids. See `Boxes` and `Mesh`; :func:`load` reads them.
        """
        return self._source.scene.ids_of(self._hit_id)

    def by_object(self) -> ObjectHits:
        """Return a row for each ray and each object that it hits.

        `count` and `all` count triangles: a ray through a wall of a mesh hits two. Here that wall is one row.

        Returns
        -------
        ObjectHits
            ``ray geometry object t_first t_last contacts``, sorted by ray, then by first contact; ``ids``,
            ``labels``, and the tables of hits.

        Examples
        --------
        >>> import raybox as rb
        >>> corners = [[1, 0, 0], [1, 4, 0], [1, 0, 4], [3, 0, 0], [3, 4, 0], [3, 0, 4]]
        >>> slab = rb.Mesh(corners, [[0, 1, 2], [3, 4, 5]], objects=[0, 0], ids=["slab"])
        >>> rb.Scene(slab).all(rb.Rays([0, 1, 1], [[1, 0, 0], [0, 0, 1]])).by_object().to_dict()["contacts"]
        array([2])
        """
        return by_object(self.ray, self._hit_id, self._t, self._source)

    @property
    def t(self) -> Floats:
        """First contact on the ray: at or after t_min."""
        return self._t

    @cached_property
    def ray(self) -> Ints:
        """Flat number of each hit's ray."""
        return frozen(runs.row_of_each(self._offsets))

    @cached_property
    def _spans(self) -> tuple[Floats, Floats]:
        return spans(self._source, self.ray, self._hit_id)

    @property
    def t_enter(self) -> Floats:
        """The t at which the whole line enters the primitive, unclamped."""
        return self._spans[0]

    @property
    def t_exit(self) -> Floats:
        """The t at which the whole line leaves the primitive, unclamped."""
        return self._spans[1]

    @cached_property
    def distances(self) -> Floats:
        """The distance to each first contact, t times the direction's length; see `Hits.distances`."""
        return frozen(distances_of(self._source, self.ray, self._hit_id, self._t))

    @cached_property
    def points(self) -> Floats:
        """The points o + t d of first contact, shape (hits, D); see `Hits.points`."""
        return frozen(points_of(self._source, self.ray, self._hit_id, self._t))

    @cached_property
    def lengths(self) -> Floats:
        """The length in space of the path inside each box, within the ray's range.

        min(t_exit, t_max) - max(t_enter, t_min), times the direction's length: within 0.51 ulp of the exact
        product (1 below float64's normal numbers), the same bits on every machine. Where these times are
        infinite, or below the normal numbers for a direction longer than 2**60, they count as they are
        before rounding, so that every finite length is returned.
        """
        lengths, lost = path_lengths(self._rays._rows(), self.ray, *self._spans)
        if lost.size:
            derive_exactly(self._source, self.ray, self._hit_id, "lengths_of", lost, lengths)
        return frozen(lengths)

    @cached_property
    def normals(self) -> Floats:
        """The unit normal at each first contact, shape (hits, D); see `Hits.normals`."""
        return normals_of(self._source, self.ray, self._hit_id)

    @cached_property
    def uv(self) -> Floats:
        """Barycentric weights of a triangle's second and third corner, shape (hits, 2).

        NaN otherwise.
        """
        uv = np.full((self._hit_id.size, 2), np.nan)
        derive(self._source, self.ray, self._hit_id, "weights_of", uv)
        return frozen(uv)

    def _compared(self) -> Iterable[Any]:
        numbers = self._offsets, self.index, self.primitive, self.geometry, self.object
        return *numbers, self._t, *self._spans, self._rays, *self._named

    @property
    def _columns(self) -> Columns:
        times = {"t": self._t, "t_enter": self.t_enter, "t_exit": self.t_exit, "length": self.lengths}
        return number_columns(self._source, self, self.ray) | times

    @property
    def _first_columns(self) -> tuple[Columns, int]:
        rays = int(np.searchsorted(self._offsets, HTML_ROWS))  # whose hits fill the rows
        return self[first_indices(self.shape, rays)]._columns, len(self._hit_id)

    def to_sparse(self, values: SparseValues | ArrayLike = "lengths") -> csr_array:
        """Return a sparse matrix with a row for each ray and a column for each primitive.

        With lengths it is the system matrix of tomography: its product with a number for each cell is the
        integral along each ray. Rays are numbered flat. Instances have a column each, geometries of a list
        follow one another; hits of one ray and one column are added.

        Parameters
        ----------
        values : {"lengths", "t", "t_enter", "t_exit"} or array, shape (hits,)
            The entries: a field of these hits, or one number for each hit.

        Returns
        -------
        scipy.sparse.csr_array, shape (rays, primitives), float64

        Raises
        ------
        InvalidInput
            If the values are none of these.
        RayboxError
            If SciPy is not installed.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[5, -1], [2, -1]], [[6, 1], [4, 1]]))
        >>> matrix = scene.all(rb.Rays([[0, 0], [0, 9]], [1, 0])).to_sparse()
        >>> matrix.toarray()
        array([[1., 2.],
               [0., 0.]])
        """
        return sparse_matrix(self, values, self._source.scene.sizes)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a single ray, of shape (); all_hits[()] holds its hits")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: ArrayIndex) -> Any:
        """Return the `RayHits` of one ray, or `AllHits` of several, by any NumPy index over `shape`."""
        ray = self._numbers[index]
        if not isinstance(ray, np.ndarray):
            return RayHits(self, int(ray))
        return self._of_rays(ray.reshape(-1), self._rays[index])

    def _of_rays(self, ray: Ints, rays: Rays) -> AllHits:
        """Return the hits of rays, given flat numbers of them and these rays in their shape."""
        offsets, places = runs.choose(self._offsets, ray)
        return AllHits(offsets, self._hit_id[places], self._t[places], self._source._replace(rays=rays))

    def __bool__(self) -> bool:
        raise InvalidInput(
            f"bool() of all hits of rays of shape {self.shape} is ambiguous. Use len(all_hits.index) > 0, or "
            "scene.nearest(rays).hit.any()."
        )

    def __repr__(self) -> str:
        return f"AllHits(shape={self.shape}, {len(self._hit_id)} hits)"
