"""Functions of compiled code that Python calls: from a library of kernels, or compiled by Numba."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import update_wrapper
from inspect import unwrap
from typing import TypeVar, cast

from raybox.compiler import library
from raybox.compiler.calls import Entry, Found
from raybox.compiler.decorators import ALONGSIDE
from raybox.compiler.kinds import KindWalk, class_name
from raybox.errors import RayboxError

F = TypeVar("F", bound=Callable[..., object])


def entry(function: F) -> F:
    """Return a function for calls from Python: machine code, which runs without the GIL.

    It comes from a library of kernels, or is compiled when it is first called with arguments of some kinds.
    """

    def find(args: tuple[object, ...]) -> Found:
        return find_code(function, args)

    name = f"{function.__module__}.{function.__qualname__}"
    return cast(F, update_wrapper(Entry(find, name), function))


def alongside(function: Callable[..., object], *others: Callable[..., object]) -> None:
    """Register entry points that are called with another: when that is compiled, so are they, on other cores.

    Those are compiled whose lines in `kernels.txt` have the same named tuples.
    """
    ALONGSIDE[unwrap(function)] = tuple(map(unwrap, others))


def expect(functions: Iterable[Callable[..., object]], *classes: type) -> None:
    """Compile entry points for these named tuples on other cores, as they are called soon.

    Nothing happens where there is a library of kernels, or no compiler.
    """
    if library.library() is None:
        with suppress(ImportError):
            from raybox.compiler.jit import compile as jit

            jit.expect(map(unwrap, functions), set(map(class_name, classes)))


def find_code(function: Callable[..., object], args: tuple[object, ...]) -> Found:
    """Return the machine code of an entry point for arguments like these."""
    walk = KindWalk()
    name, kinds = f"{function.__module__}.{function.__qualname__}", walk.kinds_of(args)
    found = library.find(name, kinds)
    if found is not None:
        return found
    try:
        from raybox.compiler.jit.compile import compiled
    except ImportError as error:
        if error.name not in ("numba", "llvmlite"):
            raise
        raise RayboxError(_missing(f"{name}({kinds})")) from None
    library.warn_of_damage()
    return compiled(function, kinds, {class_name(cls): cls for cls in walk.classes})


def _missing(line: str) -> str:
    """Return what is missing where there is no compiler for a combination of kinds."""
    refused = library.refusal()
    if refused:
        return f'{refused.problem}, or let Numba compile kernels here: pip install "raybox[jit]"'
    if library.library() is None:
        return (
            "this raybox has no library of kernels for this machine, and Numba, which compiles them, is not "
            'installed: pip install "raybox[jit]", or a wheel of raybox for this platform'
        )
    if "." in line.partition("(")[2] or not line.startswith("raybox."):
        return (
            "a primitive or query of your own is compiled by Numba, which is not installed: "
            'pip install "raybox[jit]"'
        )
    return f"the library of kernels lacks this line of kernels.txt: {line}"
