"""Scenes and rays of commands, read from the files of their arguments."""

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypedDict, cast

import click

from raybox.cli.common import Vector, finite_vector
from raybox.cli.inputs import shown
from raybox.cli.notices import QUIET, VERBOSE, notice, verbosity

if TYPE_CHECKING:
    from raybox.geometry import Boxes, Invalid, Rays
    from raybox.geometry.file_facts import Up
    from raybox.io.formats import Loaded
    from raybox.io.formats.common import InvalidRows, ObjectsOf, ReadOptions, SceneGeometry, Tessellation
    from raybox.io.formats.scans import Scan
    from raybox.scene.scene import Scene

    SceneContent: TypeAlias = SceneGeometry | list[SceneGeometry] | Scene

Command: TypeAlias = Callable[..., None]

origin_option = click.option(
    "--origin",
    type=finite_vector,
    metavar="X,Y,Z",
    help="Makes rays from here to each point, if RAYS holds points.",
)


class RayReading(TypedDict):
    """How to read a file of rays."""

    invalid: "Invalid"
    layout: str | None


_OF_READER = "boxes", "lod", "all_objects", "tessellation", "layout", "invalid", "up", "objects"


class SceneOptions(NamedTuple):
    """The values of `scene_options`: how to read a scene, and what of it rays may hit."""

    boxes: bool
    lod: str | None
    all_objects: bool
    tessellation: "Tessellation"
    grid: bool
    where: str | None
    layout: str | None
    invalid: "InvalidRows"
    up: "Up | None"
    objects: "ObjectsOf | None"

    def check(self) -> None:
        """Raise unless the options go together."""
        if self.boxes and self.grid:
            raise click.UsageError("Pass --boxes or --grid, not both.")
        given = {
            "--lod": self.lod,
            "--objects": self.objects,
            "--all-objects": self.all_objects,
            "--where": self.where,
            "--layout": self.layout,
            "--up": self.up,
        }
        for name, value in given.items():
            if self.grid and value:
                raise click.UsageError(f"{name} is for objects, and --grid reads cells. Pass one of them.")

    def of_reader(self, kind: str | None = "scene") -> "ReadOptions":
        """Return the options of readers, with a bar where stderr is a terminal."""
        from raybox.io.formats.common import ReadOptions

        bar = sys.stderr.isatty() and verbosity() > QUIET
        given = {name: getattr(self, name) for name in _OF_READER}
        return ReadOptions(kind, **given, progress=bar)

    @property
    def reads_all(self) -> bool:
        """Whether all of a file is read, as it is."""
        from raybox.io.formats.common import ReadOptions

        return self.of_reader()._replace(progress=False) == ReadOptions("scene")

    def of_rays(self) -> "RayReading":
        """Return how to read rays, to which layout and miss are left; boxes are skipped."""
        return {"invalid": "miss" if self.invalid == "miss" else "raise", "layout": self.layout}

    def next_to_rays(self) -> "SceneOptions":
        """Return the options of the scene where there are rays, too, whose columns the layout names."""
        return self._replace(layout=None, invalid="skip" if self.invalid == "skip" else "raise")


_SCENE_OPTIONS = (
    click.option(
        "--boxes",
        is_flag=True,
        help="One box around each object, parallel to the axes, in place of its triangles.",
    ),
    click.option(
        "--lod",
        metavar="LEVEL",
        help="CityJSON: this level of detail alone, such as 1.2. [default: the highest of each object]",
    ),
    click.option(
        "--all-objects", is_flag=True, help="IFC: what has no matter, too, such as spaces and openings."
    ),
    click.option(
        "--tessellation",
        type=click.Choice(("opencascade", "hybrid")),
        default="opencascade",
        help="IFC: how surfaces become triangles; hybrid is faster. [default: opencascade]",
    ),
    click.option(
        "--grid", is_flag=True, help="The cells of a grid: of .vox, or of an array in .npy or .npz."
    ),
    click.option(
        "--where",
        metavar="EXPR",
        help="Only objects whose labels fit, such as \"ifc_class != 'IfcDoor' and storey in ('1', '2')\"; "
        "raybox info lists labels.",
    ),
    click.option(
        "--layout",
        metavar="NAMES",
        help="The columns of bare numbers (.bin .npy, text), such as x,y,z,i; of RAYS, if there are any.",
    ),
    click.option(
        "--invalid",
        type=click.Choice(("raise", "miss", "skip")),
        default="raise",
        help="NaN and empty cells: an error; rays miss; or boxes are skipped. [default: raise]",
    ),
    click.option(
        "--up",
        type=click.Choice(("y", "z")),
        help="Turn the scene so that this axis is up, if its file states another. [default: as in the file]",
    ),
    click.option(
        "--objects",
        type=click.Choice(("surfaces",)),
        help="CityJSON: each semantic surface is an object, whose label surface is RoofSurface and the like.",
    ),
)


def scene_options(command: Command) -> Command:
    """Return the command with the options of its scene, which it gets together, as `reading`."""

    @wraps(command)
    def run(**options: Any) -> None:
        reading = SceneOptions(**{name: options.pop(name) for name in SceneOptions._fields})
        reading.check()
        command(reading=reading, **options)

    for option in reversed(_SCENE_OPTIONS):
        run = option(run)
    return run


