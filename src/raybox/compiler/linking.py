"""Compilers for entry points, and for their callees, which are compiled to LLVM IR alone.

Numba generates machine code for every function and all its callees. For callees, which are linked into an
entry point anyway, that code is never run and would double the compile time.
"""

import gc
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
from numba import _dynfunc
from numba.core import compiler
from numba.core.compiler import _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering

from raybox.compiler.llvm_libraries import CalleeLibrary, EntryLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class _EntryLowering(NativeLowering):
    """Lower to an `EntryLibrary`."""

    _name = "entry_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = EntryLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _CalleeLowering(NativeLowering):
    """Lower to a `CalleeLibrary`."""

    _name = "callee_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = CalleeLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.flags.no_compile = True
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


class CalleeCompiler(compiler.CompilerBase):
    """Numba's compiler without the generation of machine code."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes of a compilation."""
        return [_passes(self.state, _CalleeLowering)]


class EntryCompiler(compiler.CompilerBase):
    """Numba's compiler with the cyclic garbage collector disabled.

    The collector would take a tenth of the time.
    """

    def define_pipelines(self) -> list[Any]:
        """Return the passes of a compilation."""
        return [_passes(self.state, _EntryLowering)]

    def compile_extra(self, function: Any) -> Any:
        """Return the compiled function, with all its callees."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(function)
        finally:
            if collects:
                gc.enable()


class LazyFunction:
    """A function whose Numba dispatcher is created when a caller is compiled.

    Processes that load all entry points from disk need no dispatchers, which take 30 ms in total.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        self.closed_over: tuple[Any, ...] = ()  # functions and classes, see `decorators.closing_over`
        self.__doc__, self.__name__ = function.__doc__, function.__name__

    @cached_property
    def dispatcher(self) -> Any:
        """The function's Numba dispatcher."""
        return numba.njit(**self._options)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_
