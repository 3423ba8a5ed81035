"""Draws a stage, rays and results of clicks into the page's 3D scene."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from raybox.geometry import Boxes, Mesh, Rays
from raybox.validation import Bools, Floats
from raybox.viewer import appearance
from raybox.viewer.model import ClickResult, Contact, LineStart, Picked
from raybox.viewer.stage import CORNERS, TRIANGLES, Stage, boxes_of, boxes_to_draw

if TYPE_CHECKING:
    import viser

OPAQUE_FROM = 5_000  # boxes: more of them are drawn opaque and without edges, to remain readable
MAX_RAYS = 20_000  # drawn at most
SMALLEST_ANGLE = 0.02  # radians: a picked box that looks smaller gets a frame
# Picked box, boxes behind it, rays that hit, rays that miss: distinct for red-green colour-blind people too
_ORANGE, _BLUE, _RED, _GREY, _INK = (
    (255, 140, 0),
    (0, 119, 187),
    (204, 51, 17),
    (150, 150, 150),
    (70, 70, 80),
)

_EDGES = np.array([(a, b) for a in range(8) for b in range(a, 8) if (a ^ b).bit_count() == 1])


class RaySegments(NamedTuple):
    """Rays to draw: ends on the page, which of them hit, how many rays there are in all."""

    starts: Floats
    ends: Floats
    hit: Bools
    total: int


def light(page: "viser.SceneApi") -> None:
    """Light the scene so that three faces of a box differ, without shadows.

    viser's default shadows and reflections make a browser without a GPU more than ten times slower, and
    distort the colours.
    """
    page.configure_default_lights(enabled=False)
    page.configure_environment_map(None)
    page.add_light_hemisphere("/light/sky", ground_color=(120, 120, 135), intensity=2.2)
    page.add_light_directional("/light/sun", intensity=1.4, position=(2.0, -4.0, 3.0))


def draw_stage(page: "viser.SceneApi", stage: Stage) -> "viser.MeshHandle":
    """Draw the scene, and edges of up to `OPAQUE_FROM` boxes; return the faces' handle."""
    if isinstance(stage.drawn, Mesh):
        return _draw_mesh(page, stage, stage.drawn)
    return _draw_boxes(page, stage, boxes_to_draw(stage.drawn))


def _draw_boxes(page: "viser.SceneApi", stage: Stage, boxes: Boxes) -> "viser.MeshHandle":
    lower, upper, visible = appearance.drawable(boxes, stage.shown)
    low, high = (stage.page_frame.to_page(end[visible]) for end in (lower, upper))
    hues = appearance.colors(stage, lower / 2 + upper / 2)[visible]
    translucent = len(low) <= OPAQUE_FROM
    if translucent and len(low):
        page.add_line_segments("/edges", _edges(low, high), _INK, thickness=1.0, thickness_units="screen")
    return page.add_batched_meshes_simple(
        "/scene",
        CORNERS,
        TRIANGLES,
        batched_wxyzs=np.tile([1.0, 0.0, 0.0, 0.0], (len(low), 1)),
        batched_positions=(low + high) / 2,
        batched_scales=np.maximum(high - low, 1e-5),  # a flat box still has a direction
        batched_colors=hues,
        opacity=0.45 if translucent else None,
        flat_shading=True,
        lod="off",
        cast_shadow=False,
        receive_shadow=False,
    )


def _draw_mesh(page: "viser.SceneApi", stage: Stage, mesh: Mesh) -> "viser.MeshHandle":
    points = stage.page_frame.to_page(mesh.vertices)
    faces = mesh.faces if stage.shown is None else mesh.faces[stage.shown]
    return page.add_mesh_simple(
        "/scene", points, faces, color=(130, 170, 180), flat_shading=True, side="double"
    )


