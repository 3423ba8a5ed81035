"""Numba's own way to compile and to store code, by what it documents alone.

Numba's cache misses edits outside of the entry point's file, and chooses files by the function's name. So
that name gets a hash of all that identifies the code (`code_origin`).
"""

import hashlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numba
import numpy as np

from raybox.compiler.backend import Backend
from raybox.compiler.code_origin import Origin, describe, find_origin, source_stamp, version_stamp


def callee_options(flags: dict[str, Any]) -> dict[str, Any]:
    """Return the flags that Numba documents."""
    return {name: flag for name, flag in flags.items() if not name.startswith("_")}


class PlainEntry:
    """A function for calls from Python: a Numba dispatcher for each combination of classes.

    Classes of structs determine which kernels are compiled, and so the name under which code is stored.
    """

    def __init__(self, function: Callable[..., Any], flags: dict[str, Any]) -> None:
        self._function, self._options = function, callee_options(flags)
        self.dispatchers: dict[Any, Any] = {}

    def __call__(self, *args: Any) -> Any:
        """Return the function's result, compiled first if need be."""
        key = _classes(args)
        dispatcher = self.dispatchers.get(key)
        if dispatcher is None:
            origin = find_origin(self._function, [numba.typeof(arg) for arg in args])
            dispatcher = _compiled(numba.njit, self._function, origin, self._options)
            dispatcher = self.dispatchers.setdefault(key, dispatcher)
        return dispatcher(*args)


def _classes(value: Any) -> Any:
    """Return the classes of a named tuple and of its items; None for anything else."""
    return (type(value), *map(_classes, value)) if isinstance(value, tuple) else None


def compile_symbol(function: Callable[..., Any], signature: Any, flags: dict[str, Any]) -> Any:
    """Return a C function, loaded or compiled."""

    def decorator(**options: Any) -> Any:
        return numba.cfunc(signature, **options)

    return _compiled(decorator, function, find_origin(function, ()), callee_options(flags))


def _compiled(
    decorator: Callable[..., Any], function: Any, origin: Origin | None, options: dict[str, Any]
) -> Any:
    """Return the decorated function, which loads and stores its code if that is possible."""
    if not (origin and source_stamp()):
        return decorator(**options)(function)
    text = "\n".join([version_stamp(), describe(function), *origin])
    name = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
    try:
        return decorator(cache=True, **options)(_renamed(function, f"{function.__qualname__}_{name}"))
    except RuntimeError:  # no folder that Numba could write to
        return decorator(**options)(function)


def _renamed(function: Any, name: str) -> Any:
    """Return a copy of a function under another qualified name."""
    values = function.__defaults__, function.__closure__
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, *values)
    copy.__module__, copy.__qualname__ = function.__module__, name
    return copy


def empty_words(size: int) -> Any:
    """Return an uninitialised array."""
    return np.empty(size, np.uint64)


PLAIN = Backend(callee_options, PlainEntry, compile_symbol, empty_words)
