"""What is said about the sources: the drawing of the layers, names of files, and who imports Numba."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

pytestmark = pytest.mark.core

ROOT = Path(__file__).parents[1]
PACKAGE, TESTS = ROOT / "src" / "raybox", ROOT / "tests"
PAGES = ("docs/architecture.md", "docs/change.md", "docs/numerics.md", "CONTRIBUTING.md")


def test_the_drawing_of_the_layers_is_the_contract():
    drawing = re.search(r"## The layers.*?```text\n(.*?)```", (ROOT / PAGES[0]).read_text(), re.DOTALL)
    drawn = [re.split(r"  +", line)[0] for line in drawing[1].splitlines()]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    assert drawn == contract[0]["layers"]
    packages = {name for layer in drawn for name in layer.split(" | ")}
    there = {
        path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert there == packages | {"__init__", "__main__"}


def test_tests_are_laid_out_as_the_sources_are():
    """In folders of the same names; files that hold no tests are in one folder of their own."""
    files = {path.relative_to(TESTS) for path in TESTS.rglob("*.py")}
    assert {file.parts[0] for file in files if len(file.parts) > 1} <= {
        "helpers",
        *(path.name for path in PACKAGE.iterdir()),
    }
    assert all(file.name.startswith("test_") != (file.parts[0] == "helpers") for file in files)


def test_the_core_has_tests_of_each_layer():
    folders = {path for path in TESTS.iterdir() if any(path.glob("test_*.py"))}
    core = {file.parent for file in TESTS.rglob("test_*.py") if "pytest.mark.core" in file.read_text()}
    assert folders <= core


@pytest.mark.parametrize("page", PAGES)
def test_files_that_pages_name_exist(page):
    """By a path from the root or from the package, or as the neighbour of the file named before."""
    folder, missing, count = PACKAGE, [], 0
    for name in re.findall(r"`([\w/.]+\.py|[\w/]+/)`", (ROOT / page).read_text()):
        if "NAME" in name or "sphere" in name:
            continue
        found = [base / name for base in (ROOT, PACKAGE, folder) if (base / name).exists()]
        missing += [] if found else [name]
        folder = next((path if path.is_dir() else path.parent for path in found), folder)
        count += 1
    assert not missing
    assert count > 5


def imported(path):
    """What a file imports from Numba and llvmlite: modules, and names from modules as "module.name"."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)  # numba.core, as an attribute of what is imported


def test_only_the_compiler_names_numba():
    """`compiler/jit/`, and what vector code is written with: elsewhere no library of kernels needs Numba."""
    allowed = {"compiler/llvm_ir.py", "compiler/target.py"}
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if any(name.split(".")[0] in {"numba", "llvmlite"} for name in imported(path))
    }
    assert {name for name in found if not name.startswith("compiler/jit/")} == allowed
