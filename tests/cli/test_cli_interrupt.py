"""Ctrl-C at any point ends a command with one line and exit code 130."""

import signal
import subprocess
import sys
import time
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from file_samples import BOXES, IDS, RAYS
from raybox.cli import main
from waiting import SECONDS

CAST = "cast", "boxes.csv", "rays.npz", "-o", "out.csv", "--query", "all"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Change to a folder that contains a scene and rays; fill the code cache, so that no test prints it."""
    monkeypatch.chdir(tmp_path)
    rb.save("boxes.csv", BOXES, ids=IDS)
    rb.save("rays.npz", RAYS)
    rb.Scene(BOXES).all(RAYS)
    return tmp_path


def test_in_a_query(folder, monkeypatch):
    def stop(self, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(rb.Scene, "all", stop)
    done = CliRunner().invoke(main, CAST)
    assert (done.exit_code, done.output) == (130, "raybox: stopped\n")
    assert not Path("out.csv").exists()


def test_in_a_process_of_its_own(folder):
    rays = np.random.default_rng(1).normal(size=(2, 400_000, 3))
    rb.save("rays.npz", rb.Rays(*rays))
    running = subprocess.Popen([sys.executable, "-m", "raybox", *CAST], stderr=subprocess.PIPE, text=True)
    while not Path("out.csv.raybox").exists() and running.poll() is None:
        time.sleep(0.001)
    running.send_signal(signal.SIGINT)
    output = running.communicate(timeout=SECONDS)[1]
    assert (running.returncode, output.splitlines()[-1]) == (130, "raybox: stopped")
    left = {path.name for path in folder.iterdir()}
    assert left - {"out.csv.raybox"} == {"boxes.csv", "rays.npz"}  # only if there is something to resume


# Code that the command's thread runs; `stop()` is Ctrl-C.
PLACES = {
    "exec, as in named tuples": "exec('stop()')",
    "a callback, where Python drops it": "ctypes.CFUNCTYPE(None)(stop)()\ntime.sleep(30)",
    "an import that drops it": "import interrupt_dropper\ntime.sleep(30)",
    "objects whose __del__ fails": "left = HalfMade()\nstop()",
}
PROCESS = """
import ctypes, signal, sys, time
from raybox.cli import main
from raybox import casting as casts

def stop():
    signal.raise_signal(signal.SIGINT)
    time.sleep(0)

class HalfMade:
    def __del__(self):
        self.made

cast_of_files = casts.cast
def cast(*given, **options):
{}
    return cast_of_files(*given, **options)

if __name__ == "__main__":
    casts.cast = cast
{}
    main()
"""
DROPPER = """
try:
    from process import stop
    stop()
except BaseException:
    pass
"""


def in_a_process(casting, before="pass"):
    """Return the result of a command whose cast first runs some code."""
    Path("interrupt_dropper.py").write_text(DROPPER)
    Path("process.py").write_text(PROCESS.format(indent(casting, "    "), indent(before, "    ")))
    return subprocess.run(
        [sys.executable, "-m", "process", *CAST], check=False, capture_output=True, text=True, timeout=SECONDS
    )


@pytest.mark.parametrize("casting", PLACES.values(), ids=PLACES)
def test_in_places_that_lose_it(casting):
    done = in_a_process(casting)
    assert (done.returncode, done.stderr) == (130, "raybox: stopped\n")


def test_where_it_is_ignored():
    """A script's background process ignores SIGINT."""
    done = in_a_process("stop()", before="signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert done.returncode == 0


def test_other_errors_in_del_are_printed():
    done = in_a_process("HalfMade()")
    assert done.returncode == 0
    assert "object has no attribute 'made'" in done.stderr


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), ValueError()])
def test_during_an_import(monkeypatch, cause):
    class Named:
        def __set_name__(self, owner, name):
            raise cause

    monkeypatch.setattr(rb.Scene, "all", lambda *_, **__: type("Made", (), {"named": Named()}))
    done = CliRunner().invoke(main, CAST)
    if isinstance(cause, KeyboardInterrupt):
        assert (done.exit_code, done.output) == (130, "raybox: stopped\n")
    else:
        assert isinstance(done.exception, RuntimeError | ValueError)


def test_handlers_are_restored():
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    assert CliRunner().invoke(main, CAST).exit_code == 0
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before
