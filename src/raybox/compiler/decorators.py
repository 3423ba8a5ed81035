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
from numba.core import sigutils
from numba.core.ccallback import CFunc
from numba.extending import overload

from raybox.compiler.code_cache import CodeCache
from raybox.compiler.code_origin import DISPATCHERS
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.linking import Late, Linked, Unhindered
from raybox.compiler.struct_ref import Held

_KEPT: list[Any] = []  # compiled code that only a symbol points to
_WAITING: list[tuple[Any, Any, Any]] = []  # functions to be compiled apart, when first needed
_LOCK = Lock()
F = TypeVar("F", bound=Callable[..., Any])

FLAGS = {"nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False, "forceinline": False}
_LINKED = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "pipeline_class": Linked}


def device(function: F) -> F:
    """Compile a function that only compiled code calls, and that makes no arrays.

    Arrays are then not reference-counted (they belong to Python, which waits): each count is an
    atomic operation, and some seventy a ray took half of the time of `nearest` (measured).
    """
    return cast(F, Late(function, FLAGS | _LINKED))


def inlined(function: F) -> F:
    """Compile a function like `device` into each of its callers.

    For what a loop calls once a ray or a node with tuples of arrays: passing those by way of memory
    took a sixth of the time of `nearest` (measured).
    """
    return cast(F, Late(function, FLAGS | _LINKED | {"forceinline": True}))


@vector_code(types.int64)
def whole(_b: Any, x: Any) -> Any:
    """Return a whole number in 64 bits: what is called with others too is compiled once more for them."""
    return x


@device
def yes(_of: Any) -> bool:
    """Say yes, of whatever: for `dispatch`."""
    return True


@device
def no(_of: Any) -> bool:
    """Say no, of whatever: for `dispatch`."""
    return False


def allocating(function: F) -> F:
    """Compile a function like `device`, but one that may make arrays and hold what it made."""
    return cast(F, Late(function, FLAGS | _LINKED | {"_nrt": True}))


def entry(function: F) -> F:
    """Compile a loop that Python calls: stored in the user's cache folder, the GIL released.

    If that folder cannot be written, each process compiles the loop.
    """
    dispatcher = numba.njit(pipeline_class=Unhindered, no_cfunc_wrapper=True, **FLAGS)(function)
    dispatcher._cache = CodeCache(function)
    return cast(F, dispatcher)


def dispatch(stub: Callable[..., Any], kernels: Callable[[type], Any], *, inline: bool = False) -> None:
    """Let compiled calls of `stub` be calls of the kernel for the class of its first argument, a NamedTuple.

    Chosen at compile time, by type: it costs nothing, and unlike a closure over the kernel it
    leaves the loops that call `stub` fit for the disk cache. Kernels are `device` functions, or `inlined`
    ones.
    """

    def pick(*args: Any) -> Any:
        named = isinstance(args[0], types.BaseNamedTuple | Held)
        kernel = kernels(args[0].instance_class) if named else None
        return kernel and kernel.py_func

    DISPATCHERS.append((stub, kernels))
    options = FLAGS | _LINKED | {"forceinline": inline}
    overload(stub, jit_options=options, strict=False)(pick)


def dispatch_named(stubs: Iterable[Callable[..., Any]], table: Mapping[type, Any]) -> None:
    """Let calls of stubs be calls of their namesakes (an underscore aside) in the table's modules."""

    def find(name: str) -> Callable[[type], Any]:
        return lambda kind: getattr(table.get(kind), name, None)

    for stub in stubs:
        dispatch(stub, find(stub.__name__.lstrip("_")))


def apart(signature: str) -> Callable[[F], F]:
    """Compile a slow function once and for itself; compiled code calls it by a symbol of this process.

    Whatever a loop calls is otherwise compiled anew into each loop. The whole numbers at the end of the
    exact predicate took two fifths of the compile time of every one of them (measured: 9.6 s, now 5.8 s).
    Entries whose code may call it are `exact_entry`s: it is compiled (or loaded) before the first of them.
    """
    args, result = sigutils.normalize_signature(signature)

    def remember(function: F) -> F:
        _WAITING.append((function, args, result))
        return cast(F, types.ExternalFunction(_symbol(function), result(*args)))

    return remember


def compile_apart() -> None:
    """Compile, or load, what `apart` has put off."""
    with _LOCK:
        while _WAITING:
            function, args, result = _WAITING[-1]
            options = {"_nrt": True, "error_model": "numpy", "boundscheck": False}
            compiled: Any = CFunc(function, (args, result), {}, options, Unhindered)
            compiled._cache = CodeCache(function)
            compiled.compile()
            _KEPT.append(compiled)
            llvmlite.binding.add_symbol(_symbol(function), compiled.address)
            _WAITING.pop()


def _symbol(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"


def exact_entry(function: F) -> F:
    """Compile a loop like `entry`, one whose decisions are exact to the end."""
    dispatcher = entry(function)

    @wraps(function)
    def call(*args: Any) -> Any:
        if _WAITING:
            compile_apart()
        return dispatcher(*args)

    return cast(F, call)