def load_scene(paths: Sequence[str], reading: SceneOptions) -> "SceneContent":
    """Return a scene's geometry read from files, or a list of several; print what is left out.

    Several files are one geometry: the rows of the first, then those of the second, and so on. A folder of
    `Scene.save` is a `Scene`, with its trees.
    """
    from raybox.io.formats import load_grid
    from raybox.io.formats.loading import opened
    from raybox.io.formats.table import SAVED_SCENE

    if reading.grid:
        if len(paths) > 1:
            raise click.UsageError(f"--grid reads one file; got {len(paths)}. Name one of them.")
        return load_grid(paths[0])
    if len(paths) == 1 and Path(paths[0]).suffix.lower() == SAVED_SCENE and reading.reads_all:
        from raybox.scene.scene import Scene

        scene: SceneContent = Scene.open(paths[0])
    else:
        found = [opened(path, reading.of_reader()) for path in paths]
        for path, one in zip(paths, found, strict=True):
            _print_left_out(path, one)
        scene = joined([cast("SceneContent", one.geometry) for one in found], paths)
    if reading.where is not None and not _fits_any(scene, reading.where):
        notice(f"--where: no object fits {reading.where}")
    notice(f"scene of {size_of(scene):,} from {len(paths)} file{'s' * (len(paths) > 1)}", VERBOSE)
    return scene


def _fits_any(scene: "SceneContent", where: str) -> bool:
    """Return whether an expression of labels is true of any row; True for cells, which are too many."""
    from raybox.geometry import Grid, object_rows, row_mask

    parts = geometries(scene)
    return any(isinstance(one, Grid) or row_mask(where, object_rows(one), len(one)).any() for one in parts)


def geometries(scene: "SceneContent") -> "list[SceneGeometry]":
    """Return the geometries of a scene."""
    from raybox.geometry import Geometry

    found: Any = scene if isinstance(scene, Geometry | list) else cast("Scene", scene).geometry
    return [*found] if isinstance(found, list | tuple) else [found]


def size_of(scene: "SceneContent") -> int:
    """Return the number of rows of a geometry, or of several."""
    return sum(map(len, geometries(scene)))


def masked(scene: "SceneGeometry", where: str | None) -> "SceneGeometry":
    """Return the boxes or triangles that an expression of labels is true of; all without one."""
    if where is None:
        return scene
    from raybox.geometry import Grid, object_rows, row_mask

    if isinstance(scene, Grid):
        raise click.UsageError(
            "--where is for boxes and triangles here; the file holds a grid. Leave it out."
        )
    return scene[row_mask(where, object_rows(scene), len(scene))]


def joined(parts: "Sequence[SceneContent]", paths: Sequence[str]) -> "SceneContent":
    """Return the geometries of files as one, with ids and labels; ids only if all have some."""
    from raybox.geometry import Boxes, Mesh, without_ids
    from raybox.hits.concatenation import concatenate

    if len(parts) == 1:
        return parts[0]
    kinds = {type(part) for part in parts}
    if not kinds <= {Boxes, Mesh}:
        raise click.UsageError(
            "A scene of several files has boxes or triangles alone. Pass --boxes for boxes around others."
        )
    if len(kinds) > 1:
        raise click.UsageError(
            "A scene of several files has boxes or triangles, not both. Pass --boxes for boxes of objects."
        )
    same = cast("Sequence[Boxes]", parts)
    for one, path in zip(same, paths, strict=True):
        if one.ndim_space != same[0].ndim_space:
            raise click.UsageError(
                f"{path} is in {one.ndim_space}D, {paths[0]} in {same[0].ndim_space}D. Cast at one of them."
            )
    if any(part.ids is None for part in same):
        same = [without_ids(part) for part in same]
    return concatenate(same)


def _print_left_out(path: str, found: "Loaded") -> None:
    """Print a line for what a file loses, and one for what is left out by default."""
    from raybox.io.formats.common import DEGREE, IN_DEGREES, counts_in_words

    if found.units == DEGREE:
        notice(f"{_name(path)}: {IN_DEGREES}")
    if found.skipped:
        notice(f"{_name(path)}: lost: {counts_in_words(found.skipped)}")
    if found.left_out:
        on_request = any(reason.startswith("Ifc") and " " not in reason for reason in found.left_out)
        way_out = "; --all-objects reads spaces and openings, too" if on_request else ""
        notice(f"{_name(path)}: left out: {counts_in_words(found.left_out)}{way_out}")


def _name(path: str) -> str:
    name = shown([path])
    return name if isinstance(name, str) else path


def load_scan(path: str, origin: Vector | None, reading: SceneOptions) -> "Scan":
    """Return rays as `load_rays`, with the fields of points that they are made from."""
    from raybox.io.formats.common import ReadOptions
    from raybox.io.formats.scans import Scan, point_fields

    rays, has_points = load_rays(path, origin, reading), origin is not None
    options = ReadOptions("rays", origin, layout=reading.layout)
    return Scan(rays, point_fields(path, options) if has_points else {}, has_points)


def load_rays(path: str, origin: Vector | None, reading: SceneOptions) -> "Rays":
    """Return rays read from a file, or made from its points."""
    from raybox.io.formats.common import ReadOptions
    from raybox.io.formats.loading import opened

    found = opened(Path(path), ReadOptions("rays", origin, **reading.of_rays()))
    _print_left_out(path, found)
    return cast("Rays", found.geometry)
