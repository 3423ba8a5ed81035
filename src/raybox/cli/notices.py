"""What a command prints on stderr beside errors: nothing with ``-q``, more with ``-v``."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import click

from raybox._version import __version__
from raybox.errors import printable

QUIET, USUAL, VERBOSE = -1, 0, 1
_KEY = "raybox.verbosity"


def _set(level: int) -> Callable[[click.Context, click.Parameter, bool], None]:
    def store(ctx: click.Context, _: click.Parameter, value: bool) -> None:
        if not value:
            return
        if ctx.meta.get(_KEY, level) != level:
            raise click.UsageError("Pass -q or -v, not both.")
        ctx.meta[_KEY] = level

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
    """Print versions and the folder of compiled code on stderr; called with ``-v``."""
    import platform

    import numba
    import numpy

    from raybox.compiler.code_files import cache_folder

    versions = f"Python {platform.python_version()}, NumPy {numpy.__version__}, Numba {numba.__version__}"
    notice(f"{__version__}, {versions}; compiled code in {cache_folder()}", VERBOSE)


def announce_compiling() -> None:
    """Print a line on stderr when Numba first compiles, once per installation.

    With ``-v``, in every process that compiles.
    """
    level = verbosity()
    if level == QUIET:
        return
    if level == VERBOSE:
        print_versions()
    from raybox.compiler.compile_events import on_first_compilation

    line = "raybox: compiling for this machine, once: about 10 s for the first call of a query ..."

    def announce() -> None:
        if _is_first_time() or level == VERBOSE:
            click.echo(line, err=True)

    on_first_compilation(announce)


def _is_first_time() -> bool:
    """Return whether no process has announced it: a file beside the compiled code notes it.

    Without a folder for compiled code, every process compiles anew, and says so.
    """
    from raybox.compiler.code_files import cache_folder

    folder = cache_folder()
    if folder is None:
        return True
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return _create(folder / f"{__version__}.announced")


def _create(path: Path) -> bool:
    """Create an empty file; return False if it exists, True where it cannot be written."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    except OSError:
        return True
    return True
