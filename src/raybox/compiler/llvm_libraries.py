"""Compiled functions before they are machine code, and how an entry comes by all that it calls.

Numba optimizes each function by itself, links into it all that it calls, and copies the whole for each of its
callers. An entry is optimized as a whole once more, so here functions stay as they are, and an entry has each
of them linked into it once: the packets of `nearest` compile in 6.5 s instead of 9.9, to code that is as fast
(measured).
"""

from typing import Any

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary


class _Raw(JITCodeLibrary):
    """A library whose functions are not optimized one by one."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class Part(_Raw):
    """A library that is linked into others, and is never run itself."""

    def finalize(self) -> None:
        """Let whoever links this have the same functions of others, too."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = Linkage.linkonce_odr
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return this and all that it calls, for libraries that link only what they call themselves."""
        self._ensure_finalized()
        module = self._final_module.clone()
        _link(module, self._linking_libraries)
        return module

    def get_pointer_to_function(self, _name: str) -> int:
        """Return none: this is no machine code."""
        self._ensure_finalized()
        return 0


class Whole(_Raw):
    """A library with all that it calls linked into it."""

    def finalize(self) -> None:
        """Link everything, and make machine code."""
        for library in _link(self._final_module, self._linking_libraries):
            self._reload_init.update(library._reload_init)
        self._linking_libraries.clear()
        super().finalize()


def _link(module: Any, libraries: list[Any]) -> list[Any]:
    """Link libraries into a module, and all that they call, each once; return them.

    Callers come first: of what nobody has called so far, LLVM links nothing.
    """
    found = dict[Any, None]()
    for library in libraries:
        _visit(library, found)
    order = list(found)[::-1]
    for library in order:
        part = isinstance(library, Part)
        module.link_in(library._final_module if part else library._get_module_for_linking(), preserve=True)
    return order


def _visit(library: Any, found: dict[Any, None]) -> None:
    """Note what a library calls, and then itself."""
    if library not in found:
        for called in library._linking_libraries if isinstance(library, Part) else []:
            _visit(called, found)
        found[library] = None
