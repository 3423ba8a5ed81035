"""Frames of a scene, of rays and of hits, as the page reads them; `messages` has their headers."""

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import inf
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from raybox.geometry import Boxes, Grid, Instances, Planes, Rays, stored_objects
from raybox.geometry.grid_surface import exposed_cells
from raybox.geometry.mesh_edges import drawn_edges
from raybox.hits import AllHits
from raybox.io.formats.scans import Scan
from raybox.validation import Bools, Floats, Ints
from raybox.viewer import messages
from raybox.viewer.stage import Solid, Stage, StagePart

MAX_IDS = 200_000  # objects, above which the page gets no ids
MAX_DRAWN_CELLS = 1_000_000  # of a grid with more visible cells, its outline is drawn
MAX_DRAWN_RAYS = 20_000  # an even sample of more
MAX_LISTED = 10_000  # rows of hits in an answer
MAX_COLORS = 2**16  # of a scene; more are rounded until they are no more
_ALIGNMENT = 8  # of arrays: typed arrays of the page are views of the frame
Arrays = dict[str, NDArray[Any]]


class Points(NamedTuple):
    """Points in 3D, (n, 3), and the distance of each along its ray, (n,)."""

    xyz: Floats
    distance: Floats
    scan: Scan | None = None
    """whose rays end at them"""


def frame(header: messages.FrameHeader | Mapping[str, object], arrays: Arrays | None = None) -> bytes:
    """Return a frame: the header's length (uint32), the header, and arrays at multiples of 8.

    The header is JSON; its field ``arrays`` lists name, dtype (such as "f8"), shape, and offset after the
    header. Numbers are little endian.
    """
    listed: list[tuple[str, str, tuple[int, ...], int]] = []
    blocks: list[bytes] = []
    offset = 0
    for name, values in (arrays or {}).items():
        block = values.astype(values.dtype.newbyteorder("<"), copy=False).tobytes()
        listed.append((name, values.dtype.str[1:], values.shape, offset))
        blocks.append(block + b"\0" * (-len(block) % _ALIGNMENT))
        offset += len(blocks[-1])
    text = json.dumps({**header, "arrays": listed}, allow_nan=False, ensure_ascii=False)
    content = text.encode("utf-8", "replace")
    content += b" " * (-(4 + len(content)) % _ALIGNMENT)
    return b"".join([struct.pack("<I", len(content)), content, *blocks])


def packed_bits(mask: Bools) -> NDArray[np.uint8]:
    """Return a bit for each element in C order, the lowest bit first."""
    return np.packbits(mask.ravel(), bitorder="little")


def scene_frame(stage: Stage, follow: Sequence[str] = ()) -> bytes:
    """Return the frame ``scene``: geometries, objects with ids and labels, and what is hidden at first.

    follow: kinds of the frames that belong to it and come next.
    """
    arrays: Arrays = {}
    labels: list[messages.LabelHeader] = []
    for k, (name, column) in enumerate(stage.labels.items()):
        words, arrays[f"label.{k}"] = _encoded(column)
        labels.append({"name": name, "words": words})
    for number, part in enumerate(stage.parts):
        own = _geometry_arrays(part.geometry, part.cells)
        arrays |= {f"{number}.{name}": values for name, values in own.items()}
    arrays |= _color_arrays(stage)
    if not stage.visible.all():
        arrays["hidden"] = packed_bits(~stage.visible)
    if stage.properties is not None:
        arrays["properties"] = np.frombuffer(zlib.compress(stage.properties.lines()), np.uint8)
    header = messages.SceneHeader(
        kind="scene",
        name=stage.name,
        credit=stage.credit,
        unit=stage.unit,
        up=stage.up,
        follow=list(follow),
        geometries=[_geometry_header(part) for part in stage.parts],
        labels=labels,
        ids=stage.ids if len(stage.visible) <= MAX_IDS else None,
    )
    return frame(header, arrays)


def _geometry_header(part: StagePart) -> messages.GeometryHeader:
    kind = cast("messages.Kind", type(part.geometry).__name__.lower())
    rows, first, color = len(part.geometry), part.first_object, part.color
    return {"type": kind, "primitives": rows, "firstObject": first, "objects": part.objects, "color": color}


def _encoded(values: NDArray[Any]) -> tuple[list[str] | None, NDArray[Any]]:
    """Return the words of a label and their codes (any other is missing); of numbers, None and numbers."""
    listed = [None if value != value else value for value in values.tolist()]
    kinds = {type(value) for value in listed if value is not None}
    if values.dtype.kind in "fiu" or (kinds and kinds <= {int, float}):
        return None, values.astype(np.float64)
    texts = [None if value is None else str(value) for value in listed]
    words = sorted({text for text in texts if text is not None})
    codes: dict[str | None, int] = {word: code for code, word in enumerate(words)} | {None: len(words)}
    return words, np.fromiter((codes[text] for text in texts), np.uint32, len(texts))


def _geometry_arrays(geometry: Solid, cells: Ints | None = None) -> Arrays:
    """Return the arrays of a geometry by name; cells: of a grid, those that are objects."""
    if isinstance(geometry, Boxes):
        return {"lower": geometry.lower, "upper": geometry.upper}
    if isinstance(geometry, Planes):
        return {"normals": geometry.normals, "offsets": geometry.offsets}
    if isinstance(geometry, Instances):
        base = _geometry_arrays(geometry.geometry)
        return {"transforms": geometry._rows(), **{f"base.{name}": values for name, values in base.items()}}
    if isinstance(geometry, Grid):
        return _grid_arrays(geometry, cells)
    indices = {"faces": geometry.faces, "edges": drawn_edges(geometry), "objects": stored_objects(geometry)}
    given = {name: one.astype(np.uint32) for name, one in indices.items() if one is not None}
    return {"vertices": geometry.vertices, **given}


