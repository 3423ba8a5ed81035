"""Frames of a scene, of rays and of hits, as the page reads them (``page/src/types.ts``)."""

from collections.abc import Sequence
from math import inf

import numpy as np

from raybox.geometry import Boxes, Grid, Instances, Mesh, Planes, Rays, stored_objects
from raybox.geometry.grid_surface import exposed_cells
from raybox.geometry.mesh_edges import sharp_edges
from raybox.hits import AllHits
from raybox.validation import Bools, Ints
from raybox.viewer.bounds import Solid, foot_points
from raybox.viewer.label_columns import label_columns, roles
from raybox.viewer.stage import Stage, StagePart
from raybox.viewer.wire import Arrays, frame, packed_bits

MAX_IDS = 200_000  # objects, above which the page gets no ids
MAX_DRAWN_CELLS = 1_000_000  # of a grid with more visible cells, its outline is drawn
MAX_DRAWN_RAYS = 20_000  # an even sample of more
MAX_LISTED = 10_000  # rows of hits in an answer
MAX_OFFLINE = 100_000  # boxes and triangles that a saved page casts rays at


def scene_frame(stage: Stage, follow: Sequence[str] = ()) -> bytes:
    """Return the frame ``scene``: geometries, objects with ids and labels, and what is hidden at first.

    follow: kinds of the frames that belong to it and come next.
    """
    columns = label_columns(stage.labels)
    arrays: Arrays = {f"label.{k}": one.values for k, one in enumerate(columns) if one.values is not None}
    for number, part in enumerate(stage.parts):
        own = _geometry_arrays(part.geometry, part.cells)
        arrays |= {f"{number}.{name}": values for name, values in own.items()}
    if not stage.visible.all():
        arrays["hidden"] = packed_bits(~stage.visible)
    low, high = stage.ends
    reason = offline_reason([part.geometry for part in stage.parts])
    return frame(
        "scene",
        arrays,
        name=stage.name,
        title=stage.name,
        credit=stage.credit,
        up="z",
        follow=list(follow),
        shift=np.round(low / 2 + high / 2).tolist(),
        bounds=[low.tolist(), high.tolist()],
        geometries=[_part_entry(part) for part in stage.parts],
        labels=[one.entry for one in columns],
        ids=stage.ids if len(stage.visible) <= MAX_IDS else None,
        hiddenAtStart="hidden" if "hidden" in arrays else None,
        offline="none" if reason else "exact",
        offlineReason=reason,
        **roles(columns),
    )


def offline_reason(geometries: Sequence[Solid]) -> str:
    """Return why a saved page casts no rays at geometries; empty if it does."""
    if any(isinstance(one, Planes) for one in geometries):
        return "This saved page casts no rays: its scene has planes."
    bases = [one.geometry for one in geometries if isinstance(one, Instances)]
    count = sum(len(one) for one in [*geometries, *bases] if not isinstance(one, Grid))
    if count <= MAX_OFFLINE:
        return ""
    most = f"a page from disk tests {MAX_OFFLINE:,} at most"
    return f"This saved page casts no rays: its scene has {count:,} boxes and triangles, and {most}."


def _part_entry(part: StagePart) -> dict[str, object]:
    """Return the fields of a geometry in the header of a scene."""
    entry = _entry(part.geometry, part.first_object, part.objects)
    if isinstance(part.geometry, Instances):
        base = part.geometry.geometry
        entry["base"] = _entry(base, 0, len(base))
    return entry


def _entry(geometry: Solid, first_object: int, objects: int) -> dict[str, object]:
    kind = type(geometry).__name__.lower()
    return {"type": kind, "primitives": len(geometry), "firstObject": first_object, "objects": objects}


