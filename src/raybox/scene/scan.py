"""One ray against many boxes or triangles without a tree, for a single pick.

A tree pays off from about a hundred rays on. For one ray NumPy drops certain misses, and
`raybox.exact.definition` decides the other boxes. Nothing is compiled.
"""

from functools import cmp_to_key

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.exact import definition
from raybox.exact.definition import Ratio, Ray1
from raybox.geometry import Bounded, BoxRows, Rays, TriangleRows, object_rows, row_mask
from raybox.hits import AllHits
from raybox.hits.hit_ids import SceneRows, Source
from raybox.primitives import exact_table
from raybox.validation import Bools, Floats, Ints, MaskInput

_SLACK = 1e-12  # relative, of a time: thousands of times its rounding error
_HUGE = 1e300  # times from here on may have overflowed: no bound holds for them


@in_default_environment
def scan(ray: Rays, geometry: Bounded, where: MaskInput = None) -> AllHits:
    """Return all hits of one ray, sorted by (t, index): exactly those of `Scene.all`.

    Raises
    ------
    InvalidInput
        If there is not exactly one ray, or its D differs.

    Examples
    --------
    >>> import raybox as rb
    >>> scan(rb.Rays([0, 0], [1, 0]), rb.Boxes([[5, -1], [2, -1]], [[6, 1], [4, 1]])).index
    array([1, 0])
    """
    if ray.origins.size != ray.ndim_space or ray.ndim_space != geometry.ndim_space:
        raise InvalidInput(
            f"a scan is of one ray of the scene's D = {geometry.ndim_space}; "
            f"got rays of shape {ray.shape} and D = {ray.ndim_space}. Build a Scene for many rays."
        )
    one, rows, objects = exact_table.ray_at(ray._rows(), 0), geometry._rows(), object_rows(geometry)
    allowed = None if where is None else row_mask(where, objects, len(geometry))
    contacts: list[tuple[Ratio, int]] = []
    if one.t_min <= one.t_max:
        candidates = _candidates(one, *_bounds(rows))
        for i in (candidates if allowed is None else candidates[allowed[candidates]]).tolist():
            time = exact_table.exact_time(rows, one, i)
            if time is not None:
                contacts.append((time, i))
    contacts.sort(key=cmp_to_key(exact_table.compare_contacts))
    index = np.array([i for _, i in contacts], np.int64)
    t = np.array([definition.rounded(time) for time, _ in contacts], np.float64)
    source = Source(ray.reshape(1), SceneRows((rows,), sizes=(len(geometry),), objects=(objects,)))
    return AllHits(np.array([0, index.size], np.int64), index, t, source)


def _bounds(rows: BoxRows | TriangleRows) -> tuple[Floats, Floats]:
    """Return the bounds of the rows: (lower, upper)."""
    if isinstance(rows, BoxRows):
        return rows.lower, rows.upper
    return rows.corners.min(axis=1), rows.corners.max(axis=1)


def _candidates(ray: Ray1, lower: Floats, upper: Floats) -> Ints:
    """Return the boxes that are not certain misses in float64."""
    start = np.full(len(lower), ray.t_min)
    stop = np.full(len(lower), ray.t_max)
    unbounded: Bools = np.zeros(len(lower), np.bool_)
    inside: Bools = np.ones(len(lower), np.bool_)
    for k, (o, d) in enumerate(zip(ray.origin, ray.direction, strict=True)):
        low, up = lower[:, k], upper[:, k]
        if d == 0.0:
            inside &= (low <= o) & (o <= up)
            continue
        near, far = (low, up) if d > 0.0 else (up, low)
        with np.errstate(over="ignore", invalid="ignore"):
            enter, leave = (near - o) / d, (far - o) / d
        unbounded |= ~((np.abs(enter) < _HUGE) & (np.abs(leave) < _HUGE))
        start, stop = np.maximum(start, enter), np.minimum(stop, leave)
    with np.errstate(over="ignore", invalid="ignore"):
        missed = start - np.abs(start) * _SLACK > stop + np.abs(stop) * _SLACK + 1 / _HUGE
    return np.flatnonzero(inside & (unbounded | ~missed))
