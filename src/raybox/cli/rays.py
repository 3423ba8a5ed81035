"""One ray from ``--origin --direction`` or ``--from --to``: options of ``pick`` and ``explain``."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from raybox.cli.common import Vector, vector

if TYPE_CHECKING:
    from raybox.geometry import Rays


def ray_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that describe one ray."""
    options = [
        click.option("--origin", type=vector, metavar="X,Y,Z", help="Where the ray starts."),
        click.option(
            "--direction", type=vector, metavar="X,Y,Z", help="Where it goes; t counts in lengths of it."
        ),
        click.option("--from", "start", type=vector, metavar="X,Y,Z", help="A segment's start: t = 0."),
        click.option("--to", "end", type=vector, metavar="X,Y,Z", help="A segment's end: t = 1."),
        click.option("--t-min", type=float, help="Where the ray's range begins. [default: 0]"),
        click.option("--t-max", type=float, help="Where it ends. [default: inf, or 1 for a segment]"),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def ray_of(
    origin: Vector | None,
    direction: Vector | None,
    start: Vector | None,
    end: Vector | None,
    t_min: float | None,
    t_max: float | None,
) -> "Rays":
    """Make the ray, or say which option is missing."""
    import numpy as np

    from raybox.geometry import Rays

    if origin and direction and not (start or end):
        first, step, last = origin, np.array(direction), np.inf
    elif start and end and not (origin or direction) and len(start) == len(end):
        first, step, last = start, np.array(end) - np.array(start), 1.0
    else:
        raise click.UsageError("Give --origin and --direction, or --from and --to, as X,Y,Z.")
    return Rays(first, step, t_min=0.0 if t_min is None else t_min, t_max=last if t_max is None else t_max)
