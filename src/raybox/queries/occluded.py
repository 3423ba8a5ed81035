"""`occluded`: whether each ray hits anything."""

from __future__ import annotations

from typing import NamedTuple, Never

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.struct_ref import struct
from raybox.geometry import Cull, Rays
from raybox.geometry.rays import sight_lines
from raybox.queries.number_query import N, number_query
from raybox.queries.per_ray import Speed
from raybox.queries.query import ExcludeInput, ExcludeObjectInput, GroupsInput, RunsQueries, refuse_more
from raybox.validation import ArrayInput, Bools, MaskInput


@struct
class Occluded(NamedTuple):
    """Whether each ray hits anything."""

    numbers: Bools

    def merge(self, one: N, other: N) -> N:
        """Return whether either is hit."""
        return one | other


QUERY = number_query(
    "occluded",
    Occluded,
    np.bool_,
    Speed(group_widths=(1, 4, 8, 16), scattered=True, grains=8.5, triangle_grains=16.0),
)


class OccludedMethod(RunsQueries):
    """Gives a scene its method `occluded`."""

    def occluded(
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
    ) -> Bools:
        """Return whether each ray hits anything: bool, of the rays' shape. Parameters as for `nearest`.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([2, -1], [3, 1]))
        >>> scene.occluded(rb.Rays.segments([0, 0], [[1, 0], [2, 0]]))
        array([False,  True])
        >>> scene.occluded(rb.Rays([2, 0], [-1, 0]), exclude=0)  # a shadow ray, which leaves box 0
        array(False)
        """
        refuse_more(more, "occluded")
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

    @in_default_environment
    def visible(
        self,
        starts: ArrayInput,
        ends: ArrayInput,
        *,
        margin: ArrayInput | None = None,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
        groups: GroupsInput = None,
    ) -> Bools:
        """Return whether nothing is hit between two points: lines of sight.

        Touching is a hit, and points often lie on surfaces, so a margin is left out at both ends. It is a
        length of the segment or of its coordinates, never of the scene. A point inside a box sees nothing,
        as the box is hit all the way: leave out that box by `where`. In a scene with groups, `groups` is the
        world of each line.

        Parameters
        ----------
        starts, ends : array_like, shape (..., D)
            The points, of the scene's D, finite; broadcast against each other.
        margin : array_like, scalar or shape (...), optional
            A length in space, as for `Rays.segments`: nothing is hit for t from m to 1 - m, where m is margin
            over the segment's length, rounded once. A segment shorter than two margins is visible. None: the
            larger of 1e-9 of the segment's length and 1e-12 of its largest coordinate.
        workers, progress, where, cull, groups
            As for `nearest`.

        Returns
        -------
        ndarray of bool, of the points' shape

        Raises
        ------
        InvalidInput
            If shapes do not fit, a point or a margin is not finite, or a margin is negative.

        Examples
        --------
        >>> import raybox as rb
        >>> wall = rb.Scene(rb.Boxes([2, 0], [3, 4]))
        >>> wall.visible([0, 1], [[2, 1], [3, 1], [3, 9]])  # its front, its back, and a point above it
        array([ True, False,  True])
        """
        rays = sight_lines(starts, ends, margin)
        hit = self.occluded(rays, workers=workers, progress=progress, where=where, cull=cull, groups=groups)
        return np.asarray(~hit)
