"""Turn a geometry so that another axis is up, without rounding."""

from pathlib import Path
from typing import Any

import numpy as np

from raybox.geometry import Boxes, Instances, Mesh, Rays, with_facts
from raybox.geometry import mesh as meshes
from raybox.io.formats.common import Floats, Loadable, SceneGeometry, Up, file_error


def turned(geometry: Loadable, up: Up, path: Path) -> Loadable:
    """Return a geometry whose axis `up` is up; that of a list for each.

    From y to z, (x, y, z) becomes (x, -z, y), and back. Raise if the file does not state its axis.
    """
    return [_turned(one, up, path) for one in geometry] if isinstance(geometry, list) else _turned(geometry, up, path)


def _turned(geometry: SceneGeometry | Rays, up: Up, path: Path) -> Any:
    if geometry.up is None:
        matrix = "[[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0]]"
        way_out = f"load it without up, and if y is up turn it: mesh.transformed({matrix})"
        raise file_error(path, "does not state which axis is up", way_out)
    if geometry.up == up:
        return geometry
    made: SceneGeometry | Rays
    match geometry if geometry.ndim_space == 3 else None:
        case Mesh():
            vertices = _points(geometry.vertices, up)
            objects = meshes.stored_objects(geometry)
            made = meshes.restored(vertices, geometry.faces, objects, geometry._attributes)
        case Boxes():
            corners = np.stack([_points(geometry.lower, up), _points(geometry.upper, up)])
            made = Boxes(corners.min(axis=0), corners.max(axis=0))._with(geometry._attributes)
        case Instances():
            matrices = _points(geometry.transforms.swapaxes(1, 2), up).swapaxes(1, 2)
            made = Instances(geometry.geometry, matrices)._with(geometry._attributes)
        case Rays():
            vectors = (_points(values, up) for values in (geometry.origins, geometry.directions))
            made = Rays._of(*vectors, np.array(geometry.t_min), np.array(geometry.t_max))
        case _:
            problem = f"holds {type(geometry).__name__}, which raybox does not turn"
            raise file_error(path, problem, "load it without up")
    return with_facts(made, geometry.skipped, units=geometry.units, up=up)


def _points(points: Floats, up: Up) -> Floats:
    """Return turned points (..., 3); zeros stay without a sign."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.stack([x, 0.0 - z, y] if up == "z" else [x, z, 0.0 - y], axis=-1)
