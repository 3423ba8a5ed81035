"""raybox's own way to compile: callees linked into entry points, whose machine code is stored."""

from collections.abc import Callable
from typing import Any

import numba
from numba.core.ccallback import CFunc
from numba.core.types import Array, intp, uint64
from numba.extending import intrinsic

from raybox.compiler.backend import Backend
from raybox.compiler.code_cache import CodeCache
from raybox.compiler.linking import CalleeCompiler, EntryCompiler

_WORDS = Array(uint64, 1, "C")
_CALLEE = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": CalleeCompiler}


def callee_options(flags: dict[str, Any]) -> dict[str, Any]:
    """Return options of `numba.njit` for functions that are linked into entry points."""
    return flags | _CALLEE


def compile_entry(function: Callable[..., Any], flags: dict[str, Any]) -> Any:
    """Return a Numba dispatcher that links all callees, and loads and stores its code."""
    dispatcher = numba.njit(pipeline_class=EntryCompiler, no_cfunc_wrapper=True, **flags)(function)
    return _with_cache(dispatcher, function)


def compile_symbol(function: Callable[..., Any], signature: Any, flags: dict[str, Any]) -> Any:
    """Return a C function, loaded or compiled with all its callees."""
    compiled: Any = CFunc(function, (signature.args, signature.return_type), {}, flags, EntryCompiler)
    _with_cache(compiled, function).compile()
    return compiled


def _with_cache(compiled: Any, function: Callable[..., Any]) -> Any:
    """Return a dispatcher or C function with raybox's cache in place of Numba's."""
    if not hasattr(compiled, "_cache"):
        raise AttributeError(f"{type(compiled).__name__} has no attribute '_cache'")
    compiled._cache = CodeCache(function)
    return compiled


@intrinsic
def new_words(_typing: Any, size: Any) -> Any:
    """Return an uninitialised array of 64-bit words."""

    def codegen(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        from numba.np.arrayobj import _empty_nd_impl  # at compile time only: the import is slow

        return _empty_nd_impl(context, builder, _WORDS, [args[0]])._getvalue()

    return _WORDS(intp), codegen


def empty_words(size: int) -> Any:
    """Return an uninitialised array.

    `np.empty` compiles the formatting of its errors, too, which takes 2 s; sizes are never wrong here.
    """
    return new_words(size)


LINKED = Backend(callee_options, compile_entry, compile_symbol, empty_words)
