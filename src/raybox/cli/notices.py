"""What a command prints on stderr beside errors: nothing with ``-q``, more with ``-v``."""

from typing import Any

import click

from raybox._version import __version__
from raybox.compiler.jit.bar import hidden
from raybox.errors import printable

QUIET, USUAL, VERBOSE = -1, 0, 1
_KEY = "raybox.verbosity"


def _set(level: int) -> Any:
    def store(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if not value:
            return
        if ctx.meta.get(_KEY, level) != level:
            raise click.UsageError("Pass -q or -v, not both.")
        ctx.meta[_KEY] = level
        if level == QUIET:
            ctx.with_resource(hidden())

    return store


def add_verbosity_options(command: click.Command) -> None:
    """Add ``-q`` and ``-v`` to a command."""
    quiet, verbose = "Print nothing on stderr but errors.", "Print versions, times and tracebacks on stderr."
    for names, level, text in (
        (["-q", "--quiet"], QUIET, quiet),
        (["-v", "--verbose"], VERBOSE, verbose),
    ):
        command.params.append(
            click.Option(names, is_flag=True, expose_value=False, help=text, callback=_set(level))
        )


def verbosity(ctx: click.Context | None = None) -> int:
    """Return the level that the options of the running command set."""
    ctx = ctx or click.get_current_context(silent=True)
    return USUAL if ctx is None else int(ctx.meta.get(_KEY, USUAL))


def notice(text: str, level: int = USUAL) -> None:
    """Print a line on stderr, unless the command is to print less."""
    if verbosity() >= level:
        click.echo(f"raybox: {printable(text)}", err=True)


def print_versions() -> None:
    """Print versions, and where machine code comes from, on stderr with ``-v``."""
    import platform

    import numpy

    from raybox.compiler.library import code_source

    versions = f"Python {platform.python_version()}, NumPy {numpy.__version__}"
    notice(f"{__version__}, {versions}; {code_source()}", VERBOSE)
