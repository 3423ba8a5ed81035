"""Which points a closed surface contains: by counting crossings along a line through each point."""

import numpy as np

from raybox.geometry import Rays
from raybox.scene import Scene
from raybox.validate import Bools, Floats, Ints

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
