"""`Mesh`: triangles that share vertices."""

from __future__ import annotations

import os
import warnings
from importlib import import_module
from typing import Any, SupportsIndex, final

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry import mesh_surface, transforms
from raybox.geometry.labels import (
    NO_ATTRIBUTES,
    Attributes,
    HasAttributes,
    LabelsInput,
    checked_attributes,
    checked_labels,
    frozen_attributes,
)
from raybox.geometry.mesh_surface import Seed, SurfaceSample
from raybox.geometry.row_ids import IdsInput, RowIndex, listed_ids, listed_rows
from raybox.geometry.rows import TriangleRows
from raybox.geometry.two_arrays import of_two_arrays, refuse_one_of_mesh
from raybox.validation import ArrayInput, Bools, Floats, Ints


@final
@guard_class("vertices", "faces", "objects", "ndim_space", "triangles", "corners")
class Mesh(HasAttributes):
    """Closed triangles in space: edges and corners belong to them, and both sides are hit.

    Rays miss a triangle without area, and one whose plane they are parallel to. A ray hits a triangle, which
    belongs to an object: ids and labels are those of objects. All arrays are read-only copies.

    Parameters
    ----------
    vertices : array_like, shape (V, 3)
        Finite.
    faces : array_like of int, shape (F, 3)
        Each row is a triangle's three indices into ``vertices``, in [0, V).
    objects : array_like of int, shape (F,), optional
        The object of each triangle, in [0, n), where n is the number of ids or labels, or without both the
        largest number + 1. Objects without triangles are allowed. None: each triangle is an object.
    ids : sequence of str or of int, shape (n,), optional
        A name for each object, which hits return: `Hits.ids`.
    labels : mapping or table, of n rows, optional
        Columns of numbers, bools or text by name, which hits return: `Hits.labels`.

    Raises
    ------
    InvalidInput
        If shapes do not fit, a vertex is not finite, or an index of a face is out of range; if an object is
        out of range, there is not one id and label for each object, ids are neither all str nor all int, or
        labels are of other kinds.

    Examples
    --------
    >>> import raybox as rb
    >>> rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    Mesh(1, vertices=3)
    >>> square = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    >>> rb.Mesh(square, [[0, 1, 2], [0, 2, 3]], objects=[0, 0], ids=["roof"])
    Mesh(2, vertices=4, objects=1)
    """

    __slots__ = ("_attributes", "_faces", "_objects", "_vertices")
    _AS_ARRAY = "mesh.triangles"
    _vertices: Floats
    _faces: Ints
    _objects: Ints | None

    @of_two_arrays
    def __init__(
        self,
        vertices: ArrayInput,
        faces: ArrayInput,
        *,
        objects: ArrayInput | None = None,
        ids: IdsInput = None,
        labels: LabelsInput = None,
    ) -> None:
        if faces is None:
            refuse_one_of_mesh(vertices)
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
        if objects is None:
            _made(self, v, f, None, checked_attributes(ids, labels, len(f), "triangle"))
        else:
            _made(self, v, f, *_checked_objects(objects, ids, labels, len(f)))

    @classmethod
    def from_trimesh(cls, mesh: object) -> Mesh:
        """Return the triangles of a mesh or a scene of trimesh, as float64 vertices.

        Of a scene, each node that shows a mesh is an object, placed by its matrix; its name is the id.

        Parameters
        ----------
        mesh : trimesh.Trimesh or trimesh.Scene
            Or any object with ``vertices`` and ``faces``.

        Raises
        ------
        InvalidInput
            As for `Mesh`, or if the object is of another kind.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> import raybox as rb
        >>> mesh = SimpleNamespace(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], faces=[[0, 1, 2]])
        >>> rb.Mesh.from_trimesh(mesh)
        Mesh(1, vertices=3)
        """
        return cls(**_of_trimesh(mesh))

    @property
    def vertices(self) -> Floats:
        """The vertices: shape (V, 3), read-only."""
        return self._vertices

    @property
    def faces(self) -> Ints:
        """Three indices of vertices for each triangle: shape (F, 3), read-only."""
        return self._faces

    @property
    def objects(self) -> Ints:
        """The object of each triangle: shape (F,), read-only; without objects, the triangle's own number."""
        if self._objects is None:
            numbers = np.arange(len(self), dtype=np.int64)
            validation.freeze(numbers)
            return numbers
        return self._objects

    @property
    def triangles(self) -> Floats:
        """The corners of each triangle: shape (F, 3, 3), read-only: triangle, corner, coordinate.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]]).triangles[0, 1]
        array([1., 0., 0.])
        """
        triangles = np.take(self._vertices, self._faces, axis=0)
        validation.freeze(triangles)
        return triangles

    def corners(self) -> Floats:
        """Return a copy of `triangles`, which replaces this method: it is deprecated."""
        warnings.warn("Mesh.corners() is now the array Mesh.triangles", DeprecationWarning, stacklevel=2)
        return self.triangles.copy()

    @property
    def bounds(self) -> Floats:
        """The lower and upper bound of all triangles together, shape (2, 3).

        +inf and -inf if there are none.
        """
        used = self._vertices[np.unique(self._faces)]
        return np.stack([used.min(axis=0, initial=np.inf), used.max(axis=0, initial=-np.inf)])

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 3."""
        return 3

    def __len__(self) -> int:
        return len(self._faces)

    def __getitem__(self, index: RowIndex) -> Mesh:
        """Return triangles by an integer (one triangle), slice, mask or list of integers.

        Vertices, numbers of objects, ids and labels stay whole: ``mesh[index].objects`` are
        ``mesh.objects[index]``.
        """
        index = listed_rows(index)
        faces = self._faces[index]
        if isinstance(index, tuple) or faces.ndim != 2:
            raise IndexError(
                "triangles are a flat list: index by one integer, slice, mask or list of integers"
            )
        arrays = np.asarray(faces, order="C"), np.asarray(self.objects[index], order="C")
        attributes = self._attributes.of_triangles(index)
        return _made(object.__new__(Mesh), self._vertices, *arrays, attributes)

    @property
    def face_areas(self) -> Floats:
        """The area of each triangle: shape (F,), read-only.

        Within 4 units in the last place of the exact area of the very vertices, at any distance from 0 and of
        any thinness; exactly 0 for a triangle without area, inf for one that float64 does not hold.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Mesh([[0, 0, 0], [4, 0, 0], [0, 3, 0], [8, 0, 0]], [[0, 1, 2], [0, 1, 3]]).face_areas
        array([6., 0.])
        """
        return mesh_surface.areas(self._rows().corners)

    @property
    def face_normals(self) -> Floats:
        """The unit normal of each triangle: shape (F, 3), read-only.

        (b - a) x (c - a) of its corners in the order of `faces`: the bits of `Hits.normals`. NaN for a
        triangle without area, which no ray hits.

        Examples
        --------
        >>> import raybox as rb
        >>> rb.Mesh([[0, 0, 0], [4, 0, 0], [0, 3, 0]], [[0, 1, 2], [0, 2, 1]]).face_normals
        array([[ 0.,  0.,  1.],
               [ 0.,  0., -1.]])
        """
        return mesh_surface.normals(self._rows().corners)

    def sample(self, n: SupportsIndex, seed: Seed = None) -> SurfaceSample:
        """Return random points on the triangles, uniform by area.

        Parameters
        ----------
        n : int
            The number of points.
        seed : int or numpy.random.Generator, optional
            The same seed gives the same points. None: other points at each call.

        Returns
        -------
        SurfaceSample
            A named tuple: ``points``, of shape (n, 3), rounded to float64, and ``faces``, of shape (n,), the
            triangle of each. Triangles without area have no points.

        Raises
        ------
        InvalidInput
            If n is no whole number of at least 0, no triangle has an area, or seed is of another kind.

        Examples
        --------
        >>> import raybox as rb
        >>> roof = rb.Mesh([[0, 0, 5], [4, 0, 5], [0, 3, 5]], [[0, 1, 2]])
        >>> points, faces = roof.sample(1000, seed=1)
        >>> points.shape, faces.shape, bool((points[:, 2] == 5).all())
        ((1000, 3), (1000,), True)
        """
        return mesh_surface.sample(self._rows().corners, n, seed)

    def contains(self, points: ArrayInput) -> Bools:
        """Return which points are inside of a closed mesh or on its surface, exactly.

        A point is inside if a ray from it crosses the surface an odd number of times: not where two bodies of
        one mesh overlap, nor in a cavity. Triangles without area have no points. Each call builds a scene:
        pass all points in one call.

        Parameters
        ----------
        points : array_like, shape (n, 3)
            Finite.

        Returns
        -------
        ndarray of bool, shape (n,)

        Raises
        ------
        InvalidInput
            If a point is not finite, or the mesh is open: an edge is not in two triangles of opposite
            directions. Vertices at one point count as one.

        Examples
        --------
        >>> import raybox as rb
        >>> corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
        >>> mesh = rb.Mesh(corners, [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
        >>> mesh.contains([[0.1, 0.1, 0.1], [0, 0, 0.5], [1, 1, 1]])
        array([ True,  True, False])
        """
        found = validation.rows(points, "points", (3,))
        validation.require_finite(found, "points", "point", "Drop those points")
        # scenes are a layer above geometries
        inside: Bools = import_module("raybox.scene.containment").contains(self, found)
        return inside

    def transformed(self, matrix: ArrayInput) -> Mesh:
        """Return the mesh moved by a matrix: each vertex p becomes A p + b.

        Objects, ids and labels stay; `up` is turned, and `units` stay if A permutes or mirrors axes. A matrix
        that mirrors reverses the order of each triangle's corners, so that its outer side stays the outer
        one, as that of `Instances`. `Instances` are exact images, without rounding, and store the triangles
        once for many copies.

        Parameters
        ----------
        matrix : array_like, shape (4, 4) or (3, 4)
            [A b], with or without a last row 0 0 0 1. It may flatten the mesh.

        Returns
        -------
        Mesh
            Vertices are computed in float64, each operation rounded: a translation rounds once.

        Raises
        ------
        InvalidInput
            If the shape is another, a number is not finite, the last row is another, or an image of a vertex
            is beyond float64.

        Examples
        --------
        >>> import raybox as rb
        >>> mesh = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], ids=["roof"])
        >>> moved = mesh.transformed([[2, 0, 0, 10], [0, 2, 0, 0], [0, 0, 2, 3]])
        >>> moved.vertices.tolist(), moved.ids
        ([[10.0, 0.0, 3.0], [12.0, 0.0, 3.0], [10.0, 2.0, 3.0]], array(['roof'], dtype=object))
        """
        placed = transforms.matrix(matrix)
        moved = transforms.images(placed, self._vertices)
        faces = self._faces[:, [0, 2, 1]] if transforms.mirrors(placed) else self._faces
        facts = self._facts.under(placed[:, :3])
        attributes = self._attributes._replace(facts=facts)
        return _made(object.__new__(Mesh), moved, np.ascontiguousarray(faces), self._objects, attributes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the mesh into a file: ``.npz``, ``.parquet`` or ``.ply``.

        Of ``.npz`` and ``.parquet``, `raybox.load` returns an equal mesh. PLY holds triangles and objects;
        ids and labels are then in the table ``PATH.labels.csv``.

        Parameters
        ----------
        path : str or path
            The file to write, as for `raybox.save`.

        Raises
        ------
        FileFormatError, InvalidInput, RayboxError
            As for `raybox.save`.

        Examples
        --------
        >>> import raybox as rb, tempfile
        >>> mesh = rb.Mesh([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]], ids=["roof"])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     mesh.save(f"{folder}/roof.npz")
        ...     rb.load(f"{folder}/roof.npz").equals(mesh)
        True
        """
        # files are a layer above geometries
        import_module("raybox.io.formats.saving").save(path, self)

    def _compared(self) -> tuple[object, ...]:
        return self._vertices, self._faces, self.objects, self.ids, self.labels, self.colors

    def _rows(self) -> TriangleRows:
        """Return the arrays for kernels."""
        return TriangleRows(self.triangles)

    def __repr__(self) -> str:
        objects = "" if self._objects is None else f", objects={object_count(self)}"
        return f"Mesh({len(self)}, vertices={len(self._vertices)}{objects})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return restored, (self._vertices, self._faces, self._objects, self._attributes)


