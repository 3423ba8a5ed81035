"""`explain` of a grid: the way of one ray from cell to cell, by exact crossing times.

After Amanatides and Woo 1987: the next cell lies behind the plane that is crossed first. Times are fractions,
so that planes that are crossed at once are found to be.
"""

from bisect import bisect_left, bisect_right
from fractions import Fraction
from math import hypot, inf, prod
from sys import float_info
from typing import TYPE_CHECKING, NamedTuple

from raybox.compiler.float_environment import in_default_environment
from raybox.exact import paths
from raybox.exact.definition import Ray1
from raybox.textbook._checks import AXES, nothing_in, number
from raybox.textbook._text import WIDTH, Cell, table, write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raybox.geometry import Grid

ROWS = 60  # of the table; the rest is counted
Edges = list[list[float]]


class Stretch(NamedTuple):
    """The stretch of a ray in one cell."""

    cell: int
    place: tuple[int, ...]
    """Of the cell, on each axis."""
    begin: Fraction
    end: Fraction
    """The t of its ends, within the ray's range."""
    length: float
    """In space."""
    planes: tuple[tuple[int, float], ...]
    """Axis and place of each plane that is crossed where it begins; none where the ray starts in the cell."""
    occupied: bool


class GridTrace(NamedTuple):
    """The result of `explain` for a grid: `str` returns the text; true if an occupied cell is crossed.

    stretches: all of them, in order; nothing: why ray and grid share none, and empty if they do.
    """

    ray: Ray1
    grid: "Grid"
    stretches: tuple[Stretch, ...]
    nothing: str = ""

    def __bool__(self) -> bool:
        return any(one.occupied for one in self.stretches)

    def __str__(self) -> str:
        return _page(self)

    def __repr__(self) -> str:
        occupied = sum(one.occupied for one in self.stretches)
        return f"<GridTrace: {len(self.stretches)} stretches, {occupied} in occupied cells>"


@in_default_environment
def trace(ray: Ray1, grid: "Grid") -> GridTrace:
    """Return the way of a ray through a grid."""
    edges = [axis.tolist() for axis in grid.edges]
    if nothing := nothing_in(ray):
        return GridTrace(ray, grid, (), nothing)
    if not any(ray.direction):
        return GridTrace(ray, grid, (), "the direction is zero: a point has no stretches")
    span = _span(ray, edges)
    if isinstance(span, str):
        return GridTrace(ray, grid, (), span)
    return GridTrace(ray, grid, tuple(_walk(ray, grid, edges, *span)))


def _span(ray: Ray1, edges: Edges) -> tuple[Fraction, Fraction] | str:
    """Return the part of the ray that is in the grid, or why there is none of positive length."""
    low, high = (t if abs(t) == float("inf") else Fraction(t) for t in (ray.t_min, ray.t_max))
    for axis, (o, d, planes) in enumerate(zip(ray.origin, ray.direction, edges, strict=True)):
        if d == 0.0:
            if not planes[0] <= o <= planes[-1]:
                return f"the ray runs beside the grid: {AXES[axis]} = {number(o)} is not between its planes"
            continue
        near, far = sorted(_time(ray, axis, planes[end]) for end in (0, -1))
        low, high = max(low, near), min(high, far)
    if low >= high:
        touch = "only touches the grid" if low == high else "misses the grid"
        return f"the ray {touch}: the slabs and its range share no stretch of t"
    return Fraction(low), Fraction(high)


def _time(ray: Ray1, axis: int, plane: float) -> Fraction:
    """Return the t at which a ray crosses a plane."""
    return (Fraction(plane) - Fraction(ray.origin[axis])) / Fraction(ray.direction[axis])


def _walk(ray: Ray1, grid: "Grid", edges: Edges, begin: Fraction, end: Fraction) -> "Sequence[Stretch]":
    """Return the stretches from one t to another."""
    place = [_first(ray, axis, planes, begin) for axis, planes in enumerate(edges)]
    moving = [axis for axis, d in enumerate(ray.direction) if d != 0.0]
    step = {axis: 1 if ray.direction[axis] > 0.0 else -1 for axis in moving}
    found: list[Stretch] = []
    while begin < end:
        ahead = {a: _time(ray, a, edges[a][place[a] + (step[a] > 0)]) for a in moving}
        behind = {a: edges[a][place[a] + (step[a] < 0)] for a in moving}
        planes = tuple((a, at) for a, at in behind.items() if _time(ray, a, at) == begin)
        leave = min(*ahead.values(), end)
        found.append(_stretch(ray, grid, tuple(place), (begin, leave), planes))
        for a in moving:
            place[a] += step[a] * (ahead[a] == leave)
        begin = leave
    return found


