"""Turn geometries so that another axis is up, without rounding."""

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import mesh as meshes
from raybox.geometry.boxes import Boxes
from raybox.geometry.file_facts import FromFile, Up
from raybox.geometry.instances import Instances
from raybox.geometry.labels import with_facts
from raybox.geometry.mesh import Mesh
from raybox.geometry.rays import Rays
from raybox.validation import Floats


def turned(geometry: FromFile, up: Up) -> FromFile:
    """Return a geometry, of which the other axis is up, so that `up` is.

    From y to z, (x, y, z) becomes (x, -z, y), and back. Raise `InvalidInput` for others than boxes,
    instances, meshes and rays in 3D.
    """
    made: FromFile
    if isinstance(geometry, Mesh):
        vertices, objects = _points(geometry.vertices, up), meshes.stored_objects(geometry)
        made = meshes.restored(vertices, geometry.faces, objects, geometry._attributes)
    elif isinstance(geometry, Instances) and geometry.ndim_space == 3:
        columns = _points(geometry.transforms.swapaxes(1, 2), up)
        made = Instances(geometry.geometry, columns.swapaxes(1, 2))._with(geometry._attributes)
    elif isinstance(geometry, Boxes) and geometry.ndim_space == 3:
        corners = np.stack([_points(geometry.lower, up), _points(geometry.upper, up)])
        made = Boxes(corners.min(axis=0), corners.max(axis=0))._with(geometry._attributes)
    elif isinstance(geometry, Rays) and geometry.ndim_space == 3:
        vectors = _points(geometry.origins, up), _points(geometry.directions, up)
        made = Rays._of(*vectors, np.array(geometry.t_min), np.array(geometry.t_max))
    else:
        raise InvalidInput(f"raybox turns no {type(geometry).__name__} like this one. Turn it yourself.")
    return with_facts(made, geometry.skipped, units=geometry.units, up=up)


def _points(points: Floats, up: Up) -> Floats:
    """Return turned points (..., 3); zeros stay without a sign."""
    x, y, z = np.moveaxis(points, -1, 0)
    return np.ascontiguousarray(np.stack([x, 0.0 - z, y] if up == "z" else [x, z, 0.0 - y], axis=-1))
