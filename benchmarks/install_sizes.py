"""Measure what each extra downloads and installs, as a table in MB (10⁶ bytes).

``python benchmarks/install_sizes.py [--wheel RAYBOX.whl] [EXTRA ...]``; without a wheel, one is built from
this checkout. Each extra gets a virtual environment of its own, with raybox and what it always needs.
"""

import argparse
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
NOT_FOR_USERS = {"bench", "docs", "test", "dev"}


class Sizes(NamedTuple):
    """Bytes that come over the network, and that lie on disk: bytecode counts, pip does not."""

    download: int
    installed: int


def requirements() -> dict[str, list[str]]:
    """Return what each extra needs; "none" is what raybox always needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    core = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["dependencies"]
    extras = {n: r for n, r in project["project"]["optional-dependencies"].items() if n not in NOT_FOR_USERS}
    return {"none": core} | {name: core + _expanded(extras, name) for name in extras}


def _expanded(extras: dict[str, list[str]], name: str) -> list[str]:
    """Return the requirements of an extra; raybox[a,b] stands for those of a and of b."""
    found = []
    for requirement in extras[name]:
        own = re.fullmatch(r"raybox\[(.*)\]", requirement)
        found += [r for n in own[1].split(",") for r in _expanded(extras, n)] if own else [requirement]
    return found


def sizes(needed: list[str], wheel: Path) -> Sizes:
    """Install into a new virtual environment; return the sizes."""
    with tempfile.TemporaryDirectory() as name:
        archives, environment = Path(name, "archives"), Path(name, "environment")
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        before = _bytes(environment)
        pip = [environment / "bin" / "python", "-m", "pip", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "download", "-d", archives, *needed], check=True)
        subprocess.run([*pip, "install", "--no-index", "--find-links", archives, *needed], check=True)
        subprocess.run([*pip, "install", "--no-deps", wheel], check=True)
        return Sizes(_bytes(archives) + wheel.stat().st_size, _bytes(environment) - before)


def _bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if not path.is_dir())


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("extras", nargs="*", metavar="EXTRA", help="default: all")
    parser.add_argument("--wheel", type=Path, help="the wheel of raybox to install")
    options = parser.parse_args()
    needed = requirements()
    with tempfile.TemporaryDirectory() as name:
        if options.wheel is None:
            subprocess.run(
                [sys.executable, "-m", "pip", "-q", "wheel", "--no-deps", "-w", name, ROOT], check=True
            )
        wheel = options.wheel or next(Path(name).glob("*.whl"))
        print(f"raybox alone: {wheel.stat().st_size / 1e6:.1f} MB ({wheel.name})")
        print("| extra | download, MB | installed, MB |\n|---|---|---|", flush=True)
        for extra in options.extras or needed:
            found = sizes(needed[extra], wheel)
            print(f"| {extra} | {found.download / 1e6:.0f} | {found.installed / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
    main()
