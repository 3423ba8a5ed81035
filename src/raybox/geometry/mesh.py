"""`Mesh`: triangles that share vertices."""

from typing import final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry.row_ids import Ids, IdsInput, checked_ids
from raybox.geometry.rows import TriangleRows
from raybox.validation import ArrayInput, Floats, Ints


@final
@guard_class("vertices", "faces", "ids", "ndim_space", "corners", "rows")
class Mesh:
    """Closed triangles in space: edges and corners belong to them, and both sides are hit.

    Rays miss a triangle without area, and one whose plane they are parallel to. All arrays are read-only
    copies.

    Parameters
    ----------
    vertices : array_like, shape (V, 3)
        Finite.
    faces : array_like of int, shape (F, 3)
        Each row is a triangle's three indices into ``vertices``, in [0, V).
    ids : sequence of str or of int, shape (F,), optional
        A name for each triangle, such as that of its part, which hits return: `Hits.ids`.

    Raises
    ------
    InvalidInput
        If shapes do not fit, a vertex is not finite, or an index of a face is out of range; if there is not
        one id for each triangle, or ids are neither all str nor all int.

    Examples
    --------
    >>> import raybox as rb
    >>> rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    Mesh(1, vertices=3)
    """

    __slots__ = ("_faces", "_ids", "_vertices")
    _vertices: Floats
    _faces: Ints
    _ids: Ids | None

    def __init__(self, vertices: ArrayInput, faces: ArrayInput, *, ids: IdsInput = None) -> None:
        v = validation.rows(vertices, "vertices", (3,))
        f = validation.integers(faces, "faces")
        if f.shape == (0,):
            f = f.reshape(0, 3)
        if f.ndim != 2 or f.shape[1] != 3:
            raise InvalidInput(
                f"faces must have shape (F, 3), three corners for each triangle; got shape {f.shape}. "
                f"Split larger polygons into triangles first."
            )
        validation.require_finite(v, "vertices", "vertex", "Drop the faces that use them, and those vertices")
        outside = (f < 0) | (f >= len(v))
        if outside.any():
            limits = f"from 0 to {len(v) - 1} ({len(v)} vertices)" if len(v) else "and there are no vertices"
            rule = f"faces must be indices of vertices, {limits}"
            way_out = "Count from 0, and check that all vertices were passed"
            validation.refuse_rows(outside.any(axis=1), rule, {"faces": f}, "face", way_out)
        _made(self, v, f, checked_ids(ids, len(f), "triangle"))

    @property
    def vertices(self) -> Floats:
        """The vertices: shape (V, 3), read-only."""
        return self._vertices

    @property
    def faces(self) -> Ints:
        """Three indices of vertices for each triangle: shape (F, 3), read-only."""
        return self._faces

    @property
    def ids(self) -> Ids | None:
        """The ids: str or int, shape (F,) of dtype object, read-only; None without."""
        return self._ids

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 3."""
        return 3

    def __len__(self) -> int:
        return len(self._faces)

    def corners(self) -> Floats:
        """Return the corners of each triangle, shape (F, 3, 3): triangle, corner, coordinate.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).corners()[0, 1]
        array([1., 0., 0.])
        """
        return np.take(self._vertices, self._faces, axis=0)

    def rows(self) -> TriangleRows:
        """Return the arrays for kernels."""
        corners = self.corners()
        validation.freeze(corners)
        return TriangleRows(corners)

    def __repr__(self) -> str:
        return f"Mesh({len(self)}, vertices={len(self._vertices)})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return restored, (self._vertices, self._faces, self._ids)


def _made(mesh: Mesh, vertices: Floats, faces: Ints, ids: Ids | None) -> Mesh:
    mesh._vertices, mesh._faces, mesh._ids = vertices, faces, ids
    validation.freeze(vertices, faces)
    return mesh


def restored(vertices: Floats, faces: Ints, ids: Ids | None = None) -> Mesh:
    """Return a mesh of valid arrays, which are not copied."""
    if ids is not None:
        validation.freeze(ids)
    return _made(object.__new__(Mesh), vertices, faces, ids)
