"""raybox: which boxes a ray hits, and where: exactly, for one ray or for a billion."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from raybox._version import __version__ as __version__
from raybox.compiler.float_environment import guard_imports

if TYPE_CHECKING:
    from raybox import cluster as cluster
    from raybox import stream as stream
    from raybox import textbook as textbook
    from raybox.casting import cast as cast
    from raybox.errors import FileFormatError as FileFormatError
    from raybox.errors import InvalidInput as InvalidInput
    from raybox.errors import RayboxError as RayboxError
    from raybox.geometry import Boxes as Boxes
    from raybox.geometry import Frustum as Frustum
    from raybox.geometry import Grid as Grid
    from raybox.geometry import Instances as Instances
    from raybox.geometry import Mesh as Mesh
    from raybox.geometry import Planes as Planes
    from raybox.geometry import Rays as Rays
    from raybox.geometry import Region as Region
    from raybox.hits import AllHits as AllHits
    from raybox.hits import Hits as Hits
    from raybox.hits.concatenation import concatenate as concatenate
    from raybox.io.formats import load as load
    from raybox.io.formats import load_grid as load_grid
    from raybox.io.formats import save as save
    from raybox.plotting import plot as plot
    from raybox.plotting import plot_slabs as plot_slabs
    from raybox.scene.pairwise import intersect as intersect
    from raybox.scene.scene import Scene as Scene
    from raybox.scene.sweep import sweep as sweep
    from raybox.textbook.explain import explain as explain
    from raybox.viewer import view as view

guard_imports()

# Where each public name lives. Names are looked up on first use, so that `import raybox` costs
# next to nothing.
_HOMES = {
    "RayboxError": "errors",
    "InvalidInput": "errors",
    "FileFormatError": "errors",
    "cast": "casting",
    "Rays": "geometry",
    "Boxes": "geometry",
    "Planes": "geometry",
    "Grid": "geometry",
    "Instances": "geometry",
    "Mesh": "geometry",
    "Region": "geometry",
    "Frustum": "geometry",
    "Hits": "hits",
    "AllHits": "hits",
    "concatenate": "hits.concatenation",
    "intersect": "scene.pairwise",
    "Scene": "scene.scene",
    "sweep": "scene.sweep",
    "explain": "textbook.explain",
    "plot": "plotting",
    "plot_slabs": "plotting",
    "load": "io.formats",
    "load_grid": "io.formats",
    "save": "io.formats",
    "view": "viewer",
}

__all__ = [*_HOMES, "__version__", "cluster", "stream", "textbook"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in ("cluster", "stream", "textbook"):
        return import_module(f"raybox.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'raybox' has no attribute {name!r}")
    value = getattr(import_module(f"raybox.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
