"""Inputs of commands: files, patterns that match files, and stdin."""

import glob
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
from click.shell_completion import CompletionItem

STDIN = "-"
_KEY = "raybox.stdin"


class TableChoice(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A name of a table, which is imported where it is needed: help and other commands do without."""

    def __init__(self, name: str, names: Callable[[], Sequence[str]]) -> None:
        self.name, self._names = name, names

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; fail if the table has no such."""
        return click.Choice(self._names()).convert(value, param, ctx)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return the names that begin so."""
        return click.Choice(self._names()).shell_complete(ctx, param, incomplete)


def format_names() -> list[str]:
    """Return the names of formats of one file."""
    from raybox.io.formats import FORMATS

    return [name[1:] for name, form in FORMATS.items() if not form.is_folder]


format_option = click.option(
    "--format",
    "format_",
    type=TableChoice("format", format_names),
    metavar="NAME",
    help="The format of stdin, such as csv. [default: by its first bytes]",
)


def input_files(given: Iterable[str], format_: str | None = None, others: Sequence[str] = ()) -> list[str]:
    """Return the files that arguments name, in their order; those of a pattern sorted.

    Stdin, given as ``-``, becomes a file for the time of the command. `others` are further arguments of the
    command, of which none may be ``-``, too.
    """
    given = list(given)
    if [*given, *others].count(STDIN) > 1:
        raise click.UsageError("- stands for stdin, which can be read once. Give the other as a file.")
    return [path for name in given for path in _files(name, format_)]


def check_format(format_: str | None, *given: str) -> None:
    """Raise if ``--format`` is given, but nothing is read from stdin."""
    if format_ and STDIN not in given:
        raise click.UsageError("--format is for stdin (-): a file's extension gives its format.")


def _files(name: str, format_: str | None) -> list[str]:
    if name == STDIN:
        return [_stdin_file(format_)]
    if not glob.has_magic(name) or Path(name).exists():
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise click.UsageError(f"No file matches {name}. Check the folder and the pattern.")
    return found


def _stdin_file(format_: str | None) -> str:
    """Return a temporary file with all of stdin: formats such as Parquet are not read in one pass."""
    from raybox.io.formats.table import extension_of

    ctx = click.get_current_context()
    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="raybox-"))
    ctx.meta[_KEY] = folder
    stdin = sys.stdin.buffer
    head = stdin.read(64)
    path = Path(folder) / f"stdin{f'.{format_}' if format_ else extension_of(head) or '.csv'}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(stdin, file, 1 << 20)
    return str(path)


def shown(paths: Iterable[str]) -> str | list[str]:
    """Return the name of a file for people and programs: ``-`` for stdin; a list of several."""
    names = [STDIN if _is_stdin(path) else path for path in paths]
    return names[0] if len(names) == 1 else names


def _is_stdin(path: str) -> bool:
    folder = click.get_current_context().meta.get(_KEY)
    return folder is not None and Path(path).parent == Path(folder)


def without_folder(text: str, ctx: click.Context) -> str:
    """Return an error text on one line, without the folder of the file that holds stdin."""
    folder = ctx.meta.get(_KEY)
    text = " ".join(text.split())
    return text.replace(str(Path(folder, "_"))[:-1], "") if folder else text
