"""Python in a process of its own."""

import os
import subprocess
import sys


def python(*arguments, cwd=None, timeout=None, **environment) -> "subprocess.CompletedProcess[str]":
    """Run Python with arguments and variables of the environment; return how it ended."""
    command, env = [sys.executable, *map(str, arguments)], os.environ | environment
    return subprocess.run(
        command, env=env, cwd=cwd, timeout=timeout, capture_output=True, text=True, check=False
    )


def output_of(*arguments, **environment) -> str:
    """Return what Python prints if it ends without an error."""
    done = python(*arguments, **environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
