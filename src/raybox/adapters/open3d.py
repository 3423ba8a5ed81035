"""`RaycastingScene`: the methods of Open3D's class for casting rays, computed by a `Scene`.

Open3D itself is not imported: a tensor has ``numpy()``, and its type has ``from_numpy``.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple, NoReturn, Protocol, TypeAlias, cast, final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from raybox import validation
from raybox.adapters import exact_times
from raybox.compiler.float_environment import guard_class
from raybox.compiler.fork import fork_safe_lock
from raybox.errors import InvalidInput
from raybox.geometry import Mesh, Rays, join_meshes
from raybox.hits import AllHits, Hits
from raybox.scene.containment import contains
from raybox.scene.scene import Scene
from raybox.validation import Array, ArrayInput, Floats, Ints


class _Tensor(Protocol):
    """A tensor of Open3D, in the memory of the CPU."""

    def numpy(self) -> Array: ...

    @staticmethod
    def from_numpy(array: Array, /) -> _Tensor: ...


TensorInput: TypeAlias = ArrayInput | _Tensor

INVALID_ID = 0xFFFFFFFF

_OUTSIDE = {
    "compute_closest_points": "raybox computes no distances to points; use Open3D's class for them",
    "compute_distance": "raybox computes no distances to points; use Open3D's class for them",
    "compute_signed_distance": "raybox computes no distances to points; use Open3D's class for them",
    "create_rays_pinhole": "use Open3D's, or raybox.Rays.from_camera and raybox.Rays.pinhole with a Scene",
}


class _Built(NamedTuple):
    """All triangles in one mesh and its scene, and the first of each geometry."""

    mesh: Mesh
    scene: Scene
    starts: Ints


class _HitNumbers(NamedTuple):
    """Exact numbers of hits, rounded once to the dtype of results."""

    t: NDArray[np.float32 | np.float64]
    uv: NDArray[np.float32 | np.float64]


class _CheckedRays(NamedTuple):
    """The rays of a call, the dtype of its results, and the type of its tensors; None for NumPy arrays."""

    rays: Rays
    dtype: type[np.float32 | np.float64]
    tensor: type[_Tensor] | None

    def rounded(self, scene: Scene, hits: Hits | AllHits, ray: Ints) -> _HitNumbers:
        """Return t and uv of hits, which are of rays `ray`, in the dtype of results."""
        if self.dtype == np.float64:
            return _HitNumbers(hits.t, hits.uv)
        rays, index = self.rays.reshape(-1), hits.index.reshape(-1)

        def of_times(k: Ints, t: Floats) -> Ints:
            return exact_times.time_sides(rays[ray[k]], scene, index[k], t)

        def of_weights(k: Ints, weight: Floats) -> Ints:
            hit = k // 2
            return exact_times.weight_sides(rays[ray[hit]], scene, index[hit], k % 2, weight)

        to_float32 = exact_times.to_float32
        return _HitNumbers(to_float32(hits.t, of_times), to_float32(hits.uv, of_weights))

    def result(self, values: Array, dtype: DTypeLike | None = None) -> Any:
        """Return values in the type of the call's rays."""
        own = np.array(values, dtype=self.dtype if dtype is None else dtype, order="C")
        return _result(own, self.tensor)


