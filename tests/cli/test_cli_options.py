"""Options that all commands share, outputs that exist, exit codes, messages and shell completion."""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import raybox as rb
from commands import raybox
from file_samples import BOXES, IDS, RAYS
from processes import python
from raybox.cli import main, messages
from streaming import fail_at

HIT = "--origin", "-1,0.5,0.5", "--direction", "2,0,0"
MISS = "--origin", "9,9,9", "--direction", "1,0,0"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Change to a folder with a scene and rays."""
    monkeypatch.chdir(tmp_path)
    rb.save("boxes.csv", BOXES, ids=IDS)
    rb.save("rays.csv", RAYS)
    rb.save("misses.csv", rb.Rays([[9, 9, 9]], [[1, 0, 0]]))
    return tmp_path


# Help


@pytest.mark.parametrize(
    ("option", "commands"),
    [
        ("-q, --quiet", ["demo", "cast", "pick", "explain", "view", "info", "bench", "join"]),
        ("-v, --verbose", ["demo", "cast", "pick", "explain", "view", "info", "bench", "join"]),
        ("--force", ["demo", "cast", "view", "bench", "join"]),
        ("--format NAME", ["cast", "pick", "view", "info", "join"]),
        ("--exit-status", ["cast", "pick", "join"]),
        ("--carry NAMES", ["cast"]),
        ("--group-column NAME", ["cast"]),
        ("--chunk N", ["cast"]),
        ("--layout NAMES", ["cast", "pick", "view", "info", "join"]),
        ("--invalid [raise|miss|skip]", ["cast", "pick", "view", "info", "join"]),
    ],
)
def test_help_lists_the_options(option, commands):
    for name in main.commands:
        listed = re.search(rf"^  {re.escape(option)} ", raybox(name, "--help").stdout, re.MULTILINE)
        assert bool(listed) == (name in commands), name


def test_help_fits_a_terminal_and_has_no_story_words():
    for name in main.commands:
        text = raybox(name, "--help").stdout
        assert max(map(len, text.splitlines())) <= 100
        assert not re.search(r"everyone|who is right|settles", text)


# Outputs that exist


def test_outputs_stay_without_force(folder):
    for path, command in {
        "out.csv": ("cast", "boxes.csv", "rays.csv", "-o", "out.csv"),
        "view.html": ("view", "boxes.csv", "--html", "view.html"),
        "raw.json": ("bench", "-o", "raw.json"),
        "depth.png": ("demo",),
    }.items():
        Path(path).write_text("mine")
        error = raybox(*command, code=2).stderr
        assert error == f"raybox: {path} exists already; pass --force to replace, or another name\n"
        assert Path(path).read_text() == "mine"
    raybox("cast", "boxes.csv", "rays.csv", "-o", "out.csv", "--force")
    assert Path("out.csv").read_text().startswith("ray,index,id")


def test_a_cast_goes_on_without_force(folder, monkeypatch):
    """Beside an old output, too: that was to be replaced by the command that was stopped."""
    command = "cast", "boxes.csv", "rays.csv", "-o", "out.csv", "--chunk", "1"
    raybox(*command, "--query", "count")
    with monkeypatch.context() as patch:
        fail_at(patch, 2, rb.RayboxError("stop"))
        raybox(*command, "--force", code=2)
    assert json.loads(raybox(*command, "--json").stdout)["resumed"] > 0
    assert Path("out.csv").read_text().startswith("ray,index,id")
    assert "exists already" in raybox(*command, code=2).stderr


# Exit codes


def test_exit_codes(folder):
    cast = "cast", "boxes.csv", "misses.csv", "--force", "-o", "o.csv"
    assert raybox("pick", "boxes.csv", *MISS).stdout == "the ray hits nothing\n"
    assert raybox("pick", "boxes.csv", *MISS, "--exit-status", code=1).stdout == "the ray hits nothing\n"
    raybox("pick", "boxes.csv", *HIT, "--exit-status")
    raybox(*cast)
    raybox(*cast, "--exit-status", code=1)
    assert json.loads(raybox(*cast, "--exit-status", "--json", code=1).stdout)["hit_count"] == 0
    raybox("cast", "boxes.csv", "rays.csv", "--force", "-o", "o.csv", "--exit-status")
    raybox("pick", "nowhere.csv", *HIT, "--exit-status", code=2)
    raybox("pick", "boxes.csv", code=2)


def test_exit_codes_of_processes(folder):
    for code, more in enumerate(([], ["--exit-status"], ["--nothing"])):
        assert python("-m", "raybox", "pick", "boxes.csv", *MISS, *more).returncode == code


# Quiet, verbose, colours


def test_quiet_prints_errors_only(folder):
    command = "cast", "boxes.csv", "rays.csv", "--force", "-o", "o.csv"
    assert raybox(*command).stderr.startswith("raybox: 4 rays into a scene of 3")
    assert raybox(*command, "-q").output == ""
    assert raybox("pick", "boxes.csv", *HIT, "--quiet").stdout == raybox("pick", "boxes.csv", *HIT).stdout
    assert raybox("pick", "no.csv", *HIT, "-q", code=2).stderr.startswith("raybox: no.csv: ")


def test_verbose_prints_more_on_stderr_only(folder):
    command = "cast", "boxes.csv", "rays.csv", "--force", "-o", "o.csv", "--json"
    done = raybox(*command, "-v")
    assert json.loads(done.stdout)["cast"] == 4
    assert rb.__version__ in done.stderr
    assert "kernels" in done.stderr
    assert "scene of 3 from 1 file\n" in done.stderr
    error = raybox("pick", "no.csv", *HIT, "-v", code=2).stderr
    assert "Traceback" in error
    assert error.splitlines()[-1].startswith("raybox: no.csv: ")


def test_no_escape_sequences_in_pipes(folder):
    for command in (("pick", "boxes.csv", *HIT), ("info", "boxes.csv"), ("pick", "no.csv", *HIT)):
        assert "\x1b" not in CliRunner().invoke(main, command).output


# Messages


def test_each_text_of_the_library_that_is_replaced_exists():
    """A text that was changed there would reach users in the words of Python."""
    package = Path(rb.__file__).parent
    sources = [path.read_text() for path in package.rglob("*.py") if path.name != "messages.py"]
    for text in messages._IN_COMMAND_WORDS:
        name, _, rest = text.partition(" ")
        # a name that the library fills in, such as workers or values, is not in the source
        assert any(
            text in source or (f"{{name}} {rest}" in source and name in source) for source in sources
        ), text


def test_an_unsupported_file_lists_the_extensions_of_its_argument(folder):
    for name in ("a.xyzzy", "b.xyzzy", "c.off"):
        Path(name).write_text("x")
    tables = ".npz .npy .csv .tsv .txt .xyz .bin .parquet .ply"
    scene = raybox("pick", "a.xyzzy", *HIT, code=2).stderr
    assert f"supported: {tables} .obj .stl .glb .gltf .ifc .jsonl .json .vox .zarr .scene\n" in scene
    rays = raybox("cast", "boxes.csv", "b.xyzzy", "-o", "-", code=2).stderr
    assert f"supported: {tables} .las .laz .pcd .zarr\n" in rays
    assert "'.off'; convert it by trimesh" in raybox("pick", "c.off", *HIT, code=2).stderr


# Shell completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell):
    code = "import sys; sys.argv[0] = 'raybox'; from raybox.cli import main; main(prog_name='raybox')"
    done = python("-c", code, _RAYBOX_COMPLETE=f"{shell}_source")
    if shell == "bash" and "Shell completion is not supported" in done.stderr:
        pytest.skip("an old bash")
    assert "_RAYBOX_COMPLETE" in done.stdout
    assert "raybox" in done.stdout


def test_completion_of_commands_options_and_queries():
    def completed(words, cword):
        named = {"_RAYBOX_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(cword)}
        done = python("-c", "from raybox.cli import main; main(prog_name='raybox')", **named)
        return {line.partition(",")[2] for line in done.stdout.splitlines()}

    assert {"cast", "pick", "info"} <= completed("raybox ", 1)
    assert "--exit-status" in completed("raybox pick --exit", 2)
    assert completed("raybox cast --query n", 3) == {"nearest"}
