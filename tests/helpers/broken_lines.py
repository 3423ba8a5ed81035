"""Lines of src that are broken one at a time, to see that tests notice: the lists of tests/broken.

`python tests/helpers/broken_lines.py [PART OF A LINE'S PATH ...]` breaks each in a copy of src and runs the
test that its list names; it prints which ones go unnoticed, and exits with status 1 if there is any. It needs
Numba, as compiled code is broken, too.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class BrokenLine(NamedTuple):
    """A text that stands once in a file of src, what is written in its place, and the test that fails."""

    file: str  # below src/raybox
    text: str
    becomes: str
    test: str  # below tests


def broken_lines() -> list[BrokenLine]:
    """Return what all lists hold."""
    lists = sorted((ROOT / "tests" / "broken").glob("*.toml"))
    return [BrokenLine(**one) for path in lists for one in tomllib.loads(path.read_text())["broken"]]


def is_noticed(one: BrokenLine, folder: Path) -> bool:
    """Return whether the test fails, in a copy of the tree, when the line is broken."""
    path = folder / "src" / "raybox" / one.file
    whole = path.read_text()
    path.write_text(whole.replace(one.text, one.becomes))
    variables = os.environ | {"PYTHONPATH": str(folder / "src"), "RAYBOX_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--long", "-n0", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"tests/{one.test}"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    path.write_text(whole)
    if done.returncode not in (0, 1):  # 1: a test failed
        raise RuntimeError(f"pytest could not run {one.test}:\n{done.stdout}{done.stderr}")
    return done.returncode == 1


def main(parts: list[str]) -> int:
    """Print which lines no test notices; return the exit status."""
    chosen = [one for one in broken_lines() if not parts or any(part in one.file for part in parts)]
    unnoticed, stored = 0, os.environ.get("RAYBOX_CACHE_DIR")
    with tempfile.TemporaryDirectory() as name:
        if stored and Path(stored).is_dir():  # what is not broken is not compiled anew
            shutil.copytree(stored, Path(name) / "cache")
        for each in ("src", "tests", "docs", "benchmarks", "conftest.py", "pyproject.toml", "README.md"):
            whole = ROOT / each
            (shutil.copytree if whole.is_dir() else shutil.copy)(whole, Path(name) / each)
        for number, one in enumerate(chosen, start=1):
            noticed = is_noticed(one, Path(name))
            unnoticed += not noticed
            print(f"{number}/{len(chosen)} {'noticed' if noticed else 'UNNOTICED'}: {one.file}: {one.text!r}")
    return int(unnoticed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