def ray_segments(stage: Stage, rays: Rays) -> RaySegments:
    """Cast rays, and return the first `MAX_RAYS` as segments of the page.

    A hit ends at its point, a miss a little outside the scene.
    """
    rows, reach = rays.rows(), 3.0 * stage.radius
    some = Rays(
        *(a[:MAX_RAYS] for a in rows[:2]),
        t_min=rays.t_min.reshape(-1)[:MAX_RAYS],
        t_max=rays.t_max.reshape(-1)[:MAX_RAYS],
        invalid="miss",
    )
    hits = stage.scene.nearest(some, where=stage.where)
    drawable = np.isfinite(some.origins).all(axis=-1) & np.isfinite(some.directions).all(axis=-1)
    drawable &= some.t_min <= some.t_max
    with np.errstate(all="ignore"):
        far = np.minimum(some.t_max, reach / np.linalg.norm(some.directions, axis=-1))
        start = np.where(np.isfinite(some.t_min), some.t_min, -far)
        stop = np.where(hits.hit, hits.t, far)
        ends = [stage.page_frame.to_page(some.origins + t[:, None] * some.directions) for t in (start, stop)]
    drawable &= np.isfinite(ends[0]).all(axis=-1) & np.isfinite(ends[1]).all(axis=-1)
    return RaySegments(ends[0][drawable], ends[1][drawable], hits.hit[drawable], len(rows.origins))


def draw_rays(page: "viser.SceneApi", segments: RaySegments) -> None:
    """Draw hits in red and misses in grey."""
    tints = np.where(segments.hit[:, None, None], np.array(_RED), np.array(_GREY)).astype(np.uint8)
    points = np.stack([segments.starts, segments.ends], axis=1)
    if len(points):
        page.add_line_segments(
            "/rays", points, np.broadcast_to(tints, points.shape), thickness=1.5, thickness_units="screen"
        )


def draw_result(page: "viser.SceneApi", stage: Stage, result: ClickResult | None) -> None:
    """Draw the result of a click in place of the previous one; None removes it."""
    page.remove_by_name("/answer")
    if result is None:
        return
    page.add_frame("/answer", show_axes=False)
    if isinstance(result, LineStart):
        return _draw_points(page, stage, (result.end,), _ORANGE)
    if isinstance(result, Picked):
        _draw_picked(page, stage, result)
    else:
        tint = _BLUE if result.clear else _RED
        _draw_line(page, stage, result.ray, 1.0, tint)
        _draw_outlines(page, stage, [c.index for c in result.ends], "ends", _ORANGE)
        _draw_points(page, stage, result.ends, _ORANGE)
        _draw_outlines(page, stage, [c.index for c in result.contacts], "between", _RED)
    return None


def _draw_picked(page: "viser.SceneApi", stage: Stage, result: Picked) -> None:
    """Highlight the nearest box, outline the others, and mark each hit point."""
    last = max((c.t for c in result.contacts), default=0.0)
    beyond = 4 * stage.radius + float(np.linalg.norm(result.ray.origins - stage.page_frame.shift))
    reach = min(float(result.ray.t_max), max(beyond, last))
    _draw_line(page, stage, result.ray, reach, _RED)
    if not result.contacts:
        return
    _draw_solid(page, stage, result.nearest)
    _draw_outlines(page, stage, [result.nearest], "picked", _ORANGE)
    lift = _draw_frame(page, stage, result)
    _draw_outlines(page, stage, [c.index for c in result.contacts[1:]], "others", _BLUE)
    _draw_points(page, stage, result.contacts, _RED)
    first = result.contacts[0]
    name = f"{first.object}  {dict(first.labels).get('name') or first.id or ''}".rstrip()
    position = stage.page_frame.to_page(first.point) + np.array([0.0, 0.0, lift])
    page.add_label("/answer/label", name[:60], position=position, anchor="bottom-left")


def _draw_frame(page: "viser.SceneApi", stage: Stage, result: Picked) -> float:
    """Draw a cube round a box too small to notice; return the lift of its label.

    The lift places the label above the cube; 0 without one.
    """
    low, high = (end[0] for end in _bounds(stage, [result.nearest]))
    least = SMALLEST_ANGLE * float(
        np.linalg.norm(stage.page_frame.to_page(result.ray.origins) - (low + high) / 2)
    )
    if (high - low).max() < least:
        middle = ((low + high) / 2)[None]
        lines = _edges(middle - least, middle + least)
        page.add_line_segments("/answer/frame", lines, _ORANGE, thickness=2.5, thickness_units="screen")
        return 1.5 * least
    return 0.0


