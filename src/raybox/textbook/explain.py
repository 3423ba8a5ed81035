"""`explain`: prints the slabs, verdicts and exact result of one ray and one box."""

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, NamedTuple

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.exact import definition, paths
from raybox.exact.definition import Crossing, Ray1
from raybox.textbook._checks import AXES, Vector, no_point, nothing_in, number, numbers
from raybox.textbook._text import WIDTH, Cell, columns, table
from raybox.textbook._verdicts import Case, Verdict, clip_line, given_length, verdicts

if TYPE_CHECKING:
    from raybox.geometry import Boxes, Grid, Rays
    from raybox.textbook.grid_trace import GridTrace


WORDS = {True: "hit", False: "miss", None: "-"}


@in_default_environment
def page(case: Case, nothing: str, verdicts: Sequence[Verdict], exact: Crossing | None) -> str:
    """Return the text of an explanation.

    nothing: why ray or box contain no point; empty if they do.
    """
    parts = [_heading(case)]
    if nothing:
        parts.append(["EXACT: miss", f"  {nothing}"])
    else:
        parts += [
            _slabs(case),
            _faces(case),
            _verdicts(case, verdicts),
            _exact(case, exact),
            _differ(verdicts),
        ]
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts)


def _heading(case: Case) -> list[str]:
    """Return ray and box as one table, a column for each axis."""
    ray = case.ray
    names = ["", "ray  origin", "     direction", "box  lower", "     upper"]
    rows: list[Sequence[Cell]] = [AXES[: len(ray.origin)], ray.origin, ray.direction, case.lower, case.upper]
    lines = [f"{name:14}  {line}" for name, line in zip(names, table(rows, WIDTH - 16), strict=True)]
    return [*lines[:3], f"     t           from {number(ray.t_min)} to {number(ray.t_max)}", *lines[3:]]


def _slabs(case: Case) -> list[str]:
    """Return the interval of every axis, and their intersection."""
    head: list[Cell] = ["axis", "t at lower", "t at upper", "near", "far", "near so far", "far so far"]
    body: list[Sequence[Cell]] = [[AXES[row.axis], *row[1:]] for row in case.slabs]
    lines = ["SLABS: where the line is between the two planes of each axis, in float64"]
    lines += [f"  {line}" for line in table([head, *body], WIDTH - 2)]
    for inside, words in ((True, "between them"), (False, "not between them")):
        names = [
            AXES[row.axis] for row in case.slabs if row.at_lower is None and (row.near < row.far) is inside
        ]
        if names:
            lines.append(f"  The line runs parallel to the planes of {' and '.join(names)}, {words}.")
    near, far = case.slabs[-1][-2:]
    if near > far:
        return [*lines, "  The slabs share no t: the line misses the box."]
    return [*lines, f"  The slabs share t = {number(near)} to {number(far)}: the line hits the box."]


def _faces(case: Case) -> list[str]:
    """Return the near face of every pair."""
    lines = [
        "CANDIDATE FACES: of each pair the one crossed first; the last of them is the way in, if there is one"
    ]
    if not case.faces:
        return [*lines, "  none: the line runs parallel to every plane, or the box has no end on this side"]
    last = max(case.faces, key=lambda face: face.t)
    planes = [f"{AXES[face.axis]} = {number(face.at)}" for face in case.faces]
    times = [f"crossed at t = {number(face.t)}" for face in case.faces]
    marks = ["<- the last" if face is last else "" for face in case.faces]
    return lines + [f"  {line}" for line in columns(planes, times, marks)]


def _verdicts(case: Case, verdicts: Sequence[Verdict]) -> list[str]:
    """Return a line for each algorithm, and how the ray's range differs from theirs."""
    t_min, t_max = case.ray.t_min, case.ray.t_max
    lines = ["VERDICTS: the textbook algorithms in float64, each by its own convention"]
    names, hits, says, conventions, _ = zip(*verdicts, strict=True)
    lines += [f"  {line}" for line in columns(names, [WORDS[hit] for hit in hits], says, conventions)]
    if t_min != 0.0:
        lines.append(f"  All of them begin at t = 0; this ray begins at t = {number(t_min)}.")
    if t_max < inf:
        lines.append(f"  Those with t >= 0 or far >= 0 do not see that this ray ends at t = {number(t_max)}.")
    elif "bounded_plane" in [verdict.name for verdict in verdicts if verdict.hit is not None]:
        lines.append(f"  bounded_plane needs a length; it is given {number(given_length(case))}.")
    return lines


def _exact(case: Case, exact: Crossing | None) -> list[str]:
    """Return the exact hit, or the reason of the exact miss."""
    ray, lower, upper = case[:3]
    if exact is None:
        line = definition.box(ray._replace(t_min=-inf, t_max=inf), lower, upper)
        if line is None:
            return ["EXACT: miss", "  the whole line misses the box"]
        stretch = f"t = {number(line.t_enter)} to {number(line.t_exit)}"
        return [
            "EXACT: miss",
            f"  the line is in the box for {stretch},",
            "  and none of it is in the ray's range",
        ]
    lines = [
        f"EXACT: hit at t = {number(exact.t)}",
        f"  line   in the box for t = {number(exact.t_enter)} to {number(exact.t_exit)}",
        f"  point  {numbers(paths.contact(ray, lower, upper))}",
    ]
    return [*lines, f"  face   {_entered(ray.direction, lower, upper, exact)}"]


