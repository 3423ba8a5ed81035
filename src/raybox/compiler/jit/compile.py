"""Compile entry points at their first call, or load what was compiled before."""

import hashlib
import sys
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba.core.compiler_lock import global_compiler_lock

from raybox.compiler.calls import Found
from raybox.compiler.decorators import ALONGSIDE, APART
from raybox.compiler.fork import fork_after, fork_safe_lock
from raybox.compiler.jit import bar, lines, processes, store
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
    kinds = lines.marked(lines.name_of(function), kinds)
    with _LOCK:
        source = _source_of_entry(function, kinds, classes)
        made = _stored(source)
        if made is None:
            if function in ALONGSIDE and lines.is_listed(source.line):
                expect(ALONGSIDE[function], classes)
            made = _make(source)
        if made.symbol not in _LOADED:
            for required in made.requires:
                _load_apart(required)
            _LOADED[made.symbol] = Found(load(made), made.results, writable_arrays(kinds))
        return _LOADED[made.symbol]


def expect(functions: Iterable[Callable[..., Any]], classes: Collection[str]) -> None:
    """Start to compile entry points in other processes: of their lines, those closest to some classes."""
    if numba.config.DISABLE_JIT or not processes.are_allowed():
        return
    missing = list[str]()
    for function in functions:
        for line in lines.closest(lines.name_of(function), classes):
            with suppress(LookupError):  # a class of it is not imported
                source = _source_of_entry(*lines.entry_of(line))
                if source.path and not source.path.exists():
                    missing.append(line)
    processes.start(missing)


def object_of(function: Callable[..., Any], kinds: str, classes: dict[str, type]) -> ObjectFile:
    """Return the object file of an entry point, stored or compiled here."""
    source = _source_of_entry(function, kinds, classes)
    return _stored(source) or _compile(source)


def apart_object(name: str) -> ObjectFile:
    """Return the object file of a function of `apart`, stored or compiled here."""
    source = _source_of_apart(name)
    return _stored(source) or _compile(source)


def store_line(line: str) -> bool:
    """Store the code of a line of `kernels.txt` and of what it calls by symbols; return whether it is."""
    try:
        made = object_of(*lines.entry_of(line))
        for name in made.requires:
            if name in APART:
                apart_object(name)
    except Exception:  # whoever needs the line compiles it, and raises it
        return False
    return True


def load_all_apart() -> None:
    """Define the symbols of all functions of `apart`, for code that Numba itself links."""
    with _LOCK:
        for name in APART:
            _load_apart(name)


def _load_apart(name: str) -> None:
    if name in APART and name not in _LOADED:
        source = _source_of_apart(name)
        address = load(_stored(source) or _make(source))
        binding.add_symbol(name, address)
        _LOADED[name] = Found(address, "", 0)


class _Source(NamedTuple):
    """What an object file is made of, and where it is stored."""

    line: str
    symbol: str
    path: Path | None
    key: bytes
    make: Callable[[str], ObjectFile]
    """(symbol) -> the object file"""


def _source_of_entry(function: Callable[..., Any], kinds: str, classes: dict[str, type]) -> _Source:
    def make(symbol: str) -> ObjectFile:
        return compile_entry(function, types_of(kinds, classes), symbol)

    return _source(function, kinds, classes, make)


def _source_of_apart(name: str) -> _Source:
    made = APART[name]
    return _source(made.py_func, "", {}, lambda _symbol: compile_apart(made))


def _source(
    function: Callable[..., Any],
    kinds: str,
    classes: dict[str, type],
    make: Callable[[str], ObjectFile],
) -> _Source:
    name = lines.name_of(function).replace("<", "").replace(">", "")
    line = f"{name}({kinds})"
    symbol = f"raybox_{hashlib.blake2b(line.encode(), digest_size=8).hexdigest()}"
    folder = store.cache_folder()
    try:
        made_of = fingerprint(function, [classes[name] for name in sorted(classes)])
    except Unidentified:
        folder, made_of = None, b""
    text = repr((name, kinds, made_of, compile_target(), _versions()))
    key = hashlib.blake2b(text.encode(), digest_size=32).digest()
    path = folder / f"{name}.{key.hex()[:16]}.o" if folder else None
    return _Source(line, symbol, path, key, make)


def _make(source: _Source) -> ObjectFile:
    """Return an object file that another process has stored, or that is compiled here; show the bar."""
    with bar.shown(_counts):
        try:
            found = _stored(source) if processes.wait_for(source.line, store_line) else None
        except KeyboardInterrupt:
            processes.stop()
            raise
        if found is None:
            _HERE.total = _HERE.compiled + 1
            found = _compile(source)
            _HERE.compiled += 1
        return found


class _Here:
    """How many object files this process has compiled, and with the one that it compiles."""

    compiled, total = 0, 0


_HERE = _Here()


def _counts() -> tuple[int, int]:
    stored, total = processes.counts()
    return stored + _HERE.compiled, total + _HERE.total


def _stored(source: _Source) -> ObjectFile | None:
    return store.load(source.path, source.key) if source.path else None


def _compile(source: _Source) -> ObjectFile:
    made = source.make(source.symbol)
    if source.path:
        store.save(source.path, source.key, made)
    return made


@cache
def _versions() -> tuple[str, ...]:
    """Return what code depends on besides its sources: versions, and the compiler's own sources."""
    return numba.__version__, llvmlite.__version__, np.__version__, sys.version, source_stamp("compiler")
