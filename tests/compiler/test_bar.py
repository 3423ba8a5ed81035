"""The bar of compilations: on a terminal or in a notebook, after a second, and not with -q."""

import os
import subprocess
import sys
import types

import click
import pytest
from click.testing import CliRunner

from raybox.cli.notices import add_verbosity_options
from raybox.compiler.jit import bar

SCRIPT = """
import numpy as np, sys
from raybox.compiler.jit import bar, processes
from raybox.geometry.ray_blocks import copy_finite
bar.DELAY, processes.cores = DELAY, lambda: 1
BEFORE
print(*(copy_finite(np.zeros(3, kind), np.zeros(3), False) for kind in ("f4", "f8")))
"""


def on_terminal(tmp_path, delay, before=""):
    """Return what a script writes on a terminal while it compiles two kernels."""
    termios = pytest.importorskip("termios", reason="needs a terminal of POSIX")
    screen, terminal = os.openpty()
    termios.tcsetwinsize(terminal, (24, 80))
    script = SCRIPT.replace("= DELAY", f"= {delay}").replace("BEFORE", before)
    env = os.environ | {"RAYBOX_CACHE_DIR": str(tmp_path)}
    subprocess.run(
        [sys.executable, "-c", script], env=env, stdout=subprocess.PIPE, stderr=terminal, check=True
    )
    os.close(terminal)
    with open(screen, "rb", buffering=0) as file:
        return b"".join(iter(lambda: read_terminal(file), b"")).decode()


def read_terminal(file):
    """Return what was written, or nothing at the end, which is an error on Linux."""
    try:
        return file.read(1 << 16)
    except OSError:
        return b""


UNTIL_DRAWN = """
import threading, tqdm
from raybox.compiler.jit import compile as compiles
drawn, refresh, compiled = threading.Event(), tqdm.tqdm.refresh, compiles._compile
tqdm.tqdm.refresh = lambda *args, **how: (refresh(*args, **how), drawn.set())

def await_bar():  # the first bar drawn from now on may still have the counts from before
    for _ in range(2):
        drawn.clear()
        assert drawn.wait(60)

compiles._compile = lambda source: (await_bar(), compiled(source))[1]
"""


@pytest.mark.jit
def test_a_terminal_shows_how_many_kernels_are_compiled(tmp_path):
    written = on_terminal(tmp_path, 0.0, UNTIL_DRAWN)  # each lasts until its bar was drawn
    assert "compiling kernels, once: 0 of 1" in written
    assert "compiling kernels, once: 1 of 2" in written
    assert written.endswith("\r")
    assert not written.split("\r")[-2].strip()  # the line is removed
    assert on_terminal(tmp_path, 0.0) == ""  # all is stored


@pytest.mark.jit
def test_short_compilations_and_quiet_ones_show_nothing(tmp_path):
    assert on_terminal(tmp_path / "short", 1000.0) == ""
    assert on_terminal(tmp_path / "quiet", 0.0, "hidden = bar.hidden(); hidden.__enter__()") == ""


def test_a_terminal_and_a_notebook_show_it(monkeypatch):
    assert [shown_on(monkeypatch, stream) for stream in (None, Stream(False), Stream(True))] == [
        False,
        False,
        True,
    ]
    notebook = types.new_class("OutStream", (Stream,))
    notebook.__module__ = "ipykernel.iostream"
    assert shown_on(monkeypatch, notebook(False))


class Stream:
    def __init__(self, is_terminal):
        self.isatty = lambda: is_terminal


def shown_on(monkeypatch, stream):
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", stream)
        return bar.is_shown()


def test_q_hides_it_as_long_as_the_command_runs(monkeypatch):
    shown = []
    command = click.Command("any", callback=lambda: shown.append(shown_on(monkeypatch, Stream(True))))
    add_verbosity_options(command)
    for arguments in ([], ["-q"], ["-v"], ["--quiet"], []):
        assert CliRunner().invoke(command, arguments).exit_code == 0
    assert shown == [True, False, True, False, True]


def test_queries_that_compile_closely_after_each_other_share_their_second(monkeypatch):
    """The delay of a compilation is what those before it have left of the second."""
    now, delays = [100.0], []
    monkeypatch.setattr(bar.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(bar, "_SPENT", bar._Spent())
    monkeypatch.setattr(bar, "is_shown", lambda: True)
    monkeypatch.setattr(bar, "_draw", lambda _counts, _ended, delay: delays.append(delay))
    for pause, seconds in ((0.0, 0.25), (0.5, 0.5), (2.0, 0.25), (0.5, 3.0), (0.5, 0.0)):
        now[0] += pause
        with bar.shown(lambda: (0, 1)):
            now[0] += seconds
    assert delays == [1.0, 0.75, 1.0, 0.75, -2.25]
