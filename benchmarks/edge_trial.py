"""A case with its scene, its truth, and the results that several checks read."""

from functools import cached_property

import raybox as rb
from edge_truth import Case, Truth


class Trial:
    """A case, its scene and the results that several checks read."""

    def __init__(self, case: Case) -> None:
        self.case, self.truth = case, Truth(case)
        self.rays, self.number = case.rays, len(case.rays)

    @property
    def geometry(self):
        return list(self.case.geometries) if len(self.case.geometries) > 1 else self.case.geometries[0]

    @cached_property
    def scene(self) -> rb.Scene:
        return rb.Scene(self.geometry, workers=1)

    @cached_property
    def nearest(self) -> rb.Hits:
        return self.scene.nearest(self.rays, workers=1)

    @cached_property
    def all(self) -> rb.AllHits:
        return self.scene.all(self.rays, workers=1)

    @property
    def first(self) -> list:
        return [row[0] if row else None for row in self.truth.rows]

    @property
    def has_sums(self) -> bool:
        kinds = [type(getattr(g, "geometry", g)).__name__ for g in self.case.geometries]
        return not {"Mesh", "Planes"} & set(kinds)
