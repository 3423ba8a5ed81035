"""Ctrl-C ends a command as one line and exit code 130, wherever it falls."""

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

CAST = "cast", "boxes.csv", "rays.npz", "-o", "out.csv", "--query", "all"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """Work in a folder with a scene and rays in it."""
    monkeypatch.chdir(tmp_path)
    rb.save("boxes.csv", BOXES, ids=IDS)
    rb.save("rays.npz", RAYS)
    return tmp_path


def test_in_a_question(folder, monkeypatch):
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
    while not Path("out.csv.raybox-part").exists() and running.poll() is None:
        time.sleep(0.001)
    running.send_signal(signal.SIGINT)
    said = running.communicate(timeout=60)[1]
    assert (running.returncode, said.splitlines()[-1]) == (130, "raybox: stopped")
    left = {path.name for path in folder.iterdir()}
    assert left - {"out.csv.raybox-part"} == {"boxes.csv", "rays.npz"}  # left if there is what to go on with


# What the thread of the command does; `stop()` is Ctrl-C.
FALLS = {
    "code made of text, as named tuples are": "exec('stop()')",
    "a callback, where Python forgets it": "ctypes.CFUNCTYPE(None)(stop)()\ntime.sleep(30)",
    "an import that forgets it": "import careless\ntime.sleep(30)",
    "objects that complain of it": "left = HalfMade()\nstop()",
}
PROCESS = """
import ctypes, signal, sys, time
from raybox.cli import main
from raybox.io import chunked

def stop():
    signal.raise_signal(signal.SIGINT)
    time.sleep(0)

class HalfMade:
    def __del__(self):
        self.made

usual = chunked.cast
def cast(*given, **options):
{}
    return usual(*given, **options)

if __name__ == "__main__":
    chunked.cast = cast
{}
    main()
"""
CARELESS = """
try:
    from process import stop
    stop()
except BaseException:
    pass
"""


def in_a_process(casting, before="pass"):
    """Run a command whose casting does this first."""
    Path("careless.py").write_text(CARELESS)
    Path("process.py").write_text(PROCESS.format(indent(casting, "    "), indent(before, "    ")))
    return subprocess.run(
        [sys.executable, "-m", "process", *CAST], check=False, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("casting", FALLS.values(), ids=FALLS)
def test_where_it_falls(casting):
    done = in_a_process(casting)
    assert (done.returncode, done.stderr) == (130, "raybox: stopped\n")


def test_where_it_is_ignored():
    """As in the background of a script."""
    done = in_a_process("stop()", before="signal.signal(signal.SIGINT, signal.SIG_IGN)")
    assert done.returncode == 0


def test_complaints_of_others_are_heard():
    done = in_a_process("HalfMade()")
    assert done.returncode == 0
    assert "object has no attribute 'made'" in done.stderr


@pytest.mark.parametrize("cause", [KeyboardInterrupt(), ValueError()])
def test_in_the_midst_of_an_import(monkeypatch, cause):
    class Named:
        def __set_name__(self, owner, name):
            raise cause

    def imported(self, *_, **__):
        return type("Made", (), {"named": Named()})

    monkeypatch.setattr(rb.Scene, "all", imported)
    done = CliRunner().invoke(main, CAST)
    if isinstance(cause, KeyboardInterrupt):
        assert (done.exit_code, done.output) == (130, "raybox: stopped\n")
    else:
        assert isinstance(done.exception, RuntimeError | ValueError)


def test_a_process_is_left_as_it_was():
    before = signal.getsignal(signal.SIGINT), sys.unraisablehook
    assert CliRunner().invoke(main, CAST).exit_code == 0
    assert (signal.getsignal(signal.SIGINT), sys.unraisablehook) == before
