"""The parts of a picture of a scene: its boxes or triangles, rays, and normals."""

from typing import Any, NamedTuple

import numpy as np

from raybox.drawing import canvas
from raybox.drawing.shapes import Paths, outlines, solid
from raybox.geometry import Bounded, Boxes, Mesh
from raybox.validate import Bools, Floats, Ints

MANY_FACES = 300  # boxes; beyond, translucent faces on top of each other say nothing
MANY_DOTS = 500  # starts of rays


class Look(NamedTuple):
    """How boxes are drawn; with alpha 0 they have no faces."""

    colour: str
    width: float
    alpha: float
    over: int


def draw_boxes(ax: Any, geometry: Bounded, met: Ints, view: Floats) -> None:
    """Draw edges thinner the more there are, and faces while there are few; tint what is met.

    10,000 boxes: one collection of 120,000 edges, drawn and saved with 200 rays in 1.7 s (one core).
    """
    rows = solid(geometry)
    width = float(np.interp(np.log10(max(len(rows), 1)), [1.5, 2.5, 4.0], [0.9, 0.5, 0.15]))
    others = rows[~np.isin(rows, met)]
    plain = Look(canvas.QUIET, width, 0.12 if len(rows) <= MANY_FACES else 0.0, 0)
    tinted = Look(canvas.MET, max(2.0 * width, 0.5), 0.25 if len(met) <= MANY_FACES else 0.0, canvas.OVER)
    for look, part in ((plain, others), (tinted, met)):
        if len(part):
            _draw_outlines(ax, *outlines(_rows(geometry, part), view), look)


def _draw_outlines(ax: Any, edges: Floats, faces: Floats, look: Look) -> None:
    dims = edges.shape[-1]
    if look.alpha:
        flat = faces.reshape(-1, faces.shape[-2], dims)
        style = {"facecolor": look.colour, "edgecolor": "none", "alpha": look.alpha}
        canvas.add_polygons(ax, flat, zorder=canvas.FACES + look.over, **style)
    lines = edges.reshape(-1, 2, dims)
    canvas.add_lines(ax, lines, colors=look.colour, lw=look.width, zorder=canvas.EDGES + look.over)


def _rows(geometry: Bounded, rows: Ints) -> Bounded:
    return geometry[rows] if isinstance(geometry, Boxes) else Mesh(geometry.vertices, geometry.faces[rows])


def draw_rays(ax: Any, paths: Paths) -> None:
    """Draw hits and misses, then where rays start and where they hit; thinner the more there are."""
    if not len(paths.hit):
        return
    crowd = np.log10(len(paths.hit))
    width = float(np.interp(crowd, [1.5, 3.0, 4.5], [1.6, 0.6, 0.2]))
    size = float(np.interp(crowd, [1.5, 3.0, 4.5], [26.0, 5.0, 0.5]))
    _draw_lines(ax, paths, paths.hit, label="hit", colors=canvas.HIT, lw=width)
    _draw_lines(ax, paths, ~paths.hit, label="miss", colors=canvas.MISS, lw=width, linestyles="--")
    starts = np.unique(paths.starts[paths.begins], axis=0)
    if len(starts) <= MANY_DOTS:
        canvas.add_dots(ax, starts, s=0.6 * size, color=canvas.PAPER, edgecolors=canvas.INK)
    canvas.add_dots(ax, paths.ends[paths.hit], s=size, color=canvas.HIT, lw=0)
    _draw_legend(ax)


def _draw_lines(ax: Any, paths: Paths, kept: Bools, label: str, **style: Any) -> None:
    if kept.any():
        lines = np.stack([paths.starts[kept], paths.ends[kept]], axis=1)
        label = f"{label} ({np.count_nonzero(kept):,})"
        canvas.add_lines(ax, lines, label=label, zorder=canvas.PATHS, **style)


def _draw_legend(ax: Any) -> None:
    # in 2D beside the axes, where no ray runs through it
    place = {"ncols": 2} if hasattr(ax, "get_zlim") else {"bbox_to_anchor": (1, 1)}
    legend = ax.legend(loc="upper left", frameon=False, **place)
    for line in legend.get_lines():
        line.set_linewidth(1.6)


def draw_normals(ax: Any, paths: Paths, view: Floats) -> None:
    """Draw an arrow for each normal; a ray that starts inside of a box has none."""
    kept = paths.hit & (np.nan_to_num(paths.normals) != 0.0).any(axis=1)
    length = 0.08 * float((view[1] - view[0]).max())
    arrows = length * paths.normals[kept]
    style = {"color": canvas.NORMAL, "zorder": canvas.MARKS}
    if arrows.shape[1] == 2:
        style |= {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.005}
    else:
        style |= {"linewidth": 1.4, "arrow_length_ratio": 0.35}
    ax.quiver(*paths.ends[kept].T, *arrows.T, **style)
