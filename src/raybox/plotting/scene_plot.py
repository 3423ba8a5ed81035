"""`plot`: boxes or triangles, and the rays that meet or miss them."""

from typing import Any, NamedTuple

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Bounded, Boxes, Mesh, Rays
from raybox.hits import Hits
from raybox.plotting import canvas
from raybox.plotting.shapes import Paths, outlines, paths_of, solid, view_of
from raybox.validation import Bools, Floats, Ints

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


def plot(
    scene: Any, rays: Rays | None = None, hits: Hits | None = None, *, ax: Any = None, normals: bool = False
) -> Any:
    """Draw boxes or triangles, in 2D or 3D, and rays as far as they go.

    A ray that hits is red and ends where it hits; one that misses is blue, dashed, and ends just past the
    scene or at its own t_max. What is hit is tinted. Of more than 300 boxes only those hit have faces.
    Boxes without end are cut at the picture's edge. matplotlib has no depth buffer: rays are drawn over
    boxes, never behind them.

    Parameters
    ----------
    scene : Scene, Boxes or Mesh
        What to draw.
    rays : Rays, optional
        Of any shape, of the scene's D.
    hits : Hits, optional
        What the rays met, of their shape; if left out, the scene is asked for the nearest.
    ax : matplotlib Axes, optional
        Where to draw, with projection="3d" for a scene in 3D; if left out, a new figure.
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
        If scene, rays, hits and ax do not fit each other.

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
        hits = _asked(scene).nearest(rays)
    ax = canvas.axes_for(geometry.ndim_space, ax)
    view = view_of(geometry, rays, hits)
    canvas.fit(ax, view)
    met = np.unique(hits.index[hits.hit]) if hits is not None else np.zeros(0, np.int64)
    draw_boxes(ax, geometry, met, view)
    if rays is not None and hits is not None:
        paths = paths_of(rays, hits, view)
        draw_rays(ax, paths)
        if normals:
            draw_normals(ax, paths, view)
    return ax


def _geometry(scene: Any) -> Bounded:
    if isinstance(scene, (Boxes, Mesh)):
        return scene
    from raybox.scene.scene import Scene

    found = scene.geometry if isinstance(scene, Scene) else None
    if not isinstance(found, (Boxes, Mesh)):
        made = "" if found is None else f" of {found!r}"
        raise InvalidInput(
            f"scene must be a Scene, Boxes or a Mesh; got {type(scene).__name__}{made}. "
            "Draw the parts of a scene one by one; the boxes round copies are instances.boxes()."
        )
    return found


def _check(geometry: Bounded, rays: Any, hits: Any) -> None:
    """Refuse rays and hits that do not belong together, or not to the scene."""
    if rays is None:
        if hits is not None:
            raise InvalidInput(
                "hits are drawn at the ends of their rays; got no rays. Pass those that were cast."
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
        raise InvalidInput(f"hits must be raybox.Hits; got {type(hits).__name__}. Ask scene.nearest(rays).")
    if hits.shape != rays.shape:
        raise InvalidInput(
            f"hits must have one contact for each ray, shape {rays.shape}; got shape {hits.shape}. "
            "Of scene.first(rays, k), pass the rays repeated k times, or ask scene.nearest(rays)."
        )
    if hits.index.max(initial=-1) >= len(geometry):
        row = int(hits.index.max())
        raise InvalidInput(f"hits must be of this scene, of {len(geometry)} rows; got a hit of row {row}.")


def _asked(scene: Any) -> Any:
    """Return something that can be asked; compiled code is loaded only here."""
    from raybox.scene.scene import Scene

    return scene if isinstance(scene, Scene) else Scene(scene)