@final
@guard_class()
class RaycastingScene:
    """A replacement for `open3d.t.geometry.RaycastingScene`: its methods that cast rays, keys and sentinels.

    Hits are exact for the floats of the mesh and the rays; t and uv are the exact numbers, rounded once to
    the dtype of the results. Arguments are arrays, or tensors and meshes of Open3D. Results are tensors if
    the rays are one, else NumPy arrays: of float32 for rays of float32, of float64 for all others, which
    Open3D refuses. An array without an axis of rays is refused, as there.

    Geometry ids count from 0 in the order of `add_triangles`. A ray hits a triangle at its edges and corners,
    too: at an edge that two triangles share, `count_intersections` and `list_intersections` return both. A
    ray that lies in the plane of a triangle misses it.

    Parameters
    ----------
    nthreads : int
        Threads of the build; 0 for all cores.
    device : optional
        "CPU:0" or None; results do not depend on it.

    Raises
    ------
    InvalidInput
        If the device is not a CPU.

    Examples
    --------
    >>> import numpy as np
    >>> from raybox.adapters.open3d import RaycastingScene
    >>> scene = RaycastingScene()
    >>> scene.add_triangles([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [[0, 1, 2]])
    0
    >>> rays = np.array([[0.25, 0.25, -2, 0, 0, 1], [5, 5, -2, 0, 0, 1]], np.float32)
    >>> hits = scene.cast_rays(rays)
    >>> hits["t_hit"], hits["primitive_ids"]
    (array([ 2., inf], dtype=float32), array([         0, 4294967295], dtype=uint32))
    """

    INVALID_ID: ClassVar[int] = INVALID_ID
    """The id of a miss."""

    def __init__(self, nthreads: int = 0, device: object = None) -> None:
        if device is not None and not str(device).upper().startswith("CPU"):
            raise InvalidInput(f"device must be a CPU; got {device!s}. Leave it out.")
        self._build_workers = _workers(nthreads)
        self._meshes: list[Mesh] = []
        self._lock = fork_safe_lock()
        self._built: _Built | None = None

    def add_triangles(
        self,
        vertex_positions: TensorInput | None = None,
        triangle_indices: TensorInput | None = None,
        *,
        mesh: object = None,
    ) -> int:
        """Add a triangle mesh, and return its geometry id.

        Parameters
        ----------
        vertex_positions : array_like, shape (N, 3), or mesh
            A mesh, in place of both arrays, has the attributes ``vertex`` and ``triangle``, as Open3D's
            tensor mesh, or ``vertices`` and ``triangles``, as its older one.
        triangle_indices : array_like of int, shape (M, 3)

        Raises
        ------
        InvalidInput
            As for `Mesh`; or if there is neither a mesh nor both arrays.
        """
        if mesh is None and triangle_indices is None:
            mesh, vertex_positions = vertex_positions, None
        if mesh is not None:
            vertex_positions, triangle_indices = _arrays_of(mesh)
        if vertex_positions is None or triangle_indices is None:
            raise InvalidInput("add_triangles needs vertex_positions and triangle_indices, or a mesh.")
        made = Mesh(_array(vertex_positions), _array(triangle_indices))
        with self._lock:
            self._built = None  # first: a process that is forked in between would use it
            self._meshes.append(made)
            return len(self._meshes) - 1

    def cast_rays(self, rays: TensorInput, nthreads: int = 0) -> dict[str, Any]:
        """Return the first hit of each ray.

        Parameters
        ----------
        rays : array_like, shape (..., 6)
            Origin and direction of each ray, of at least two dimensions.
        nthreads : int
            0 for all cores.

        Returns
        -------
        dict
            ``t_hit`` (...): in lengths of the direction, inf for a miss. ``geometry_ids`` and
            ``primitive_ids`` (...), uint32: `INVALID_ID` for a miss. ``primitive_uvs`` (..., 2): weights of a
            triangle's second and third corner. ``primitive_normals`` (..., 3). Both are 0 for a miss.
        """
        call, built = _checked_rays(rays), self._current()
        hits = built.scene.nearest(call.rays, workers=_workers(nthreads))
        geometry, primitive = _ids(hits.index, built.starts)
        exact = call.rounded(built.scene, hits, np.arange(hits.index.size))
        missed = ~hits.hit[..., None]
        return {
            "t_hit": call.result(exact.t),
            "geometry_ids": call.result(geometry, np.uint32),
            "primitive_ids": call.result(primitive, np.uint32),
            "primitive_uvs": call.result(np.where(missed, 0.0, exact.uv)),
            "primitive_normals": call.result(np.where(missed, 0.0, hits.normals)),
        }

    def test_occlusions(
        self, rays: TensorInput, tnear: float = 0.0, tfar: float = np.inf, nthreads: int = 0
    ) -> Any:
        """Return whether each ray hits anything from tnear to tfar, both included: bool, shape (...).

        Parameters
        ----------
        rays, nthreads
            As for `cast_rays`.
        tnear, tfar : float
            In lengths of the direction.
        """
        call = _checked_rays(rays)
        ranged = Rays(call.rays.origins, call.rays.directions, t_min=tnear, t_max=tfar)
        found = self._current().scene.occluded(ranged, workers=_workers(nthreads))
        return call.result(found, np.bool_)

    def count_intersections(self, rays: TensorInput, nthreads: int = 0) -> Any:
        """Return how many triangles each ray hits: int32, shape (...).

        Both triangles count where a ray hits their shared edge.
        """
        call = _checked_rays(rays)
        return call.result(self._current().scene.count(call.rays, workers=_workers(nthreads)), np.int32)

    def list_intersections(self, rays: TensorInput, nthreads: int = 0) -> dict[str, Any]:
        """Return all hits of all rays, sorted by ray, then by t and by triangle.

        Returns
        -------
        dict
            ``ray_splits`` (N + 1,), uint32: the first hit of each of N rays. ``ray_ids``, ``geometry_ids``,
            ``primitive_ids`` (hits,), uint32; ``t_hit`` (hits,); ``primitive_uvs`` (hits, 2).
        """
        call, built = _checked_rays(rays), self._current()
        hits = built.scene.all(call.rays, workers=_workers(nthreads))
        geometry, primitive = _ids(hits.index, built.starts)
        exact = call.rounded(built.scene, hits, hits.ray)
        return {
            "ray_splits": call.result(hits.offsets, np.uint32),
            "ray_ids": call.result(hits.ray, np.uint32),
            "t_hit": call.result(exact.t),
            "geometry_ids": call.result(geometry, np.uint32),
            "primitive_ids": call.result(primitive, np.uint32),
            "primitive_uvs": call.result(exact.uv),
        }

    def compute_occupancy(self, query_points: TensorInput, nthreads: int = 0, nsamples: int = 1) -> Any:
        """Return 1 for points inside of the triangles or on them, else 0, as of `Mesh.contains`.

        Parameters
        ----------
        query_points : array_like, shape (..., 3)
            Of at least two dimensions.
        nthreads : int
            0 for all cores.
        nsamples : int
            Odd; without effect, since one ray decides exactly.

        Returns
        -------
        float32, shape (...)
            A tensor if the points are one, else an array.

        Raises
        ------
        InvalidInput
            If the triangles are not closed, a point is not finite, or nsamples is not odd.
        """
        if nsamples % 2 != 1:
            raise InvalidInput(f"nsamples must be odd; got {nsamples}. Leave it out.")
        values = _checked(query_points, "query_points", 3)
        points = validation.floats(values, "query_points")
        validation.require_finite(points, "query_points", "point", "Drop those points")
        mesh, scene, _ = self._current()
        found = contains(mesh, points.reshape(-1, 3), scene, _workers(nthreads))
        return _result(found.astype(np.float32).reshape(points.shape[:-1]), _tensor_type(query_points))

    def __getattr__(self, name: str) -> NoReturn:
        if name in _OUTSIDE:
            raise AttributeError(f"RaycastingScene of raybox has no {name}: {_OUTSIDE[name]}.")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _current(self) -> _Built:
        """Return the scene of all meshes: built at the first query after a change."""
        with self._lock:
            if self._built is None:
                counts = [len(mesh) for mesh in self._meshes]
                starts = np.cumsum([0, *counts], dtype=np.int64)[:-1]
                mesh = join_meshes(self._meshes)
                self._built = _Built(mesh, Scene(mesh, workers=self._build_workers), starts)
            return self._built


