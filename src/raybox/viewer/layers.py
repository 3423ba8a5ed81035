"""What a viewer shows by name: geometries, rays, and points of hits; and all of these as one."""

import re
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np

from raybox.errors import InvalidInput
from raybox.geometry import Rays, row_masks
from raybox.hits import AllHits, Hits
from raybox.io.formats.scans import Scan
from raybox.validation import Floats, Ints, MaskInput
from raybox.viewer.open_file import ViewInput, stage_of
from raybox.viewer.stage import Stage, make_stage, rays_in_3d

LayerInput: TypeAlias = ViewInput | Rays | Hits | AllHits


class Points(NamedTuple):
    """Points in 3D, (n, 3), and the distance of each along its ray, (n,)."""

    xyz: Floats
    distance: Floats
    scan: Scan | None = None
    """whose rays end at them"""


class Layer(NamedTuple):
    """What is shown under one name: `color` is "#rrggbb"; `is_visible` is for rays and points."""

    content: Stage | Rays | Points
    color: str | None = None
    is_visible: bool = True


Layers: TypeAlias = Mapping[str, Layer]
C = TypeVar("C", Rays, Points)


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
    return Layer(stage_of(given), color)


def scan_layers(scan: Scan, name: str, name_of_points: str) -> dict[str, Layer]:
    """Return the layers of rays and of the points that they end at."""
    rays = rays_in_3d(scan.rays)
    if not scan.has_points:
        return {name: Layer(rays)}
    length = np.linalg.norm(rays.directions, axis=-1)
    points = Points(rays.origins + rays.directions, length, scan._replace(rays=rays))
    return {name: Layer(rays), name_of_points: Layer(points)}


def layer_in(layers: Layers, name: str) -> Layer:
    """Return the layer of a name; raise `InvalidInput` without one."""
    if name not in layers:
        raise InvalidInput(f"nothing is shown as {name!r}; there are: {', '.join(layers)}.")
    return layers[name]


def stages_in(layers: Layers) -> dict[str, Stage]:
    """Return the stages of geometries by name."""
    return {name: one.content for name, one in layers.items() if isinstance(one.content, Stage)}


def stage_in(layers: Layers, name: str) -> Stage:
    """Return the stage of a name; raise `InvalidInput` without one."""
    content = layer_in(layers, name).content
    if not isinstance(content, Stage):
        raise InvalidInput(f"{name!r} has no objects; name a geometry: {', '.join(stages_in(layers))}.")
    return content


def objects_by_name(layers: Layers) -> dict[str, range]:
    """Return the numbers of each geometry's objects among those of `joined_stage`."""
    stages = stages_in(layers)
    ends = accumulate(len(stage.visible) for stage in stages.values())
    pairs = zip(stages.items(), ends, strict=True)
    return {name: range(end - len(stage.visible), end) for (name, stage), end in pairs}


def runs_that_stay(old: Layers, new: Layers) -> list[tuple[int, int, int]]:
    """Return the first number before, the first number now, and the count, of geometries that both have."""
    before, now = objects_by_name(old), objects_by_name(new)
    stay = [name for name in now if stages_in(old).get(name) is stages_in(new)[name]]
    return [(before[name].start, now[name].start, len(now[name])) for name in stay]


def with_visible(layers: Layers, name: str, objects: MaskInput, on: bool) -> tuple[Layers, list[int]]:
    """Return layers with objects of a geometry shown or hidden, and the ranges of these objects."""
    stage = stage_in(layers, name)
    chosen, visible = objects_in(stage, objects), stage.visible.copy()
    visible[chosen] = on
    breaks = np.flatnonzero(np.diff(chosen) != 1) + 1
    runs = np.split(chosen + objects_by_name(layers)[name].start, breaks) if chosen.size else []
    changed = layers[name]._replace(content=stage._replace(visible=visible))
    return {**layers, name: changed}, [int(end) for run in runs for end in (run[0], run[-1])]


def joined_stage(layers: Layers, before: Stage | None = None) -> Stage:
    """Return all geometries as one stage with name, unit and up axis of the first.

    before: a stage whose trees are used again if it has the same geometries.
    """
    stages = stages_in(layers)
    if not stages:
        raise InvalidInput("a viewer needs a geometry; add another before the last is removed.")
    first = next(iter(stages.values()))
    colors = [layers[name].color for name, stage in stages.items() for _ in stage.parts]
    if len(stages) == 1 and not any(colors):
        return first
    solids = [part.geometry for stage in stages.values() for part in stage.parts]
    old = first if before is None else before
    is_same = [*map(id, solids)] == [id(part.geometry) for part in old.parts]
    made = make_stage(old.scene if is_same else solids, first.name, credit=first.credit)
    parts = tuple(one._replace(color=color) for one, color in zip(made.parts, colors, strict=True))
    names = np.repeat(np.array([*stages], object), [len(stage.visible) for stage in stages.values()])
    labels = made.labels if len(stages) == 1 else {**made.labels, "layer": names}
    visible = np.concatenate([stage.visible for stage in stages.values()])
    return made._replace(parts=parts, labels=labels, visible=visible, unit=first.unit, up=first.up)


def visible_of(layers: Layers, kind: type[C]) -> tuple[list[C], list[tuple[str | None, int]]]:
    """Return the visible rays or points, and the colour and the number of rows of each."""
    shown = [layer for layer in layers.values() if isinstance(layer.content, kind) and layer.is_visible]
    contents = [layer.content for layer in shown if isinstance(layer.content, kind)]
    sizes = [len(one if isinstance(one, Rays) else one.xyz) for one in contents]
    return contents, [(layer.color, size) for layer, size in zip(shown, sizes, strict=True)]


def objects_in(stage: Stage, objects: MaskInput) -> Ints:
    """Return ascending numbers of a stage's objects, from numbers, a mask, an expression, or None for all."""
    count = len(stage.visible)
    if objects is None:
        return np.arange(count)
    if isinstance(objects, str):
        masks = row_masks(objects, [part.geometry for part in stage.parts])
        found = [part.visible(mask) for part, mask in zip(stage.parts, masks, strict=True)]
        return np.flatnonzero(np.concatenate(found))
    values = np.asarray(objects)
    if values.dtype == np.bool_ and values.shape == (count,):
        return np.flatnonzero(values)
    numbers = np.unique(values)
    if not numbers.size or (numbers.dtype.kind in "iu" and numbers[0] >= 0 and numbers[-1] < count):
        return numbers.astype(np.int64)
    rule = f"objects must be numbers from 0 to {count - 1}, a mask of {count}, or an expression of labels"
    raise InvalidInput(f"{rule}; got {values.dtype} of shape {values.shape}. Leave misses (-1) out.")
