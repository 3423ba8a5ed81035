"""Where pictures are drawn: matplotlib if it is there, axes of the right kind, and colours."""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

from raybox.errors import InvalidInput, RayboxError
from raybox.validation import Floats

# Of Tol's vibrant and high-contrast schemes, which all kinds of eyes tell apart; misses are dashed besides.
HIT, MISS, MET, NORMAL = "#CC3311", "#0077BB", "#DDAA33", "#009988"
AXIS_COLOURS = ("#0077BB", "#009988", "#AA4499")
INK, QUIET, PAPER = "#333333", "#777777", "white"

# What is drawn over what. matplotlib has no depth buffer: left to itself it sorts whole collections by their
# middles, and rays come and go behind boxes as the picture is turned.
FACES, EDGES = 1, 2
OVER = 2  # what is met, over what is not
PATHS, MARKS = 5, 6


def pyplot() -> Any:
    """Import matplotlib's pyplot, or say which command installs it."""
    if find_spec("matplotlib") is None:
        command = 'pip install "raybox[plot]"'
        raise RayboxError(f"pictures need matplotlib, which is not installed; run: {command}")
    return import_module("matplotlib.pyplot")


def axes_for(dims: int, ax: Any) -> Any:
    """Return the axes to draw on: those given, if they are of the right kind, or new ones."""
    plt = pyplot()
    if ax is None:
        figure = plt.figure(figsize=(6.4, 5.4) if dims == 3 else (6.4, 4.8), layout="constrained")
        ax = figure.add_subplot(projection="3d" if dims == 3 else None)
    elif (3 if hasattr(ax, "get_zlim") else 2) != dims:
        way_out = "add_subplot(projection='3d')" if dims == 3 else "add_subplot()"
        raise InvalidInput(
            f"ax must be axes of {dims}D, as the scene is; got {type(ax).__name__}. "
            f"Make some: figure.{way_out}."
        )
    if dims == 3 and not ax.has_data():
        ax.computed_zorder = False
    return ax


def fit(ax: Any, view: Floats) -> None:
    """Make room for the box ``view``, beside what is there already, with the same scale on all axes."""
    fresh = not ax.has_data()
    for axis, (low, high) in zip("xyz", view.T.tolist(), strict=False):
        limits = getattr(ax, f"get_{axis}lim")()
        wide = (low, high) if fresh else (min(low, *limits), max(high, *limits))
        getattr(ax, f"set_{axis}lim")(*wide)
        getattr(ax, f"set_{axis}label")(axis)
    if view.shape[1] == 2:
        ax.set_aspect("equal", adjustable="box")
    else:
        # the zoom leaves room for the labels, which matplotlib's layouts do not see in 3D
        spans = [high - low for low, high in (ax.get_xlim(), ax.get_ylim(), ax.get_zlim())]
        ax.set_box_aspect(spans, zoom=0.88)
    if fresh:
        ax.locator_params(nbins=6 if view.shape[1] == 3 else 8)


def add_lines(ax: Any, segments: Floats, **style: Any) -> Any:
    """Draw segments ``(N, 2, D)`` as one collection, and return it."""
    if segments.shape[-1] == 2:
        return ax.add_collection(import_module("matplotlib.collections").LineCollection(segments, **style))
    lines = import_module("mpl_toolkits.mplot3d.art3d").Line3DCollection(segments, **style)
    return ax.add_collection3d(lines)


def add_polygons(ax: Any, corners: Floats, **style: Any) -> Any:
    """Fill polygons ``(N, K, D)`` as one collection, and return it."""
    if corners.shape[-1] == 2:
        return ax.add_collection(import_module("matplotlib.collections").PolyCollection(corners, **style))
    faces = import_module("mpl_toolkits.mplot3d.art3d").Poly3DCollection(corners, **style)
    return ax.add_collection3d(faces)


def add_dots(ax: Any, points: Floats, lw: float = 0.8, **style: Any) -> Any:
    """Mark points ``(N, D)``, and return the collection."""
    if points.shape[-1] == 3:
        style["depthshade"] = False
    return ax.scatter(*points.T, linewidths=lw, zorder=MARKS, **style)
