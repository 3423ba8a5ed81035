"""Outputs of commands: existing files are replaced only with ``--force``."""

import sys
from codecs import getincrementaldecoder
from collections.abc import Iterable
from io import BufferedIOBase
from pathlib import Path
from typing import BinaryIO, cast

import click

from raybox.cli.common import InputError
from raybox.errors import printable

force_option = click.option("--force", is_flag=True, help="Replace output files that exist.")


def check_new(*paths: str | Path, force: bool) -> None:
    """Raise, before any work, if an output cannot be written, or exists and is not to be replaced."""
    for path in map(Path, paths):
        if path.is_dir():
            raise InputError(f"{path}: cannot be written: it is a folder; pass the name of a file")
        if not path.parent.is_dir():
            raise InputError(f"{path}: cannot be written: there is no folder {path.parent}; make it first")
    existing = [str(path) for path in paths if not force and Path(path).is_file()]
    if existing:
        verb = "exists" if len(existing) == 1 else "exist"
        raise InputError(f"{' and '.join(existing)} {verb} already; pass --force to replace, or another name")


def check_no_input(out: str | Path, inputs: Iterable[str]) -> None:
    """Raise, before any work, if an output is also an input, whatever ``--force`` says."""
    from raybox.casting.call import overwrites

    for given in inputs:
        if overwrites(Path(out), Path(given)):
            raise click.UsageError(f"{out} is also an input ({given}). Write the results to another file.")


def stdout() -> BinaryIO:
    """Return stdout for rows of text: on a terminal printable, else the very bytes."""
    return cast(BinaryIO, _Terminal() if sys.stdout.isatty() else sys.stdout.buffer)


class _Terminal(BufferedIOBase):
    """Stdout that shows characters which could control a terminal as escapes."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")("replace")

    def write(self, data: bytes) -> int:  # type: ignore[override]  # no other buffers
        lines = self._decoder.decode(data).split("\n")
        sys.stdout.write("\n".join(map(printable, lines)))
        return len(data)

    def flush(self) -> None:
        sys.stdout.flush()
