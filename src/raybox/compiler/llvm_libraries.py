"""Link the callees of an entry point into its LLVM module.

Numba optimizes each function on its own, links all its callees into it, and copies the result into each
caller. Here callees stay unoptimized and are linked into an entry point once, which is then optimized as a
whole: equally fast code in two thirds of the compile time.
"""

from typing import Any

from llvmlite.binding import Linkage
from numba.core.codegen import JITCodeLibrary


class _UnoptimizedLibrary(JITCodeLibrary):
    """A library without optimization of single functions."""

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout


class CalleeLibrary(_UnoptimizedLibrary):
    """A library that is linked into others and never run on its own."""

    def finalize(self) -> None:
        """Allow duplicate definitions of the functions when libraries are linked."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == Linkage.external:
                function.linkage = Linkage.linkonce_odr
        self._finalized = True

    def _get_module_for_linking(self) -> Any:
        """Return the module with all its callees, for libraries that link direct callees alone."""
        self._ensure_finalized()
        module = self._final_module.clone()
        _link(module, self._linking_libraries)
        return module

    def get_pointer_to_function(self, _name: str) -> int:
        """Return 0: there is no machine code."""
        self._ensure_finalized()
        return 0


class EntryLibrary(_UnoptimizedLibrary):
    """A library with all its callees linked into it."""

    def finalize(self) -> None:
        """Link all callees and generate machine code."""
        for library in _link(self._final_module, self._linking_libraries):
            self._reload_init.update(library._reload_init)
        self._linking_libraries.clear()
        super().finalize()


def _link(module: Any, libraries: list[Any]) -> list[Any]:
    """Link libraries and their callees into a module, each once.

    Return them in order.

    Callers come first: LLVM links no function that is not called yet.
    """
    found = dict[Any, None]()
    for library in libraries:
        _visit(library, found)
    order = list(found)[::-1]
    for library in order:
        callee = isinstance(library, CalleeLibrary)
        module.link_in(library._final_module if callee else library._get_module_for_linking(), preserve=True)
    return order


def _visit(library: Any, found: dict[Any, None]) -> None:
    """Add a library to `found`, after its callees."""
    if library not in found:
        for called in library._linking_libraries if isinstance(library, CalleeLibrary) else []:
            _visit(called, found)
        found[library] = None
