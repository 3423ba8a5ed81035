"""The commands of raybox, run in this process."""

import csv
import io

from click.testing import CliRunner, Result

from raybox.cli import main


def raybox(*arguments, code=0, stdin=None) -> Result:
    """Run a command, check its exit code, and return its result; other exceptions are raised."""
    done = CliRunner().invoke(main, list(map(str, arguments)), prog_name="raybox", input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == code, done.output
    return done


def cast(*arguments, **how) -> list[dict[str, str]]:
    """Return the rows that `raybox cast` writes to stdout."""
    return list(csv.DictReader(io.StringIO(raybox("cast", *arguments, "-o", "-", **how).stdout)))
