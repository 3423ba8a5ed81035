"""Identify everything that determines the compiled code of an entry point.

That is: all sources of raybox; names and order of the fields of the structs among the arguments; the
kernels that tables choose for those structs, with the hooks that raybox's own kernels are made from; and the
files of users' kernels, hooks and structs, with the users' own modules that these import. Global variables
count as constants, as they do for Numba: a change of a global of a user's kernel whose value
depends on the environment is not detected.
"""

import ast
import hashlib
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import cache
from itertools import accumulate
from pathlib import Path, PurePath
from types import FunctionType, ModuleType
from typing import Any, NamedTuple

DISPATCHERS: list[tuple[Callable[..., Any], Callable[[type], Any]]] = []  # (stub, kernel of a class)
_PACKAGE = Path(__file__).parent.parent
_NAME = __name__.partition(".")[0]
_START = time.time()  # a file changed since then may differ from the imported module
_INSTALLED = {"site-packages", "dist-packages"}


class Origin(NamedTuple):
    """Identity of compiled code, besides the sources of raybox."""

    text: str
    """Structs with their fields, kernels chosen for them, paths of users' files."""
    contents: str
    """Hash of the users' files."""


class _File(NamedTuple):
    """A file of users' code, and the namespace of its module."""

    path: str
    namespace: dict[str, Any]


@cache
def source_stamp() -> str:
    """Return a hash of the paths and contents of all raybox sources.

    Empty if there are none.
    """
    paths, digest = sorted(_source_files(str(_PACKAGE))), hashlib.sha256()
    for path in paths:
        digest.update(f"\0{path[len(str(_PACKAGE)) :]}\0".encode())  # sources hold no null characters
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))  # `open` takes twice as long
        try:
            while part := os.read(file, 1 << 16):
                digest.update(part)
        finally:
            os.close(file)
    return digest.hexdigest() if paths else ""


@cache
def version_stamp() -> str:
    """Return a hash of raybox's sources and of the versions in use.

    These are the versions of Python, NumPy, Numba and LLVM.
    """
    import llvmlite
    import numba
    import numpy as np

    versions = (
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        sys.version,
        getattr(sys, "abiflags", ""),
        sys.flags.optimize,
    )
    return hashlib.blake2b(repr((source_stamp(), versions)).encode(), digest_size=16).hexdigest()


def _source_files(folder: str) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py") and not entry.name.startswith("."):
                yield entry.path
            elif entry.is_dir(follow_symlinks=False):
                yield from _source_files(entry.path)


def find_origin(function: Callable[..., Any], kinds: Iterable[Any]) -> Origin | None:
    """Return the identity of code compiled for argument types; None without sources.

    Kernels that have no file (in a notebook, at a prompt), are closures, or have changed since their import
    have no origin: their code must not be stored.
    """
    try:
        return _find_origin(function, kinds)
    except Exception:  # users' modules may hold objects that raise anything
        return None


def describe(item: Any) -> str:
    """Return the name of a function, and its line: a name can have several definitions in a module."""
    name = f"{item.__module__}.{item.__qualname__}"
    return name if isinstance(item, type) else f"{name}:{item.__code__.co_firstlineno}"


def _find_origin(function: Callable[..., Any], kinds: Iterable[Any]) -> Origin:
    lines, files = set[str](), dict[str, str]()
    packages = set[str]()  # of users' kernels, wherever they are installed
    pending: list[Any] = [_home(function), *map(_home, find_structs(kinds)), *find_structs(kinds)]
    while pending:
        item = pending.pop()
        if isinstance(item, type):
            line, kernels = _choose(item)
            if line not in lines:
                lines.add(line)
                pending += [_home(kernel) for kernel in kernels]
        elif item is not None and item.path not in files:
            packages.add(_top(item.namespace))
            files[item.path] = _hash(item.path)
            pending += _structs_of(item)
            pending += [file for file in _imports(item) if _is_own(file, packages)]
    contents = "".join(files[path] for path in sorted(files))
    return Origin("\n".join([*sorted(lines), *sorted(files)]), contents)


def find_structs(kinds: Iterable[Any]) -> Iterator[type]:
    """Yield the classes of named tuples among types, those of their fields included."""
    for kind in kinds:
        struct = getattr(kind, "instance_class", None)
        if hasattr(struct, "_fields"):
            yield struct  # type: ignore[misc]
        yield from find_structs(getattr(kind, "types", ()))


def _choose(struct: Any) -> tuple[str, list[Any]]:
    """Return a description of a struct and its kernels in all tables, and these kernels."""
    words, kernels = [f"{struct.__module__}.{struct.__qualname__}{struct._fields}"], []
    for stub, choose in DISPATCHERS:
        try:
            kernel = choose(struct)
        except LookupError:  # a table of other classes
            continue
        if kernel:
            parts = [kernel.py_func, *getattr(kernel, "closed_over", ())]
            words.append(f"{describe(stub)}={','.join(map(describe, parts))}")
            kernels += parts
    return " ".join(words), kernels


def _home(item: Any) -> _File | None:
    """Return the file of a function or class; None for raybox itself."""
    if item.__module__.partition(".")[0] == _NAME:
        return None
    if "<locals>" in item.__qualname__ and isinstance(item, type) and not hasattr(item, "_fields"):
        raise LookupError("a class made by a function can hold values that its file does not show")
    if not isinstance(item, FunctionType):
        return _file(vars(sys.modules[item.__module__]))
    if item.__closure__:
        raise LookupError("a closure holds values that its file does not show")
    return _File(item.__code__.co_filename, item.__globals__)


def _file(namespace: dict[str, Any]) -> _File:
    return _File(namespace["__file__"], namespace)


def _top(namespace: dict[str, Any]) -> str:
    return str(namespace["__name__"]).partition(".")[0]


def _hash(path: str) -> str:
    facts = os.stat(path)
    if max(facts.st_mtime, facts.st_ctime) > _START:
        raise LookupError(f"{path} has changed since it was imported")
    return hashlib.blake2b(_read(path), digest_size=32).hexdigest()


@cache
def _read(path: str) -> bytes:
    return Path(path).read_bytes()


def _structs_of(file: _File) -> list[type]:
    return [
        item for item in list(file.namespace.values()) if isinstance(item, type) and hasattr(item, "_fields")
    ]


def _imports(file: _File) -> Iterator[_File]:
    """Yield the files of imported modules and of functions in a namespace."""
    for name in _imported_names(file.path, file.namespace.get("__package__") or ""):
        if getattr(sys.modules.get(name), "__file__", None):
            yield _file(vars(sys.modules[name]))
    for item in list(file.namespace.values()):
        item = getattr(item, "py_func", item)  # noqa: PLW2901
        if isinstance(item, FunctionType):
            yield _File(item.__code__.co_filename, item.__globals__)
        elif isinstance(item, ModuleType) and getattr(item, "__file__", None):
            yield _file(vars(item))


@cache
def _imported_names(path: str, package: str) -> list[str]:
    if not path.endswith(".py"):
        return []
    names = set[str]()
    for node in ast.walk(ast.parse(_read(path))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names |= {f"{base}.{alias.name}" for alias in node.names}
    return sorted({prefix for name in names for prefix in accumulate(name.split("."), "{}.{}".format)})


def _is_own(file: _File, packages: set[str]) -> bool:
    """Return whether a file is a user's.

    It is not of raybox, of Python, or of an installed package other than `packages`.
    """
    top = _top(file.namespace)
    if top == _NAME or top in sys.stdlib_module_names:
        return False
    return top in packages or not _INSTALLED & set(PurePath(file.path).parts)
