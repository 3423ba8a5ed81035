"""`RayMeshIntersector`: the methods of trimesh's ``mesh.ray``, computed by a `Scene`.

Only `install` imports trimesh: a mesh needs vertices, faces, and optionally a hash that changes with them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from importlib import import_module
from typing import Any, NamedTuple, Protocol, Self, final

import numpy as np

from raybox import validation
from raybox.adapters.exact_times import repeats, time_sides
from raybox.compiler.float_environment import guard_class
from raybox.compiler.fork import fork_safe_lock
from raybox.errors import InvalidInput
from raybox.geometry import Mesh, Rays
from raybox.scene.scene import Scene
from raybox.validation import Array, ArrayInput, Bools, Floats, Ints

# Eight directions that no mesh is likely to be aligned with.
_DIRECTIONS = np.random.default_rng(20140427).standard_normal((8, 3))

# Of `_classify`; the first two are the parity of hit points ahead.
_OUTSIDE, _INSIDE, _UNDECIDED = 0, 1, -1


def _inside(scene: Scene, points: Floats, workers: int) -> Bools:
    """Return which points are inside a surface of triangles or on it, (N,) bool.

    A line that hits a closed surface in single triangles only crosses it there: an odd number of hit points
    ahead means inside. A line that hits an edge is replaced by another; if all lines do (duplicate faces),
    hit points are counted instead of triangles. Where the parities ahead and behind differ, the surface is
    not closed: then a point with no hit on one side is outside; for any other, another line is cast.
    """
    lower, upper = scene.bounds
    contained = np.zeros(len(points), np.bool_)
    (undecided,) = np.nonzero(((points >= lower) & (points <= upper)).all(axis=1))
    for k, direction in enumerate(_DIRECTIONS):
        if not undecided.size:
            break
        accepts_edges = k == len(_DIRECTIONS) - 1
        sides = _classify(scene, points[undecided], direction, workers, accepts_edges)
        contained[undecided] = sides == _INSIDE
        undecided = undecided[sides == _UNDECIDED]
    return contained


def _classify(scene: Scene, points: Floats, direction: Floats, workers: int, accepts_edges: bool) -> Ints:
    """Return `_INSIDE`, `_OUTSIDE` or `_UNDECIDED` for each point, by one line.

    accepts_edges: a line may hit several triangles at one point; otherwise its point is undecided.
    """
    lines = Rays.lines(points, direction)
    hits = scene.all(lines, workers=workers)
    ray, t, count = hits.ray, hits.t.copy(), len(points)
    (zero,) = np.nonzero(t == 0.0)  # also where the exact time is too small for float64
    if zero.size:
        t[zero] = time_sides(lines[ray[zero]], scene, hits.index[zero], t[zero])
    on_surface = np.bincount(ray[t == 0.0], minlength=count) > 0
    repeated = repeats(hits, lines, scene, where=~on_surface[ray])
    behind, ahead = (np.bincount(ray[~repeated & side], minlength=count) for side in (t < 0.0, t > 0.0))
    is_open = (behind - ahead) % 2 == 1
    undecided = is_open & (behind > 0) & (ahead > 0)
    if not accepts_edges:
        undecided |= np.bincount(ray[repeated], minlength=count) > 0
    parity = np.where(is_open, _OUTSIDE, ahead % 2)
    return np.where(on_surface, _INSIDE, np.where(undecided, _UNDECIDED, parity))


class _Trimesh(Protocol):
    """A mesh of trimesh, as far as it is read."""

    @property
    def vertices(self) -> ArrayInput: ...

    @property
    def faces(self) -> ArrayInput: ...


class _KeyedScene(NamedTuple):
    """A scene, and the key of the mesh that it was built from."""

    key: Hashable
    scene: Scene


class HitPoints(NamedTuple):
    """Points where rays hit a mesh: by ray, then along the ray."""

    triangle: Ints
    ray: Ints
    point: Floats


@guard_class()
class RayMeshIntersector:
    """A replacement for `trimesh.Trimesh.ray`: the same methods, arguments and types of results.

    The order of arguments is that of trimesh over Embree; `install` makes it that of the class it replaces.

    Results are exact for the floats of the mesh and the rays: no ray passes through an edge or a vertex, no
    hit is lost or repeated, at any scale. The hash of the mesh shows when it has changed, as in trimesh.

    Rows of results are sorted by ray, then along the ray. Triangles hit at one exact point (on an edge,
    at a vertex, duplicate faces) are one row, with the lowest triangle. A triangle that contains a ray's
    origin is hit; one behind it is not.

    Parameters
    ----------
    mesh : trimesh.Trimesh
        Or anything else with ``vertices`` (n, 3) and ``faces`` (m, 3).
    scale_to_box : bool
        Accepted for compatibility, without effect: exact results need no scaling.
    workers : int
        Threads for each query; -1 for all cores.

    Raises
    ------
    InvalidInput
        (A ValueError.) At the first query, if a vertex or a ray is not finite, or shapes do not match.

    Examples
    --------
    >>> import trimesh
    >>> from raybox.adapters.trimesh import RayMeshIntersector
    >>> mesh = trimesh.creation.box()
    >>> mesh.ray = RayMeshIntersector(mesh)
    >>> mesh.ray.intersects_location([[0, 0, -9]], [[0, 0, 1]])[0].tolist()
    [[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]]
    """

    def __init__(self, mesh: _Trimesh, scale_to_box: bool = True, *, workers: int = -1) -> None:
        self.mesh = mesh
        self.workers = workers
        self._scale_to_box = scale_to_box
        self._lock = fork_safe_lock()
        self._scene: _KeyedScene | None = None

    @property
    def scene(self) -> Scene:
        """The `Scene` of the current mesh: built at the first query, and again after changes."""
        key = _key_of(self.mesh)
        with self._lock:
            if self._scene is None or key is None or self._scene.key != key:
                mesh = Mesh(self.mesh.vertices, self.mesh.faces)
                self._scene = _KeyedScene(key, Scene(mesh, workers=self.workers))
            return self._scene.scene

    def intersects_any(self, ray_origins: ArrayInput, ray_directions: ArrayInput, **_: object) -> Bools:
        """Return whether each ray hits the mesh.

        Parameters
        ----------
        ray_origins, ray_directions : array_like, shape (n, 3)
            Directions may have any length.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        return self.scene.occluded(_rays(ray_origins, ray_directions), workers=self.workers)

    def intersects_first(self, ray_origins: ArrayInput, ray_directions: ArrayInput, **_: object) -> Ints:
        """Return the first triangle that each ray hits, -1 for a miss.

        Parameters
        ----------
        ray_origins, ray_directions : array_like, shape (n, 3)
            Directions may have any length.

        Returns
        -------
        ndarray of int64, shape (n,)
        """
        rays = _rays(ray_origins, ray_directions)
        return self.scene.nearest(rays, workers=self.workers).index.copy()

    def intersects_id(
        self,
        ray_origins: ArrayInput,
        ray_directions: ArrayInput,
        multiple_hits: bool = True,
        max_hits: int | None = None,
        return_locations: bool = False,
    ) -> tuple[Array, ...]:
        """Return the triangles that rays hit.

        Parameters
        ----------
        ray_origins, ray_directions : array_like, shape (n, 3)
            Directions may have any length.
        multiple_hits : bool
            All hit points of a ray, or only the first.
        max_hits : int, optional
            Only the first so many hit points of a ray.
        return_locations : bool
            Return the points as well.

        Returns
        -------
        index_tri : ndarray of int64, shape (m,)
        index_ray : ndarray of int64, shape (m,)
        locations : ndarray of float64, shape (m, 3)
            Only with ``return_locations``.
        """
        most = 1 if not multiple_hits else max_hits
        found = self._hit_points(_rays(ray_origins, ray_directions), most)
        return tuple(found) if return_locations else found[:2]

    def intersects_location(
        self,
        ray_origins: ArrayInput,
        ray_directions: ArrayInput,
        multiple_hits: bool = True,
        max_hits: int | None = None,
    ) -> tuple[Floats, Ints, Ints]:
        """Return hit points: locations, index_ray, index_tri. Parameters as for `intersects_id`."""
        most = 1 if not multiple_hits else max_hits
        found = self._hit_points(_rays(ray_origins, ray_directions), most)
        return found.point, found.ray, found.triangle

    def contains_points(self, points: ArrayInput) -> Bools:
        """Return which points the mesh contains; points on its surface count as inside.

        Exact for a watertight mesh. For any other, trimesh's own rule: a point is inside if a line through it
        hits the mesh an odd number of times ahead, and behind.

        Parameters
        ----------
        points : array_like, shape (n, 3)

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        found = _points(points, "points")
        validation.require_finite(found, "points", "point", "Drop those points")
        return _inside(self.scene, found, self.workers)

    def _hit_points(self, rays: Rays, most: int | None) -> HitPoints:
        """Return the first so many hit points of each ray; None: all."""
        if most is not None and (isinstance(most, bool) or not hasattr(most, "__index__") or int(most) < 0):
            raise InvalidInput(f"max_hits must be a whole number, at least 0; got {most!r}.")
        scene = self.scene
        if most == 1:
            hits = scene.nearest(rays, workers=self.workers)
            (ray,) = np.nonzero(hits.hit)
            return _points_at(rays, hits.index[ray], ray, hits.t[ray])
        found = scene.all(rays, workers=self.workers)
        new = ~repeats(found, rays, scene)
        index, ray, t = found.index[new], found.ray[new], found.t[new]
        if most is not None:
            first = np.arange(ray.size) - np.searchsorted(ray, ray) < most
            index, ray, t = index[first], ray[first], t[first]
        return _points_at(rays, index, ray, t)

    def __getstate__(self) -> dict[str, object]:
        return {"mesh": self.mesh, "scale_to_box": self._scale_to_box, "workers": self.workers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        RayMeshIntersector.__init__(self, **state)

    def __copy__(self) -> Self:
        return type(self)(self.mesh, self._scale_to_box, workers=self.workers)

    def __deepcopy__(self, _memo: object) -> Self:
        return self.__copy__()  # of the same mesh, as trimesh's own


@final
@guard_class()
class RayTriangleIntersector(RayMeshIntersector):
    """`RayMeshIntersector` with the order of arguments of trimesh without Embree (``ray_triangle``)."""

    def intersects_id(  # type: ignore[override]  # as in trimesh, whose two classes differ
        self,
        ray_origins: ArrayInput,
        ray_directions: ArrayInput,
        return_locations: bool = False,
        multiple_hits: bool = True,
        max_hits: int | None = None,
    ) -> tuple[Array, ...]:
        """Return the triangles that rays hit: as `RayMeshIntersector.intersects_id`."""
        how = {"max_hits": max_hits, "return_locations": return_locations}
        return super().intersects_id(ray_origins, ray_directions, multiple_hits, **how)  # type: ignore[arg-type]


# trimesh's own classes, by module, while raybox's are in their place.
_replaced: dict[str, type] = {}
_REPLACEMENTS = {"ray_triangle": RayTriangleIntersector, "ray_pyembree": RayMeshIntersector}


def install() -> None:
    """Make raybox the ray engine of every mesh that trimesh makes from now on, by copies and parts as well.

    Calls take the arguments of the class that they would have had without it, in its order: over Embree, or
    in Python. Meshes made before keep theirs. A second call changes nothing.

    Raises
    ------
    ModuleNotFoundError
        If trimesh is not installed.

    Examples
    --------
    >>> import trimesh
    >>> from raybox.adapters.trimesh import install, uninstall
    >>> install()
    >>> mesh = trimesh.creation.box().copy()
    >>> mesh.ray.intersects_first([[0.1, 0, -9]], [[0, 0, 1]]).shape, type(mesh.ray).__module__
    ((1,), 'raybox.adapters.trimesh')
    >>> uninstall()
    """
    ray = import_module("trimesh.ray")
    for name, replacement in _REPLACEMENTS.items():
        if name not in _replaced and (name == "ray_triangle" or ray.has_embree):
            module = getattr(ray, name)
            _replaced[name] = module.RayMeshIntersector
            module.RayMeshIntersector = replacement


def uninstall() -> None:
    """Undo `install`: new meshes have trimesh's own engine; those made in between keep raybox's."""
    for name, own in _replaced.items():
        getattr(import_module("trimesh.ray"), name).RayMeshIntersector = own
    _replaced.clear()


def _key_of(mesh: object) -> Hashable:
    """Return the mesh's hash, which changes with it; None without one."""
    own: Callable[[object], int] | None = type(mesh).__hash__
    return None if own is None or own is object.__hash__ else own(mesh)


def _rays(origins: ArrayInput, directions: ArrayInput) -> Rays:
    """Return rays from trimesh's arrays."""
    o, d = _points(origins, "ray_origins"), _points(directions, "ray_directions")
    if o.shape != d.shape:
        raise InvalidInput(
            f"ray_origins and ray_directions must have one shape, (n, 3); got {o.shape} and {d.shape}. "
            "Repeat a shared row: np.tile(origin, (n, 1))."
        )
    return Rays(o, d)


def _points(given: ArrayInput, name: str) -> Floats:
    """Return rows of three numbers, (n, 3) float64; (0, 3) for anything empty."""
    found = validation.floats(given, name)
    if found.size == 0:
        return np.empty((0, 3))
    if found.ndim != 2 or found.shape[1] != 3:
        raise InvalidInput(f"{name} must have shape (n, 3); got shape {found.shape}.")
    return found


def _points_at(rays: Rays, index: Ints, ray: Ints, t: Floats) -> HitPoints:
    """Return the points at t of rays `ray` on triangles `index`."""
    return HitPoints(index, ray, rays.origins[ray] + t[:, None] * rays.directions[ray])
