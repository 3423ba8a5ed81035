"""``raybox explain``: the textbook, step by step."""

from typing import Any

import click

from raybox.cli.common import Vector, vector
from raybox.cli.rays import ray_of, ray_options


@click.command(short_help="Show step by step how one ray meets or misses one box.")
@ray_options
@click.option("--lower", type=vector, metavar="X,Y,Z", required=True, help="The box's lower corner.")
@click.option("--upper", type=vector, metavar="X,Y,Z", required=True, help="The box's upper corner.")
def explain(lower: Vector, upper: Vector, **ray: Any) -> None:
    r"""Show how one ray and one box come to meet or miss.

    Prints the slab intervals axis by axis, the candidate faces, the verdict of each textbook algorithm, and
    the exact one.

    \b
    raybox explain --origin 0,0,0 --direction 2,1,1 --lower 1,0,0 --upper 4,1,1
    """
    from raybox.geometry import Boxes
    from raybox.textbook.explain import explain as explained

    explained(ray_of(**ray), Boxes(lower, upper))
