"""Which points a surface of triangles contains."""

import numpy as np

from raybox.adapters.exact_times import repeats, time_sides
from raybox.geometry import Rays
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, Ints

# Eight directions that no mesh is likely to be aligned with.
_DIRECTIONS = np.random.default_rng(20140427).standard_normal((8, 3))

# Of `_classify`; the first two are the parity of hit points ahead.
_OUTSIDE, _INSIDE, _UNDECIDED = 0, 1, -1


def inside(scene: Scene, points: Floats, workers: int) -> Bools:
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
