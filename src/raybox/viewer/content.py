"""What a page shows: a stage, rays and the frames of both; and that page as one file."""

import base64
import gzip
import html
import json
import re
import struct
from functools import cache
from importlib import resources
from typing import NamedTuple

from raybox.errors import FileFormatError, InvalidInput
from raybox.geometry import Rays
from raybox.hits.concatenation import concatenate
from raybox.io.formats.scans import Scan
from raybox.validation import Bools
from raybox.viewer.door import content_policy
from raybox.viewer.frames import points_frame, rays_frame, scene_frame, table_frame
from raybox.viewer.layers import Layer, Layers, Points, joined_stage, scan_layers, visible_of
from raybox.viewer.open_file import scan_of_bytes, stage_of_bytes
from raybox.viewer.stage import Stage

MAX_RAYS = 5_000_000  # in the table of a page
_HOLDS_RAYS = "not a scene", "no triangles"  # in errors
_TITLE = re.compile(rb"<title>.*?</title>", re.DOTALL)


class PageContent(NamedTuple):
    """What is shown, by name and joined, with its frames, made once for all pages that show it."""

    layers: Layers
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
        return self.frames if self.table is None else (*self.frames, self.table)

    def table_of(self, mask: Bools | None) -> bytes | None:
        """Return the table of rays with the objects of a mask; None without rays."""
        if self.rays is None or mask is None:
            return self.table
        return table_frame(self.stage, self.rays, mask)

    def saved(self, state: object = None, mask: Bools | None = None) -> bytes:
        """Return the page as one file, which opens from disk.

        state: of the view (None: that at first); mask: the objects that the rays of the table can hit.
        """
        page = built_page()
        policy = content_policy(page, "'none'")
        title = f"<title>{html.escape(self.stage.name)}</title>"
        head = f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
        page = _TITLE.sub(lambda _: title.encode(), page, count=1).replace(b"<head>", head.encode(), 1)
        frames = self._replace(table=self.table_of(mask)).all_frames
        content = b"".join(part for one in frames for part in (struct.pack("<Q", len(one)), one))
        scene = base64.b64encode(gzip.compress(content, 6, mtime=0))
        text = json.dumps(state, allow_nan=False).replace("<", "\\u003c").encode()  # no name ends the script
        before, end, after = page.rpartition(b"</body>")
        return (
            before + b'<script type="text/plain" id="raybox-scene">' + scene + b"</script>\n"
            b'<script type="application/json" id="raybox-state">' + text + b"</script>\n" + end + after
        )


@cache
def built_page() -> bytes:
    """Return the page that the package contains."""
    return (resources.files("raybox.viewer") / "page.html").read_bytes()


def make_content(stage: Stage, rays: Rays | Scan | None = None, *, is_scan: bool = False) -> PageContent:
    """Return what a page shows of a stage and rays; is_scan: t = 1 of each ray is a measured point."""
    scan = Scan(rays, {}, is_scan) if isinstance(rays, Rays) else rays
    shown = {} if scan is None else scan_layers(scan, "rays", "points")
    return content_of({stage.name: Layer(stage), **shown})


def with_file(shown: PageContent, name: str, content: bytes) -> tuple[PageContent, str]:
    """Return what a page shows once a file is opened, and a text on its rays, which are added."""
    try:
        return make_content(stage_of_bytes(name, content)), ""
    except FileFormatError as error:
        if not any(reason in str(error) for reason in _HOLDS_RAYS):
            raise
    scan = scan_of_bytes(name, content)
    added = scan_layers(scan, name, f"points of {name}")
    start = " from 0 0 0 to its points" * scan.has_points
    return content_of({**shown.layers, **added}, shown.stage), f"{name}: {len(scan.rays):,} rays{start} added"


def content_of(layers: Layers, before: Stage | None = None) -> PageContent:
    """Return what a page shows of layers; `before` as of `joined_stage`."""
    stage = joined_stage(layers, before)
    (rays, ray_colors), (points, point_colors) = visible_of(layers, Rays), visible_of(layers, Points)
    for count in (sum(map(len, rays)), sum(len(one.xyz) for one in points)):
        if count > MAX_RAYS:
            raise InvalidInput(f"a page shows up to {MAX_RAYS:,} rays; got {count:,}. Pass some: rays[::10].")
    joined = concatenate(rays) if len(rays) > 1 else next(iter(rays), None)
    frames = {} if joined is None else {"rays": rays_frame(joined, ray_colors)}
    if points:
        frames["points"] = points_frame(points, rays, point_colors)
    table = None if joined is None else table_frame(stage, joined)
    follow = [*frames] if table is None else [*frames, "table"]
    return PageContent(layers, stage, joined, (scene_frame(stage, follow), *frames.values()), table)
