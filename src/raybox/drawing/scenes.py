"""`plot`: boxes or triangles, and the rays that meet or miss them."""

from typing import Any

import numpy as np

from raybox.drawing import canvas
from raybox.drawing.marks import draw_boxes, draw_normals, draw_rays
from raybox.drawing.shapes import paths_of, view_of
from raybox.errors import InvalidInput
from raybox.geometry import Bounded, Boxes, Mesh, Rays
from raybox.hits import Hits


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
    from raybox.scene import Scene

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
    from raybox.scene import Scene

    return scene if isinstance(scene, Scene) else Scene(scene)