def _first(ray: Ray1, axis: int, planes: list[float], begin: Fraction) -> int:
    """Return the place of the first cell on an axis: half-open, but for the last one."""
    o, d = Fraction(ray.origin[axis]), Fraction(ray.direction[axis])
    find = bisect_left if d < 0 else bisect_right
    return min(max(find(planes, o + begin * d) - 1, 0), len(planes) - 2)


def _stretch(
    ray: Ray1,
    grid: "Grid",
    place: tuple[int, ...],
    ends: tuple[Fraction, Fraction],
    planes: tuple[tuple[int, float], ...],
) -> Stretch:
    cell = 0
    for k, count in zip(place, grid.shape, strict=True):
        cell = cell * count + k
    span, speed = _rounded(ends[1] - ends[0]), hypot(*ray.direction)
    length = span * speed
    if min(span, speed) < float_info.min or length == inf:
        length = paths.length(ray, *(t.as_integer_ratio() for t in ends))
    return Stretch(cell, place, *ends, length, planes, grid[place].occupied.item())


def _rounded(t: Fraction) -> float:
    """Return the nearest float; infinite where it is too large."""
    try:
        return float(t)
    except OverflowError:
        return float("inf") if t > 0 else float("-inf")


@in_default_environment
def _page(found: GridTrace) -> str:
    """Return the text of a trace."""
    parts = [_heading(found)]
    if found.nothing:
        parts.append(["STRETCHES: none", f"  {found.nothing}"])
    else:
        parts += [_stretches(found), _notes(found)]
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts if part)


def _heading(found: GridTrace) -> list[str]:
    """Return ray and grid as one table, a column for each axis."""
    ray, grid = found.ray, found.grid
    names = ["", "ray   origin", "      direction", "grid  lower", "      upper", "      cells"]
    axes = AXES[: grid.ndim_space]
    shape = [str(count) for count in grid.shape]
    rows: list[Sequence[Cell]] = [axes, ray.origin, ray.direction, *grid.bounds.tolist(), shape]
    lines = [f"{name:15}  {line}" for name, line in zip(names, table(rows, WIDTH - 17), strict=True)]
    return [*lines[:3], f"      t          from {number(ray.t_min)} to {number(ray.t_max)}", *lines[3:]]


def _stretches(found: GridTrace) -> list[str]:
    """Return a row for each stretch."""
    lines = ["STRETCHES: from cell to cell, through the plane that is crossed first, by exact times"]
    shown = found.stretches[:ROWS]
    head: list[Cell] = ["cell", *"ijk"[: len(found.grid.shape)], "t begins", "t ends", "length"]
    rows: list[Sequence[Cell]] = [head]
    for one in shown:
        times = (_rounded(one.begin), _rounded(one.end), one.length)
        rows.append([str(one.cell), *map(str, one.place), *times])
    for digits in (17, 9, 6, 0):
        ways = ["entered through", *(_entered(one, digits) for one in shown)]
        numbers = table(rows, WIDTH - 4 - max(map(len, ways)))
        wide = [f"  {line}  {way}" for line, way in zip(numbers, ways, strict=True)]
        if max(map(len, wide)) <= WIDTH:
            break
    lines += wide
    rest = len(found.stretches) - len(shown)
    return [*lines, f"  and {rest:,} more"] if rest else lines


def _entered(one: Stretch, digits: int) -> str:
    """Return how a cell is entered, and whether it is empty; of 0 digits, the axes alone."""
    planes = " and ".join(f"{AXES[a]} = {write(at, digits)}" if digits else AXES[a] for a, at in one.planes)
    text = f"{planes} at once" if len(one.planes) > 1 else planes or "the ray starts inside"
    return text if one.occupied else f"{text}; empty"


def _notes(found: GridTrace) -> list[str]:
    """Return what the table does not show: ties, planes that the ray runs in, sums."""
    lines = []
    ties = sum(len(one.planes) > 1 for one in found.stretches)
    if ties:
        lines.append(
            f"Exact ties: {ties:,} cells are entered through several planes at once. Others at that edge or"
        )
        lines.append("corner are only touched: `all` reports them, and they have no stretch.")
    for axis, (o, d) in enumerate(zip(found.ray.origin, found.ray.direction, strict=True)):
        if d == 0.0 and o in found.grid.edges[axis]:
            last = o == found.grid.edges[axis][-1]
            side = "the last cell, whose upper face it is" if last else "the higher cell"
            lines.append(f"The ray runs in the plane {AXES[axis]} = {number(o)}: it is in {side}.")
    total = sum(one.length for one in found.stretches)
    occupied = [one for one in found.stretches if one.occupied]
    inside = sum(one.length for one in occupied)
    lines.append(
        f"{len(found.stretches):,} of {prod(found.grid.shape):,} cells, length {number(total)}; "
        f"occupied: {len(occupied):,} of them, length {number(inside)}."
    )
    return lines
