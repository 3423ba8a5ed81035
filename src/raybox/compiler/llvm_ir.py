"""llvmlite's module `ir`, with which vector code is written, and Numba's helpers for it.

Only the compiler runs vector code. Where llvmlite is not installed, constants of the modules that hold it are
placeholders, and nothing uses them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["binding", "cgutils", "ir"]


class _Later:
    """A module that is imported when one of its names is used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)  # tools look for these, and need no import
        return getattr(import_module(self._name), name)


class _Placeholder:
    """Anything of a module that is not installed."""

    def __getattr__(self, name: str) -> _Placeholder:
        return _Placeholder()

    def __call__(self, *_: object) -> _Placeholder:
        return _Placeholder()


if TYPE_CHECKING:
    from llvmlite import binding, ir
    from numba.core import cgutils
else:
    try:
        from llvmlite import ir
    except ImportError:
        ir = _Placeholder()
    binding = _Later("llvmlite.binding")
    cgutils = _Later("numba.core.cgutils")
