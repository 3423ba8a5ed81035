"""What a page shows: geometries, rays and points by name, joined; the page as a file and in a notebook."""

import base64
import gzip
import html
import json
import re
import struct
from collections.abc import Mapping
from functools import cache
from importlib import resources
from io import BytesIO
from itertools import accumulate
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.hits import AllHits, Hits
from raybox.hits.concatenation import concatenate
from raybox.hits.image import write_png
from raybox.io.formats.common import HoldsRays
from raybox.io.formats.scans import Scan
from raybox.validation import Bools, MaskInput
from raybox.viewer.frames import Points, points_frame, rays_frame, scene_frame, table_frame
from raybox.viewer.messages import Colors
from raybox.viewer.server import content_policy
from raybox.viewer.stage import Stage, ViewInput, make_stage, rays_in_3d, scan_of_bytes, stage_of_bytes

MAX_RAYS = 5_000_000  # in the table of a page
MAX_OUTPUT = 2_500_000  # characters: Jupyter cuts outputs of 3 MB
MAX_FRAMES = 20 * MAX_OUTPUT  # bytes, whose page is larger in any case
_SANDBOX = "allow-scripts allow-downloads allow-modals"  # no access to the notebook
_SIZE = 960, 560  # pixels of the picture in a notebook
LayerInput: TypeAlias = ViewInput | Rays | Hits | AllHits
_TITLE = re.compile(rb"<title>.*?</title>", re.DOTALL)


class Layer(NamedTuple):
    """What is shown under one name: `color` is "#rrggbb"; `is_visible` is for rays and points."""

    content: Stage | Rays | Points
    color: str | None = None
    is_visible: bool = True


Layers: TypeAlias = Mapping[str, Layer]
C = TypeVar("C", Rays, Points)


class PageContent(NamedTuple):
    """What is shown, by name and joined, with its frames, made once for all pages that show it."""

    layers: Layers
    stage: Stage
    """all geometries"""
    objects: dict[str, range]
    """the numbers of each geometry's objects among those of the stage"""
    rays: Rays | None
    """in 3D and flat"""
    frames: tuple[bytes, ...]
    """in the order in which a page reads them: scene, rays, points, and last the table of rays"""

    def frames_with(self, mask: Bools | None) -> tuple[bytes, ...]:
        """Return all frames, the table of rays with the objects of a mask (None: those shown at first)."""
        if self.rays is None or mask is None:
            return self.frames
        return (*self.frames[:-1], table_frame(self.stage, self.rays, mask))

    def layer(self, name: str) -> Layer:
        """Return the layer of a name; raise `InvalidInput` without one."""
        if name not in self.layers:
            raise InvalidInput(f"nothing is shown as {name!r}; there are: {', '.join(self.layers)}.")
        return self.layers[name]

    def geometry(self, name: str) -> Stage:
        """Return the geometry of a name; raise `InvalidInput` without one."""
        found = self.layer(name).content
        if not isinstance(found, Stage):
            raise InvalidInput(f"{name!r} has no objects; name a geometry: {', '.join(self.objects)}.")
        return found

    def with_visible(self, name: str, objects: MaskInput, on: bool) -> tuple[Layers, list[int]]:
        """Return layers with objects of a geometry shown or hidden, and the ranges of these objects."""
        stage = self.geometry(name)
        chosen, visible = stage.chosen(objects), stage.visible.copy()
        visible[chosen] = on
        runs = np.split(chosen + self.objects[name].start, np.flatnonzero(np.diff(chosen) != 1) + 1)
        changed = self.layers[name]._replace(content=stage._replace(visible=visible))
        return {**self.layers, name: changed}, [int(end) for run in runs if run.size for end in run[[0, -1]]]

    def with_layers(self, layers: Layers) -> "PageContent":
        """Return what a page shows of layers; trees are used again if the geometries are the same."""
        return _content_of(layers, self.stage)

    def staying(self, old: "PageContent") -> list[str]:
        """Return the names of the geometries that were shown before."""
        both = [name for name in self.objects if name in old.objects]
        return [name for name in both if self.layers[name].content is old.layers[name].content]

    def runs_that_stay(self, old: "PageContent") -> list[tuple[int, int, int]]:
        """Return the first number before, the first number now, and the count, of objects shown before."""
        pairs = [(old.objects[name], self.objects[name]) for name in self.staying(old)]
        return [(before.start, now.start, len(now)) for before, now in pairs]

    def saved(self, state: object = None, mask: Bools | None = None) -> bytes:
        """Return the page as one file, which opens from disk.

        state: of the view (None: that at first); mask: the objects that the rays of the table can hit.
        """
        page = built_page()
        title = f"<title>{html.escape(self.stage.name)}</title>".encode()
        policy = content_policy(page, "'none'")
        head = f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">'.encode()
        page = _TITLE.sub(lambda _: title, page, count=1).replace(b"<head>", head, 1)
        frames = self.frames_with(mask)
        content = b"".join(part for one in frames for part in (struct.pack("<Q", len(one)), one))
        scene = base64.b64encode(gzip.compress(content, 6, mtime=0))
        text = json.dumps(state, allow_nan=False).replace("<", "\\u003c").encode()  # no name ends the script
        before, end, after = page.rpartition(b"</body>")
        return (
            before + b'<script type="text/plain" id="raybox-scene">' + scene + b"</script>\n"
            b'<script type="application/json" id="raybox-state">' + text + b"</script>\n" + end + after
        )

    def embedded(self, state: object, url: str) -> str:
        """Return HTML of the saved page; if it is too large for a notebook, of a picture and a link."""
        if sum(map(len, self.frames)) <= MAX_FRAMES:
            page = html.escape(self.saved(state).decode())
            if len(page) <= MAX_OUTPUT:
                return _framed(f'sandbox="{_SANDBOX}" srcdoc="{page}"')
        picture = base64.b64encode(picture_of(self.stage)).decode()
        note = f"The scene is too large for the output of a notebook; the viewer shows it at {_link(url)}"
        return (
            f'<img src="data:image/png;base64,{picture}" alt="{html.escape(self.stage.name)}"><p>{note}</p>'
        )


