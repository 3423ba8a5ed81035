"""The shell steps of the workflows: .ci/run or a test runs each that Linux can run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
TEST_OF_BYTES = "tests/kernels/test_kernel_build.py"
# A command of a step -> the file that runs it too, and how it stands there; None: this test runs it
RUN_BY = {
    ".ci/run": (".ci/run", "#!"),
    r"bash -c \"\$\(grep -m 1 -E '\^python3 -m venv \.\*pytest' README\.md\) -m core\"": (
        ".ci/run",
        'bash -c "${readme//.venv/.venv-ci} ',
    ),
    r"python \.ci/wheel (none|\S*levels\S*)": (".ci/run", ".ci/wheel --into "),
    r"python -m pip install (-e \.|\"\.\[test\]\")": ("README.md", '/bin/pip install -q -e "'),
    r"python -m raybox\.kernels\.build v3 --into twice --check": (
        TEST_OF_BYTES,
        '"raybox.kernels.build", LEVEL, "--into", str(tmp_path), "--check"',
    ),
    r"for wheel in dist/\*\.whl; do python -m pip install \"\$wheel\[test\]\"; done": (
        ".ci/run",
        '"${wheel[0]}[all,test,docs,lint,browser]"',
    ),
    r'if python -c "import numba"; then .* exit 1; fi': (".ci/run", 'python -c "import numba"'),
    "raybox demo": ("README.md", "\nraybox demo\n"),  # whose commands .ci/wheel runs
    "python -m pytest -m core tests": (".ci/run", "python -m pytest --long"),
    r"(RAYBOX_LEVEL=jit )?python tests/helpers/everything\.py --digests \S+": (
        ".ci/run",
        "tests/helpers/everything.py --digests",
    ),
    r'for file in digests-\*\.txt; do diff digests-jit\.txt "\$file"; done': (".ci/run", "\nstep cmp "),
    r'echo \S+ >> "\$GITHUB_PATH"': None,
    r'git config --global --add safe\.directory "\*"': None,
    r'echo "\S*matrix.numba\S*" > constraints\.txt': None,
    r"export PIP_CONSTRAINT=\S+ PIP_BUILD_CONSTRAINT=\S+": None,
}


def commands():
    """Return the lines of all shell steps."""
    yaml = pytest.importorskip("yaml")
    steps = [
        step
        for path in sorted(FOLDER.glob("*.yml"))
        for job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].values()
        for step in job["steps"]
    ]
    assert len(steps) > 20
    lines = [line for step in steps for line in step.get("run", "").splitlines()]
    return [re.sub(r"\$\{\{ *(.*?) *\}\}", r"${{\1}}", line) for line in lines]


def test_each_command_of_a_workflow_is_run_by_a_test_or_by_the_script():
    found = commands()
    rules = {line: [rule for rule in RUN_BY if re.fullmatch(rule, line)] for line in found}
    assert not [line for line, fitting in rules.items() if len(fitting) != 1], "add what runs them to RUN_BY"
    assert {rule for fitting in rules.values() for rule in fitting} == RUN_BY.keys(), (
        "remove those of no step"
    )
    for place in filter(None, RUN_BY.values()):
        assert place[1] in (ROOT / place[0]).read_text(encoding="utf-8"), place


@pytest.mark.skipif(sys.platform == "win32", reason="runs bash")
def test_commands_that_nothing_else_runs_succeed(tmp_path):
    alone = [rule for rule, place in RUN_BY.items() if place is None]
    lines = [line for line in commands() if any(re.fullmatch(rule, line) for rule in alone)]
    script = "\n".join(["set -euo pipefail", *lines]).replace("${{matrix.numba}}", "numba")
    env = os.environ | {"HOME": str(tmp_path), "GITHUB_PATH": str(tmp_path / "path")}
    subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, check=True)
    assert {path.name for path in tmp_path.iterdir()} == {"path", "constraints.txt", ".gitconfig"}
    assert (tmp_path / "constraints.txt").read_text() == "numba\n"
