"""`nearest`: the first hit of each ray; of several at exactly the same t, the lowest index."""

from __future__ import annotations

from typing import Never

from raybox.geometry import Cull, Rays
from raybox.hits import Hits
from raybox.queries.hit_query import hit_query
from raybox.queries.nearest import packet, stream
from raybox.queries.nearest.stream import Nearest
from raybox.queries.per_ray import Speed
from raybox.queries.query import ExcludeInput, ExcludeObjectInput, GroupsInput, RunsQueries, refuse_more
from raybox.validation import MaskInput

# packets of boxes: streams are as fast at 10 to 13 grains; of voxels at 7, of fine meshes at 17
SPEED = Speed(group_widths=(1, 4, 4, 4), grains=12.0, triangle_grains=16.0)
QUERY = hit_query("nearest", Nearest, SPEED, (stream.HOOKS, packet.HOOKS))


class NearestMethod(RunsQueries):
    """Gives a scene its method `nearest`."""

    def nearest(
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
    ) -> Hits:
        """Return the first hit of each ray.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the scene's D.
        workers : int
            Threads; -1 for all cores.
        progress : bool
            Show a bar on stderr when it takes long.
        where : array_like of bool, shape (len(scene),), or str, optional
            Which primitives may be hit. Of `Instances`, a bool for each copy; of a `Grid`, a bool for each
            cell, in its shape or flat; of objects of a mesh, ``keep[mesh.objects]``. A str is an expression
            of labels, such as ``"ifc_class != 'IfcSpace' and storey in ('1', '2')"``: comparisons, ``in``,
            ``and``, ``or``, ``not``, names (in backquotes where they are no identifiers), constants, and ids
            as ``id``. A comparison with a missing value is False. Of several geometries: a list, with a
            mask, an expression or None for each, or one expression for all.
        cull : None or "back"
            "back" ignores hits from behind: of triangles along (b - a) x (c - a), of planes along their
            normal. Boxes have no such side.
        groups : array_like of int, optional
            Of a scene with groups, the world of each ray, broadcast to the rays' shape: the ray hits the
            primitives of that group and of -1, what is common. -1, or a group that has no primitives: what
            is common, and nothing else.
        exclude : array_like of int, Hits, or three arrays, optional
            For each ray the primitive that it does not hit, exactly and without an epsilon, such as the one
            that a shadow ray leaves: its index, broadcast to the rays' shape; -1: none. Of `Instances` and of
            several geometries: `Hits`, or (geometry, index, primitive). A miss excludes nothing. A rounded
            point near an edge may be behind a neighbour, which is hit: see `exclude_object` and `visible`.
        exclude_object : array_like of int, or Hits, optional
            In place of `exclude`, for each ray the object of a mesh that it does not hit; -1: none. Of
            several geometries: `Hits`.

        Raises
        ------
        InvalidInput
            If rays, masks or groups do not fit; if the scene has groups and the rays have none, or the other
            way round; if what is excluded does not exist; of an expression with the place in it, as where a
            label is missing or text is compared with numbers.

        Returns
        -------
        Hits
            Of the rays' shape. Of several first hits at exactly the same t: the lowest index; the lowest
            (geometry, index, primitive).

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.nearest(rb.Rays([0, 0], [1, 0])).t
        array(2.)
        >>> scene.nearest(rb.Rays([0, 0], [1, 0]), where=[False, True]).index
        array(1)
        >>> rays = rb.Rays([[0, 0], [4, 0]], [1, 0])
        >>> worlds = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]), groups=[0, -1])
        >>> worlds.nearest(rays, groups=0).index, worlds.nearest(rays, groups=[-1, 7]).index
        (array([0, 1]), array([1, 1]))
        >>> hits = scene.nearest(rays)
        >>> scene.nearest(rays, exclude=hits).index, scene.nearest(rays, exclude=[-1, 0]).index
        (array([ 1, -1]), array([0, 1]))
        >>> mesh = rb.Mesh([[2, -9, -9], [2, 9, 0], [2, -9, 9]], [[0, 1, 2]], objects=[0])
        >>> rb.Scene(mesh).nearest(rb.Rays([0, 0, 0], [1, 0, 0]), exclude_object=0).hit
        array(False)
        >>> labels = {"kind": ["door", "wall"]}
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]], labels=labels))
        >>> scene.nearest(rb.Rays([0, 0], [1, 0]), where="kind == 'wall'").index
        array(1)
        """
        refuse_more(more, "nearest")
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