def linked(url: str) -> str:
    """Return HTML of the page that a server shows."""
    return _framed(f'src="{html.escape(url)}"') + f"<p>{_link(url)}</p>"


def picture_of(stage: Stage) -> bytes:
    """Return a PNG of what is visible at the start, each object in one colour; white without bounds."""
    lower, upper = np.nan_to_num(stage.scene.bounds, posinf=0.0, neginf=0.0)
    middle, radius = (lower + upper) / 2, float(np.linalg.norm(upper - lower)) / 2 or 1.0
    toward = [0.55, -0.73, 0.48] if stage.up == "z" else [0.55, 0.48, 0.73]
    up = [0, 0, 1] if stage.up == "z" else [0, 1, 0]
    eye = middle + 2.6 * radius * np.array(toward)
    rays = Rays.pinhole(eye, middle, up=up, fov=45, width=_SIZE[0], height=_SIZE[1])
    hits = stage.scene.nearest(rays, where=stage.where(None))
    light = np.where(hits.hit, 0.55 + 0.45 * np.abs(np.nan_to_num(hits.normals) @ [0.3, -0.5, 0.8]), 1.0)
    file = BytesIO()
    write_png(file, (hits.image("object") * light.clip(0, 1)[..., None]).astype(np.uint8))
    return file.getvalue()


def _framed(source: str) -> str:
    return f'<iframe {source} title="raybox" width="100%" height="560" style="border: 0"></iframe>'


def _link(url: str) -> str:
    safe = html.escape(url)
    return f'<a href="{safe}" target="_blank" rel="noopener">{safe}</a>'


@cache
def built_page() -> bytes:
    """Return the page that the package contains."""
    return (resources.files("raybox.viewer") / "page.html").read_bytes()


def make_content(stage: Stage, rays: Rays | Scan | None = None, *, is_scan: bool = False) -> PageContent:
    """Return what a page shows of a stage and rays; is_scan: t = 1 of each ray is a measured point."""
    scan = Scan(rays, {}, is_scan) if isinstance(rays, Rays) else rays
    shown = {} if scan is None else _scan_layers(scan, "rays", "points")
    return _content_of({stage.name: Layer(stage), **shown})


def with_file(shown: PageContent, name: str, content: bytes) -> tuple[PageContent, str]:
    """Return what a page shows once a file is opened, and a text on its rays, which are added."""
    try:
        return make_content(stage_of_bytes(name, content)), ""
    except HoldsRays:
        scan = scan_of_bytes(name, content)
    added = _scan_layers(scan, name, f"points of {name}")
    start = " from 0 0 0 to its points" * scan.has_points
    text = f"{name}: {len(scan.rays):,} rays{start} added"
    return shown.with_layers({**shown.layers, **added}), text


