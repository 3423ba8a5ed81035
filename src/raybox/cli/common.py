"""What the commands share: vectors on the command line, errors in one line, tables, JSON."""

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import click

from raybox.cli.interrupt import heard
from raybox.errors import RayboxError

if TYPE_CHECKING:
    from raybox.geometry import Boxes, Mesh, Rays

Vector = tuple[float, ...]


def vector(text: str) -> Vector:
    """Read numbers with commas between them: ``1,2,3`` (or ``1,2`` in the plane)."""
    try:
        numbers = tuple(map(float, text.split(",")))
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not numbers with commas between them, like 1,2.5,-3."
        ) from error
    if len(numbers) not in (2, 3):
        raise click.BadParameter(f"{text!r} has {len(numbers)} numbers; give X,Y,Z (or X,Y in the plane).")
    return numbers


class Refusal(click.ClickException):
    """Bad input: one line on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"raybox: {self.message}", err=True)


class Commands(click.Group):
    """The group of commands; whatever one of them raises ends as one line and the right exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command and see that its output has left."""
        try:
            with heard():
                result = super().invoke(ctx)
            sys.stdout.flush()
        except RayboxError as error:
            raise Refusal(" ".join(str(error).split())) from error
        except MemoryError as error:
            raise Refusal("there is not enough memory for this; ask fewer rays at a time") from error
        except KeyboardInterrupt:
            _stop(ctx)
        except RuntimeError as error:
            # what Python makes of Ctrl-C while it makes a class, in the midst of an import
            if not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            _stop(ctx)
        except BrokenPipeError:
            # Whoever read our output has seen enough (| head). Closing stdout, Python would complain again.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        return result


def _stop(ctx: click.Context) -> None:
    click.echo("raybox: stopped", err=True)
    # Stopped in code made of text, as named tuples are, `python -m raybox` would end by the signal after all:
    # CPython remembers how the last such code ended.
    exec("")
    ctx.exit(130)


def load_scene(path: str, boxes: bool) -> "tuple[Boxes | Mesh, list[str] | None]":
    """Read a scene, and the ids of its boxes."""
    from raybox.io.formats import read

    loaded = read(path, kind="scene", boxes=boxes)
    return cast("Boxes | Mesh", loaded.geometry), loaded.ids


def load_rays(path: str, origin: Vector | None, invalid: str) -> "Rays":
    """Read rays, or make them of points."""
    from raybox.io.formats import load

    return cast("Rays", load(path, kind="rays", origin=origin, invalid=invalid))


def announce_compiling() -> None:
    """Have one line say so when Numba compiles, which takes seconds; mostly it finds its code on disk."""
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, event: Any) -> None:
            if not self.said:
                click.echo("raybox: compiling kernels for this machine (once, about 10 s) ...", err=True)
            self.said = True

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Announcer())


def as_json(value: Any) -> str:
    """Give strict JSON on one line: what JSON has no word for (NaN, infinity) becomes null."""
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Lay rows out in columns: numbers to the right, text to the left."""
    texts = [[number(cell) if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *texts, strict=True)]
    right = [bool(rows) and all(isinstance(row[k], int | float) for row in rows) for k in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right, strict=True)
        )
        for line in [list(header), *texts]
    ]
    return "\n".join(line.rstrip() for line in lines)


def number(value: float, digits: int = 6) -> str:
    """Write a float for reading: 6 significant digits, unless told otherwise."""
    return f"{value:.{digits}g}"
