"""Commands of one ray: ``raybox pick`` lists its hits, ``raybox explain`` prints each step."""

import math
from typing import TYPE_CHECKING, TypedDict, Unpack

import click
from click.decorators import FC

from raybox.cli.common import Cell, Vector, as_json, finite_vector, number, table, vector
from raybox.cli.inputs import check_format, format_option, input_files, shown
from raybox.cli.picked import Value, picked
from raybox.cli.scenes import SceneOptions, geometries, load_scene, scene_options

if TYPE_CHECKING:
    from raybox.geometry import Rays


def ray_options(command: FC) -> FC:
    """Return the command with the options that describe one ray."""
    options = [
        click.option("--origin", type=finite_vector, metavar="X,Y,Z", help="Where the ray starts."),
        click.option(
            "--direction",
            type=finite_vector,
            metavar="X,Y,Z",
            help="Where it goes; t counts in lengths of it.",
        ),
        click.option(
            "--from", "start", type=finite_vector, metavar="X,Y,Z", help="A segment's start: t = 0."
        ),
        click.option("--to", "end", type=finite_vector, metavar="X,Y,Z", help="A segment's end: t = 1."),
        click.option(
            "--margin",
            type=float,
            metavar="LENGTH",
            help="Leave out this length at both ends of a segment, so that what its ends lie on is not hit.",
        ),
        click.option("--t-min", type=float, help="Where the ray's range begins. [default: 0]"),
        click.option("--t-max", type=float, help="Where it ends. [default: inf, or 1 for a segment]"),
    ]
    for option in reversed(options):
        command = option(command)
    return command


class RayOptions(TypedDict):
    """The values of `ray_options`."""

    origin: Vector | None
    direction: Vector | None
    start: Vector | None
    end: Vector | None
    margin: float | None
    t_min: float | None
    t_max: float | None


def ray_of(
    *,
    origin: Vector | None,
    direction: Vector | None,
    start: Vector | None,
    end: Vector | None,
    margin: float | None,
    t_min: float | None,
    t_max: float | None,
) -> "Rays":
    """Return the ray; raise if options are missing or contradict each other."""
    from raybox.geometry import Rays

    if margin is not None and not (start and end and t_min is None and t_max is None):
        raise click.UsageError("--margin goes with --from and --to, without --t-min and --t-max.")
    if origin and direction and not (start or end):
        _check_lengths(("--origin", origin), ("--direction", direction))
        first, step, last = origin, direction, math.inf
    elif start and end and not (origin or direction):
        _check_lengths(("--from", start), ("--to", end))
        first, step, last = start, _step(start, end), 1.0
        if margin is not None:
            return Rays.segments(start, end, margin=margin)
    else:
        raise click.UsageError("Pass --origin and --direction, or --from and --to, as X,Y,Z.")
    low, high = 0.0 if t_min is None else t_min, last if t_max is None else t_max
    if not low <= high:
        raise click.UsageError(f"--t-min must be at most --t-max; got {low:g} and {high:g}. Correct them.")
    return Rays(first, step, t_min=low, t_max=high)


def _check_lengths(*options: tuple[str, Vector]) -> None:
    """Raise unless the vectors of two options have the same number of coordinates."""
    (first, one), (second, other) = options
    if len(one) != len(other):
        raise click.UsageError(
            f"{first} has {len(one)} numbers, {second} has {len(other)}. Pass X,Y,Z for both, or X,Y."
        )


def _step(start: Vector, end: Vector) -> Vector:
    """Return the direction of a segment; raise if float64 cannot hold it."""
    step = tuple(b - a for a, b in zip(start, end, strict=True))
    if not all(map(math.isfinite, step)):
        raise click.UsageError("--from and --to are too far apart for float64. Move them closer.")
    return step