def _ids(index: Ints, starts: Ints) -> tuple[Ints, Ints]:
    """Return geometry and primitive ids of rows of the merged mesh; `INVALID_ID` for a miss."""
    # of equal starts, those of empty meshes, the last one has the triangle
    geometry = np.searchsorted(starts, index, side="right") - 1
    missed = index < 0
    first = starts[np.maximum(geometry, 0)] if len(starts) else np.zeros_like(index)
    return np.where(missed, INVALID_ID, geometry), np.where(missed, INVALID_ID, index - first)


def _checked_rays(rays: TensorInput) -> _CheckedRays:
    """Return checked rays."""
    values = _checked(rays, "rays", 6)
    made = Rays(values[..., :3], values[..., 3:])
    dtype = np.float32 if values.dtype == np.float32 else np.float64
    return _CheckedRays(made, dtype, _tensor_type(rays))


def _tensor_type(given: TensorInput) -> type[_Tensor] | None:
    return cast(type[_Tensor], type(given)) if hasattr(type(given), "from_numpy") else None


def _result(values: Array, tensor: type[_Tensor] | None) -> Any:
    return values if tensor is None else tensor.from_numpy(values)


def _checked(given: TensorInput, name: str, width: int) -> Array:
    """Return an array of two dimensions or more, the last of this width."""
    values = validation.array(_array(given), name)
    if values.ndim < 2 or values.shape[-1] != width:
        raise InvalidInput(
            f"{name} must have shape (..., {width}), and two dimensions or more; got shape {values.shape}. "
            f"A single row is {name}[None]."
        )
    return values


def _array(values: TensorInput) -> ArrayInput:
    """Return a tensor as an array; anything else unchanged."""
    if callable(read := getattr(values, "numpy", None)):
        return cast(Array, read())
    return cast(ArrayInput, values)


def _arrays_of(mesh: object) -> tuple[TensorInput, TensorInput]:
    """Return vertices and triangles of a mesh of Open3D."""
    if hasattr(mesh, "vertex") and hasattr(mesh, "triangle"):
        return mesh.vertex["positions"], mesh.triangle["indices"]
    if hasattr(mesh, "vertices") and hasattr(mesh, "triangles"):
        return np.asarray(mesh.vertices), np.asarray(mesh.triangles)
    raise InvalidInput(
        f"a mesh must have vertex and triangle, or vertices and triangles; got {type(mesh).__name__}. "
        "Pass two arrays: add_triangles(vertex_positions, triangle_indices)."
    )


def _workers(nthreads: int) -> int:
    return -1 if nthreads == 0 else nthreads
