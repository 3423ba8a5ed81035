"""``raybox info``: prints the contents of a file."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from raybox.cli.common import InputError, as_json, number
from raybox.cli.inputs import check_format, format_option, input_files, shown
from raybox.cli.scenes import SceneOptions, masked, scene_options
from raybox.errors import printable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from raybox.geometry import Boxes, Rays
    from raybox.io.formats import Loaded
    from raybox.io.formats.common import FileArrays, SceneGeometry

    Floats = NDArray[np.float64]

Facts = dict[str, object]
KINDS = ("scene", "rays")
_WITHOUT_LABELS = ("rays", "points", "geometries")
_LABELS = 6  # whose values are counted, at most
_CLASSES = 40  # distinct values of a label, at most, that are counted


@click.command(short_help="List what a file holds.")
@click.argument("file", type=click.Path(), nargs=-1, required=True)
@click.option("--kind", type=click.Choice(KINDS), help="What to take it for, where it could be both (.npy).")
@scene_options
@format_option
@click.option("--json", "json_", is_flag=True, help="Print a JSON object on a line for each file.")
def info(
    file: tuple[str, ...], reading: SceneOptions, format_: str | None, *, kind: str | None, json_: bool
) -> None:
    r"""List what FILE holds: kind, number, bounds, sizes, objects and their labels, what is left out.

    Of a file whose triangles belong to objects, such as .ifc and .city.json, sizes are those of triangles,
    and of objects with --boxes. CityJSON: its levels of detail, with the number of objects of each.

    Several files, or a pattern in quotes, are listed one after the other. One of them may be -, stdin.

    \b
    raybox info duplex.ifc
    raybox info duplex.ifc --boxes --where "storey == 'Level 1'"
    raybox info 'scans/*.laz'
    raybox info table.npy --kind rays
    raybox info --grid model.vox
    """
    check_format(format_, *file)
    for number_before, path in enumerate(input_files(file, format_)):
        facts = _of_grid(path) if reading.grid else _of_contents(path, kind, reading)
        if reading.where is not None and ("query" in facts or facts["holds"] in _WITHOUT_LABELS):
            raise InputError(f"{path}: --where is for objects; the file holds {facts['holds']}; leave it out")
        facts = {"file": shown([path]), "bytes": Path(path).stat().st_size, **facts}
        if json_:
            click.echo(as_json(facts))
        else:
            click.echo(("\n" if number_before else "") + _as_table(facts))


def _as_table(facts: Facts) -> str:
    own = facts.get("labels")
    labels = own if isinstance(own, list) else []
    names = {name: printable(name if name in labels else name.replace("_", " ")) for name in facts}
    width = max(map(len, names.values()))
    return "\n".join(f"{names[name]:<{width}}  {_shown(value)}" for name, value in facts.items())


def _of_contents(file: str, kind: str | None, reading: SceneOptions) -> Facts:
    from raybox.io.formats import Loaded, contents
    from raybox.io.formats.own_results import results_in

    results = results_in(Path(file)) if kind is None else None
    if results is not None:
        facts = results._asdict()
        return {"holds": results.text, **facts}
    found = contents(file, reading.of_reader(kind))
    return (
        _facts(found, Path(file), reading)
        if isinstance(found, Loaded)
        else _of_points(found.arrays["points"]) | _stated(found)
    )


def _of_grid(file: str) -> Facts:
    import numpy as np

    from raybox.geometry.grid_cells import count_occupied
    from raybox.io.formats import load_grid

    grid = load_grid(file)
    lower, upper = grid.bounds.tolist()
    rows = grid._rows()
    sizes = [np.diff(axis) for axis in grid.edges]
    return {
        **{"holds": "a grid", "count": len(grid), "shape": list(grid.shape)},
        "occupied": count_occupied(rows),
        **{"dimension": grid.ndim_space, "lower_bound": lower, "upper_bound": upper},
        "smallest_size": [float(size.min()) for size in sizes],
        "largest_size": [float(size.max()) for size in sizes],
        "memory_bytes": sum(array.nbytes for array in (*grid.edges, rows.blocks, rows.words)),
    }


def _facts(loaded: "Loaded", file: Path, reading: SceneOptions) -> Facts:
    from raybox.geometry import Boxes, Instances, Mesh, Rays

    if isinstance(loaded.geometry, Rays):
        return _of_rays(loaded.geometry) | _stated(loaded)
    if isinstance(loaded.geometry, list):
        names = list(map(repr, loaded.geometry))
        return {"holds": "geometries", "count": len(names), "geometries": names} | _left_out(loaded)
    geometry = masked(loaded.geometry, reading.where)
    others = _of_levels(file) | _stated(loaded) | _left_out(loaded)
    if isinstance(geometry, Instances):
        is_box = isinstance(geometry.geometry, Boxes) and len(geometry.geometry) == 1
        what = "oriented boxes" if is_box else "copies"
        return _of_boxes(geometry.boxes(), what) | _of_labels(geometry) | others
    if isinstance(geometry, Boxes):
        return _of_boxes(geometry, "boxes") | _one_box_for(file) | _of_labels(geometry) | others
    if not isinstance(geometry, Mesh):
        return (
            {"holds": type(geometry).__name__.lower(), "count": len(geometry)} | _of_labels(geometry) | others
        )
    memory = geometry.vertices.nbytes + geometry.faces.nbytes
    around = Boxes.of_triangles(geometry.vertices, geometry.faces)
    facts = _of_boxes(around, "triangles") | {"vertices": len(geometry.vertices), "memory_bytes": memory}
    return facts | _of_labels(geometry) | others


def _one_box_for(file: Path) -> Facts:
    """Return what a box of a file stands for, if the file holds no boxes."""
    from raybox.io.formats.common import suffix_of
    from raybox.io.formats.table import FORMATS

    if suffix_of(file) == ".vox":
        return {"one_box_for": "each voxel"}
    return {} if FORMATS[suffix_of(file)].open else {"one_box_for": "each object"}


def _of_levels(file: Path) -> Facts:
    """Return how many objects of a CityJSON file have surfaces of each level of detail."""
    from raybox.io.formats import cityjson
    from raybox.io.formats.common import suffix_of
    from raybox.io.formats.open_files import with_path
    from raybox.io.formats.table import FORMATS

    if FORMATS[suffix_of(file)].read is not cityjson.read:
        return {}
    with with_path(file, None) as plain:
        levels = cityjson.levels(plain)
    return {"levels_of_detail": {name or "none": count for name, count in levels.items()}}


def _stated(found: "Loaded | FileArrays") -> Facts:
    """Return the units and the axis that is up, where the file states them."""
    return {name: value for name, value in {"units": found.units, "up": found.up}.items() if value}


def _left_out(loaded: "Loaded") -> Facts:
    """Return what is lost, and what is left out, also before a geometry was saved, with reasons."""
    stored = {} if isinstance(loaded.geometry, list) else loaded.geometry.skipped
    left_out = {
        reason: count
        for reason, count in {**stored, **loaded.left_out}.items()
        if reason not in loaded.skipped
    }
    facts = {"lost": dict(loaded.skipped), "left_out": left_out}
    return {name: counts for name, counts in facts.items() if counts}


def _of_boxes(boxes: "Boxes", what: str) -> Facts:
    flat = (boxes.sizes == 0.0).any(axis=1)
    return {
        **{"holds": what, "count": len(boxes), "dimension": boxes.ndim_space},
        **_bounds(boxes.lower, boxes.upper),
        **_spread("size", boxes.sizes),
        "flat_share": float(flat.mean()) if len(boxes) else 0.0,
        "memory_bytes": boxes.lower.nbytes + boxes.upper.nbytes,
    }


def _of_labels(geometry: "SceneGeometry") -> Facts:
    """Return the number of objects of triangles, the first ids, and counts of labels with few classes."""
    import numpy as np

    from raybox.geometry import Mesh, stored_objects

    facts: Facts = {}
    objects = np.arange(len(geometry))
    if isinstance(geometry, Mesh) and stored_objects(geometry) is not None:
        objects = np.unique(geometry.objects)
        facts["objects"] = len(objects)
    if geometry.ids is not None:
        ids = geometry.ids[objects].tolist()
        facts |= {"ids": ids[:3], "distinct_ids": len(set(ids))}
    if geometry.labels:
        facts["labels"] = list(geometry.labels)
    counted: Facts = {}
    for name, values in geometry.labels.items():
        counts = Counter(values[objects].tolist()) if values.dtype.kind != "f" else Counter[object]()
        if 1 < len(counts) <= min(_CLASSES, len(objects) // 2):
            counted[name] = {_text(value): count for value, count in counts.most_common(8)}
    return facts | dict(list(counted.items())[:_LABELS]) | facts


def _text(value: object) -> str:
    return "none" if value is None else str(value) or "empty"


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
