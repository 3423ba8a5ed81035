"""matplotlib: its import, axes of the right dimension, collections, and colours."""

from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from raybox.errors import InvalidInput, RayboxError
from raybox.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from mpl_toolkits.mplot3d import Axes3D

# Of Tol's vibrant and high-contrast schemes, distinct for colour-blind people; misses are dashed besides.
HIT, MISS, BOX_HIT, NORMAL = "#CC3311", "#0077BB", "#DDAA33", "#009988"
AXIS_COLOURS = ("#0077BB", "#009988", "#AA4499")
INK, QUIET, PAPER = "#333333", "#777777", "white"

# The drawing order. matplotlib has no depth buffer: by default it sorts whole collections by their centres,
# so that rays would disappear behind boxes as the picture is turned.
FACES, EDGES = 1, 2
OVER = 2  # boxes hit, over the others
PATHS, MARKS = 5, 6


def pyplot() -> ModuleType:
    """Return matplotlib's pyplot; raise with the command that installs it."""
    if find_spec("matplotlib") is None:
        command = 'pip install "raybox[plot]"'
        raise RayboxError(f"plots need matplotlib, which is not installed; run: {command}")
    return import_module("matplotlib.pyplot")


def axes_for(dims: int, ax: "Axes | None") -> "Axes":
    """Return the axes to draw on: `ax`, if of the right dimension, or new ones."""
    plt = pyplot()
    if ax is None:
        figure = plt.figure(figsize=(6.4, 5.4) if dims == 3 else (6.4, 4.8), layout="constrained")
        ax = figure.add_subplot(projection="3d" if dims == 3 else None)
    elif (3 if hasattr(ax, "get_zlim") else 2) != dims:
        way_out = "add_subplot(projection='3d')" if dims == 3 else "add_subplot()"
        raise InvalidInput(
            f"ax must be {dims}D axes, as the scene is {dims}D; got {type(ax).__name__}. "
            f"Create them with figure.{way_out}."
        )
    if dims == 3 and not ax.has_data():
        solid: Axes3D = ax
        solid.computed_zorder = False
    return ax


def fit(ax: "Axes", view: Floats) -> None:
    """Extend the limits of axes by the box ``view``, with one scale on all axes."""
    fresh = not ax.has_data()
    for axis, (low, high) in zip("xyz", view.T.tolist(), strict=False):
        limits = getattr(ax, f"get_{axis}lim")()
        wide = (low, high) if fresh else (min(low, *limits), max(high, *limits))
        getattr(ax, f"set_{axis}lim")(*wide)
        getattr(ax, f"set_{axis}label")(axis)
    if view.shape[1] == 2:
        ax.set_aspect("equal", adjustable="box")
    else:
        # The zoom leaves room for labels, which matplotlib's layouts ignore in 3D.
        solid: Axes3D = ax
        spans = [high - low for low, high in (solid.get_xlim(), solid.get_ylim(), solid.get_zlim())]
        solid.set_box_aspect(spans, zoom=0.88)
    if fresh:
        ax.locator_params(nbins=6 if view.shape[1] == 3 else 8)


def add_lines(ax: "Axes3D", segments: Floats, **style: Any) -> None:
    """Draw segments ``(N, 2, D)`` as one collection."""
    if segments.shape[-1] == 2:
        ax.add_collection(import_module("matplotlib.collections").LineCollection(segments, **style))
        return
    lines = import_module("mpl_toolkits.mplot3d.art3d").Line3DCollection(segments, **style)
    ax.add_collection3d(lines)


def add_polygons(ax: "Axes3D", corners: Floats, **style: Any) -> None:
    """Fill polygons ``(N, K, D)`` as one collection."""
    if corners.shape[-1] == 2:
        ax.add_collection(import_module("matplotlib.collections").PolyCollection(corners, **style))
        return
    faces = import_module("mpl_toolkits.mplot3d.art3d").Poly3DCollection(corners, **style)
    ax.add_collection3d(faces)


def add_dots(ax: "Axes", points: Floats, lw: float = 0.8, **style: Any) -> None:
    """Mark points ``(N, D)``."""
    if points.shape[-1] == 3:
        style["depthshade"] = False
    ax.scatter(*points.T, linewidths=lw, zorder=MARKS, **style)
