"""`plot`: draws boxes or triangles, and rays that hit or miss them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import Bounded, Boxes, Grid, Mesh, Rays
from raybox.geometry.grid_surface import visible_cells
from raybox.hits import Hits
from raybox.plotting import canvas
from raybox.plotting.shapes import Paths, outlines, paths_of, solid, view_of
from raybox.validation import Bools, Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from raybox.scene.scene import Scene

MANY_CELLS, MANY_OF_FULL = 10_000, 2_000  # cells drawn, at most; the second of a grid that is full
MANY_FACES = 300  # boxes with translucent faces, at most: more of them hide each other
MANY_DOTS = 500  # starts of rays that are marked, at most


class Style(NamedTuple):
    """The style of boxes; with alpha 0 they have no faces."""

    colour: str
    width: float
    alpha: float
    over: int


def draw_boxes(ax: Axes, geometry: Bounded, hit_rows: Ints, view: Floats) -> None:
    """Draw edges, thinner the more there are, and faces up to `MANY_FACES`; tint rows hit.

    All edges are one collection: 120,000 edges draw within seconds.
    """
    rows = solid(geometry)
    width = float(np.interp(np.log10(max(len(rows), 1)), [1.5, 2.5, 4.0], [0.9, 0.5, 0.15]))
    others = rows[~np.isin(rows, hit_rows)]
    plain = Style(canvas.QUIET, width, 0.12 if len(rows) <= MANY_FACES else 0.0, 0)
    alpha = 0.25 if len(hit_rows) <= MANY_FACES else 0.0
    tinted = Style(canvas.BOX_HIT, max(2.0 * width, 0.5), alpha, canvas.OVER)
    for style, part in ((plain, others), (tinted, hit_rows)):
        if len(part):
            _draw_outlines(ax, *outlines(_rows(geometry, part), view), style)


def _draw_outlines(ax: Axes, edges: Floats, faces: Floats, style: Style) -> None:
    dims = edges.shape[-1]
    if style.alpha:
        flat = faces.reshape(-1, faces.shape[-2], dims)
        colours = {"facecolor": style.colour, "edgecolor": "none", "alpha": style.alpha}
        canvas.add_polygons(ax, flat, zorder=canvas.FACES + style.over, **colours)
    lines = edges.reshape(-1, 2, dims)
    canvas.add_lines(ax, lines, colors=style.colour, lw=style.width, zorder=canvas.EDGES + style.over)


def _rows(geometry: Bounded, rows: Ints) -> Bounded:
    return geometry[rows] if isinstance(geometry, Boxes) else Mesh(geometry.vertices, geometry.faces[rows])


def draw_rays(ax: Axes, paths: Paths) -> None:
    """Draw hits and misses, then starts and hit points; thinner the more there are."""
    if not len(paths.hit):
        return
    magnitude = np.log10(len(paths.hit))
    width = float(np.interp(magnitude, [1.5, 3.0, 4.5], [1.6, 0.6, 0.2]))
    size = float(np.interp(magnitude, [1.5, 3.0, 4.5], [26.0, 5.0, 0.5]))
    _draw_lines(ax, paths, paths.hit, label="hit", colors=canvas.HIT, lw=width)
    _draw_lines(ax, paths, ~paths.hit, label="miss", colors=canvas.MISS, lw=width, linestyles="--")
    starts = np.unique(paths.starts[paths.begins], axis=0)
    if len(starts) <= MANY_DOTS:
        canvas.add_dots(ax, starts, s=0.6 * size, color=canvas.PAPER, edgecolors=canvas.INK)
    canvas.add_dots(ax, paths.ends[paths.hit], s=size, color=canvas.HIT, lw=0)
    _draw_legend(ax)


def _draw_lines(ax: Axes, paths: Paths, chosen: Bools, label: str, **style: Any) -> None:
    if chosen.any():
        lines = np.stack([paths.starts[chosen], paths.ends[chosen]], axis=1)
        label = f"{label} ({np.count_nonzero(chosen):,})"
        canvas.add_lines(ax, lines, label=label, zorder=canvas.PATHS, **style)


def _draw_legend(ax: Axes) -> None:
    # In 2D beside the axes, where no ray crosses it.
    place = {"ncols": 2} if hasattr(ax, "get_zlim") else {"bbox_to_anchor": (1, 1)}
    legend = ax.legend(loc="upper left", frameon=False, **place)
    for line in legend.get_lines():
        line.set_linewidth(1.6)


def draw_normals(ax: Axes, paths: Paths, view: Floats) -> None:
    """Draw an arrow for each normal; rays that start inside a box have none."""
    entering = paths.hit & (np.nan_to_num(paths.normals) != 0.0).any(axis=1)
    length = 0.08 * float((view[1] - view[0]).max())
    arrows = length * paths.normals[entering]
    style: dict[str, Any] = {"color": canvas.NORMAL, "zorder": canvas.MARKS}
    if arrows.shape[1] == 2:
        style |= {"angles": "xy", "scale_units": "xy", "scale": 1.0, "width": 0.005}
    else:
        style |= {"linewidth": 1.4, "arrow_length_ratio": 0.35}
    ax.quiver(*paths.ends[entering].T, *arrows.T, **style)


@in_default_environment
def plot(
    scene: Scene | Bounded | Grid,
    rays: Rays | None = None,
    hits: Hits | None = None,
    *,
    ax: Axes | None = None,
    normals: bool = False,
) -> Axes:
    """Draw boxes, cells or triangles, in 2D or 3D, and rays that hit or miss them.

    A ray that hits is red and ends at the hit point; one that misses is blue, dashed, and ends just past the
    scene or at its own t_max. Boxes hit are tinted. Of more than 300 boxes only those hit have faces.
    Unbounded boxes are cut at the picture's edge. matplotlib has no depth buffer: rays are drawn over boxes,
    never behind them. Of a `Grid`, the occupied cells are drawn, but for those hidden behind others; where
    these are more than 10,000, or all cells are occupied, and more than 2,000, its outline and the cells hit.

    Parameters
    ----------
    scene : Scene, Boxes, Grid or Mesh
        What to draw.
    rays : Rays, optional
        Of any shape, of the scene's D.
    hits : Hits, optional
        Hits of the rays, of their shape. By default those of ``scene.nearest(rays)``.
    ax : matplotlib Axes, optional
        Axes to draw on, with projection="3d" for a scene in 3D. By default a new figure's.
    normals : bool
        Draw the normal of the face hit at each hit point.

    Returns
    -------
    matplotlib Axes
        ``ax.figure.savefig("picture.png")`` saves it.

    Raises
    ------
    RayboxError
        If matplotlib is not installed.
    InvalidInput
        If scene, rays, hits and ax do not match.

    Examples
    --------
    >>> import raybox as rb
    >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, 0]], [[3, 1], [6, 3]]))
    >>> ax = rb.plot(scene, rb.Rays([0, 0], [[1, 0], [2, 1], [-1, 1]]))
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['hit (2)', 'miss (1)']
    """
    canvas.pyplot()
    geometry = _geometry(scene)
    _check(geometry, rays, hits)
    if rays is not None and hits is None:
        hits = _as_scene(scene).nearest(rays)
    ax = canvas.axes_for(geometry.ndim_space, ax)
    hit_rows = np.unique(hits.index[hits.hit]) if hits is not None else np.zeros(0, np.int64)
    view = view_of(Boxes(*geometry.bounds) if isinstance(geometry, Grid) else geometry, rays, hits)
    canvas.fit(ax, view)
    if isinstance(geometry, Grid):
        draw_boxes(ax, *_cells(geometry, hit_rows), view)
    else:
        draw_boxes(ax, geometry, hit_rows, view)
    if rays is not None and hits is not None:
        paths = paths_of(rays, hits, view)
        draw_rays(ax, paths)
        if normals:
            draw_normals(ax, paths, view)
    return ax


def _cells(grid: Grid, hit_cells: Ints) -> tuple[Boxes, Ints]:
    """Return the boxes to draw of a grid, and which of them are hit."""
    cells = visible_cells(grid, MANY_CELLS, MANY_OF_FULL)
    if cells is not None:
        cells = np.union1d(cells, hit_cells)
        return grid.boxes(cells), np.searchsorted(cells, hit_cells)
    found, (low, high) = grid.boxes(hit_cells), grid.bounds
    boxes = Boxes(np.concatenate([low[None], found.lower]), np.concatenate([high[None], found.upper]))
    return boxes, np.arange(1, len(boxes))


def _geometry(scene: Scene | Bounded | Grid) -> Bounded | Grid:
    if isinstance(scene, (Boxes, Grid, Mesh)):
        return scene
    from raybox.scene.scene import Scene

    found = scene.geometry if isinstance(scene, Scene) else None
    if not isinstance(found, (Boxes, Grid, Mesh)):
        made = "" if found is None else f" of {found!r}"
        raise InvalidInput(
            f"scene must be a Scene, Boxes, a Grid or a Mesh; got {type(scene).__name__}{made}. "
            "Draw the geometries of a scene one by one; instances.boxes() returns the boxes round instances."
        )
    return found


def _check(geometry: Bounded | Grid, rays: object, hits: object) -> None:
    """Raise if rays and hits do not match each other or the scene."""
    if rays is None:
        if hits is not None:
            raise InvalidInput(
                "hits are drawn at the ends of their rays; got no rays. Pass the rays that were cast."
            )
        return
    if not isinstance(rays, Rays):
        raise InvalidInput(f"rays must be raybox.Rays; got {type(rays).__name__}.")
    if rays.ndim_space != geometry.ndim_space:
        dims = f"D = {geometry.ndim_space}; got D = {rays.ndim_space}"
        raise InvalidInput(f"rays must have the scene's dimensions, {dims}. Add or drop a coordinate.")
    if hits is None:
        return
    if not isinstance(hits, Hits):
        raise InvalidInput(f"hits must be raybox.Hits; got {type(hits).__name__}. Pass scene.nearest(rays).")
    if hits.shape != rays.shape:
        raise InvalidInput(
            f"hits must be one hit for each ray, shape {rays.shape}; got shape {hits.shape}. "
            "For scene.first(rays, k), repeat each ray k times, or pass scene.nearest(rays)."
        )
    if hits.index.max(initial=-1) >= len(geometry):
        row = int(hits.index.max())
        raise InvalidInput(f"hits must be of this scene ({len(geometry)} rows); got a hit of row {row}.")


def _as_scene(scene: Scene | Bounded | Grid) -> Scene:
    """Return a scene; compiled code is loaded only here."""
    from raybox.scene.scene import Scene

    return scene if isinstance(scene, Scene) else Scene(scene)
