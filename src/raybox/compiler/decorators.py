"""Every compiler flag of raybox, in one place.

No fast-math anywhere: the error bounds of `raybox.exact.predicate` count every rounding.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property, wraps
from typing import Any, Never, Protocol, TypeVar, cast

import llvmlite.binding
import numba
from numba import types
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import overload, typeof_impl

from raybox.compiler.backend import Backend, choose, is_chosen
from raybox.compiler.code_origin import DISPATCHERS, source_stamp
from raybox.compiler.fork import fork_after, fork_safe_lock
from raybox.compiler.intrinsics import vector_code
from raybox.compiler.simd import Builder, Scalar
from raybox.compiler.struct_ref import StructRef
from raybox.errors import RayboxError

_COMPILED: list[Any] = []  # compiled code that only a symbol refers to
_PENDING: list[tuple[Any, Any]] = []  # functions of `apart` that are not compiled yet
_LOCK = fork_safe_lock()
_OVERLOADS: list[tuple[Any, Any, dict[str, Any]]] = []  # of `overload`, which Numba has not got yet
_SHORT_LOCK = fork_safe_lock()  # while nothing is compiled: Numba's own lock comes first
_LLVM_LOCK = getattr(llvmlite.binding.ffi.lib, "_lock", nullcontext())
fork_after(global_compiler_lock, _SHORT_LOCK, _LLVM_LOCK)
F = TypeVar("F", bound=Callable[..., Any])

FLAGS = {"nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False, "forceinline": False}
SYMBOL_FLAGS = {"error_model": "numpy", "boundscheck": False, "_nrt": True}


def backend() -> Backend:
    """Return the backend of this process, with all overloads registered."""
    chosen = choose()
    if _OVERLOADS:
        with _SHORT_LOCK:
            while _OVERLOADS:
                stub, pick, flags = _OVERLOADS[0]
                overload(stub, jit_options=chosen.callee_options(flags), strict=False)(pick)
                _OVERLOADS.pop(0)
    return chosen


class LazyFunction:
    """A function whose Numba dispatcher is created when a caller is compiled.

    Processes that load all entry points from disk need no dispatchers, which take 30 ms in total.
    """

    def __init__(self, function: Callable[..., Any], flags: dict[str, Any]) -> None:
        self.py_func, self._flags = function, flags
        self.closed_over: tuple[Any, ...] = ()  # functions and classes, see `closing_over`
        self.__doc__, self.__name__ = function.__doc__, function.__name__

    @cached_property
    def dispatcher(self) -> Any:
        """The function's Numba dispatcher."""
        return numba.njit(**backend().callee_options(self._flags))(self.py_func)


@typeof_impl.register(LazyFunction)
def _typeof(value: LazyFunction, context: Any) -> Any:
    return typeof_impl(value.dispatcher, context)


def device(function: F) -> F:
    """Return a function for calls from compiled code, which allocates no arrays.

    Arrays are not reference-counted, since the caller in Python owns them: atomic counts would double the
    time of `nearest`.
    """
    return cast(F, LazyFunction(function, FLAGS))


def inlined(function: F) -> F:
    """Return a function like `device` that is inlined into each caller.

    For calls once a ray or a node with tuples of arrays: passing those through memory costs a sixth of the
    time of `nearest`.
    """
    return cast(F, LazyFunction(function, FLAGS | {"forceinline": True}))


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
def yes(_first: object) -> bool:
    """Return True: a constant kernel for `dispatch`."""
    return True


@device
def no(_first: object) -> bool:
    """Return False: a constant kernel for `dispatch`."""
    return False


def allocating(function: F) -> F:
    """Return a function like `device` that may allocate arrays."""
    return cast(F, LazyFunction(function, FLAGS | {"_nrt": True}))


def entry(function: F) -> F:
    """Return a compiled function for calls from Python, which releases the GIL.

    Its code is stored in the user's cache folder; if that cannot be written, each process compiles anew.
    """
    return cast(F, _entry(function, ()))


def exact_entry(function: F) -> F:
    """Return a function like `entry` that may call functions of `apart`."""
    return cast(F, _entry(function, _PENDING))


def _entry(function: Callable[..., Any], pending: Sequence[Any]) -> Callable[..., Any]:
    """Return an entry point, before whose calls pending functions of `apart` are compiled."""
    if numba.config.DISABLE_JIT:
        return _refusing
    source_stamp()  # now: sources may change before the first call
    compiled: Any = None

    @wraps(function)
    def call(*args: Any) -> Any:
        nonlocal compiled
        if pending:
            compile_apart()
        if compiled is None:
            compile_entry = backend().compile_entry
            with _SHORT_LOCK:  # one for all threads
                compiled = compiled or compile_entry(function, FLAGS)
            vars(call)["dispatcher"] = compiled
        return compiled(*args)

    return call


def _refusing(*_args: Any) -> Any:
    """Raise RayboxError: an entry point without Numba's compiler."""
    raise RayboxError(
        "raybox needs Numba's compiler; got NUMBA_DISABLE_JIT=1 (environment or .numba_config.yaml), which "
        "turns it off. Unset it and start Python again."
    )


class Stub(Protocol):
    """A function of any signature that only compiled code can call."""

    __name__: str

    def __call__(self, *args: object) -> Never: ...  # noqa: D102


def declare(name: str, kernels: Callable[[type], object], *, inline: bool = False) -> Stub:
    """Return a function whose compiled calls are redirected as `dispatch` says."""

    def stub(*_args: object) -> Never:
        raise NotImplementedError(f"{name} is called by compiled code alone")

    stub.__name__ = stub.__qualname__ = name
    dispatch(stub, kernels, inline=inline)
    return stub


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
    add_overload(stub, pick, FLAGS | {"forceinline": inline})


def add_overload(stub: Callable[..., Any], pick: Callable[..., Any], flags: dict[str, Any]) -> None:
    """Register an overload with Numba, once there is a backend: its options depend on that."""
    _OVERLOADS.append((stub, pick, flags))
    if is_chosen():
        backend()


class Namesakes:
    """Functions whose compiled calls are redirected to their namesakes in a table's modules, or tuples."""

    def __init__(self, table: Mapping[type, object], *, inline: bool = False) -> None:
        self._table, self._inline = table, inline

    def __getattr__(self, name: str) -> Stub:
        return declare(name, namesakes(self._table, name), inline=self._inline)


def namesakes(table: Mapping[type, object], name: str, default: object = None) -> Callable[[type], object]:
    """Return what picks the function of this name in the module that a table has for a class."""
    return lambda kind: getattr(table[kind], name, default) if kind in table else None


def apart(signature: Any) -> Callable[[F], F]:
    """Return a decorator that compiles a slow function separately, as a symbol.

    Other callees are compiled anew into each entry point, where the big integers of the exact predicate would
    take two fifths of the compile time. Entry points that may call such a function use `exact_entry`, which
    compiles or loads it before their first call.
    """

    def remember(function: F) -> F:
        _PENDING.append((function, signature))
        return cast(F, types.ExternalFunction(_symbol(function), signature))

    return remember


def compile_apart() -> None:
    """Compile or load the pending functions of `apart`."""
    compile_symbol = backend().compile_symbol
    with _LOCK:
        while _PENDING:
            function, signature = _PENDING[-1]
            compiled = compile_symbol(function, signature, SYMBOL_FLAGS)
            _COMPILED.append(compiled)
            llvmlite.binding.add_symbol(_symbol(function), compiled.address)
            _PENDING.pop()


def _symbol(function: Callable[..., Any]) -> str:
    return f"{function.__module__}.{function.__name__}"
