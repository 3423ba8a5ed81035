"""Compile entry points at their first call, or load what was compiled before."""

import hashlib
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from typing import Any

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core.compiler_lock import global_compiler_lock

from raybox.compiler.calls import Found
from raybox.compiler.decorators import APART
from raybox.compiler.fork import fork_after, fork_safe_lock
from raybox.compiler.jit import store
from raybox.compiler.jit.fingerprint import Unidentified, fingerprint
from raybox.compiler.jit.objects import compile_apart, compile_entry, load
from raybox.compiler.jit.store import ObjectFile
from raybox.compiler.jit.struct_type import types_of
from raybox.compiler.kinds import writable_arrays
from raybox.compiler.library import source_stamp
from raybox.compiler.target import compile_target
from raybox.errors import RayboxError

_LOCK = fork_safe_lock()  # one thread compiles; others wait, and find what it has compiled
_LOADED: dict[str, Found] = {}  # by symbol
fork_after(_LOCK, global_compiler_lock, getattr(binding.ffi.lib, "_lock", nullcontext()))


def compiled(function: Callable[..., Any], kinds: str, classes: dict[str, type]) -> Found:
    """Return the code of an entry point for arguments of some kinds, loaded or compiled.

    classes: the named tuples among its arguments, by their names in `kinds`.
    """
    if numba.config.DISABLE_JIT:
        raise RayboxError(
            "raybox needs Numba's compiler; got NUMBA_DISABLE_JIT=1 (environment or .numba_config.yaml), "
            "which turns it off. Unset it and start Python again."
        )
    with _LOCK:
        made = object_of(function, kinds, classes)
        if made.symbol not in _LOADED:
            for name in made.requires:
                _load_apart(name)
            _LOADED[made.symbol] = Found(load(made), made.results, writable_arrays(kinds))
        return _LOADED[made.symbol]


def object_of(function: Callable[..., Any], kinds: str, classes: dict[str, type]) -> ObjectFile:
    """Return the object file of an entry point, stored or compiled."""

    def make(symbol: str) -> ObjectFile:
        return compile_entry(function, types_of(kinds, classes), symbol)

    return _stored(function, kinds, classes, make)


def apart_object(name: str) -> ObjectFile:
    """Return the object file of a function of `apart`, stored or compiled."""
    made = APART[name]
    return _stored(made.py_func, "", {}, lambda _symbol: compile_apart(made))


def load_all_apart() -> None:
    """Define the symbols of all functions of `apart`, for code that Numba itself links."""
    with _LOCK:
        for name in APART:
            _load_apart(name)


def _load_apart(name: str) -> None:
    if name in APART and name not in _LOADED:
        address = load(apart_object(name))
        binding.add_symbol(name, address)
        _LOADED[name] = Found(address, "", 0)


def _stored(
    function: Callable[..., Any],
    kinds: str,
    classes: dict[str, type],
    make: Callable[[str], ObjectFile],
) -> ObjectFile:
    """Return what is stored of a function, or make and store it."""
    name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
    symbol = f"raybox_{hashlib.blake2b(f'{name}({kinds})'.encode(), digest_size=8).hexdigest()}"
    folder = store.cache_folder()
    try:
        made_of = fingerprint(function, [classes[name] for name in sorted(classes)])
    except Unidentified:
        folder, made_of = None, b""
    text = repr((name, kinds, made_of, compile_target(), _versions()))
    key = hashlib.blake2b(text.encode(), digest_size=32).digest()
    path = folder / f"{name}.{key.hex()[:16]}.o" if folder else None
    made = store.load(path, key) if path else None
    if made is None:
        made = make(symbol)
        if path:
            store.save(path, key, made)
    return made


@cache
def _versions() -> tuple[str, ...]:
    """Return what code depends on besides its sources: versions, and the compiler's own sources."""
    return numba.__version__, llvmlite.__version__, np.__version__, sys.version, source_stamp("compiler")
