"""`plot_slabs`: the textbook drawing of one ray and one box, above a timeline of t."""

from __future__ import annotations

from itertools import combinations
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.exact import definition
from raybox.geometry import Boxes, Rays
from raybox.plotting import canvas
from raybox.plotting.shapes import crossing
from raybox.textbook._checks import AXES
from raybox.textbook._verdicts import Case
from raybox.textbook.explain import Explanation, examine
from raybox.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_timeline(ax: Axes, found: Explanation) -> None:
    """Draw the intervals of t, one a row, with the exact result as the title."""
    case = found.case
    rows = [(AXES[row.axis], row.near, row.far, canvas.AXIS_COLOURS[row.axis]) for row in case.slabs]
    shared = case.slabs[-1][-2:]
    rows += [("shared", *shared, canvas.INK), ("ray", case.ray.t_min, case.ray.t_max, canvas.QUIET)]
    if found.exact is not None:
        inside = found.exact.t, min(found.exact.t_exit, case.ray.t_max)
        rows.append(("hit", *inside, canvas.HIT))
    low, high = _limits([t for row in rows for t in row[1:3]])
    for place, (_, near, far, colour) in enumerate(rows):
        _draw_bar(ax, place, (near, far), (low, high), colour)
    for t in shared if shared[0] <= shared[1] else ():
        if isfinite(t):
            ax.axvline(t, color=canvas.INK, lw=0.8, ls=":", zorder=1)
    ax.set(xlim=(low, high), ylim=(len(rows) - 0.4, -0.6), xlabel="t, in lengths of the ray's direction")
    ax.set_yticks(range(len(rows)), [row[0] for row in rows])
    for label, row in zip(ax.get_yticklabels(), rows, strict=True):
        label.set(color=row[3], weight="bold")
    ax.tick_params(axis="y", length=0)
    ax.spines[["top", "right", "left"]].set_visible(False)
    ax.set_title(_title(found), color=canvas.MISS if found.exact is None else canvas.HIT)


def _draw_bar(
    ax: Axes, place: int, span: tuple[float, float], limits: tuple[float, float], colour: str
) -> None:
    """Draw an interval from a dot to a ring, with its ends as numbers.

    An infinite end is drawn at the edge; an empty interval is a text.
    """
    near, far = span
    if near > far:
        parallel = near == inf and far == -inf
        words = "parallel, and outside" if parallel else f"nothing: in at {near:.4g}, out at {far:.4g}"
        ax.text(sum(limits) / 2, place, words, color=colour, ha="center", va="center", style="italic")
        return
    ends = [min(max(t, limits[0]), limits[1]) for t in span]
    ax.plot(ends, [place, place], color=colour, lw=5, alpha=0.55, solid_capstyle="butt", zorder=2)
    for t, face, shift, side in ((near, colour, -8, "right"), (far, canvas.PAPER, 8, "left")):
        if isfinite(t):
            ax.plot(t, place, "o", color=face, mec=colour, mew=1.6, ms=7, zorder=3)
            ax.annotate(
                f"{t:.4g}",
                (t, place),
                (shift, 0),
                textcoords="offset points",
                color=colour,
                ha=side,
                va="center",
            )


def _limits(times: list[float]) -> tuple[float, float]:
    """Return the range of t shown: all finite times, and room for the numbers."""
    finite = [t for t in times if isfinite(t)] or [0.0]
    low, high = min(finite), max(finite)
    room = 0.2 * (high - low) or 1.0
    return low - room, high + room


def _title(found: Explanation) -> str:
    if found.exact is not None:
        return f"hit at t = {found.exact.t:.6g}"
    ray, lower, upper, slabs, _ = found.case
    if definition.box(ray._replace(t_min=-inf, t_max=inf), lower, upper) is not None:
        return "miss: the ray is elsewhere when its line is in the box"
    near, far = slabs[-1][-2:]
    return "miss: the slabs share no t" + (", though rounded to float64 they do" if near <= far else "")


Pair = list[int]


@in_default_environment
def plot_slabs(ray: Rays, box: Boxes, *, ax: Axes | NDArray[np.object_] | None = None) -> NDArray[np.object_]:
    """Draw why one ray hits or misses one box: what `raybox.explain` prints.

    Above, space, for each pair of axes: the slab of each axis in its colour, the candidate faces thick, the
    points where the line enters each slab (a dot) and leaves it (a ring), and in red the part of the ray
    inside the box. Below, t: the interval of each slab, their intersection, and the ray's own range.

    Parameters
    ----------
    ray, box
        One ray (of shape () or (1,)) and one box, both in 2D or both in 3D.
    ax : sequence of matplotlib Axes, optional
        Axes to draw on: in 2D two, in 3D four, the last for t. By default a new figure's.

    Returns
    -------
    ndarray of matplotlib Axes
        The axes, the last for t.

    Raises
    ------
    RayboxError
        If matplotlib is not installed.
    InvalidInput
        If there is more than one ray or box, or none; if ray or box contain no point; if the number of axes
        is wrong.

    Examples
    --------
    >>> import raybox as rb
    >>> above, below = rb.plot_slabs(rb.Rays([0, 0], [2, 1]), rb.Boxes([[1, 0]], [[4, 1]]))
    >>> below.get_title()
    'hit at t = 0.5'
    """
    canvas.pyplot()
    found = examine(ray, box)
    if found.nothing:
        raise InvalidInput(
            f"there is nothing to draw: {found.nothing}. Pass a ray and a box that contain points."
        )
    case = found.case
    pairs = [list(pair) for pair in combinations(range(len(case.lower)), 2)]
    axes = _axes(len(pairs), ax)
    view = _view(case)
    for panel, pair in zip(axes, pairs, strict=False):
        _draw_slabs(panel, case, pair, view)
        _draw_line(panel, found, pair, view)
    draw_timeline(axes[-1], found)
    return axes