def _geometry_arrays(geometry: Solid, cells: Ints | None = None) -> Arrays:
    """Return the arrays of a geometry by name; cells: of a grid, those that are objects."""
    if isinstance(geometry, Boxes):
        return {"lower": geometry.lower, "upper": geometry.upper}
    if isinstance(geometry, Planes):
        return {"points": foot_points(geometry), "normals": geometry.normals}
    if isinstance(geometry, Instances):
        base = _geometry_arrays(geometry.geometry)
        return {"transforms": geometry.rows(), **{f"base.{name}": values for name, values in base.items()}}
    return _mesh_arrays(geometry) if isinstance(geometry, Mesh) else _grid_arrays(geometry, cells)


def _mesh_arrays(mesh: Mesh) -> Arrays:
    objects = stored_objects(mesh)
    numbers = np.arange(len(mesh)) if objects is None else objects
    indices = {"faces": mesh.faces, "objects": numbers, "edges": sharp_edges(mesh)}
    return {"vertices": mesh.vertices, **{name: one.astype(np.uint32) for name, one in indices.items()}}


def _grid_arrays(grid: Grid, cells: Ints | None) -> Arrays:
    """Return edges, occupied bits (none if all are), and the objects with a free face (none: too many)."""
    arrays: Arrays = dict(zip("xyz", grid.edges, strict=True))
    if grid.rows().blocks.size:
        arrays["occupied"] = packed_bits(grid.occupied)
    visible = None if cells is None else exposed_cells(grid)
    if cells is not None and visible is not None and len(visible) <= MAX_DRAWN_CELLS:
        arrays["visible"] = np.searchsorted(cells, visible).astype(np.uint32)
    return arrays


def rays_frame(rays: Rays) -> bytes:
    """Return the frame ``rays``: an even sample of those that can be drawn."""
    rows, total = rays.rows(), len(rays)
    drawn = min(total, MAX_DRAWN_RAYS)
    row = np.arange(drawn) * total // max(drawn, 1)
    arrays: Arrays = {
        "row": row.astype(np.uint32),
        "origin": rows.origins[row],
        "direction": rows.directions[row],
        "t_min": np.broadcast_to(rows.t_min, total)[row],
        "t_max": np.broadcast_to(rows.t_max, total)[row],
    }
    return frame("rays", arrays, total=total, drawn=drawn)


def table_frame(stage: Stage, rays: Rays, mask: Bools | None = None) -> bytes:
    """Return the frame ``table``: the nearest hit of every ray with the objects of a mask."""
    hits = stage.scene.nearest(rays, where=stage.where(mask))
    arrays: Arrays = {
        "t": hits.t,
        "object": stage.objects_of(hits),
        "primitive": hits.index.astype(np.float64),
        "length": np.linalg.norm(rays.directions, axis=-1),
    }
    return frame("table", arrays, total=len(rays))


def points_frame(rays: Rays) -> bytes:
    """Return the frame ``points``: the point at t = 1 of every ray, and its distance."""
    directions = rays.directions
    distance = np.linalg.norm(directions, axis=-1)
    return frame("points", {"xyz": rays.origins + directions, "distance": distance})


def hits_frame(stage: Stage, ray: Rays, hits: AllHits, *, seq: int, row: int | None = None) -> bytes:
    """Return the frame ``hits``: what one ray hits, in the order of (t, geometry, index)."""
    some = slice(MAX_LISTED)
    arrays: Arrays = {
        "object": stage.objects_of(hits)[some],
        "geometry": hits.geometry[some].astype(np.uint32),
        "primitive": hits.index[some].astype(np.float64),
        **{name: getattr(hits, name)[some] for name in ("t", "t_enter", "t_exit")},
    }
    ends = (float(end.reshape(-1)[0]) for end in (ray.t_min, ray.t_max))
    t_min, t_max = (None if abs(end) == inf else end for end in ends)  # JSON has no infinity
    vectors = {"origin": ray.origins.reshape(-1).tolist(), "direction": ray.directions.reshape(-1).tolist()}
    return frame("hits", arrays, seq=seq, row=row, total=len(hits.t), t_min=t_min, t_max=t_max, **vectors)
