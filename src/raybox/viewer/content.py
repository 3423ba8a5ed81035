"""What a page shows: a stage, rays, and the frames of both."""

from typing import NamedTuple

from raybox.validation import Bools
from raybox.viewer.frames import RayCall, points_frame, rays_frame, scene_frame, table_frame
from raybox.viewer.saved_page import saved_page
from raybox.viewer.stage import Stage


class Content(NamedTuple):
    """A stage and rays with their frames, made once for all pages that show them."""

    stage: Stage
    call: RayCall | None
    frames: tuple[bytes, ...]
    """those that do not depend on what is hidden: scene, rays, points"""
    table: bytes | None
    """of rays, with the objects visible at the start"""

    def table_of(self, mask: Bools | None) -> bytes | None:
        """Return the table of rays with the objects of a mask."""
        if self.call is None or mask is None:
            return self.table
        return table_frame(self.stage, self.call, mask)

    def saved(self, state: object = None, mask: Bools | None = None) -> bytes:
        """Return the page as one file."""
        table = self.table_of(mask)
        return saved_page([*self.frames, *([] if table is None else [table])], self.stage.name, state)


def make_content(stage: Stage, call: RayCall | None = None) -> Content:
    """Return what a page shows of a stage and rays."""
    frames = [scene_frame(stage)]
    if call is None:
        return Content(stage, None, tuple(frames), None)
    frames.append(rays_frame(call))
    if call.is_scan:
        frames.append(points_frame(call))
    return Content(stage, call, tuple(frames), table_frame(stage, call))
