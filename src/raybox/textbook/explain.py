"""One ray and one box, looked at from every side: what `raybox.explain` shows."""

from math import inf
from typing import TYPE_CHECKING, NamedTuple

from raybox import rational
from raybox.errors import InvalidInput
from raybox.rational import Crossing, Ray1
from raybox.textbook._checks import Vector, no_point, number
from raybox.textbook._page import page
from raybox.textbook._verdicts import Case, Verdict, look, verdicts

if TYPE_CHECKING:
    from raybox.geometry import Boxes, Rays


class Explanation(NamedTuple):
    """What `explain` found; `str` gives the text, and it is true in a condition if the ray meets the box.

    case holds the ray, the box, the float64 table of slabs and the candidate faces; verdicts has a row for
    each algorithm; exact is the answer of rational arithmetic (None for a miss); nothing says why ray or box
    hold no point at all, and is empty otherwise.
    """

    case: Case
    verdicts: tuple[Verdict, ...]
    exact: Crossing | None
    nothing: str = ""

    @property
    def hit(self) -> bool:
        """Whether the ray meets the box, exactly."""
        return self.exact is not None

    def __bool__(self) -> bool:
        return self.hit

    def __str__(self) -> str:
        return page(self.case, self.nothing, self.verdicts, self.exact)

    def __repr__(self) -> str:
        return f"<Explanation: {f'hit at t = {number(self.exact.t)}' if self.exact else 'miss'}>"


def explain(ray: "Rays", box: "Boxes") -> Explanation:
    """Print how one ray comes to meet or miss one box, and return what was found.

    The text gives the slab intervals axis by axis, the candidate faces, the verdict of every textbook
    algorithm and the exact one, and says where they differ. It is plain ASCII of at most 100 columns.

    Parameters
    ----------
    ray, box
        One ray (of shape () or (1,)) and one box, both in 2D or both in 3D.

    Raises
    ------
    InvalidInput
        If there is more than one ray or box, or none, or their dimensions differ.

    Examples
    --------
    >>> import raybox as rb
    >>> found = rb.explain(rb.Rays([0, 0], [2, 1]), rb.Boxes([[1, 0]], [[4, 1]]))  # doctest: +ELLIPSIS
                    x  y
    ray  origin     0  0
         direction  2  1
    ...
    >>> found
    <Explanation: hit at t = 0.5>
    """
    found = examine(ray, box)
    print(found)
    return found


def examine(ray: "Rays", box: "Boxes") -> Explanation:
    """Find what `explain` prints, and print nothing.

    Examples
    --------
    >>> import raybox as rb
    >>> examine(rb.Rays([0, 0], [2, 1]), rb.Boxes([[1, 0]], [[4, 1]])).exact
    Crossing(t=0.5, t_enter=0.5, t_exit=1.0, axis=0)
    """
    one, lower, upper = _one_of_each(ray, box)
    nothing = _nothing(one, lower, upper)
    if nothing:
        return Explanation(Case(one, lower, upper, (), ()), (), None, nothing)
    case = look(one, lower, upper)
    return Explanation(case, verdicts(case), rational.box(one, lower, upper))


def _one_of_each(ray: "Rays", box: "Boxes") -> tuple[Ray1, Vector, Vector]:
    origins, directions = (a.reshape(-1, a.shape[-1]).tolist() for a in (ray.origins, ray.directions))
    lowers, uppers = box.lower.tolist(), box.upper.tolist()
    for what, rows, way_out in (("ray", origins, "rays[i]"), ("box", lowers, "boxes[i]")):
        if len(rows) != 1:
            raise InvalidInput(f"explain takes one {what}; got {len(rows)}. Pick one with {way_out}.")
    if len(origins[0]) != len(lowers[0]):
        dimensions = f"{len(origins[0])}D and {len(lowers[0])}D"
        raise InvalidInput(f"ray and box must have the same dimension; got {dimensions}.")
    t_min, t_max = (float(t.reshape(-1)[0]) for t in (ray.t_min, ray.t_max))
    return Ray1(tuple(origins[0]), tuple(directions[0]), t_min, t_max), tuple(lowers[0]), tuple(uppers[0])


def _nothing(ray: Ray1, lower: Vector, upper: Vector) -> str:
    """Say why ray or box hold no point; such a ray may hold NaN, so nothing else is asked of it."""
    if not (ray.t_min <= ray.t_max and ray.t_min < inf and ray.t_max > -inf):
        return f"the ray holds no point: no t lies in {number(ray.t_min)} to {number(ray.t_max)}"
    reason = no_point(lower, upper)
    return f"the box holds no point: {reason}" if reason else ""
