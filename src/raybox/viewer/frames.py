"""Frames of a scene and of rays, for the page: see docs/view.md for their fields."""

from math import inf
from typing import NamedTuple

import numpy as np

from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes, Rays, stored_objects
from raybox.geometry.grid_surface import exposed_cells
from raybox.hits import AllHits
from raybox.viewer.bounds import Solid, foot_points
from raybox.viewer.label_columns import label_columns, roles
from raybox.viewer.mesh_edges import sharp_edges
from raybox.viewer.stage import Stage, StagePart
from raybox.viewer.wire import Arrays, frame, packed_bits

MAX_IDS = 200_000  # objects, above which the page gets no ids
MAX_DRAWN_CELLS = 1_000_000  # of a grid with more visible cells, its outline is drawn
MAX_DRAWN_RAYS = 20_000  # an even sample of more
MAX_LISTED = 10_000  # rows of hits in an answer
MAX_OFFLINE = 100_000  # boxes and triangles that a saved page casts rays at


class RayCall(NamedTuple):
    """The rays of the file or call, in 3D and flat; is_scan: t = 1 is a measured point of each."""

    rays: Rays
    is_scan: bool = False


def scene_frame(stage: Stage, *, rays: RayCall | None = None) -> bytes:
    """Return the frame ``scene``: geometries, objects with ids and labels, and what is hidden at first."""
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = {}
    geometries = []
    for number, part in enumerate(stage.parts):
        made = _geometry_arrays(part.geometry, part)
        arrays |= {f"{number}.{name}": values for name, values in made.items()}
        geometries.append(_geometry_entry(part))
    columns = label_columns(stage.labels)
    arrays |= {f"label.{k}": one.values for k, one in enumerate(columns) if one.values is not None}
    if not stage.visible.all():
        arrays["hidden"] = packed_bits(~stage.visible)
    low, high = stage.ends
    reason = offline_reason(stage)
    return frame(
        "scene",
        arrays,
        name=stage.name,
        title=stage.name,
        credit=stage.credit,
        up="z",
        shift=np.round(low / 2 + high / 2).tolist(),
        bounds=[low.tolist(), high.tolist()],
        geometries=geometries,
        labels=[one.entry for one in columns],
        ids=stage.ids if stage.objects <= MAX_IDS else None,
        hiddenAtStart="hidden" if "hidden" in arrays else None,
        offline="none" if reason else "exact",
        offlineReason=reason,
        **roles(columns)._asdict(),
    )


def offline_reason(stage: Stage) -> str:
    """Return why a saved page casts no rays; empty if it does."""
    solids = [part.geometry for part in stage.parts]
    if any(isinstance(one, Planes) for one in solids):
        return "This saved page casts no rays: its scene has planes."
    count = sum(_size(one) for one in solids if not isinstance(one, Grid))
    if count <= MAX_OFFLINE:
        return ""
    return (
        f"This saved page casts no rays: its scene has {count:,} boxes and triangles, "
        f"and a page from disk tests {MAX_OFFLINE:,} at most."
    )


def _size(geometry: Solid) -> int:
    """Return the number of boxes and triangles in the arrays of a geometry."""
    return len(geometry) + (len(geometry.geometry) if isinstance(geometry, Instances) else 0)


def _geometry_entry(part: StagePart) -> dict[str, object]:
    """Return the fields of a geometry in the header of a scene."""
    entry = _base_entry(part.geometry)
    return entry | {"firstObject": part.first_object, "objects": part.objects}


def _base_entry(geometry: Solid) -> dict[str, object]:
    entry: dict[str, object] = {"type": type(geometry).__name__.lower(), "primitives": len(geometry)}
    if isinstance(geometry, Instances):
        entry["base"] = _base_entry(geometry.geometry) | {"firstObject": 0, "objects": len(geometry.geometry)}
    return entry