def _axes(panels: int, ax: Axes | NDArray[np.object_] | None) -> NDArray[np.object_]:
    """Return `ax`, or a new figure's axes: panels in a row, and one below."""
    if ax is not None:
        axes = np.atleast_1d(np.asarray(ax, dtype=object)).reshape(-1)
        if len(axes) != panels + 1:
            raise InvalidInput(f"ax must be {panels + 1} axes, the last for t; got {len(axes)}.")
        return axes
    size = (6.4, 6.4) if panels == 1 else (10.5, 5.4)
    figure = canvas.pyplot().figure(figsize=size, layout="constrained")
    grid = figure.add_gridspec(2, panels, height_ratios=[2.4, 1.0])
    places = [*(grid[0, k] for k in range(panels)), grid[1, :]]
    return np.array([figure.add_subplot(place) for place in places], dtype=object)


def _view(case: Case) -> Floats:
    """Return the corners of the picture, (2, D): box, origin, and near crossings."""
    origin, direction = (np.array(v) for v in case.ray[:2])
    ends = np.array([case.lower, case.upper, case.ray.origin])
    ends = np.where(np.isfinite(ends), ends, origin)
    lower, upper = ends.min(axis=0), ends.max(axis=0)
    reach = 0.5 * ((upper - lower).max() or 1.0)
    times = np.array([t for row in case.slabs for t in (row.near, row.far)])
    with np.errstate(over="ignore"):
        points = origin + times[np.isfinite(times), None] * direction
    near = ((points >= lower - reach) & (points <= upper + reach)).all(axis=1)
    points = np.concatenate([points[near], [lower, upper]])
    margin = 0.3 * reach
    return np.array([points.min(axis=0) - margin, points.max(axis=0) + margin])


def _draw_slabs(ax: Axes, case: Case, pair: Pair, view: Floats) -> None:
    """Shade the two slabs; draw the box at their intersection, and its candidate faces."""
    lower, upper = np.clip(case.lower, *view), np.clip(case.upper, *view)
    for axis, name in zip(pair, "vh", strict=True):
        colour = canvas.AXIS_COLOURS[axis]
        span, line = getattr(ax, f"ax{name}span"), getattr(ax, f"ax{name}line")
        span(lower[axis], upper[axis], color=colour, alpha=0.13, lw=0, label=f"slab of {AXES[axis]}")
        for at in (case.lower[axis], case.upper[axis]):
            if np.isfinite(at):
                line(at, color=colour, lw=0.8, alpha=0.7)
    i, j = pair
    across = ax.plot(
        [lower[i], upper[i], upper[i], lower[i], lower[i]], [lower[j], lower[j], upper[j], upper[j], lower[j]]
    )
    across[0].set(color=canvas.INK, lw=1.2, zorder=2.5)
    for face in case.faces:
        if face.axis in pair:
            ends = np.array([lower, upper])[:, pair]
            ends[:, pair.index(face.axis)] = face.at
            ax.plot(*ends.T, color=canvas.AXIS_COLOURS[face.axis], lw=4.5, solid_capstyle="butt", zorder=2.6)
    for axis, name in zip(pair, "xy", strict=True):
        getattr(ax, f"set_{name}lim")(*view[:, axis])
        getattr(ax, f"set_{name}label")(AXES[axis], color=canvas.AXIS_COLOURS[axis], weight="bold")
    ax.locator_params(nbins=6)
    ax.set_aspect("equal", adjustable="box")


def _draw_line(ax: Axes, found: Explanation, pair: Pair, view: Floats) -> None:
    """Draw the line, the ray, its part inside the box, and its crossings with the slabs."""
    case = found.case
    origin, direction = (np.array(v)[pair] for v in case.ray[:2])
    (enter,), (leave,) = crossing(origin[None], direction[None], view[:, pair])

    def points(*times: float) -> Floats:
        return np.asarray(origin[:, None] + np.clip(times, enter, leave) * direction[:, None])

    ax.plot(*points(-inf, inf), color=canvas.QUIET, lw=0.9, ls=":", zorder=3)
    low, high = max(case.ray.t_min, enter), min(case.ray.t_max, leave)
    if direction.any() and low < high:
        tail, head = points(low, high).T
        ax.annotate(
            "", head, tail, arrowprops={"arrowstyle": "->", "lw": 1.5, "shrinkA": 0, "shrinkB": 0}, zorder=3
        )
    if found.exact is not None:
        inside = points(found.exact.t, min(found.exact.t_exit, case.ray.t_max))
        ax.plot(*inside, color=canvas.HIT, lw=3.2, solid_capstyle="butt", zorder=3.5)
    ax.plot(*origin, "s", color=canvas.PAPER, mec=canvas.INK, ms=6, zorder=4)
    for row in case.slabs:
        if row.axis in pair and row.at_lower is not None:
            for t, face in ((row.near, canvas.AXIS_COLOURS[row.axis]), (row.far, canvas.PAPER)):
                if enter <= t <= leave:
                    ax.plot(
                        *points(t),
                        "o",
                        color=face,
                        mec=canvas.AXIS_COLOURS[row.axis],
                        mew=1.6,
                        ms=7,
                        zorder=4,
                    )