def object_count(mesh: Mesh) -> int:
    """Return n, the number of objects.

    That of ids or labels if there are any, else the largest number + 1.
    """
    attributes = mesh._attributes
    if attributes.ids is not None:
        return len(attributes.ids)
    if attributes.labels:
        return len(next(iter(attributes.labels.values())))
    return len(mesh) if mesh._objects is None else int(mesh._objects.max(initial=-1)) + 1


def stored_objects(mesh: Mesh) -> Ints | None:
    """Return the object of each triangle; None if each is an object."""
    return mesh._objects


def _checked_objects(
    objects: ArrayInput, ids: IdsInput, labels: LabelsInput, triangles: int
) -> tuple[Ints, Attributes]:
    """Return the objects of triangles with their ids and labels, checked."""
    numbers = validation.integers(objects, "objects")
    if numbers.shape != (triangles,):
        raise InvalidInput(
            f"objects must have shape ({triangles},), one for each triangle; got shape {numbers.shape}. "
            "Repeat them: np.repeat(np.arange(n), triangles_of_each)."
        )
    own = checked_labels(labels, None, "object")
    names = None if ids is None else listed_ids(ids, "object")
    count = int(numbers.max(initial=-1)) + 1
    if own or names is not None:
        count = len(next(iter(own.values()))) if own else len(names or ())
    found = checked_attributes(names, own or None, count, "object")
    outside = (numbers < 0) | (numbers >= count)
    if outside.any():
        rule = (
            f"objects must be numbers of objects, from 0 to {count - 1}" if count else "there are no objects"
        )
        way_out = "Count from 0, and give an id and labels to each object"
        validation.refuse_rows(outside, rule, {"objects": numbers}, "triangle", way_out)
    return numbers, found


