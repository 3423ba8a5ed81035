"""`RayMeshIntersector`: trimesh's questions to ``mesh.ray``, answered by a `Scene`.

trimesh itself is not imported: all that is asked of a mesh is its vertices, its faces, and, if it has one,
a hash that changes with them.
"""

from threading import Lock
from typing import Any, NamedTuple, final

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import Mesh, Rays
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, Ints

# eight ways that no mesh is likely to be aligned with
_WAYS = np.random.default_rng(20140427).standard_normal((8, 3))


def inside(scene: Scene, points: Floats, workers: int) -> Bools:
    """Tell which points are in a scene of triangles, or on one.

    A line that meets each place of a closed surface in one triangle only crosses it there, so that an odd
    number of places ahead means inside. A line that meets an edge is dropped for another; if all do (faces
    that are there twice, say), places count instead of triangles. Where ahead and behind differ, the surface
    is not closed: then a point is not inside if nothing is on one side of it; else another line is asked.
    """
    lower, upper = scene.bounds
    contained = np.zeros(len(points), np.bool_)
    (left,) = np.nonzero(((points >= lower) & (points <= upper)).all(axis=1))
    for last, way in enumerate(_WAYS, start=1 - len(_WAYS)):
        if not left.size:
            break
        verdict = _verdicts(scene, points[left], way, workers, careful=last < 0)
        contained[left] = verdict > 0
        left = left[verdict < 0]
    return contained


def _verdicts(scene: Scene, points: Floats, way: Floats, workers: int, careful: bool) -> Ints:
    """Return 1 for points inside, 0 for those outside, -1 where another line is to be asked."""
    contacts = scene.all(Rays.lines(points, way), workers=workers)
    ray, t = contacts.ray, contacts.t
    again = np.zeros(t.size, np.bool_)
    again[1:] = (ray[1:] == ray[:-1]) & (t[1:] == t[:-1])
    number = len(points)
    on_surface = np.bincount(ray[t == 0.0], minlength=number) > 0
    behind, ahead = (np.bincount(ray[~again & side], minlength=number) for side in (t < 0.0, t > 0.0))
    torn = (behind - ahead) % 2 == 1
    free = (behind == 0) | (ahead == 0)
    unclear = torn & ~free
    if careful:
        unclear |= np.bincount(ray[again], minlength=number) > 0
    odd = np.where(torn, 0, ahead % 2)
    return np.where(on_surface, 1, np.where(unclear, -1, odd))


class _Built(NamedTuple):
    """A scene, and what it was built of."""

    key: Any
    scene: Scene


class Places(NamedTuple):
    """Where rays meet a mesh: a row for each place, ray by ray, nearest first."""

    triangle: Ints
    ray: Ints
    point: Floats


