"""The command ``raybox``: its subcommands; NumPy loads only where it is needed."""

import click

from raybox._version import __version__
from raybox.cli.bench import bench
from raybox.cli.cast import cast
from raybox.cli.common import Commands
from raybox.cli.demo import demo
from raybox.cli.info import info
from raybox.cli.join import join
from raybox.cli.notices import add_verbosity_options
from raybox.cli.one_ray import explain, pick
from raybox.cli.view import view

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Commands, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="raybox")
def main() -> None:
    """Compute which boxes rays hit, and where: exactly, for one ray or for a billion.

    Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 nothing hit (with --exit-status
    only), 2 wrong use or bad input, 130 stopped by Ctrl-C.
    """


for _command in (demo, cast, join, pick, explain, view, info, bench):
    # Docstrings are raw: the \b that keeps the lines of a paragraph apart is two characters in them.
    _command.help = (_command.help or "").replace("\\b\n", "\b\n")
    add_verbosity_options(_command)
    main.add_command(_command)
