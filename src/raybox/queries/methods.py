"""Methods of the queries that are imported when one runs first: most programs call none, or one of them."""

from __future__ import annotations

from typing import Any, Never

from raybox.geometry import Cull, Rays
from raybox.hits import AllHits, Hits
from raybox.queries.names import Per
from raybox.queries.query import ExcludeInput, ExcludeObjectInput, GroupsInput, RunsQueries, refuse_more
from raybox.validation import Floats, MaskInput


class AllMethod(RunsQueries):
    """Gives a scene its method `all`."""

    def all(
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
    ) -> AllHits:
        """Return every hit of each ray, sorted by (t, index) along it. Parameters as for `nearest`.

        Of a mesh, each triangle is a hit; `AllHits.by_object` has a row for each object.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[5, -1], [2, -1]], [[6, 1], [4, 1]]))
        >>> all_hits = scene.all(rb.Rays([[0, 0], [0, 9]], [1, 0]))
        >>> all_hits.offsets, all_hits.index, all_hits.lengths
        (array([0, 2, 2]), array([1, 0]), array([2., 1.]))
        """
        from raybox.queries.all_hits import QUERY

        refuse_more(more, "all")
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


class FirstMethod(RunsQueries):
    """Gives a scene its method `first`."""

    def first(
        self,
        rays: Rays,
        k: int,
        *,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
        groups: GroupsInput = None,
        exclude: ExcludeInput = None,
        exclude_object: ExcludeObjectInput = None,
    ) -> Hits:
        """Return the k nearest hits of each ray, in order, padded with misses.

        Of a mesh, each triangle is a hit, and a wall has two or more.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the scene's D.
        k : int
            How many, at least 1.
        workers, progress, where, cull, groups, exclude, exclude_object
            As for `nearest`.

        Returns
        -------
        Hits
            Of shape ``(*rays.shape, k)``.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[5, -1], [2, -1]], [[6, 1], [3, 1]]))
        >>> scene.first(rb.Rays([0, 0], [1, 0]), 3).index
        array([ 1,  0, -1])
        """
        from raybox.queries.first import QUERY, check_k

        return self._run(
            QUERY,
            rays,
            check_k(k),
            workers=workers,
            progress=progress,
            where=where,
            cull=cull,
            groups=groups,
            exclude=exclude,
            exclude_object=exclude_object,
        )


class SegmentsMethod(RunsQueries):
    """Gives a scene its method `segments`."""

    def segments(
        self, rays: Rays, *more: Never, workers: int = -1, progress: bool = False, where: MaskInput = None
    ) -> AllHits:
        """Return the stretches into which the cells of a grid cut each ray, in order along it.

        Each stretch belongs to exactly one cell: cells are half-open here, ``lower <= p < upper`` on every
        axis, the last cell of an axis closed. So the lengths add up to the length inside of the grid. A ray
        in a shared face runs in the higher cell. Stretches of length zero, and rays of zero direction, give
        none. Cells that are not occupied, or not allowed by `where`, are left out of the result.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the grid's D.
        workers, progress, where
            As for `nearest`.

        Returns
        -------
        AllHits
            index: the cells; t, t_enter, t_exit and lengths as of `all`.

        Raises
        ------
        InvalidInput
            If the scene is not one of a single `Grid`.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Grid([0, 1, 3], [0, 1, 2]))
        >>> segments = scene.segments(rb.Rays([-1, 1], [1, 0]))
        >>> segments.index, segments.lengths
        (array([1, 3]), array([1., 2.]))
        """
        from raybox.queries.segments import QUERY

        refuse_more(more, "segments")
        return self._run(QUERY, rays, workers=workers, progress=progress, where=where)


