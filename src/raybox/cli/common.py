"""What the commands share: vectors on the command line, errors in one line, tables, JSON."""

import json
import math
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from raybox.errors import RayboxError

if TYPE_CHECKING:
    from raybox.files import Loaded

Vector = tuple[float, ...]


class VectorType(click.ParamType):
    """Numbers with commas between them: ``1,2,3`` (or ``1,2`` in the plane)."""

    name = "X,Y,Z"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Vector:
        """Read the numbers; a finished vector passes."""
        if isinstance(value, tuple):
            return value
        try:
            numbers = tuple(map(float, str(value).split(",")))
        except ValueError:
            self.fail(f"{value!r} is not numbers with commas between them, like 1,2.5,-3", param, ctx)
        if len(numbers) not in (2, 3):
            self.fail(f"{value!r} has {len(numbers)} numbers; give X,Y,Z (or X,Y in the plane)", param, ctx)
        return numbers


VECTOR = VectorType()


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
            result = super().invoke(ctx)
            sys.stdout.flush()
        except RayboxError as error:
            raise Refusal(" ".join(str(error).split())) from error
        except MemoryError as error:
            raise Refusal("there is not enough memory for this; ask fewer rays at a time") from error
        except KeyboardInterrupt:
            click.echo("raybox: stopped", err=True)
            ctx.exit(130)
        except BrokenPipeError:
            # Whoever read our output has seen enough (| head). Python would complain once more when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        return result


def load_scene(path: str, boxes: bool) -> "Loaded":
    """Read a scene with the ids of its boxes."""
    from raybox.files import read

    return read(path, kind="scene", boxes=boxes)


def announce_compiling() -> None:
    """Say so before the first question on a machine, which takes seconds; later ones find the compiled code."""
    from raybox import scene

    if getattr(scene, "will_compile", lambda: False)():
        click.echo("raybox: compiling kernels for this machine (once, about 10 s) ...", err=True)


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
        "  ".join(cell.rjust(w) if r else cell.ljust(w) for cell, w, r in zip(line, widths, right, strict=True))
        for line in [list(header), *texts]
    ]
    return "\n".join(line.rstrip() for line in lines)


def number(value: float) -> str:
    """Write a float for reading: six significant digits."""
    return f"{value:.6g}"
