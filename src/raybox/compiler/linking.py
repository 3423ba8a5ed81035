"""Compile functions that only compiled code calls: to LLVM's intermediate code, and no further.

Numba makes machine code of every function, and of all that it calls, which for a function that is
linked into an entry loop anyway is thrown away: half of the compile time of `nearest` (measured).
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

from raybox.compiler.llvm_libraries import Part, Whole


@register_pass(mutates_CFG=True, analysis_only=False)
class _WholeLowering(NativeLowering):
    """Lower to a `Whole`."""

    _name = "whole_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return bool(super().run_pass(state))


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):
    """Lower to a `Part`."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = Part(state.targetctx.codegen(), state.func_id.func_qualname)
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


_NEEDLESS = {"InlineClosureLikes", "NopythonRewrites"}  # closures, whole arrays: kernels have none


def _passes(state: Any, lowering: type) -> Any:
    pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(state)
    pipeline.passes = [
        (lowering if step is NativeLowering else step, what)
        for step, what in pipeline.passes
        if step.__name__ not in _NEEDLESS
    ]
    pipeline.finalize()
    return pipeline


class Linked(compiler.CompilerBase):
    """Numba's own compiler but for the last step."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes of a compilation."""
        return [_passes(self.state, _PartLowering)]


class Unhindered(compiler.CompilerBase):
    """Numba's own compiler, while Python looks for no circles of garbage: that took a tenth of its time."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes of a compilation."""
        return [_passes(self.state, _WholeLowering)]

    def compile_extra(self, function: Any) -> Any:
        """Compile a function, and all that it calls."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return super().compile_extra(function)
        finally:
            if collects:
                gc.enable()


class Late:
    """A function that Numba hears of when it is first called by code that is being compiled.

    A process that finds its loops on disk compiles nothing, and 300 dispatchers take 30 ms (measured).
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self.py_func, self._options = function, options
        self.__doc__, self.__name__ = function.__doc__, function.__name__

    @cached_property
    def dispatcher(self) -> Any:
        """What Numba makes of the function."""
        return numba.njit(**self._options)(self.py_func)

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_
