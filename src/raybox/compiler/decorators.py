"""Every compiler flag of raybox, in one place.

No fast-math anywhere: the error bounds of `raybox.exact.predicate` count every rounding.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, Never, TypeAlias, TypeVar, cast

from raybox.compiler.intrinsics import Signature, int64, vector_code
from raybox.compiler.simd import Builder, Scalar

F = TypeVar("F", bound=Callable[..., Any])

FLAGS = {"nogil": True, "error_model": "numpy", "boundscheck": False, "_nrt": False, "forceinline": False}
SYMBOL_FLAGS = {"error_model": "numpy", "boundscheck": False, "_nrt": True}


class DeviceFunction:
    """A function for calls from compiled code, with the flags by which Numba compiles it."""

    def __init__(self, function: Callable[..., Any], flags: dict[str, Any]) -> None:
        self.py_func, self.flags = function, flags
        self.__doc__, self.__name__ = function.__doc__, function.__name__


class ApartFunction:
    """A function that is compiled separately; compiled code calls it by its symbol."""

    def __init__(self, function: Callable[..., Any], signature: Signature) -> None:
        self.py_func, self.signature = function, signature
        self.symbol = f"{function.__module__}.{function.__name__}"


class Overload(NamedTuple):
    """What Numba compiles for calls of a stub."""

    stub: Callable[..., Any]
    pick: Callable[..., Any]
    """(Numba types of the arguments) -> Python function, or None"""
    flags: dict[str, Any]


OVERLOADS: list[Overload] = []
DISPATCHERS: dict[Callable[..., Any], Callable[[type], Any]] = {}  # kernel of a stub for a class
APART: dict[str, ApartFunction] = {}
ALONGSIDE: dict[
    Callable[..., Any], tuple[Callable[..., Any], ...]
] = {}  # entries that are called with another


def device(function: F) -> F:
    """Return a function for calls from compiled code, which allocates no arrays.

    Arrays are not reference-counted, since the caller in Python owns them: atomic counts would double the
    time of `nearest`.
    """
    return cast(F, DeviceFunction(function, FLAGS))


def inlined(function: F) -> F:
    """Return a function like `device` that is inlined into each caller.

    For calls once a ray or a node with tuples of arrays: passing those through memory costs a sixth of the
    time of `nearest`.
    """
    return cast(F, DeviceFunction(function, FLAGS | {"forceinline": True}))


@vector_code(int64)
def whole(_b: Builder, x: Scalar) -> Scalar:
    """Return an integer in 64 bits.

    With it, callees are compiled for one integer type alone.
    """
    return x


@device
def yes(*_: object) -> bool:
    """Return True: a constant kernel for `dispatch`."""
    return True


@device
def no(*_: object) -> bool:
    """Return False: a constant kernel for `dispatch`."""
    return False


def allocating(function: F) -> F:
    """Return a function like `device` that may allocate arrays."""
    return cast(F, DeviceFunction(function, FLAGS | {"_nrt": True}))


Stub: TypeAlias = Callable[..., Never]  # of any signature, for compiled code alone


def stub(name: str) -> Stub:
    """Return a function for compiled code alone: an overload defines it."""

    def refuse(*_args: object) -> Never:
        raise NotImplementedError(f"{name} is called by compiled code alone")

    refuse.__name__ = refuse.__qualname__ = name
    return refuse


def declare(name: str, kernels: Callable[[type], object], *, inline: bool = False) -> Stub:
    """Return a function whose compiled calls are redirected as `dispatch` says."""
    made = stub(name)
    dispatch(made, kernels, inline=inline)
    return made


def dispatch(stub: Callable[..., Any], kernels: Callable[[type], Any], *, inline: bool = False) -> None:
    """Redirect compiled calls of `stub` by the class of the first argument, a NamedTuple.

    kernels: maps the class to a `device` or `inlined` function, or None. The choice is made at compile time,
    so calls cost nothing more; unlike closures over kernels, the callers of `stub` can be stored on disk.
    """

    def pick(*args: Any) -> Any:
        named = getattr(args[0], "instance_class", None)
        kernel = kernels(named) if named else None
        return kernel and kernel.py_func

    DISPATCHERS[stub] = kernels
    OVERLOADS.append(Overload(stub, pick, FLAGS | {"forceinline": inline}))


def declare_method(name: str) -> Stub:
    """Return a function whose compiled calls are those of a method of the first argument's class."""

    @cache
    def kernel(kind: type) -> DeviceFunction | None:
        return inlined(getattr(kind, name)) if hasattr(kind, name) else None

    return declare(name, kernel, inline=True)


class Namesakes:
    """Functions whose compiled calls are redirected to their namesakes in a table's modules, or tuples."""

    def __init__(self, table: Mapping[type, object], *, inline: bool = False) -> None:
        self._table, self._inline = table, inline

    def __getattr__(self, name: str) -> Stub:
        return declare(name, namesakes(self._table, name), inline=self._inline)


def namesakes(table: Mapping[type, object], name: str, default: object = None) -> Callable[[type], object]:
    """Return what picks the function of this name in the module that a table has for a class."""
    return lambda kind: getattr(table[kind], name, default) if kind in table else None


def accessor(function: F) -> F:
    """Return the function, which Python calls, and which compiled code inlines."""
    OVERLOADS.append(Overload(function, lambda *_args: function, FLAGS | {"forceinline": True}))
    return function


def apart(signature: Signature) -> Callable[[F], F]:
    """Return a decorator for slow functions that are compiled separately, as a symbol.

    Other callees are compiled anew into each entry point, where the big integers of the exact predicate would
    take two fifths of the compile time.
    """

    def remember(function: F) -> F:
        made = ApartFunction(function, signature)
        APART[made.symbol] = made
        return cast(F, made)

    return remember
