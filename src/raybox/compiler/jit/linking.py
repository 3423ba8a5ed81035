"""Compilers for entry points, and for their callees, which are compiled to LLVM IR and linked into them.

Numba generates machine code for every function and all its callees. For callees, which are linked into an
entry point anyway, that code is never run and would double the compile time.

Numba also optimizes each function on its own, links all its callees into it, and copies the result into each
caller. Here callees stay unoptimized and are linked into an entry point once, which is then optimized as a
whole: equally fast code in two thirds of the compile time.
"""

from typing import Any

from llvmlite.binding import Linkage
from numba import _dynfunc
from numba.core import compiler
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


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
    """A library with all its callees linked into it, of which one symbol is visible."""

    symbol = ""

    def finalize(self) -> None:
        """Link all callees and optimize them; no machine code is generated yet."""
        module = self._final_module
        _link(module, self._linking_libraries)
        self._linking_libraries.clear()
        for item in [*module.functions, *module.global_variables]:
            if not item.is_declaration and item.name != self.symbol:
                item.linkage = Linkage.internal
        self._optimize_final_module()
        module.verify()
        self._finalized = True

    @property
    def module(self) -> Any:
        """LLVM's module."""
        return self._final_module


def _link(module: Any, libraries: list[Any]) -> None:
    """Link libraries and their callees into a module, each once.

    Callers come first: LLVM links no function that is not called yet.
    """
    found = dict[Any, None]()
    for library in libraries:
        _visit(library, found)
    for library in reversed(found):
        callee = isinstance(library, CalleeLibrary)
        module.link_in(library._final_module if callee else library._get_module_for_linking(), preserve=True)


def _visit(library: Any, found: dict[Any, None]) -> None:
    """Add a library to `found`, after its callees."""
    if library not in found:
        for called in library._linking_libraries if isinstance(library, CalleeLibrary) else []:
            _visit(called, found)
        found[library] = None


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(NativeLowering):
    """Lower to an `EntryLibrary`."""

    _name, library = "entry_lowering", EntryLibrary

    def run_pass(self, state: Any) -> bool:
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _CalleeLowering(_EntryLowering):
    """Lower to a `CalleeLibrary`."""

    _name, library = "callee_lowering", CalleeLibrary

    def run_pass(self, state: Any) -> bool:
        super().run_pass(state)
        lowered = state["cr"]
        fndesc = lowered.fndesc
        name = fndesc.qualname.split(".")[-1]
        state.library._ensure_finalized()
        cfunc = _dynfunc.make_function(
            fndesc.lookup_module(), name, "linked into others", 0, lowered.env, (state.library,)
        )
        state.targetctx.insert_user_function(cfunc, fndesc, [state.library])
        state["cr"] = _LowerResult(fndesc, lowered.call_helper, cfunc=cfunc, env=lowered.env)
        return True


_SKIPPED = {"InlineClosureLikes", "NopythonRewrites"}  # kernels have no closures and no array expressions


def _passes(state: Any, lowering: type) -> Any:
    pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(state)
    pipeline.passes = [
        (lowering if step is NativeLowering else step, what)
        for step, what in pipeline.passes
        if step.__name__ not in _SKIPPED
    ]
    pipeline.finalize()
    return pipeline


class EntryCompiler(compiler.CompilerBase):
    """Numba's compiler to an `EntryLibrary`, which its caller completes."""

    lowering: type[NativeLowering] = _EntryLowering

    def define_pipelines(self) -> list[Any]:
        """Return the passes of a compilation."""
        return [_passes(self.state, self.lowering)]


class CalleeCompiler(EntryCompiler):
    """Numba's compiler to a `CalleeLibrary`, without the generation of machine code."""

    lowering = _CalleeLowering
