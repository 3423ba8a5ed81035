"""`count`: how many primitives each ray hits."""

from __future__ import annotations

from typing import NamedTuple, Never

import numpy as np

from raybox.compiler.struct_ref import struct
from raybox.geometry import Cull, Rays
from raybox.queries.number_query import N, number_query
from raybox.queries.per_ray import Speed
from raybox.queries.query import ExcludeInput, ExcludeObjectInput, GroupsInput, RunsQueries, refuse_more
from raybox.validation import Ints, MaskInput


@struct
class Count(NamedTuple):
    """How many primitives each ray hits."""

    numbers: Ints

    def merge(self, one: N, other: N) -> N:
        """Return the sum."""
        return one + other


QUERY = number_query("count", Count, np.int64, Speed(group_widths=(4, 4, 8, 16), triangle_grains=16.0))


class CountMethod(RunsQueries):
    """Gives a scene its method `count`."""

    def count(
        self,
        rays: Rays,
        *more: Never,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
        groups: GroupsInput = None,
        exclude: ExcludeInput = None,
        exclude_object: ExcludeObjectInput = None,
    ) -> Ints:
        """Return how many primitives each ray hits: int64, of the rays' shape. Parameters as for `nearest`.

        Of a mesh, triangles are counted, also where they belong to objects: `AllHits.by_object` counts these.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.count(rb.Rays([[0, 0], [4, 0]], [1, 0]))
        array([2, 1])
        """
        refuse_more(more, "count")
        return self._run(
            QUERY,
            rays,
            workers=workers,
            progress=progress,
            where=where,
            cull=cull,
            groups=groups,
            exclude=exclude,
            exclude_object=exclude_object,
        )
