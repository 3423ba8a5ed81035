"""The command ``raybox``: its subcommands; NumPy and Numba load only where they are needed."""

import click

from raybox._version import __version__
from raybox.cli.bench import bench
from raybox.cli.cast import cast
from raybox.cli.common import Commands
from raybox.cli.demo import demo
from raybox.cli.info import info
from raybox.cli.one_ray import explain, pick
from raybox.cli.view import view

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


@click.group(cls=Commands, context_settings=SETTINGS)
@click.version_option(__version__, prog_name="raybox")
def main() -> None:
    """Tell which boxes a ray meets, and where: exact, for one ray or millions.

    Answers go to stdout, everything else to stderr. Exit codes: 0 done, 2 wrong use or bad input,
    130 stopped by Ctrl-C.
    """


for _command in (demo, cast, pick, explain, view, info, bench):
    main.add_command(_command)
