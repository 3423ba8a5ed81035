"""Names in files cannot control a terminal: control characters are shown as escapes."""

import json
import os
import subprocess
import sys
import unicodedata

import pytest
from click.testing import CliRunner

import raybox as rb
from raybox.cli import main

NAME = "a\x1b[31m\x07\x9b2J\x7f\u202e\u2028z é 猫"
SHOWN = r"a\x1b[31m\x07\x9b2J\x7f\u202e\u2028z é 猫"
FORBIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder of files with hostile names in them, and one with a hostile name."""
    monkeypatch.chdir(tmp_path)
    boxes = "min_x,min_y,min_z,max_x,max_y,max_z"
    rows = [f"{k},-1,0,{k + 1},1,2,{NAME}{k},{NAME}{k % 2}\n" for k in range(4)]
    (tmp_path / "boxes.csv").write_text(f"{boxes},id,kind\n" + "".join(rows))
    (tmp_path / "rays.csv").write_text(
        "origin_x,origin_y,origin_z,direction_x,direction_y,direction_z\n-1,0,1,1,0,0\n"
    )
    (tmp_path / "part.obj").write_text(f"o {NAME}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n", newline="\n")
    (tmp_path / "bad.obj").write_text(f"o x\nv 0 0 {NAME}\n", newline="\n")
    (tmp_path / "bad\x1b]0;.csv").write_text("nothing\n")
    (tmp_path / "flat\x1b.csv").write_text("min_x,min_y,max_x,max_y\n0,0,1,1\n")
    return tmp_path


def assert_plain(text):
    found = {c for c in text if c != "\n" and unicodedata.category(c) in FORBIDDEN}
    assert not found, sorted(found)


CALLS = {
    "pick boxes.csv --origin -1,0,1 --direction 1,0,0": 0,
    "pick part.obj --boxes --origin .25,.25,-1 --direction 0,0,1": 0,
    "info boxes.csv": 0,
    "info boxes.csv --json": 0,
    "pick boxes.csv --origin -1,0,1 --direction 1,0,0 --json": 0,
    "info bad.obj": 2,
    "info bad.obj -v": 2,
    "info bad\x1b]0;.csv": 2,
    "info lost\x1b.csv": 2,
    "info x\x1b*.csv": 2,
    "info part.obj --kind \x1bx": 2,
    "pick flat\x1b.csv --origin 0,0,0 --direction 1,0,0": 2,
    "cast boxes.csv rays.csv -o o.csv --carry \x1b[2J": 2,
    "cast boxes.csv rays.csv -o \x9b.csv -v": 0,
    "explain --origin 0,0,0 --direction 1,0,0 --grid \x1b.npy": 2,
    "view \x1b.csv": 2,
}


@pytest.mark.parametrize("call", CALLS)
def test_output_has_no_control_characters(folder, call):
    done = CliRunner().invoke(main, call.split(), prog_name="raybox")
    assert done.exit_code == CALLS[call], done.output
    assert_plain(done.output)
    assert "\\x1b" in done.output or "\\u001b" in done.output or "\\x9b" in done.output


def test_names_are_whole_but_for_escapes(folder):
    def out(*call):
        return CliRunner().invoke(main, call, prog_name="raybox").stdout

    ray = "--origin", "-1,0,1", "--direction", "1,0,0"
    assert f"0  {SHOWN}0" in out("pick", "boxes.csv", *ray)
    assert f"{SHOWN}0 2, {SHOWN}1 2" in out("info", "boxes.csv")
    hits = json.loads(out("pick", "boxes.csv", *ray, "--json"))["hits"]
    assert hits[0]["id"] == f"{NAME}0"
    assert json.loads(out("info", "boxes.csv", "--json"))["ids"][0] == f"{NAME}0"


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="no terminals of this kind here")
@pytest.mark.parametrize("terminal", [True, False])
def test_rows_on_stdout_are_escaped_on_a_terminal_alone(folder, terminal):
    reading, writing = os.openpty() if terminal else os.pipe()
    command = [sys.executable, "-m", "raybox", "cast", "boxes.csv", "rays.csv", "-q"]
    command += ["-o", "-", "--query", "all"]
    subprocess.run(command, stdout=writing, check=True, env=os.environ | {"PYTHONUTF8": "1"})
    os.close(writing)
    found = os.read(reading, 1 << 16).decode()
    os.close(reading)
    assert f"0,0,{SHOWN if terminal else NAME}0," in found
    assert found.count("\n") == 5


@pytest.mark.parametrize("error", [rb.RayboxError, rb.InvalidInput, rb.FileFormatError])
def test_errors_in_python_are_printable(error, folder):
    assert str(error(f"{NAME}: no")) == f"{SHOWN}: no"
    assert error(NAME).args == (NAME,)
    with pytest.raises(FileNotFoundError, match=r"lost\\x1b\.csv"):
        rb.load("lost\x1b.csv")