class IntegrateMethod(RunsQueries):
    """Gives a scene its method `integrate`."""

    def integrate(
        self,
        rays: Rays,
        values: Any = None,
        *,
        reproducible: bool = False,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        groups: GroupsInput = None,
    ) -> Floats:
        """Return the sum over the boxes that each ray hits of value times length inside.

        Every box counts in full, where boxes overlap or touch, too. The cells of a `Grid` part the ray, as
        `segments` does: each stretch counts once. Lengths are in space, as `AllHits.lengths`: within the
        ray's range, and of the world's ray for instances. Nothing is stored for each hit.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the scene's D.
        values : array_like, shape (M,) or (M, C), or a list of them
            A finite number, or C channels, for each box; for `Instances`, for each copy; for a `Grid` also in
            its shape. A list, an array or None for each geometry, if the scene was made of a list. None: 1,
            so that sums are lengths.
        reproducible : bool
            Whether the bits do not depend on workers, nor on the order of the rays: lengths of a ray are then
            added in the order of the boxes' numbers, whose sorting takes about a fifth of the time. Sums over
            a `Grid` are so anyway, at no cost.
        workers, progress, where, groups
            As for `nearest`.

        Returns
        -------
        ndarray of float64, shape ``rays.shape`` or ``(*rays.shape, C)``
            0 for a ray that hits nothing. A box without end may give inf, and infinite terms of both signs
            NaN; 0 times inf counts 0. Sums of magnitudes above 1.8e308, the largest float, may be inf or
            NaN, too, also where terms of both signs would cancel.

            A sum of n hits is off by at most ``2**-52 (n + 8) S``, where S is the sum of
            ``abs(value) (a + b)``, a and b being the distances from the ray's origin to where it enters the
            box and leaves it, within its range; and by ``2**-1000`` for each hit and value of 1.

        Raises
        ------
        InvalidInput
            If the scene holds a mesh or planes; if values are not finite, or of another shape.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [7, 1]]))
        >>> rays = rb.Rays([[0, 0], [6, 0]], [1, 0])
        >>> scene.integrate(rays), scene.integrate(rays, [10.0, 0.5])
        (array([3., 1.]), array([11. ,  0.5]))
        """
        from raybox.queries.integrate import QUERY

        return self._run(
            QUERY,
            rays,
            (values, reproducible),
            workers=workers,
            progress=progress,
            where=where,
            groups=groups,
        )


class DepositMethod(RunsQueries):
    """Gives a scene its method `deposit`."""

    def deposit(
        self,
        rays: Rays,
        weights: Any = None,
        *,
        per: Per = "length",
        reproducible: bool = False,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        groups: GroupsInput = None,
    ) -> Any:
        """Return the sum over the rays that hit each box of weight times length inside.

        The cells of a `Grid` part each ray, as `segments` does, and are numbered as in `Grid.index_of`.

        The transpose of `integrate`: the sums of weight times integral over the rays, and of value times
        deposit over the boxes, are the same number. Nothing is stored a hit.

        Parameters
        ----------
        rays : Rays
            Of any shape, of the scene's D.
        weights : array_like
            Finite numbers that broadcast to the rays' shape, or to that with a last axis of C channels.
            None: 1.
        per : {"length", "hit"}
            "hit": a ray adds its weight to each box that it hits, whatever the length inside.
        reproducible : bool
            Whether the bits do not depend on workers, nor on the order of the rays. Sums are then in fixed
            point, scaled by a bound of each box's terms: boxes, or the ranges of the rays, must be bounded.
            Otherwise last bits may differ between runs of several workers. It takes a third more time, in a
            `Grid` whose cells are all occupied up to four times as long, and 16 bytes a sum in place of 8
            while it runs.
        workers, progress, where, groups
            As for `nearest`.

        Returns
        -------
        ndarray of float64, shape (M,) or (M, C)
            For `Instances`, one for each copy; a list of arrays, one for each geometry, if the scene was made
            of a list. 0 for a box that no ray hits. A box without end may give inf, and infinite terms of
            both signs NaN; 0 times inf counts 0.

            A sum of n rays is off by at most ``2**-52 (n + 8) S``, where S is the sum of
            ``abs(weight) (a + b)``, as for `integrate`. With reproducible=True it is off by at most
            ``2**-49 S``, and ``N**3 2**-120 X``, where N is the number of all rays (for `Instances`, times
            that of the geometry's boxes), X the largest weight times the box's diagonal (of a `Grid`: of a
            box as long on each axis as its longest cell), or times the longest range of a ray if that is
            shorter.

        Raises
        ------
        InvalidInput
            If the scene holds a mesh or planes; if weights are not finite, or of another shape; if a sum has
            no bound, with reproducible=True.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [7, 1]]))
        >>> rays = rb.Rays([[0, 0], [6, 0]], [1, 0])
        >>> scene.deposit(rays), scene.deposit(rays, [1.0, 10.0]), scene.deposit(rays, per="hit")
        (array([1., 3.]), array([ 1., 12.]), array([1., 2.]))
        """
        from raybox.queries.deposit import QUERY

        return self._run(
            QUERY,
            rays,
            (weights, per, reproducible),
            workers=workers,
            progress=progress,
            where=where,
            groups=groups,
        )