def _geometry_arrays(geometry: Solid, part: StagePart | None = None) -> Arrays:
    """Return the arrays of a geometry by name; part: its objects, but for the base of instances."""
    if isinstance(geometry, Boxes):
        return {"lower": geometry.lower, "upper": geometry.upper}
    if isinstance(geometry, Mesh):
        return _mesh_arrays(geometry)
    if isinstance(geometry, Instances):
        base = _geometry_arrays(geometry.geometry)
        return {"transforms": geometry.rows(), **{f"base.{name}": values for name, values in base.items()}}
    if isinstance(geometry, Planes):
        return {"points": foot_points(geometry), "normals": geometry.normals}
    return _grid_arrays(geometry, part.cells if part else None)


def _mesh_arrays(mesh: Mesh) -> Arrays:
    objects = stored_objects(mesh)
    numbers = np.arange(len(mesh)) if objects is None else objects
    return {
        "vertices": mesh.vertices,
        "faces": mesh.faces.astype(np.uint32),
        "objects": numbers.astype(np.uint32),
        "edges": sharp_edges(mesh).astype(np.uint32),
    }


def _grid_arrays(grid: Grid, cells: np.ndarray[tuple[int, ...], np.dtype[np.int64]] | None) -> Arrays:
    """Return edges, occupied bits (none if all are), and the objects with a free face (none: too many)."""
    arrays: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.generic]]] = dict(
        zip("xyz", grid.edges, strict=True)
    )
    if grid.rows().blocks.size:
        arrays["occupied"] = packed_bits(grid.occupied)
    if cells is not None:
        visible = exposed_cells(grid)
        if len(visible) <= MAX_DRAWN_CELLS:
            arrays["visible"] = np.searchsorted(cells, visible).astype(np.uint32)
    return arrays


def rays_frame(call: RayCall) -> bytes:
    """Return the frame ``rays``: an even sample of those that can be drawn."""
    rows, total = call.rays.rows(), len(call.rays)
    drawn = min(total, MAX_DRAWN_RAYS)
    row = np.arange(drawn) * total // max(drawn, 1)
    ends = (np.broadcast_to(values, total)[row] for values in (rows.t_min, rows.t_max))
    names = ("origin", "direction", "t_min", "t_max")
    values = (rows.origins[row], rows.directions[row], *ends)
    arrays = {"row": row.astype(np.uint32), **dict(zip(names, values, strict=True))}
    return frame("rays", arrays, total=total, drawn=drawn)


def table_frame(
    stage: Stage, call: RayCall, mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]] | None = None
) -> bytes:
    """Return the frame ``table``: the nearest hit of every ray with the objects of a mask."""
    hits = stage.scene.nearest(call.rays, where=stage.where(mask))  # type: ignore[arg-type]
    arrays = {
        "t": hits.t,
        "object": stage.objects_of(hits.geometry, hits.index),
        "primitive": hits.index.astype(np.float64),
        "length": np.linalg.norm(call.rays.directions, axis=-1),
    }
    return frame("table", arrays, total=len(call.rays))


def points_frame(call: RayCall) -> bytes:
    """Return the frame ``points``: the point at t = 1 of every ray, and its distance."""
    directions = call.rays.directions
    arrays = {"xyz": call.rays.origins + directions, "distance": np.linalg.norm(directions, axis=-1)}
    return frame("points", arrays)


def hits_frame(stage: Stage, ray: Rays, hits: AllHits, *, seq: int, row: int | None = None) -> bytes:
    """Return the frame ``hits``: what one ray hits, in the order of (t, geometry, index)."""
    some = slice(MAX_LISTED)
    arrays = {
        "object": stage.objects_of(hits.geometry, hits.index)[some],
        "geometry": hits.geometry[some].astype(np.uint32),
        "primitive": hits.index[some].astype(np.float64),
        **{name: getattr(hits, name)[some] for name in ("t", "t_enter", "t_exit")},
    }
    return frame("hits", arrays, seq=seq, row=row, total=len(hits.t), **ray_fields(ray))


def ray_fields(ray: Rays) -> dict[str, object]:
    """Return one ray as fields of a header; an infinite end is null."""
    ends = (float(end.reshape(-1)[0]) for end in (ray.t_min, ray.t_max))
    t_min, t_max = (None if abs(end) == inf else end for end in ends)
    vectors = {"origin": ray.origins.reshape(-1), "direction": ray.directions.reshape(-1)}
    return {**{name: values.tolist() for name, values in vectors.items()}, "t_min": t_min, "t_max": t_max}
