"""A scene of which rays hit some primitives only, for casts of files."""

from typing import Any, cast

import numpy as np

from raybox import validation
from raybox.geometry import Cull, Rays, object_rows, row_mask
from raybox.io import checksums
from raybox.io.checksums import Facts
from raybox.io.chunked.partitioned import AnyScene
from raybox.queries.query import Opt, Public, Query, Res, RunsQueries
from raybox.queries.table import QueryMethods
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, MaskInput


class MaskedScene(QueryMethods):
    """A scene whose queries get a mask."""

    def __init__(self, scene: AnyScene, where: Bools) -> None:
        self._scene, self._where = cast("RunsQueries", scene), where

    @property
    def bounds(self) -> Floats:
        """The bounds of all primitives."""
        return cast("Scene", self._scene).bounds

    def _run(
        self,
        query: Query[Opt, Res, Public],
        rays: Rays,
        options: Any = None,
        *,
        workers: int = -1,
        progress: bool = False,
        where: MaskInput = None,
        cull: Cull = None,
    ) -> Public:
        return self._scene._run(
            query,
            rays,
            options,
            workers=workers,
            progress=progress,
            where=self._where if where is None else where,
            cull=cull,
        )


def mask_of(scene: AnyScene, where: MaskInput) -> Bools | None:
    """Return the mask of primitives for a mask or an expression of labels; None for all."""
    if where is None:
        return None
    if isinstance(scene, Scene):
        geometry = scene.geometry
        return row_mask(where, object_rows(geometry), len(geometry), getattr(geometry, "shape", None))
    return validation.mask(where, len(scene))


def facts(where: Bools | None) -> Facts:
    """Return what identifies a mask: casts of equal ones resume each other."""
    return {} if where is None else {"where": f"checksum {checksums.of_arrays(np.asarray(where))[:16]}"}
