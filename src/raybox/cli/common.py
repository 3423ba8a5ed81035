"""Shared by the commands: vectors on the command line, one-line errors, Ctrl-C, tables, JSON.

Ctrl-C ends a command at any point, though C code that Python calls may drop it, or turn it into another
error.
"""

import _thread
import json
import math
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, cast

import click

from raybox.errors import RayboxError


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C raise ``KeyboardInterrupt`` within this context.

    It is raised again where an import or a callback would lose it. Where SIGINT is ignored, or outside the
    main thread, nothing changes.
    """
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if handler is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupt = _Interrupt()
    signal.signal(signal.SIGINT, interrupt.handle)
    sys.unraisablehook = interrupt.unraisable
    try:
        yield
    except KeyboardInterrupt as raised:
        # Half-made LLVM objects fail in __del__: delete them here, where such errors are not printed.
        traceback.clear_frames(raised.__traceback__)
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook


class _Interrupt:
    """The handlers of Ctrl-C, and whether it was raised."""

    def __init__(self) -> None:
        self.hook = sys.unraisablehook
        self.raised = False

    def handle(self, _: int, frame: FrameType | None) -> None:
        """Raise it; during an import, send it again later: C modules may lose it."""
        if _is_importing(frame):
            _send_again()
            return
        self.raised = True
        raise KeyboardInterrupt

    def unraisable(self, what: Any) -> None:
        """Send it again if a callback lost it, as Numba's do while it loads code."""
        if issubclass(what.exc_type, KeyboardInterrupt):
            _send_again()
        elif not self.raised:
            self.hook(what)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _interrupt_main() -> None:
    """Send Ctrl-C to the main thread: as a signal where there is one, which ends a wait in C code, too."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(cast(int, threading.main_thread().ident), signal.SIGINT)
    else:
        _thread.interrupt_main()


def _send_again() -> None:
    timer = threading.Timer(0.01, _interrupt_main)
    timer.daemon = True
    timer.start()


if TYPE_CHECKING:
    from raybox.geometry import Boxes, Grid, Invalid, Mesh, Rays

Vector = tuple[float, ...]


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
    return numbers


class InputError(click.ClickException):
    """An error in the input: one line on stderr, exit code 2."""

    exit_code = 2

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"raybox: {self.message}", err=True)


class Commands(click.Group):
    """The group of commands; errors end as one line on stderr and an exit code."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run the command line, with characters that the console lacks shown as escapes."""
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
            raise InputError(" ".join(str(error).split())) from error
        except MemoryError as error:
            raise InputError("not enough memory; cast fewer rays at a time") from error
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
        return result


def _stop(ctx: click.Context) -> None:
    click.echo("raybox: stopped", err=True)
    # After an interrupt in exec() (which creates named tuples), `python -m raybox` would still end by the
    # signal: CPython stores how the last exec() ended, and this one ends without it.
    exec("")
    ctx.exit(130)


def scene_options(command: Callable[..., Any]) -> Callable[..., Any]:
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


def load_scene(path: str, boxes: bool, grid: bool) -> "tuple[Boxes | Grid | Mesh, list[str] | None]":
    """Return a scene's geometry read from a file, and the ids of its rows."""
    from raybox.io.formats import load_grid, read

    check_scene_options(boxes, grid)
    if grid:
        return load_grid(path), None
    loaded = read(path, kind="scene", boxes=boxes)
    return cast("Boxes | Mesh", loaded.geometry), loaded.ids


def load_rays(path: str, origin: Vector | None, invalid: "Invalid") -> "Rays":
    """Return rays read from a file, or made from its points."""
    from raybox.io.formats import load

    return load(path, kind="rays", origin=origin, invalid=invalid)


def announce_compiling() -> None:
    """Print one line to stderr when Numba first compiles, which takes seconds."""
    from raybox.compiler.compile_events import on_first_compilation

    line = "raybox: compiling kernels for this machine (once, about 10 s) ..."
    on_first_compilation(lambda: click.echo(line, err=True))


def as_json(value: Any) -> str:
    """Return strict JSON on one line; NaN and infinity become null."""
    is_unicode = (getattr(sys.stdout, "encoding", None) or "").lower().startswith("utf")
    return json.dumps(_plain(value), allow_nan=False, ensure_ascii=not is_unicode)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return rows as aligned columns: numbers to the right, text to the left."""
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
    """Return a float with so many significant digits."""
    return f"{value:.{digits}g}"