def _grid_arrays(grid: Grid, cells: Ints | None) -> Arrays:
    """Return edges, occupied bits (none if all are), and the objects with a free face (none: too many)."""
    arrays: Arrays = dict(zip("xyz", grid.edges, strict=True))
    if grid._rows().blocks.size:
        arrays["occupied"] = packed_bits(grid.occupied)
    visible = None if cells is None else exposed_cells(grid)
    if cells is not None and visible is not None and len(visible) <= MAX_DRAWN_CELLS:
        arrays["visible"] = np.searchsorted(cells, visible).astype(np.uint32)
    return arrays


def _color_arrays(stage: Stage) -> Arrays:
    """Return the ``palette``, whose first row is no colour, and the row of each primitive.

    Of a grid, rows of objects.
    """
    given: dict[str, NDArray[np.uint8]] = {}
    for number, (solid, _, _, _, cells, color) in enumerate(stage.parts):
        base = solid.geometry.colors if isinstance(solid, Instances) and solid.colors is None else None
        own = solid.colors if cells is None or solid.colors is None else solid.colors[cells]
        is_drawn = color is None and (cells is not None or not isinstance(solid, Grid))
        found = {f"{number}.colors": own, f"{number}.base.colors": base} if is_drawn else {}
        given |= {name: colors for name, colors in found.items() if colors is not None}
    if not given:
        return {}
    palette, rows = _palette(np.concatenate([np.zeros((1, 4), np.uint8), *given.values()]))
    ends = np.cumsum([len(colors) for colors in given.values()])[:-1]
    return {"palette": palette, **dict(zip(given, np.split(rows[1:], ends), strict=True))}


def _palette(colors: NDArray[np.uint8], step: int = 1) -> tuple[NDArray[np.uint8], NDArray[Any]]:
    """Return distinct colours in ascending order, and the row of each; bytes are multiples of a step."""
    coarse = colors if step == 1 else np.minimum(255, step * np.rint(colors / step)).astype(np.uint8)
    keys, rows = np.unique(np.ascontiguousarray(coarse).view("<u4")[:, 0], return_inverse=True)
    if len(keys) > MAX_COLORS:
        return _palette(colors, 2 * step)
    return keys.view(np.uint8).reshape(-1, 4), rows.astype(np.uint8 if len(keys) <= 256 else np.uint16)


def rays_frame(rays: Rays, colors: messages.Colors | None = None) -> bytes:
    """Return the frame ``rays``: an even sample of those that can be drawn; colours of runs of rays."""
    rows, total = rays._rows(), len(rays)
    drawn = min(total, MAX_DRAWN_RAYS)
    row = np.arange(drawn) * total // max(drawn, 1)
    arrays: Arrays = {
        "row": row.astype(np.uint32),
        "origin": np.broadcast_to(rows.origins, rows.directions.shape)[row],
        "direction": rows.directions[row],
        "t_min": np.broadcast_to(rows.t_min, total)[row],
        "t_max": np.broadcast_to(rows.t_max, total)[row],
    }
    return frame(messages.RaysHeader(kind="rays", total=total, colors=colors or []), arrays)


def table_frame(stage: Stage, rays: Rays, mask: Bools | None = None) -> bytes:
    """Return the frame ``table``: the nearest hit of every ray with the objects of a mask."""
    hits = stage.scene.nearest(rays, where=stage.where(mask))
    arrays: Arrays = {"t": hits.t, "distance": hits.distances, "object": stage.objects_of(hits)}
    return frame(messages.TableHeader(kind="table", total=len(rays)), arrays)


def points_frame(clouds: Sequence[Points], rays: Sequence[Rays], colors: messages.Colors) -> bytes:
    """Return the frame ``points``: with the distance, the ray (-1: none) and the fields of each point."""
    first = dict(zip(map(id, rays), accumulate(map(len, rays), initial=0), strict=False))
    columns: dict[str, list[NDArray[Any]]] = {}
    names = list(dict.fromkeys(name for one in clouds if one.scan for name in one.scan.fields))
    for xyz, distance, scan in clouds:
        start = first.get(id(scan.rays)) if scan else None
        rows = np.full(len(xyz), -1) if start is None else start + np.arange(len(xyz))
        own: Arrays = {"xyz": xyz, "distance": distance, "ray": rows.astype(np.int32)}
        none = np.full(len(xyz), np.nan)
        own |= {f"field.{k}": scan.fields.get(name, none) if scan else none for k, name in enumerate(names)}
        for name, values in own.items():
            columns.setdefault(name, []).append(values)
    arrays = {name: np.concatenate(parts) for name, parts in columns.items()}
    return frame(messages.PointsHeader(kind="points", fields=names, colors=colors), arrays)


def hits_frame(stage: Stage, ray: Rays, hits: AllHits, *, seq: int, row: int | None = None) -> bytes:
    """Return the frame ``hits``: what one ray hits, in the order of (t, geometry, index)."""
    some = slice(MAX_LISTED)
    arrays: Arrays = {
        "object": stage.objects_of(hits)[some],
        "geometry": hits.geometry[some].astype(np.uint32),
        "primitive": hits.index[some].astype(np.float64),
        **{name: getattr(hits, name)[some] for name in ("t", "t_enter", "t_exit")},
    }
    low, high = (None if abs(end) == inf else float(end) for end in (ray.t_min, ray.t_max))  # JSON has none
    origin, direction = ray.origins.tolist(), ray.directions.tolist()
    of_ray = messages.RayFields(origin=origin, direction=direction, t_min=low, t_max=high)
    return frame(messages.HitsHeader(kind="hits", seq=seq, row=row, total=len(hits.t), **of_ray), arrays)
