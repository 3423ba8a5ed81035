"""Several triangle meshes as one."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from raybox.geometry.labels import LabelsInput
from raybox.geometry.mesh import Mesh
from raybox.geometry.row_ids import IdsInput
from raybox.validation import ArrayInput, Floats, Ints


class _Triangles(Protocol):
    """Vertices (V, 3) and faces (F, 3): a `Mesh`, or a part of a file."""

    @property
    def vertices(self) -> Floats: ...

    @property
    def faces(self) -> Ints: ...


def join_meshes(
    parts: Sequence[_Triangles],
    objects: ArrayInput | None = None,
    ids: IdsInput = None,
    labels: LabelsInput = None,
) -> Mesh:
    """Return one mesh of the triangles of all parts, in their order; each part has `vertices` and `faces`.

    Objects, ids and labels are those of the whole mesh.
    """
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)], dtype=np.int64)
    vertices = [np.zeros((0, 3)), *(part.vertices for part in parts)]
    faces = [np.zeros((0, 3), np.int64)]
    faces += [part.faces + start for part, start in zip(parts, starts[:-1], strict=True)]
    return Mesh(np.concatenate(vertices), np.concatenate(faces), objects=objects, ids=ids, labels=labels)
