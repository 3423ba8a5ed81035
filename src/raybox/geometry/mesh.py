"""`Mesh`: triangles that share vertices."""

from typing import Any, final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry.rows import TriangleRows
from raybox.validation import Floats, Ints


@final
@guard_class("vertices", "faces", "ndim_space", "corners", "rows")
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

    Raises
    ------
    InvalidInput
        If shapes do not fit, a vertex is not finite, or an index of a face is out of range.

    Examples
    --------
    >>> import raybox as rb
    >>> rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    Mesh(1, vertices=3)
    """

    __slots__ = ("_faces", "_vertices")
    _vertices: Floats
    _faces: Ints

    def __init__(self, vertices: Any, faces: Any) -> None:
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
        _made(self, v, f)

    @property
    def vertices(self) -> Floats:
        """The vertices: shape (V, 3), read-only."""
        return self._vertices

    @property
    def faces(self) -> Ints:
        """Three indices of vertices for each triangle: shape (F, 3), read-only."""
        return self._faces

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

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (self._vertices, self._faces)


def _made(mesh: Mesh, vertices: Floats, faces: Ints) -> Mesh:
    mesh._vertices, mesh._faces = vertices, faces
    validation.freeze(vertices, faces)
    return mesh


def restored(vertices: Floats, faces: Ints) -> Mesh:
    """Return a mesh of valid arrays, which are not copied."""
    return _made(object.__new__(Mesh), vertices, faces)
