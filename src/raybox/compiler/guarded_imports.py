"""Modules of raybox are imported in the default floating-point environment, whatever the caller's is.

Modules compute constants, and kernels are compiled with them. Python rounds literals in the modes of the
thread that compiles a module, and stores the byte code.
"""

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType

from raybox.compiler.float_environment import in_default_environment

_PREFIX = "raybox."


class _Finder:
    """A finder of modules that guards their loaders."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of raybox; None for any other."""
        if not name.startswith(_PREFIX):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            guarded = in_default_environment(spec.loader.exec_module)
            spec.loader.exec_module = guarded  # type: ignore[method-assign]
        return spec


def guard_imports() -> None:
    """Guard all later imports of modules of raybox."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
