"""`AllHits`, the result of queries that return every hit of each ray."""

from functools import cached_property
from typing import Any, NamedTuple, final

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.hits.hit_ids import PrimitiveIds, Source, frozen, restored, spans
from raybox.hits.path_lengths import path_lengths
from raybox.hits.sparse import sparse_matrix
from raybox.validation import Floats, Ints, freeze


class RayHits(NamedTuple):
    """All hits of one ray, nearest first: arrays of equal length."""

    index: Ints  # type: ignore[assignment]  # hides the method of tuples
    t: Floats
    t_enter: Floats
    t_exit: Floats
    lengths: Floats
    geometry: Ints
    primitive: Ints


@final
@guard_class("__init__", "offsets", "index", "primitive", "t", "t_enter", "t_exit")
class AllHits:
    """All hits of all rays, in compressed rows: ray i has ``offsets[i]`` to ``offsets[i + 1]``.

    Rays are numbered flat, in C order, whatever their shape. Each ray's hits are sorted by exact
    (t, index). Fields are those of `Hits`.
    """

    def __init__(self, offsets: Ints, hit_id: Ints, t: Floats, source: Source) -> None:
        freeze(offsets, hit_id, t)
        self._offsets, self._hit_id, self._t, self._source = offsets, hit_id, t, source

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (AllHits, self._source, self._offsets, self._hit_id, self._t)

    @cached_property
    def _primitives(self) -> PrimitiveIds:
        return self._source.primitives_of(self._hit_id)

    @property
    def offsets(self) -> Ints:
        """First hit of each ray, shape (N + 1,)."""
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
        return self._source.geometry_of(self._hit_id)

    @property
    def t(self) -> Floats:
        """First contact on the ray: at or after t_min."""
        return self._t

    @cached_property
    def ray(self) -> Ints:
        """Flat number of each hit's ray."""
        return frozen(np.repeat(np.arange(len(self._offsets) - 1, dtype=np.int64), np.diff(self._offsets)))

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
    def lengths(self) -> Floats:
        """The length in space of the path inside each box, within the ray's range.

        min(t_exit, t_max) - max(t_enter, t_min), times the direction's length: within 0.51 ulp of the exact
        product (1 below float64's normal numbers), the same bits on every machine.
        """
        return frozen(path_lengths(self._source.rays.rows(), self.ray, *self._spans))

    def to_sparse(self, values: Any = "lengths") -> Any:
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
        return sparse_matrix(self, values, self._source.sizes)

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __getitem__(self, ray: Any) -> RayHits:
        """Return the hits of one ray.

        ray: its flat number, or its index in the rays' shape.
        """
        shape = self._source.rays.shape
        flat = int(np.ravel_multi_index(ray, shape)) if isinstance(ray, tuple) else range(len(self))[ray]
        part = slice(self._offsets[flat], self._offsets[flat + 1])
        names = RayHits._fields
        return RayHits(*(getattr(self, name)[part] for name in names))

    def __repr__(self) -> str:
        return f"AllHits({len(self)} rays, {len(self._hit_id)} hits)"