def _entered(direction: Vector, lower: Vector, upper: Vector, exact: Crossing) -> str:
    if exact.axis < 0:
        return "none: the ray starts inside"
    inward = direction[exact.axis] > 0.0
    at = lower[exact.axis] if inward else upper[exact.axis]
    normal = [0.0] * len(direction)
    normal[exact.axis] = -1.0 if inward else 1.0
    return f"{AXES[exact.axis]} = {number(at)}, outward normal {numbers(normal)}"


def _differ(verdicts: Sequence[Verdict]) -> list[str]:
    """Return the verdicts that rounding in float64 made wrong."""
    wrong = [verdict for verdict in verdicts if verdict.differs]
    if not wrong:
        return ["Every verdict agrees with the exact one."]
    return [f"{v.name}: {WORDS[v.hit]}; exact: {WORDS[v.exact]}." for v in wrong]


class Explanation(NamedTuple):
    """The result of `explain`: `str` returns the text; true if the ray hits the box.

    case contains the ray, the box, the float64 slab table and the candidate faces; verdicts has a row for
    each algorithm; exact is the result of rational arithmetic (None for a miss); nothing is the reason why
    ray or box contain no point, and empty if they do.
    """

    case: Case
    verdicts: tuple[Verdict, ...]
    exact: Crossing | None
    nothing: str = ""

    @property
    def hit(self) -> bool:
        """Whether the ray hits the box, exactly."""
        return self.exact is not None

    def __bool__(self) -> bool:
        return self.hit

    def __str__(self) -> str:
        return page(self.case, self.nothing, self.verdicts, self.exact)

    @in_default_environment
    def __repr__(self) -> str:
        return f"<Explanation: {f'hit at t = {number(self.exact.t)}' if self.exact else 'miss'}>"


@in_default_environment
def explain(ray: "Rays", box: "Boxes | Grid") -> "Explanation | GridTrace":
    """Print why one ray hits or misses one box, and return the explanation.

    The text lists the slab intervals axis by axis, the candidate faces, the verdict of every textbook
    algorithm and the exact one, and where they differ. It is plain ASCII of at most 100 columns.

    Of a `Grid`, it lists the stretches of `Scene.segments`, cell by cell, occupied or not: by exact crossing
    times, so that planes that are crossed at once are named. What comes back is then a list of all of them,
    ``stretches``.

    Parameters
    ----------
    ray, box
        One ray (of shape () or (1,)) and one box, or a `Grid`, both in 2D or both in 3D.

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
    from raybox.geometry import Grid
    from raybox.textbook.grid_trace import trace

    found = trace(one_ray(ray, box.ndim_space), box) if isinstance(box, Grid) else examine(ray, box)
    print(found)
    return found


@in_default_environment
def examine(ray: "Rays", box: "Boxes") -> Explanation:
    """Return the explanation without printing it.

    Examples
    --------
    >>> import raybox as rb
    >>> examine(rb.Rays([0, 0], [2, 1]), rb.Boxes([[1, 0]], [[4, 1]])).exact
    Crossing(t=0.5, t_enter=0.5, t_exit=1.0, axis=0)
    """
    case = _one_of_each(ray, box)
    nothing = nothing_in(case.ray) or _nothing_in_box(case.lower, case.upper)
    if nothing:
        return Explanation(case, (), None, nothing)
    case = clip_line(*case[:3])
    return Explanation(case, verdicts(case), definition.box(*case[:3]))


def _one_of_each(ray: "Rays", box: "Boxes") -> Case:
    """Return the one ray and the one box, without slabs; raise if there are more, or none."""
    lowers, uppers = box.lower.tolist(), box.upper.tolist()
    one = one_ray(ray, box.ndim_space)
    if len(lowers) != 1:
        raise InvalidInput(f"explain takes one box; got {len(lowers)}. Pick one with boxes[i].")
    return Case(one, tuple(lowers[0]), tuple(uppers[0]), (), ())


def one_ray(ray: "Rays", dimension: int) -> Ray1:
    """Return the one ray; raise if there are more, or none, or it is of another D."""
    origins, directions = (a.reshape(-1, a.shape[-1]).tolist() for a in (ray.origins, ray.directions))
    if len(origins) != 1:
        raise InvalidInput(f"explain takes one ray; got {len(origins)}. Pick one with rays[i].")
    if len(origins[0]) != dimension:
        dimensions = f"{len(origins[0])}D and {dimension}D"
        raise InvalidInput(
            f"ray and box must have the same dimension; got {dimensions}. Add or drop a coordinate."
        )
    t_min, t_max = (float(t.reshape(-1)[0]) for t in (ray.t_min, ray.t_max))
    return Ray1(tuple(origins[0]), tuple(directions[0]), t_min, t_max)


def _nothing_in_box(lower: Vector, upper: Vector) -> str:
    reason = no_point(lower, upper)
    return f"the box holds no point: {reason}" if reason else ""
