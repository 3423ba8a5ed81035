"""Shared by the commands: vectors on the command line, one-line errors, tables, JSON."""

import json
import math
import os
import re
import sys
import traceback
from collections.abc import Sequence
from typing import IO, Any, TypeAlias

import click

from raybox.cli.inputs import without_folder
from raybox.cli.interrupts import interruptible
from raybox.cli.messages import in_command_words
from raybox.cli.notices import VERBOSE, verbosity
from raybox.errors import RayboxError, printable

Cell: TypeAlias = str | float | None

Vector = tuple[float, ...]
_UNPRINTABLE = re.compile("[^ -~]")  # or beyond ASCII


def vector(text: str) -> Vector:
    """Return the numbers of a text such as ``1,2,3`` (or ``1,2`` in the plane)."""
    try:
        numbers = tuple(map(float, text.split(",")))
    except ValueError as error:
        raise click.BadParameter(
            f"{text!r} is not a list of numbers separated by commas, such as 1,2.5,-3."
        ) from error
    if len(numbers) not in (2, 3):
        raise click.BadParameter(f"{text!r} has {len(numbers)} numbers; pass X,Y,Z (or X,Y in the plane).")
    if any(map(math.isnan, numbers)):
        raise click.BadParameter(f"{text!r} contains NaN; pass numbers.")
    return numbers


def finite_vector(text: str) -> Vector:
    """Return the numbers of a text; raise for an infinite one."""
    numbers = vector(text)
    if not all(map(math.isfinite, numbers)):
        raise click.BadParameter(f"{text!r} is not finite; pass numbers in the range of float64.")
    return numbers


class InputError(click.ClickException):
    """An error in the input: one line on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: IO[str] | None = None) -> None:
        """Print the line."""
        click.echo(f"raybox: {printable(self.message)}", err=True)


class Commands(click.Group):
    """The group of commands; errors end as one line on stderr and an exit code."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line, with characters that the console lacks shown as escapes.

        Patterns such as ``*.csv`` are expanded by the commands, so that they work alike on every system.
        """
        kwargs.setdefault("windows_expand_args", False)
        for stream in (sys.stdout, sys.stderr):
            if getattr(stream, "errors", "") == "strict" and hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command, and flush its output."""
        try:
            with interruptible():
                result = super().invoke(ctx)
            sys.stdout.flush()
        except RayboxError as error:
            if verbosity(ctx) >= VERBOSE:
                lines = "".join(traceback.format_exception(error)).split("\n")
                click.echo("\n".join(map(printable, lines)), err=True, nl=False)
            raise InputError(in_command_words(without_folder(str(error), ctx), self._options(ctx))) from error
        except click.UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # prints the help, with click >= 8.2
                raise
            raise _in_one_line(error) from error
        except MemoryError as error:
            raise InputError(
                "not enough memory; pass a smaller file, or for cast a smaller --chunk"
            ) from error
        except KeyboardInterrupt:
            _stop(ctx)
        except RuntimeError as error:
            # Python raises this for Ctrl-C while it creates a class, during an import.
            if not isinstance(error.__cause__, KeyboardInterrupt):
                raise
            _stop(ctx)
        except BrokenPipeError:
            # The reader of the output has closed it (| head). Python would fail again when it closes stdout.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(0)
        except OSError as error:
            raise InputError(without_folder(_os_text(error), ctx)) from error
        return result

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the arguments before the name of a command."""
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            if type(error).__name__ == "NoArgsIsHelpError":  # prints the help, with click >= 8.2
                raise
            raise _in_one_line(error) from error

    def _options(self, ctx: click.Context) -> frozenset[str]:
        """Return the options of the command that is run."""
        command = self.commands[ctx.invoked_subcommand or ""]
        return frozenset(name for param in command.params for name in param.opts)


def _in_one_line(error: click.UsageError) -> InputError:
    """Return an error of use in the style of all others."""
    path = error.ctx.command_path if error.ctx else "raybox"
    text = " ".join(error.format_message().split())
    return InputError(f"{text}{'' if text.endswith(('.', '?', '!')) else '.'} See {path} --help.")


def _os_text(error: OSError) -> str:
    """Return the file of an error of the system, and its reason."""
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}; check the path, its permissions and the room on the disk"


def _stop(ctx: click.Context) -> None:
    click.echo("raybox: stopped", err=True)
    # After an interrupt in exec() (which creates named tuples), `python -m raybox` would still end by the
    # signal: CPython stores how the last exec() ended, and this one ends without it.
    exec("")
    ctx.exit(130)


def as_json(value: object) -> str:
    """Return strict JSON on one line; NaN and infinity become null."""
    is_unicode = (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
    text = json.dumps(_plain(value), allow_nan=False, ensure_ascii=not is_unicode)
    return text if text.isprintable() else _UNPRINTABLE.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    return found[0] if found[0].isprintable() else json.dumps(found[0])[1:-1]


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(header: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """Return rows as aligned columns: numbers to the right, text, made printable, to the left."""
    texts = [
        [number(cell) if isinstance(cell, float) else printable(str(cell)) for cell in row] for row in rows
    ]
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
    """Return a float with so many significant digits."""
    return f"{value:.{digits}g}"
