"""Every compiler flag of raybox, in one place.

No fast-math anywhere: the error bounds of `raybox.exact.predicate` count every rounding.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from threading import Lock
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
from numba import types
from numba.core import config, sigutils
from numba.core.ccallback import CFunc
from numba.extending import overload

from raybox.compiler.code_cache import CodeCache
from raybox.compiler.code_origin import DISPATCHERS
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.linking import CalleeCompiler, EntryCompiler, LazyFunction
from raybox.compiler.simd import Builder, Scalar
from raybox.compiler.struct_ref import StructRef
from raybox.errors import RayboxError

_COMPILED: list[Any] = []  # compiled code that only a symbol refers to
_PENDING: list[tuple[Any, Any, Any]] = []  # functions of `apart` that are not compiled yet
_LOCK = Lock()
F = TypeVar("F", bound=Callable[..., Any])

FLAGS = {"nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False, "forceinline": False}
_LINKED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": CalleeCompiler}


def device(function: F) -> F:
    """Return a function for calls from compiled code, which allocates no arrays.

    Arrays are not reference-counted, since the caller in Python owns them: atomic counts would double the
    time of `nearest`.
    """
    return cast(F, LazyFunction(function, FLAGS | _LINKED))


def inlined(function: F) -> F:
    """Return a function like `device` that is inlined into each caller.

    For calls once a ray or a node with tuples of arrays: passing those through memory costs a sixth of the
    time of `nearest`.
    """
    return cast(F, LazyFunction(function, FLAGS | _LINKED | {"forceinline": True}))


def closing_over(function: F, *parts: Any) -> F:
    """Return a `device` function, marked as made from these functions and classes of its closure.

    Stored code is then compiled anew when they change (`raybox.compiler.code_origin`).
    """
    cast(LazyFunction, function).closed_over = parts
    return function


@vector_code(types.int64)
def whole(_b: Builder, x: Scalar) -> Scalar:
    """Return an integer in 64 bits.

    With it, callees are compiled for one integer type alone.
    """
    return x


@device
def yes(_first: Any) -> bool:
    """Return True: a constant kernel for `dispatch`."""
    return True


@device
def no(_first: Any) -> bool:
    """Return False: a constant kernel for `dispatch`."""
    return False


def allocating(function: F) -> F:
    """Return a function like `device` that may allocate arrays."""
    return cast(F, LazyFunction(function, FLAGS | _LINKED | {"_nrt": True}))


def entry(function: F) -> F:
    """Return a compiled function for calls from Python, which releases the GIL.

    Its code is stored in the user's cache folder; if that cannot be written, each process compiles anew.
    """
    if config.DISABLE_JIT:
        return cast(F, _refusing)
    dispatcher = numba.njit(pipeline_class=EntryCompiler, no_cfunc_wrapper=True, **FLAGS)(function)
    dispatcher._cache = CodeCache(function)
    return cast(F, dispatcher)


def _refusing(*_args: Any) -> Any:
    """Raise RayboxError: an entry point without Numba's compiler."""
    raise RayboxError(
        "raybox needs Numba's compiler; got NUMBA_DISABLE_JIT=1 (environment or .numba_config.yaml), which "
        "turns it off. Unset it and start Python again."
    )


def dispatch(stub: Callable[..., Any], kernels: Callable[[type], Any], *, inline: bool = False) -> None:
    """Redirect compiled calls of `stub` by the class of the first argument, a NamedTuple.

    kernels: maps the class to a `device` or `inlined` function, or None. The choice is made at compile time,
    so calls cost nothing more; unlike closures over kernels, the callers of `stub` can be stored on disk.
    """

    def pick(*args: Any) -> Any:
        named = isinstance(args[0], types.BaseNamedTuple | StructRef)
        kernel = kernels(args[0].instance_class) if named else None
        return kernel and kernel.py_func

    DISPATCHERS.append((stub, kernels))
    options = FLAGS | _LINKED | {"forceinline": inline}
    overload(stub, jit_options=options, strict=False)(pick)


def dispatch_named(stubs: Iterable[Callable[..., Any]], table: Mapping[type, Any]) -> None:
    """Redirect compiled calls of stubs to namesakes in the table's modules.

    A leading underscore of a stub's name is dropped. table: maps the class of the first argument to a module.
    """

    def find(name: str) -> Callable[[type], Any]:
        return lambda kind: getattr(table.get(kind), name, None)

    for stub in stubs:
        dispatch(stub, find(stub.__name__.lstrip("_")))


def apart(signature: str) -> Callable[[F], F]:
    """Return a decorator that compiles a slow function separately, as a symbol.

    Other callees are compiled anew into each entry point, where the big integers of the exact predicate would
    take two fifths of the compile time. Entry points that may call such a function use `exact_entry`, which
    compiles or loads it before their first call.
    """
    args, result = sigutils.normalize_signature(signature)

    def remember(function: F) -> F:
        _PENDING.append((function, args, result))
        return cast(F, types.ExternalFunction(_symbol(function), result(*args)))

    return remember


def compile_apart() -> None:
    """Compile or load the pending functions of `apart`."""
    with _LOCK:
        while _PENDING:
            function, args, result = _PENDING[-1]
            options = {"_nrt": True, "error_model": "numpy", "boundscheck": False}
            compiled: Any = CFunc(function, (args, result), {}, options, EntryCompiler)
            compiled._cache = CodeCache(function)
            compiled.compile()
            _COMPILED.append(compiled)
            llvmlite.binding.add_symbol(_symbol(function), compiled.address)
            _PENDING.pop()


def _symbol(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


def exact_entry(function: F) -> F:
    """Return a function like `entry` that may call functions of `apart`."""
    dispatcher = entry(function)
    if config.DISABLE_JIT:
        return dispatcher

    @wraps(function)
    def call(*args: Any) -> Any:
        if _PENDING:
            compile_apart()
        return dispatcher(*args)

    return cast(F, call)
