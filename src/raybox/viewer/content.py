"""What a page shows: a stage, rays, and the frames of both."""

from typing import NamedTuple

from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.validation import Bools
from raybox.viewer.frames import points_frame, rays_frame, scene_frame, table_frame
from raybox.viewer.saved_page import saved_page
from raybox.viewer.stage import Stage, rays_in_3d

MAX_RAYS = 5_000_000  # in the table of a page


class PageContent(NamedTuple):
    """A stage and rays with their frames, made once for all pages that show them."""

    stage: Stage
    rays: Rays | None
    """in 3D and flat"""
    frames: tuple[bytes, ...]
    """those that do not depend on what is hidden: scene, rays, points"""
    table: bytes | None
    """of rays, with the objects visible at the start"""

    @property
    def all_frames(self) -> tuple[bytes, ...]:
        """All frames, in the order in which a page reads them."""
        return (*self.frames, *(() if self.table is None else (self.table,)))

    def table_of(self, mask: Bools | None) -> bytes | None:
        """Return the table of rays with the objects of a mask; None without rays."""
        if self.rays is None or mask is None:
            return self.table
        return table_frame(self.stage, self.rays, mask)

    def saved(self, state: object = None, mask: Bools | None = None) -> bytes:
        """Return the page as one file, in the state of a page, with the objects of its mask."""
        frames = self._replace(table=self.table_of(mask)).all_frames
        return saved_page(frames, self.stage.name, state)


def make_content(stage: Stage, rays: Rays | None = None, *, is_scan: bool = False) -> PageContent:
    """Return what a page shows of a stage and rays; is_scan: t = 1 of each ray is a measured point."""
    if rays is None:
        return PageContent(stage, None, (scene_frame(stage),), None)
    flat = rays_in_3d(rays)
    if len(flat) > MAX_RAYS:
        raise InvalidInput(f"a page shows up to {MAX_RAYS:,} rays; got {len(flat):,}. Pass some: rays[::10].")
    points = (points_frame(flat),) if is_scan else ()
    follow = ["rays", *["points"] * is_scan, "table"]
    frames = (scene_frame(stage, follow), rays_frame(flat), *points)
    return PageContent(stage, flat, frames, table_frame(stage, flat))
