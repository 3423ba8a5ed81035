"""Wheels: a pure one, which needs Numba; with `RAYBOX_KERNELS=native`, one with machine code.

`native` is the highest level of this machine's processor; `v2,v3,v4` are levels as docs/kernels.md has them.
Wheels that are built from a source distribution follow the environment too, and not its metadata.
"""

from __future__ import annotations

import os
import platform
import runpy
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

# What only the build of a platform wheel needs. Built with NumPy 2, `_calls` works with NumPy 1, too; on
# Windows, Zig links libraries, and Python's own compiler builds `_calls`.
_BUILD_ONLY = ["numpy>=2", "setuptools>=77", "ziglang>=0.13; sys_platform == 'win32'"]


def _levels() -> list[str]:
    """Return the levels of processors that a platform wheel is for; none for a pure wheel."""
    return os.environ.get("RAYBOX_KERNELS", "").replace(",", " ").split()


class Metadata(MetadataHookInterface):
    """Dependencies, which differ between wheels.

    Hatchling calls it for a field that metadata of a source distribution lack: so `scripts` is one.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the dynamic fields."""
        jit = [] if _levels() else metadata["optional-dependencies"]["jit"]
        metadata["dependencies"] = [*self.config["dependencies"], *jit]
        metadata["scripts"] = {"raybox": "raybox.cli:main"}


class Kernels(BuildHookInterface[Any]):
    """Libraries of kernels and the module `_calls`, built into a platform wheel."""

    @property
    def _jit(self) -> list[str]:
        jit: list[str] = self.metadata.core_raw_metadata["optional-dependencies"]["jit"]
        return jit

    def dependencies(self) -> list[str]:
        """Return what the build needs: it imports raybox, with all that raybox and its compiler need."""
        return [*self.metadata.core.dependencies, *self._jit, *_BUILD_ONLY] if _levels() else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build what the wheel holds besides Python; editable installs compile at the first call."""
        if not _levels():
            return
        if version == "editable":
            build_data["dependencies"] += self._jit
            return
        self._folder = TemporaryDirectory()
        folder, package = Path(self._folder.name), Path(self.root, "src", "raybox")
        # `_calls` first: it takes seconds, and shows whether there is a C compiler
        calls = runpy.run_path(str(package / "compiler" / "build_calls.py"))["build_calls"](folder)
        built = {calls: f"raybox/compiler/{calls.name}"}
        kernels = folder / "kernels"
        path = os.pathsep.join([str(package.parent), os.environ.get("PYTHONPATH", "")])  # pip isolates by it
        command = [sys.executable, "-m", "raybox.kernels.build", *_levels(), "--into", str(kernels)]
        subprocess.run(command, env=os.environ | {"PYTHONPATH": path.rstrip(os.pathsep)}, check=True)
        built |= {path: f"raybox/kernels/{path.name}" for path in sorted(kernels.iterdir())}
        build_data["force_include"] |= {str(path): name for path, name in built.items()}
        build_data["pure_python"], build_data["tag"] = False, _tag(calls.name)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was built."""
        if hasattr(self, "_folder"):
            self._folder.cleanup()


def _tag(calls: str) -> str:
    """Return the tag of a wheel with this file of `_calls`."""
    from packaging.tags import sys_tags

    first = next(sys_tags())
    python = "cp311-abi3" if "abi3" in calls or calls == "_calls.pyd" else f"{first.interpreter}-{first.abi}"
    system = sysconfig.get_platform()
    if system.startswith("macosx"):  # Python's own name says "universal2"
        machine = platform.machine()
        system = f"macosx_{'11_0' if machine == 'arm64' else '10_15'}_{machine}"
    return f"{python}-{system.replace('-', '_').replace('.', '_')}"
