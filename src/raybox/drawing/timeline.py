"""The line of t below the textbook drawing: bars for the slabs, for what they share, and for the ray."""

from math import inf, isfinite
from typing import Any

from raybox import rational
from raybox.drawing import canvas
from raybox.textbook._checks import AXES
from raybox.textbook.explain import Explanation


def draw_timeline(ax: Any, found: Explanation) -> None:
    """Draw it all, from top to bottom, with the exact verdict as the title."""
    case = found.case
    rows = [(AXES[row.axis], row.near, row.far, canvas.AXIS_COLOURS[row.axis]) for row in case.slabs]
    shared = case.slabs[-1][-2:]
    rows += [("shared", *shared, canvas.INK), ("ray", case.ray.t_min, case.ray.t_max, canvas.QUIET)]
    if found.exact is not None:
        met = found.exact.t, min(found.exact.t_exit, case.ray.t_max)
        rows.append(("hit", *met, canvas.HIT))
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
    ax: Any, place: int, span: tuple[float, float], limits: tuple[float, float], colour: str
) -> None:
    """Draw from a dot to a ring, with the numbers outside; without end, up to the edge; empty, say so."""
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
    """Return what part of t is shown: all that is finite, and room for the numbers."""
    finite = [t for t in times if isfinite(t)] or [0.0]
    low, high = min(finite), max(finite)
    room = 0.2 * (high - low) or 1.0
    return low - room, high + room


def _title(found: Explanation) -> str:
    if found.exact is not None:
        return f"hit at t = {found.exact.t:.6g}"
    ray, lower, upper, slabs, _ = found.case
    if rational.box(ray._replace(t_min=-inf, t_max=inf), lower, upper) is not None:
        return "miss: the ray is elsewhere when its line is in the box"
    near, far = slabs[-1][-2:]
    return "miss: the slabs share no t" + (", though rounded to float64 they do" if near <= far else "")
