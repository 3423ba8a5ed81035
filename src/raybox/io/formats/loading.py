"""``load`` and ``read``: geometry from a file."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, get_args, overload

import numpy as np

from raybox import validation
from raybox.compiler.float_environment import in_default_environment
from raybox.errors import FileFormatError, InvalidInput
from raybox.geometry import Boxes, Invalid, Rays, with_facts
from raybox.geometry.file_facts import FromFile, Up
from raybox.geometry.turning import turned
from raybox.io.formats.assembly import build, valid_rows
from raybox.io.formats.cityjson import level_of
from raybox.io.formats.columns import TEXTS, choose_kind, is_flat, kinds_of, layout_names
from raybox.io.formats.common import (
    FileArrays,
    Floats,
    InvalidRows,
    Loadable,
    Loaded,
    ObjectsOf,
    ReadOptions,
    SceneGeometry,
    Tessellation,
    file_error,
    reader_errors,
    warn_of,
)
from raybox.io.formats.open_files import Source, name_of, with_path
from raybox.io.formats.own_results import results_in
from raybox.io.formats.ply import UNFACED
from raybox.io.formats.table import parse

_DEFAULTS = ReadOptions()
_IFC, _CITYJSON = ((".ifc",), "IFC"), ((".json", ".jsonl"), "CityJSON")
_ONLY_FOR = {
    "lod": _CITYJSON,
    "objects": _CITYJSON,
    "all_objects": _IFC,
    "tessellation": _IFC,
    "layout": ((".bin", ".npy", *TEXTS), "bare numbers"),
}
_CHOICES = {
    "kind": ("scene", "rays", None),
    "invalid": get_args(InvalidRows),
    "tessellation": get_args(Tessellation),
    "up": (*get_args(Up), None),
    "objects": (*get_args(ObjectsOf), None),
}


class _SceneOptions(TypedDict, total=False):
    invalid: InvalidRows
    lod: str | None
    all_objects: bool
    progress: bool
    tessellation: Tessellation
    objects: ObjectsOf | None
    up: Up | None
    layout: str | None


class _Options(_SceneOptions, total=False):
    kind: Literal["scene", "rays"] | None
    origin: tuple[float, ...] | None
    boxes: bool


@overload
def load(
    path: Source,
    *,
    kind: Literal["rays"],
    origin: tuple[float, ...] | None = None,
    invalid: Invalid = "raise",
    layout: str | None = None,
    format: str | None = None,
) -> Rays: ...
@overload
def load(
    path: Source,
    *,
    kind: Literal["scene"] | None = None,
    boxes: Literal[True],
    format: str | None = None,
    **options: Unpack[_SceneOptions],
) -> Boxes: ...
@overload
def load(
    path: Source,
    *,
    kind: Literal["scene"],
    boxes: Literal[False] = False,
    format: str | None = None,
    **options: Unpack[_SceneOptions],
) -> SceneGeometry | list[SceneGeometry]: ...
@overload
def load(path: Source, *, format: str | None = None, **options: Unpack[_Options]) -> Loadable: ...


@in_default_environment
def load(  # noqa: PLR0913
    path: Source,
    *,
    kind: Literal["scene", "rays"] | None = None,
    origin: tuple[float, ...] | None = None,
    boxes: bool = False,
    invalid: InvalidRows = "raise",
    lod: str | None = None,
    all_objects: bool = False,
    progress: bool = False,
    tessellation: Tessellation = "opencascade",
    objects: ObjectsOf | None = None,
    up: Up | None = None,
    layout: str | None = None,
    format: str | None = None,
) -> Loadable:
    """Return the boxes, the mesh or the rays in a file, or in an open one.

    Its extension gives the format. Boxes and meshes have the ids and labels of their objects, colours, and
    counts of what was left out: `Mesh.skipped`.

    Parameters
    ----------
    path : str, path, or binary file
        A scene: ``.npz .npy .csv .tsv .txt .xyz .bin .parquet`` tables of boxes,
        ``.ply .obj .stl .glb .gltf .ifc .json .jsonl`` (a mesh whose triangles belong to objects), ``.vox``
        (one box for each voxel). Rays: tables too, and the points of ``.las .laz .ply .pcd`` with ``origin``.
        ``docs/files/index.md`` has the columns. One that ends in ``.gz`` is decompressed.
    kind : {"scene", "rays"}, optional
        What to read where a file could be both; needed for ``.npy``, whose columns have no names, and for
        the columns ``x y z dx dy dz``.
    origin : X, Y, Z, optional
        Start of the rays to a set of points: direction = point - origin, so that t = 1 is the point, and
        t_max = inf.
    boxes : bool
        Return one box for each object of a file, not its triangles. Its colour is the one that most of them
        have.
    invalid : {"raise", "miss", "skip"}
        How to handle NaN, null and empty cells. "miss": such rays stay, and hit nothing, as in
        :class:`raybox.Rays`. "skip": boxes with such numbers, or a lower bound above the upper one, are left
        out, and counted in ``skipped``.
    lod : str, optional
        Of CityJSON: the level of detail to read, such as ``"1.2"``. None: the highest of each object, of a
        building and its parts those with the highest.
    all_objects : bool
        Of IFC: return what has no matter, too, such as spaces, openings, virtual elements and grids.
    progress : bool
        Show a bar while a long file is read.
    tessellation : {"opencascade", "hybrid"}
        Of IFC: the library of ifcopenshell that makes triangles. "hybrid" is faster; curved bodies have other
        triangles.
    up : {"y", "z"}, optional
        Turn a geometry whose file states another axis as `up`, without rounding: from y to z, (x, y, z)
        becomes (x, -z, y). An error for a file that states none. None: the axes of the file.
    layout : str, optional
        The columns of bare numbers (``.bin``, ``.npy``, text without a header), such as ``"x,y,z,i"``.
    objects : "surfaces", optional
        Of CityJSON: each semantic surface is an object, with the label ``surface`` (RoofSurface, WallSurface,
        …) and the labels of its city object. None: each city object is one.
    format : str, optional
        Of an open file whose name does not tell it: the extension, such as ``".ply"``.

    Returns
    -------
    Boxes, Mesh or Rays
        Instances, of a table of boxes with centre, size and yaw. Of a file of `raybox.save`, the geometry
        that was saved, or a list of several: ``Scene(load(path))``.

    Raises
    ------
    FileFormatError
        The file is missing (then it is a FileNotFoundError, too), unreadable, cut off, of another format
        than its name says, or holds wrong numbers; the text is one line with the file, the place in it and
        the way out.
    RayboxError
        The format needs a package that is not installed; the text gives the command.
    InvalidInput
        An argument has another value than those above.

    Warns
    -----
    SkippedWarning
        If content of the file is lost: `raybox.errors.SkippedWarning` with reasons and counts.
    UnitsWarning
        If the coordinates of the file are degrees.

    Examples
    --------
    >>> import raybox as rb
    >>> from importlib.resources import files
    >>> duplex = rb.load(files("raybox") / "data" / "duplex.npz")
    >>> duplex
    Mesh(26348, vertices=15034, objects=215)
    """
    options = ReadOptions(
        *(kind, origin, boxes, invalid, lod, all_objects, progress, tessellation, objects, up, layout)
    )
    found = opened(path, options, format)
    warn_of(name_of(path), found.skipped, found.units)
    return found.geometry


@in_default_environment
def read(path: Source, *, format: str | None = None, **options: Unpack[_Options]) -> Loaded:
    """Return the content of a file, with ids and labels as lists; options are those of `load`.

    Returns
    -------
    Loaded
        ``geometry``; ``ids``, a list or None, and ``labels``, a dict of lists: an element for each object;
        ``skipped`` and ``left_out``: counts by reason of what is lost, and of what defaults leave out.

    Examples
    --------
    >>> from importlib.resources import files
    >>> duplex = read(files("raybox") / "data" / "duplex.npz")
    >>> duplex.ids[0], duplex.labels["ifc_class"][0]
    ('2O2Fr$t4X7Zf8NOew3FNtn', 'IfcWallStandardCase')
    """
    found = opened(path, ReadOptions(**options), format)
    warn_of(name_of(path), found.skipped, found.units)
    return found


def opened(path: Source, options: ReadOptions, form: str | None = None) -> Loaded:
    """Return the content of a file, without a warning; form: the extension of an open one."""
    with with_path(path, form) as file:
        options = check_options(options, file)
        try:
            found = parse(file, options)
            if isinstance(found, Loaded) and options.kind == "rays":
                way_out = "give a file of rays here, or of points with an origin"
                raise file_error(file, "holds a scene, not rays", way_out)
            if isinstance(found, Loaded) and options.origin is not None:
                way_out = "leave out the origin, which is for points"
                raise file_error(file, "holds a scene, not points", way_out)
            return _built(found, file, options)
        except FileFormatError as error:
            if (results := results_in(file)) is None:
                raise
            way_out = "give a file of boxes, a mesh, or rays"
            raise file_error(file, f"holds {results.text}, no scene or rays", way_out) from error


@in_default_environment
def contents(path: str | os.PathLike[str], options: ReadOptions = _DEFAULTS) -> Loaded | FileArrays:
    """Return the content of a file; points stay points, also of a PLY file that states no faces."""
    with with_path(path, None) as file:
        options = check_options(options, file)
        found = parse(file, options)
        if options.kind is None and UNFACED in found.skipped:
            found = parse(file, options._replace(kind="rays"))
        if isinstance(found, FileArrays) and options.kind != "scene" and "points" in found.arrays:
            return found
        return _built(found, file, options)


def query_rows(path: Path, options: ReadOptions) -> dict[str, Floats]:
    """Return the points of a file, or the bounds of its boxes; bad rows that may miss are NaN.

    options: of kind "points" or "boxes"; of a scene, boxes are those of its objects.
    """
    kind = options.kind
    with with_path(path, None) as file:
        check_options(ReadOptions("rays", layout=options.layout), file)
        found = parse(file, options)
        if isinstance(found, FileArrays):
            with reader_errors(file, "a table"):
                return _checked_rows(found, file, options)
        if kind == "points" or not isinstance(found.geometry, Boxes):
            raise file_error(file, f"holds a scene, not {kind}", f"give a file of {kind} here")
        return {"lower": found.geometry.lower, "upper": found.geometry.upper}


def _checked_rows(parts: FileArrays, file: Path, options: ReadOptions) -> dict[str, Floats]:
    kinds = kinds_of(parts.arrays)
    names = kinds[choose_kind(kinds, file, options)]
    parts = parts._replace(arrays={name: parts.arrays[name] for name in names})
    if options.kind == "points":
        points = validation.with_width(parts.arrays["points"], "points")
        valid_rows(parts, file, options)
        return {"points": points.reshape(-1, points.shape[-1])}
    if options.invalid_rays == "raise":
        boxes = _boxes_of(parts, file, options)
        return {"lower": boxes.lower, "upper": boxes.upper}
    arrays = {name: a if is_flat(name) else np.atleast_2d(a) for name, a in parts.arrays.items()}
    valid = valid_rows(parts._replace(arrays=arrays), file, options)
    labels = {name: values[valid] for name, values in parts.labels.items()}
    arrays = {name: values[valid] for name, values in arrays.items()}
    boxes = _boxes_of(parts._replace(arrays=arrays, labels=labels), file, options)
    lower, upper = np.full((2, len(valid), boxes.ndim_space), np.nan)
    lower[valid], upper[valid] = boxes.lower, boxes.upper
    return {"lower": lower, "upper": upper}


def _boxes_of(parts: FileArrays, file: Path, options: ReadOptions) -> Boxes:
    boxes = build(parts, file, options).geometry
    assert isinstance(boxes, Boxes)
    return boxes


def _built(found: Loaded | FileArrays, file: Path, options: ReadOptions) -> Loaded:
    """Return the geometry of a file, which has the facts of its file, turned as `options.up` says."""
    if isinstance(found, FileArrays):
        with reader_errors(file, "a table"):
            found = build(found, file, options)
    geometry, counts = found.geometry, Counter(found.skipped) + Counter(found.left_out)
    if isinstance(geometry, list):  # saved geometries, with facts of their own
        several: Any = [_with_up(one, options.up, file) for one in geometry]
        return found._replace(geometry=several, units=None, up=None)
    units, up = found.units or geometry.units, found.up or geometry.up
    geometry = with_facts(geometry, counts or geometry.skipped, units=units, up=up)
    one: Any = _with_up(geometry, options.up, file)
    return found._replace(geometry=one, units=one.units, up=one.up)


def _with_up(geometry: SceneGeometry | Rays, up: Up | None, file: Path) -> FromFile:
    """Return a geometry turned so that `up` is up; raise if its file does not state which axis is."""
    if up is not None and geometry.up is None:
        matrix = "[[1, 0, 0, 0], [0, 0, -1, 0], [0, 1, 0, 0]]"
        way_out = f"load it without up, and if y is up turn it: mesh.transformed({matrix})"
        raise file_error(file, "does not state which axis is up", way_out)
    try:
        return geometry if up is None or geometry.up == up else turned(geometry, up)
    except InvalidInput as error:
        problem = f"holds {type(geometry).__name__} that raybox does not turn"
        raise file_error(file, problem, "load it without up") from error


def check_options(options: ReadOptions, file: Path | None = None) -> ReadOptions:
    """Return the options, boxes as those of a scene; raise for values that are wrong, alone or together."""
    if options.boxes and options.kind is None:
        options = options._replace(kind="scene")
    for name, (suffixes, format_name) in _ONLY_FOR.items():
        is_given = getattr(options, name) != getattr(_DEFAULTS, name)
        if is_given and file is not None and file.suffix.lower() not in suffixes:
            use = f"is for files of {format_name} ({' '.join(suffixes)})"
            raise InvalidInput(f"{name} {use}; got it with {file.name}. Leave it out.")
    for name, choices in _CHOICES.items():
        if getattr(options, name) not in choices:
            texts = [f'"{choice}"' if choice else "None" for choice in choices]
            known = ", ".join(texts[:-1]) + f" or {texts[-1]}"
            raise InvalidInput(f"{name} must be {known}; got {getattr(options, name)!r}")
    if options.origin is not None and options.kind == "scene":
        reason = "origin turns points into rays, so it does not go with a scene"
        raise InvalidInput(f"{reason}; leave one of the two out")
    if options.invalid == "skip" and (options.kind == "rays" or options.origin is not None):
        reason = 'invalid="skip" leaves out boxes, and rays keep their rows'
        raise InvalidInput(f'{reason}; use invalid="miss"')
    layout_names(options.layout)
    try:
        level_of(options.lod)
    except ValueError as error:
        known = 'a level of detail such as "2" or "1.2"'
        raise InvalidInput(f"lod must be {known}; got {options.lod!r}") from error
    return options
