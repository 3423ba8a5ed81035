"""Inputs of commands: files, patterns that match files, and stdin."""

import glob
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import click

STDIN = "-"
_KEY = "raybox.stdin"
FORMATS = (
    "csv",
    "npz",
    "npy",
    "parquet",
    "ply",
    "obj",
    "stl",
    "glb",
    "ifc",
    "json",
    "vox",
    "las",
    "laz",
    "pcd",
)
_FIRST_BYTES = {
    b"PK\x03\x04": "npz",
    b"\x93NUMPY": "npy",
    b"PAR1": "parquet",
    b"ply": "ply",
    b"glTF": "glb",
    b"ISO-10303-21": "ifc",
    b"VOX ": "vox",
    b"LASF": "laz",
    b"# .PCD": "pcd",
    b"{": "json",
}

format_option = click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
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
    ctx = click.get_current_context()
    folder = ctx.with_resource(tempfile.TemporaryDirectory(prefix="raybox-"))
    ctx.meta[_KEY] = folder
    stdin = sys.stdin.buffer
    head = stdin.read(64)
    path = Path(folder) / f"stdin.{format_ or _format_of(head)}"
    with path.open("wb") as file:
        file.write(head)
        shutil.copyfileobj(stdin, file, 1 << 20)
    return str(path)


def _format_of(head: bytes) -> str:
    return next((name for start, name in _FIRST_BYTES.items() if head.startswith(start)), "csv")


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
