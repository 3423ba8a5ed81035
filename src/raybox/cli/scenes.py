"""Scenes and rays of commands, read from the files of their arguments."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

import click
from click.decorators import FC

from raybox.cli.common import Vector, finite_vector
from raybox.cli.notices import VERBOSE, notice

if TYPE_CHECKING:
    from raybox.geometry import Boxes, Grid, Invalid, Mesh, Rays
    from raybox.io.formats import Loaded

    Scene = tuple[Boxes | Grid | Mesh, list[str] | None]


origin_option = click.option(
    "--origin",
    type=finite_vector,
    metavar="X,Y,Z",
    help="Makes rays from here to each point, if RAYS holds points.",
)
invalid_option = click.option(
    "--invalid",
    type=click.Choice(("raise", "miss")),
    default="raise",
    help="Rays with NaN are an error, or misses. [default: raise]",
)


def scene_options(command: FC) -> FC:
    """Return the command with the options that say how to read its scene."""
    command = click.option(
        "--grid",
        is_flag=True,
        help="The cells of a grid: of .vox, or of an array in .npy or .npz.",
    )(command)
    return click.option(
        "--boxes", is_flag=True, help="One box of each part of a mesh, in place of its triangles."
    )(command)


def check_scene_options(boxes: bool, grid: bool) -> None:
    """Raise unless at most one of the options is given."""
    if boxes and grid:
        raise click.UsageError("Pass --boxes or --grid, not both.")


def load_scene(paths: Sequence[str], boxes: bool, grid: bool) -> "Scene":
    """Return a scene's geometry read from files, and the ids of its rows.

    Several files are one geometry: the rows of the first, then those of the second, and so on.
    """
    from raybox.io.formats import load_grid, read

    check_scene_options(boxes, grid)
    if grid:
        if len(paths) > 1:
            raise click.UsageError(f"--grid reads one file; got {len(paths)}. Name one of them.")
        return load_grid(paths[0]), None
    scene = joined([read(path, kind="scene", boxes=boxes) for path in paths], paths)
    notice(f"scene of {len(scene[0]):,} from {len(paths)} file{'s' * (len(paths) > 1)}", VERBOSE)
    return scene


def joined(parts: "Sequence[Loaded]", paths: Sequence[str]) -> "Scene":
    """Return the contents of files as one geometry, with ids if all have some."""
    from raybox.geometry import Boxes, join_meshes

    geometries = [part.geometry for part in parts]
    ids = [_row_ids(part) for part in parts]
    if len(parts) == 1:
        return cast("Boxes | Mesh", geometries[0]), ids[0]
    all_ids = None if None in ids else [name for some in ids for name in some or ()]
    if all(isinstance(geometry, Boxes) for geometry in geometries):
        return _joined_boxes(cast("list[Boxes]", geometries), paths), all_ids
    if any(isinstance(geometry, Boxes) for geometry in geometries):
        raise click.UsageError(
            "A scene of several files has boxes or triangles, not both. Pass --boxes for a box of each part."
        )
    return join_meshes(cast("list[Mesh]", geometries)), all_ids


def _row_ids(part: "Loaded") -> list[str] | None:
    """Return the id of each box; None of a mesh."""
    from raybox.geometry import Boxes

    return list(map(str, part.ids)) if part.ids is not None and isinstance(part.geometry, Boxes) else None


def _joined_boxes(boxes: "list[Boxes]", paths: Sequence[str]) -> "Boxes":
    import numpy as np

    from raybox.geometry import Boxes

    for one, path in zip(boxes, paths, strict=True):
        if one.ndim_space != boxes[0].ndim_space:
            raise click.UsageError(
                f"{path} is in {one.ndim_space}D, {paths[0]} in {boxes[0].ndim_space}D. Cast at one of them."
            )
    return Boxes(np.concatenate([b.lower for b in boxes]), np.concatenate([b.upper for b in boxes]))


def load_rays(path: str, origin: Vector | None, invalid: "Invalid") -> "Rays":
    """Return rays read from a file, or made from its points."""
    from raybox.io.formats import load

    return load(path, kind="rays", origin=origin, invalid=invalid)
