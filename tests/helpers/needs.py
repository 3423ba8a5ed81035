"""What some tests need beside the extra `test`: without it they are skipped, and the reason names it."""

import re
import shutil
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).parents[2] / "pyproject.toml"


def package(name: str) -> ModuleType:
    """Import a package, or skip the test or the file."""
    __tracebackhide__ = True  # a skip is reported at the line of the caller
    return pytest.importorskip(
        name, reason=f"needs {_extra_of(name.partition('.')[0])}", exc_type=ImportError
    )


def c_compiler() -> None:
    """Skip the test where no C compiler is found; on Windows, packages bring theirs."""
    __tracebackhide__ = True
    if sys.platform != "win32" and shutil.which("cc") is None:
        pytest.skip("needs a C compiler")


def _extra_of(name: str) -> str:
    """Return the extra that lists a package, or the package if none does."""
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    listing = (
        extra
        for extra, requirements in extras.items()
        if name in {re.match(r"[\w-]+", one)[0] for one in requirements}
    )
    return next((f"raybox[{extra}]" for extra in listing), name)
