"""``raybox info``: prints the contents of a file."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raybox.cli.common import as_json, number
from raybox.cli.inputs import check_format, format_option, input_files, shown
from raybox.cli.scenes import check_scene_options, scene_options
from raybox.errors import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from raybox.geometry import Boxes, Rays
    from raybox.io.formats import Loaded

    Floats = NDArray[np.float64]

Facts = dict[str, object]
KINDS = ("scene", "rays")


@click.command(short_help="List what a file holds.")
@click.argument("file", type=click.Path(), nargs=-1, required=True)
@click.option("--kind", type=click.Choice(KINDS), help="What to take it for, where it could be both (.npy).")
@scene_options
@format_option
@click.option("--json", "json_", is_flag=True, help="Print a JSON object on a line for each file.")
def info(
    file: tuple[str, ...], boxes: bool, grid: bool, format_: str | None, *, kind: str | None, json_: bool
) -> None:
    r"""List what FILE holds: kind, number, bounds, sizes, names.

    Several files, or a pattern in quotes, are listed one after the other. One of them may be -, stdin.

    \b
    raybox info duplex.ifc
    raybox info 'scans/*.laz'
    raybox info table.npy --kind rays
    raybox info --grid model.vox
    """
    check_scene_options(boxes, grid)
    check_format(format_, *file)
    for number_before, path in enumerate(input_files(file, format_)):
        facts = _of_grid(path) if grid else _of_contents(path, kind, boxes)
        facts = {"file": shown([path]), "bytes": Path(path).stat().st_size, **facts}
        if json_:
            click.echo(as_json(facts))
        else:
            click.echo(("\n" if number_before else "") + _as_table(facts))


def _as_table(facts: Facts) -> str:
    width = max(map(len, facts))
    lines = (
        f"{printable(name).replace('_', ' '):<{width}}  {_shown(value)}" for name, value in facts.items()
    )
    return "\n".join(lines)


def _of_contents(file: str, kind: str | None, boxes: bool) -> Facts:
    from raybox.io.formats import Loaded, contents
    from raybox.io.formats.own_results import results_in

    results = results_in(Path(file)) if kind is None else None
    if results is not None:
        facts = results._asdict()
        return {"holds": results.text, **facts}
    found = contents(file, kind=kind, boxes=boxes)
    return _facts(found) if isinstance(found, Loaded) else _of_points(found.arrays["points"])


def _of_grid(file: str) -> Facts:
    import numpy as np

    from raybox.geometry.grid_cells import count_occupied
    from raybox.io.formats import load_grid

    grid = load_grid(file)
    lower, upper = grid.bounds.tolist()
    rows = grid.rows()
    sizes = [np.diff(axis) for axis in grid.edges]
    return {
        **{"holds": "a grid", "count": len(grid), "shape": list(grid.shape)},
        "occupied": count_occupied(rows),
        **{"dimension": grid.ndim_space, "lower_bound": lower, "upper_bound": upper},
        "smallest_size": [float(size.min()) for size in sizes],
        "largest_size": [float(size.max()) for size in sizes],
        "memory_bytes": sum(array.nbytes for array in (*grid.edges, rows.blocks, rows.words)),
    }


def _facts(loaded: "Loaded") -> Facts:
    from raybox.geometry import Boxes, Instances, Mesh, Rays

    geometry = loaded.geometry
    if isinstance(geometry, list):
        return {"holds": "geometries", "count": len(geometry), "geometries": list(map(repr, geometry))}
    if isinstance(geometry, Instances):
        return _of_boxes(geometry.boxes(), "oriented boxes") | _of_labels(loaded)
    if isinstance(geometry, Boxes):
        return _of_boxes(geometry, "boxes") | _of_labels(loaded)
    if isinstance(geometry, Mesh):
        memory = geometry.vertices.nbytes + geometry.faces.nbytes
        around = Boxes.of_triangles(geometry.vertices, geometry.faces)
        return _of_boxes(around, "triangles") | {"vertices": len(geometry.vertices), "memory_bytes": memory}
    if isinstance(geometry, Rays):
        return _of_rays(geometry)
    return {"holds": type(geometry).__name__.lower(), "count": len(geometry)} | _of_labels(loaded)


def _of_boxes(boxes: "Boxes", what: str) -> Facts:
    flat = (boxes.sizes == 0.0).any(axis=1)
    return {
        **{"holds": what, "count": len(boxes), "dimension": boxes.ndim_space},
        **_bounds(boxes.lower, boxes.upper),
        **_spread("size", boxes.sizes),
        "flat_share": float(flat.mean()) if len(boxes) else 0.0,
        "memory_bytes": boxes.lower.nbytes + boxes.upper.nbytes,
    }


def _of_labels(loaded: "Loaded") -> Facts:
    """Return the first ids, and counts of labels with at most 40 classes."""
    ids = {} if loaded.ids is None else {"ids": loaded.ids[:3], "distinct_ids": len(set(loaded.ids))}
    classes = {name: Counter(values) for name, values in loaded.labels.items()}
    classified = {
        name: dict(counts.most_common(8))
        for name, counts in classes.items()
        if 1 < len(counts) <= min(40, len(loaded.geometry) // 2)
    }
    return ids | {"labels": list(loaded.labels)} | classified if loaded.labels else ids


def _of_rays(rays: "Rays") -> Facts:
    import numpy as np

    lengths = np.linalg.norm(rays.directions, axis=-1).reshape(-1, 1)
    points = rays.origins.reshape(-1, rays.ndim_space)
    return {
        **{"holds": "rays", "count": len(points), "shape": list(rays.shape), "dimension": rays.ndim_space},
        **_bounds(points, points),
        **_spread("direction_length", lengths),
        "zero_directions": int((lengths == 0.0).sum()),
        "t_range": [float(rays.t_min.min(initial=np.inf)), float(rays.t_max.max(initial=-np.inf))],
        "memory_bytes": rays.origins.nbytes + rays.directions.nbytes,
    }


def _of_points(points: "Floats") -> Facts:
    import numpy as np

    finite = points[np.isfinite(points).all(axis=-1)]
    facts = {"holds": "points", "count": len(points), "dimension": points.shape[-1]}
    return (
        facts
        | _bounds(finite, finite)
        | {"not_finite": len(points) - len(finite), "memory_bytes": points.nbytes}
    )


def _bounds(lower: "Floats", upper: "Floats") -> Facts:
    if not len(lower):
        return {}
    return {"lower_bound": lower.min(axis=0).tolist(), "upper_bound": upper.max(axis=0).tolist()}


def _spread(name: str, values: "Floats") -> Facts:
    """Return smallest, median and largest of each column."""
    import numpy as np

    if not len(values):
        return {}
    quantiles = np.quantile(values, [0.0, 0.5, 1.0], axis=0, method="nearest").tolist()
    return dict(zip((f"smallest_{name}", f"median_{name}", f"largest_{name}"), quantiles, strict=True))


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{printable(name)} {count:,}" for name, count in value.items())
    if isinstance(value, list):
        return "  ".join(map(_shown, value))
    if isinstance(value, float):
        return number(value, 10)
    return f"{value:,}" if isinstance(value, int) else printable(str(value))