@click.command(short_help="List what one ray or segment hits, in order.")
@click.argument("scene", type=click.Path(), nargs=-1, required=True)
@ray_options
@scene_options
@format_option
@click.option("--exit-status", is_flag=True, help="End with exit code 1 if nothing was hit.")
@click.option("--json", "json_", is_flag=True, help="Print one JSON object.")
def pick(
    scene: tuple[str, ...],
    reading: SceneOptions,
    format_: str | None,
    exit_status: bool,
    json_: bool,
    **options: Unpack[RayOptions],
) -> None:
    r"""List everything that one ray hits in SCENE, in order along the ray.

    Of boxes, a row for each box that is hit. Of a file whose triangles belong to objects, such as .ifc and
    .city.json, a row for each object: where the ray first hits it, and last, and how many of its triangles
    (contacts). --json lists hits, which are triangles then, and objects with all their labels.

    Several files, or a pattern in quotes, are one scene: the rows of the first file, then those of the next.
    One of them may be -, stdin.

    \b
    raybox pick duplex.ifc --origin 2,-25,1.5 --direction 0,1,0
    raybox pick duplex.ifc --origin 2,-25,1.5 --direction 0,1,0 --where "ifc_class != 'IfcDoor'"
    raybox pick city.city.json --from 84900,447500,3 --to 84900,447700,3 --json
    raybox pick 'tiles_*.csv' --from 0,0,1 --to 9,0,1 --exit-status
    raybox pick --grid model.vox --origin 0.5,-5,2.5 --direction 0,1,0
    """
    ray = ray_of(**options)
    check_format(format_, *scene)
    files = input_files(scene, format_)
    geometry = load_scene(files, reading)
    dims = geometries(geometry)[0].ndim_space
    if ray.ndim_space != dims:
        raise click.UsageError(
            f"{' '.join(scene)} is in {dims}D, the ray in {ray.ndim_space}D. "
            f"Pass {'X,Y,Z' if dims == 3 else 'X,Y'} for the ray."
        )
    found = picked(ray, geometry, reading.where)
    if json_:
        ends = {"origin": ray.origins, "direction": ray.directions, "t_min": ray.t_min, "t_max": ray.t_max}
        objects = [row | {"labels": labels} for row, labels in found.objects]
        rows = {"hits": found.hits, "objects": objects}
        click.echo(as_json({"scene": shown(files), **ends, **rows}))
    elif not found.hits:
        click.echo("the ray hits nothing")
    else:
        click.echo(table(list(found.table[0]), [list(map(_shown, row.values())) for row in found.table]))
    if exit_status and not found.hits:
        click.get_current_context().exit(1)


def _shown(value: Value) -> Cell:
    if isinstance(value, list):
        return ",".join(map(number, value))
    return "" if value is None else value


@click.command(short_help="Show step by step how one ray hits or misses one box.")
@ray_options
@click.option("--lower", type=vector, metavar="X,Y,Z", help="The box's lower corner.")
@click.option("--upper", type=vector, metavar="X,Y,Z", help="The box's upper corner.")
@click.option("--grid", type=click.Path(), metavar="FILE", help="A grid, in place of the box.")
def explain(lower: Vector | None, upper: Vector | None, grid: str | None, **ray: Unpack[RayOptions]) -> None:
    r"""Show how one ray hits or misses one box.

    Prints the slab intervals axis by axis, the candidate faces, the verdict of each textbook algorithm, and
    the exact one. Of a grid, the way from cell to cell, and the planes crossed.

    \b
    raybox explain --origin 0,0,0 --direction 2,1,1 --lower 1,0,0 --upper 4,1,1
    raybox explain --origin 0,0,0 --direction 2,1,1 --grid model.vox
    """
    from raybox.geometry import Boxes
    from raybox.io.formats import load_grid
    from raybox.textbook.explain import explain as explained

    if (grid is None) != (lower is not None and upper is not None) or (grid and (lower or upper)):
        raise click.UsageError("Pass --lower and --upper, or --grid.")
    if lower is not None and upper is not None:
        _check_corners(lower, upper)
        explained(ray_of(**ray), Boxes(lower, upper))
    elif grid is not None:
        explained(ray_of(**ray), load_grid(grid))


def _check_corners(lower: Vector, upper: Vector) -> None:
    """Raise unless two corners make a box."""
    _check_lengths(("--lower", lower), ("--upper", upper))
    for axis, low, high in zip("xyz", lower, upper, strict=False):
        if low > high:
            raise click.UsageError(
                f"--lower must not exceed --upper; got {low:g} and {high:g} on {axis}. Swap them."
            )
