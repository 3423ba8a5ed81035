"""Candidate planes: Woo 1990, "Fast ray-box intersection", Graphics Gems.

From outside, a ray can enter through at most one plane of each pair: the one between the origin and the box.
Of these candidates only the crossing point of the last one reached has to be tested.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from numpy.typing import ArrayLike

from raybox.compiler.float_environment import in_default_environment
from raybox.textbook._checks import AXES, end, number, numbers, ray_and_box
from raybox.textbook.slab import Face


class CandidatePlanes(NamedTuple):
    """The result of `candidate_planes`; true if the ray hits the box.

    plane is the candidate that decided: the entry of a hit, the reason of a miss; None inside.
    """

    hit: bool
    t: float
    plane: Face | None
    moving_away: bool
    steps: tuple[str, ...]

    def __bool__(self) -> bool:
        return self.hit


@in_default_environment
def candidate_planes(
    origin: ArrayLike,
    direction: ArrayLike,
    lower: ArrayLike,
    upper: ArrayLike,
    *,
    length: float = inf,
) -> CandidatePlanes:
    """Return whether the crossing point of the last candidate plane is on the box.

    Source: the second half of the text on bounded rays, for collision over a bounded length. Candidates are
    the planes that face the origin.

    * Range: t in [0, length], counted in lengths of the direction (the text's is of length one).
    * Miss: hit is False and t is +inf. moving_away: the test ended early, at an axis on which the
      ray does not come nearer to the box.
    * Inside: true at once, t = 0, no plane.
    * Zero component: between the planes the axis has no candidate; outside them the ray is moving away.
      (The text uses the distance over the whole length, which is not defined for an endless ray.)

    D = 2 or 3, in float64: at an edge or a corner the rounded crossing point decides.

    Raises
    ------
    InvalidInput
        For NaN, an infinite ray, a box without a point, lower > upper, length < 0, or mismatched shapes.

    Examples
    --------
    >>> found = candidate_planes((0, 2, 0), (2, 0, 1), lower=(1, 1, 0), upper=(4, 4, 4))
    >>> found.hit, found.plane
    (True, Face(axis=0, at=1.0, t=0.5))
    >>> candidate_planes((0, 2, 0), (-2, 0, 1), lower=(1, 1, 0), upper=(4, 4, 4)).moving_away
    True
    """
    o, d, low, high = ray_and_box(origin, direction, lower, upper)
    length = end("length", length)
    candidates: list[Face] = []
    steps: list[str] = []

    # Find the candidates; return at the first that the ray cannot reach.
    for axis, (p, q, a, b) in enumerate(zip(o, d, low, high, strict=True)):
        name = AXES[axis]
        if a <= p <= b:
            steps.append(f"{name}: the origin is between the planes; no candidate")
            continue
        at = a if p < a else b
        if q == 0.0 or (q > 0.0) != (at > p):
            steps.append(f"{name}: the ray does not come nearer to {name} = {number(at)}; moving away")
            return CandidatePlanes(False, inf, Face(axis, at, inf), True, tuple(steps))
        candidates.append(Face(axis, at, (at - p) / q))
        steps.append(f"{name}: candidate {name} = {number(at)}, crossed at t = {number(candidates[-1].t)}")
        if candidates[-1].t > length:
            steps.append(f"the ray ends before that, at t = {number(length)}; miss")
            return CandidatePlanes(False, inf, candidates[-1], False, tuple(steps))

    if not candidates:
        return CandidatePlanes(True, 0.0, None, False, (*steps, "the origin is inside; hit"))

    # Only the last candidate can be the entry: test whether its point is on the box.
    plane = max(candidates, key=lambda face: face.t)
    point = tuple(p + plane.t * q for p, q in zip(o, d, strict=True))
    hit = all(
        a <= x <= b for k, (a, x, b) in enumerate(zip(low, point, high, strict=True)) if k != plane.axis
    )
    last = f"the last is {AXES[plane.axis]} = {number(plane.at)}, crossed in {numbers(point)}"
    steps.append(f"{last}, {'on the box; hit' if hit else 'beside the box; miss'}")
    return CandidatePlanes(hit, plane.t if hit else inf, plane, False, tuple(steps))
