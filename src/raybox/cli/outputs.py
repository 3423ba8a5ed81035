"""Outputs of commands: existing files are replaced only with ``--force``."""

from pathlib import Path

import click

from raybox.cli.common import InputError

force_option = click.option("--force", is_flag=True, help="Replace output files that exist.")


def check_new(*paths: str | Path, force: bool) -> None:
    """Raise, before any work, if an output file exists, unless it is to be replaced."""
    existing = [str(path) for path in paths if not force and Path(path).is_file()]
    if existing:
        verb = "exists" if len(existing) == 1 else "exist"
        raise InputError(f"{' and '.join(existing)} {verb} already; pass --force to replace, or another name")
