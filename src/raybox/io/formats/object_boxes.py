"""One box for each object of a geometry, for `boxes=True`."""

from pathlib import Path
from typing import Any

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Grid, Instances, Mesh
from raybox.geometry.colors import most_frequent
from raybox.geometry.labels import HasAttributes, with_colors
from raybox.hits.concatenation import concatenate
from raybox.io.formats.common import file_error


def boxes_of(geometry: Any, path: Path) -> Boxes:
    """Return a box for each object with triangles, copy or occupied cell; of a list, those of all."""
    if isinstance(geometry, list):
        try:
            return concatenate([boxes_of(one, path) for one in geometry])
        except InvalidInput as error:
            raise file_error(path, str(error).rstrip("."), "load it without boxes") from error
    match geometry:
        case Boxes():
            return geometry
        case Mesh():
            return boxes_of_objects(geometry)
        case Grid():
            return geometry.boxes(geometry.occupied)
        case Instances():
            return geometry.boxes()
    raise file_error(path, f"holds {type(geometry).__name__}, which have no boxes", "load it without boxes")


def boxes_of_objects(mesh: Mesh) -> Boxes:
    """Return a box around the triangles of each object, with its id and labels.

    Its colour is the one that most of its triangles have.
    """
    objects, groups = np.unique(mesh.objects, return_inverse=True)
    boxes = Boxes.around(mesh.triangles.reshape(-1, 3), np.repeat(groups, 3))
    own: HasAttributes = mesh
    colors = None if mesh.colors is None else most_frequent(mesh.colors, groups)
    return with_colors(boxes._with(own._attributes._replace(colors=None).of_rows(objects)), colors)