def _scan_layers(scan: Scan, name: str, name_of_points: str) -> dict[str, Layer]:
    """Return the layers of rays and of the points that they end at."""
    rays = rays_in_3d(scan.rays)
    if not scan.has_points:
        return {name: Layer(rays)}
    length = np.linalg.norm(rays.directions, axis=-1)
    points = Points(rays.origins + rays.directions, length, scan._replace(rays=rays))
    return {name: Layer(rays), name_of_points: Layer(points)}


def layer_of(given: LayerInput, color: str | None) -> Layer:
    """Return the layer of a path or geometry, of rays, or of the points of hits."""
    if color is not None and not (isinstance(color, str) and re.fullmatch("#[0-9a-fA-F]{6}", color)):
        raise InvalidInput(f'color must be "#rrggbb", such as "#cc3311", or None; got {color!r}.')
    if isinstance(given, Rays):
        return Layer(rays_in_3d(given), color)
    if isinstance(given, Hits | AllHits):
        points, distances = given.points[given.index >= 0], given.distances[given.index >= 0]
        xyz = np.pad(points, ((0, 0), (0, 3 - points.shape[1])))  # 2D is shown at z = 0
        is_finite = np.isfinite(xyz).all(axis=1) & np.isfinite(distances)
        return Layer(Points(xyz[is_finite], distances[is_finite]), color)
    return Layer(make_stage(given), color)


def _content_of(layers: Layers, before: Stage | None = None) -> PageContent:
    """Return what a page shows of layers; before: a stage whose trees may be used again."""
    stages = {name: one.content for name, one in layers.items() if isinstance(one.content, Stage)}
    if not stages:
        raise InvalidInput("a viewer needs a geometry; add another before the last is removed.")
    stage = _joined_stage(layers, stages, before)
    ends = accumulate(len(one.visible) for one in stages.values())
    pairs = zip(stages.items(), ends, strict=True)
    objects = {name: range(end - len(one.visible), end) for (name, one), end in pairs}
    (rays, ray_colors), (points, point_colors) = _visible(layers, Rays), _visible(layers, Points)
    for count in (sum(size for _, size in colors) for colors in (ray_colors, point_colors)):
        if count > MAX_RAYS:
            raise InvalidInput(f"a page shows up to {MAX_RAYS:,} rays; got {count:,}. Pass some: rays[::10].")
    joined = concatenate(rays) if len(rays) > 1 else next(iter(rays), None)
    frames = {} if joined is None else {"rays": rays_frame(joined, ray_colors)}
    if points:
        frames["points"] = points_frame(points, rays, point_colors)
    if joined is not None:
        frames["table"] = table_frame(stage, joined)
    all_frames = scene_frame(stage, [*frames]), *frames.values()
    return PageContent(layers, stage, objects, joined, all_frames)


def _joined_stage(layers: Layers, stages: Mapping[str, Stage], before: Stage | None) -> Stage:
    """Return all geometries as one stage with name, unit and up axis of the first."""
    first, *others = stages.values()
    parts = [part._replace(color=layers[name].color) for name, one in stages.items() for part in one.parts]
    if not others:
        return first._replace(parts=tuple(parts))
    solids = [part.geometry for part in parts]
    is_same = before is not None and [*map(id, solids)] == [id(part.geometry) for part in before.parts]
    made = make_stage(before.scene if before and is_same else solids, first.name, credit=first.credit)
    colored = tuple(one._replace(color=part.color) for one, part in zip(made.parts, parts, strict=True))
    names = np.repeat(np.array([*stages], object), [len(one.visible) for one in stages.values()])
    visible = np.concatenate([one.visible for one in stages.values()])
    labels = {**made.labels, "layer": names}
    return made._replace(parts=colored, labels=labels, visible=visible, unit=first.unit, up=first.up)


def _visible(layers: Layers, kind: type[C]) -> tuple[list[C], Colors]:
    """Return the visible rays or points, and the colour and the number of rows of each."""
    shown = [(one.content, one.color) for one in layers.values() if one.is_visible]
    found = [(content, color) for content, color in shown if isinstance(content, kind)]
    sizes = [len(one if isinstance(one, Rays) else one.xyz) for one, _ in found]
    return [one for one, _ in found], [(color, n) for (_, color), n in zip(found, sizes, strict=True)]