@final
class RayMeshIntersector:
    """What `trimesh.Trimesh.ray` is, by raybox: the same questions, arguments and kinds of answers.

    Answers are exact, for the very floats of the mesh and the rays: no ray slips through an edge or a
    vertex, no hit is lost or given twice, at any scale. A changed mesh is noticed by its hash, as trimesh
    does.

    Rows of answers are sorted: by ray, then along the ray. Where a ray meets several triangles at one place
    (on an edge, at a vertex, where faces are there twice) that is one row, of the lowest triangle. What
    contains a ray's origin is met, what lies behind it is not.

    Parameters
    ----------
    mesh : trimesh.Trimesh
        Or anything else with ``vertices`` (n, 3) and ``faces`` (m, 3).
    scale_to_box : bool
        Taken, so that calls need not change, and of no effect: exact answers need no scaling.
    workers : int
        Threads for each question; -1 for all cores.

    Raises
    ------
    InvalidInput
        (A ValueError.) When first asked, if a vertex or a ray is not finite, or shapes do not fit.

    Examples
    --------
    >>> import trimesh
    >>> from raybox.adapters.trimesh import RayMeshIntersector
    >>> mesh = trimesh.creation.box()
    >>> mesh.ray = RayMeshIntersector(mesh)
    >>> mesh.ray.intersects_location([[0, 0, -9]], [[0, 0, 1]])[0].tolist()
    [[0.0, 0.0, -0.5], [0.0, 0.0, 0.5]]
    """

    def __init__(self, mesh: Any, scale_to_box: bool = True, *, workers: int = -1) -> None:
        self.mesh = mesh
        self.workers = workers
        self._scale_to_box = scale_to_box
        self._lock = Lock()
        self._built: _Built | None = None

    @property
    def scene(self) -> Scene:
        """The mesh as it is now, as a `Scene`: built when first asked, and anew when the mesh has changed."""
        key = _key_of(self.mesh)
        with self._lock:
            if self._built is None or key is None or self._built.key != key:
                self._built = _Built(
                    key, Scene(Mesh(self.mesh.vertices, self.mesh.faces), workers=self.workers)
                )
            return self._built.scene

    def intersects_any(self, ray_origins: Any, ray_directions: Any, **_: Any) -> Bools:
        """Tell which rays meet the mesh.

        Parameters
        ----------
        ray_origins, ray_directions : array_like, shape (n, 3)
            Directions may have any length.

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        return self.scene.occluded(_rays(ray_origins, ray_directions), workers=self.workers)

    def intersects_first(self, ray_origins: Any, ray_directions: Any, **_: Any) -> Ints:
        """Return the triangle that each ray meets first, -1 for none.

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
        ray_origins: Any,
        ray_directions: Any,
        multiple_hits: bool = True,
        max_hits: int | None = None,
        return_locations: bool = False,
    ) -> tuple[Any, ...]:
        """Return which triangles rays meet.

        Parameters
        ----------
        ray_origins, ray_directions : array_like, shape (n, 3)
            Directions may have any length.
        multiple_hits : bool
            Every place where a ray meets the mesh, or only the first.
        max_hits : int, optional
            No more than so many places a ray, the first ones.
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
        places = self._places(_rays(ray_origins, ray_directions), most)
        return tuple(places) if return_locations else places[:2]

    def intersects_location(
        self,
        ray_origins: Any,
        ray_directions: Any,
        multiple_hits: bool = True,
        max_hits: int | None = None,
    ) -> tuple[Floats, Ints, Ints]:
        """Return where rays meet the mesh: locations, index_ray, index_tri. As for `intersects_id`."""
        most = 1 if not multiple_hits else max_hits
        places = self._places(_rays(ray_origins, ray_directions), most)
        return places.point, places.ray, places.triangle

    def contains_points(self, points: Any) -> Bools:
        """Tell which points a watertight mesh contains; points on its surface are.

        Exact where the mesh is watertight. Where it is not, trimesh's own rule: a point is inside if a line
        through it meets the mesh an odd number of times ahead, and behind.

        Parameters
        ----------
        points : array_like, shape (n, 3)

        Returns
        -------
        ndarray of bool, shape (n,)
        """
        found = _points(points, "points")
        validation.require_finite(found, "points", "point", "Drop those points")
        return inside(self.scene, found, self.workers)

    def _places(self, rays: Rays, most: int | None) -> Places:
        """Return the first so many places where each ray meets the mesh."""
        if most is not None and (isinstance(most, bool) or not hasattr(most, "__index__") or int(most) < 0):
            raise InvalidInput(f"max_hits must be a whole number, at least 0; got {most!r}.")
        if most == 1:
            hits = self.scene.nearest(rays, workers=self.workers)
            (ray,) = np.nonzero(hits.hit)
            return _along(rays, hits.index[ray], ray, hits.t[ray])
        contacts = self.scene.all(rays, workers=self.workers)
        new = np.ones(contacts.t.size, np.bool_)
        new[1:] = (contacts.ray[1:] != contacts.ray[:-1]) | (contacts.t[1:] != contacts.t[:-1])
        index, ray, t = contacts.index[new], contacts.ray[new], contacts.t[new]
        if most is not None:
            kept = np.arange(ray.size) - np.searchsorted(ray, ray) < most
            index, ray, t = index[kept], ray[kept], t[kept]
        return _along(rays, index, ray, t)

    def __getstate__(self) -> dict[str, Any]:
        return {"mesh": self.mesh, "scale_to_box": self._scale_to_box, "workers": self.workers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)

    def __copy__(self) -> "RayMeshIntersector":
        return RayMeshIntersector(self.mesh, self._scale_to_box, workers=self.workers)

    def __deepcopy__(self, _memo: Any) -> "RayMeshIntersector":
        return self.__copy__()  # of the same mesh, as trimesh's own


def _key_of(mesh: Any) -> Any:
    """Return what changes when a mesh does; None if there is no such thing."""
    own: Any = type(mesh).__hash__
    return None if own is None or own is object.__hash__ else own(mesh)


def _rays(origins: Any, directions: Any) -> Rays:
    """Return rays as trimesh passes them."""
    o, d = _points(origins, "ray_origins"), _points(directions, "ray_directions")
    if o.shape != d.shape:
        raise InvalidInput(
            f"ray_origins and ray_directions must have one shape, (n, 3); got {o.shape} and {d.shape}. "
            "Repeat the one that serves all: np.tile(origin, (n, 1))."
        )
    return Rays(o, d)


def _points(given: Any, name: str) -> Floats:
    """Return rows of three numbers."""
    found = validation.floats(given, name)
    if found.size == 0:
        return np.empty((0, 3))
    if found.ndim != 2 or found.shape[1] != 3:
        raise InvalidInput(f"{name} must have shape (n, 3), one row each; got shape {found.shape}.")
    return found


def _along(rays: Rays, index: Ints, ray: Ints, t: Floats) -> Places:
    points: Floats = rays.origins[ray] + t[:, None] * rays.directions[ray]
    return Places(index.astype(np.int64), ray.astype(np.int64), points)