def _draw_solid(page: "viser.SceneApi", stage: Stage, index: int) -> None:
    """Draw a box, or the triangles of an object, again, in orange; a box a little larger."""
    if isinstance(stage.drawn, Mesh):
        corners = stage.page_frame.to_page(stage.drawn[stage.rows_of(index)].corners().reshape(-1, 3))
        faces = np.arange(len(corners)).reshape(-1, 3)
        page.add_mesh_simple("/answer/solid", corners, faces, color=_ORANGE, side="double")
        return
    low, high = _ends(stage, [index])
    size = (high - low)[0]
    page.add_box(
        "/answer/solid",
        color=_ORANGE,
        dimensions=tuple(size + 0.002 * max(float(size.max()), 0.02)),
        position=tuple((low + high)[0] / 2),
        cast_shadow=False,
        receive_shadow=False,
    )


def _draw_outlines(
    page: "viser.SceneApi", stage: Stage, rows: list[int], name: str, tint: tuple[int, int, int]
) -> None:
    """Draw the edges of boxes or triangles."""
    if not rows:
        return
    if isinstance(stage.drawn, Mesh):
        corners = stage.page_frame.to_page(stage.drawn[stage.outlined(rows)].corners())
        lines = corners[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2, 3)
    else:
        low, high = _ends(stage, rows)
        lines = _edges(low, high, 1.002)
    page.add_line_segments(f"/answer/{name}", lines, tint, thickness=2.5, thickness_units="screen")


def _edges(low: Floats, high: Floats, stretch: float = 1.0) -> Floats:
    """Return the twelve edges of each box as segments, (12 N, 2, 3) float32."""
    corners = (low + high)[:, None] / 2 + stretch * (high - low)[:, None] * CORNERS
    return np.asarray(corners[:, _EDGES].reshape(-1, 2, 3), np.float32)


def _draw_line(
    page: "viser.SceneApi", stage: Stage, ray: Rays, stop: float, tint: tuple[int, int, int]
) -> None:
    ends = stage.page_frame.to_page(np.array([ray.at(float(ray.t_min)), ray.at(stop)]))
    page.add_line_segments("/answer/ray", ends[None], tint, thickness=3.0, thickness_units="screen")


def _draw_points(
    page: "viser.SceneApi", stage: Stage, contacts: tuple[Contact, ...], tint: tuple[int, int, int]
) -> None:
    points = stage.page_frame.to_page([c.point for c in contacts])
    low, high = _bounds(stage, [contacts[0].index])
    size = min(max(0.12 * float((high - low).max()), 0.002), 0.05)  # smaller than the box or triangle
    page.add_point_cloud("/answer/points", points, tint, point_size=size, point_shape="circle")


def _bounds(stage: Stage, rows: list[int]) -> tuple[Floats, Floats]:
    """Return page corners of the boxes round some rows."""
    if isinstance(stage.drawn, Mesh):
        found = [stage.drawn[stage.outlined([row])].corners().reshape(-1, 3) for row in rows]
        corners = [stage.page_frame.to_page(points) for points in found]
        return np.array([points.min(axis=0) for points in corners]), np.array(
            [points.max(axis=0) for points in corners]
        )
    return _ends(stage, rows)


def _ends(stage: Stage, rows: list[int]) -> tuple[Floats, Floats]:
    """Return page corners of boxes; unbounded sides are cut outside all finite bounds."""
    assert not isinstance(stage.drawn, Mesh)
    low, high = stage.ends
    pad = 0.5 * max(float((high / 2 - low / 2).max()), 1e-300)
    lower, upper = boxes_of(stage.drawn, rows)
    lower, upper = np.maximum(lower, low - pad), np.minimum(upper, high + pad)
    return stage.page_frame.to_page(lower), stage.page_frame.to_page(upper)