def _made(mesh: Mesh, vertices: Floats, faces: Ints, objects: Ints | None, attributes: Attributes) -> Mesh:
    mesh._vertices, mesh._faces, mesh._objects, mesh._attributes = vertices, faces, objects, attributes
    validation.freeze(vertices, faces, *(() if objects is None else (objects,)))
    return mesh


def restored(
    vertices: Floats,
    faces: Ints,
    objects: Ints | None = None,
    attributes: Attributes = NO_ATTRIBUTES,
) -> Mesh:
    """Return a mesh of valid arrays, which are not copied."""
    return _made(object.__new__(Mesh), vertices, faces, objects, frozen_attributes(attributes))


def _of_trimesh(mesh: Any) -> dict[str, Any]:
    """Return the arguments of `Mesh` for a mesh or a scene of trimesh."""
    if hasattr(mesh, "vertices") and hasattr(mesh, "faces"):
        return {"vertices": mesh.vertices, "faces": mesh.faces}
    if not (hasattr(mesh, "graph") and hasattr(mesh, "geometry")):
        raise InvalidInput(
            f"mesh must be a Trimesh or a Scene of trimesh; got {type(mesh).__name__}. Pass its arrays: "
            "Mesh(vertices, faces)."
        )
    parts = [part for part in map(_placed, *_nodes(mesh)) if len(part[1])]
    counts = [len(vertices) for vertices, _, _ in parts]
    starts = np.cumsum([0, *counts])[:-1] if parts else np.zeros(0, np.int64)
    faces = [faces + start for (_, faces, _), start in zip(parts, starts, strict=True)]
    return {
        "vertices": np.concatenate([np.zeros((0, 3)), *(vertices for vertices, _, _ in parts)]),
        "faces": np.concatenate([np.zeros((0, 3), np.int64), *faces]),
        "objects": np.repeat(np.arange(len(parts)), [len(faces) for _, faces, _ in parts]),
        "ids": [name for _, _, name in parts],
    }


def _nodes(scene: Any) -> tuple[list[Any], list[str]]:
    names = list(scene.graph.nodes_geometry)
    return [scene] * len(names), names


def _placed(scene: Any, name: str) -> tuple[Any, Any, str]:
    """Return vertices and faces of a node in the world, and its name."""
    matrix, key = scene.graph[name]
    mesh = scene.geometry[key]
    faces = np.asarray(getattr(mesh, "faces", np.zeros((0, 3))), dtype=np.int64)
    vertices = np.asarray(mesh.vertices, dtype=np.float64) @ matrix[:3, :3].T + matrix[:3, 3]
    # a mirroring matrix turns triangles round
    return vertices, faces[:, ::-1] if np.linalg.det(matrix[:3, :3]) < 0 else faces, str(name)
