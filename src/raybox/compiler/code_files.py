"""Machine code of entry points, stored in the user's cache folder and loaded without the compiler.

Each raybox, with its Numba and Python, has a folder for its code there; the most recently used ones stay. A
file begins with the key of the code and a checksum. Both are verified before the rest, a pickle, is read:
whoever can write a pickle can run code. For the same reason a folder that others can write is not used.

Numba also stores LLVM IR, for linking, and before loading it imports and initializes everything that
compiling needs. Entry points need neither: loading takes a tenth of the time.
"""

import hashlib
import os
import pickle
import re
import shutil
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import llvmlite.binding
from numba.core import compiler, config
from numba.core.runtime import rtsys


class MachineCode(NamedTuple):
    """Machine code of a library, with the names it defines and requires."""

    name: str
    code: bytes
    defined: tuple[str, ...]
    """Functions that Python or Numba look up by name."""
    required: tuple[str, ...]
    """Names that the process must define."""


def reduce(cres: Any) -> Any:
    """Return the picklable part of a compile result."""
    cres.fndesc.typemap = cres.fndesc.calltypes = None  # large, and only used by the compiler
    environments = tuple(cres._find_referenced_environments())
    code = _code_of(cres.library, cres.fndesc)
    return code, cres.fndesc, cres.environment, cres.signature, cres.reload_init, environments


def rebuild(target_context: Any, payload: Any) -> Any:
    """Return a callable compile result.

    None if this process lacks a required symbol.
    """
    code, fndesc, environment, signature, reload_init, environments = payload
    for function in reload_init:
        function()
    if not _define(code.required, target_context):
        return None
    library = _load(code, target_context.codegen())
    for one in environments:
        library.codegen.set_env(one.env_name, one)
    return compiler.compile_result(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=environment,
        entry_point=target_context.get_executable(library, fndesc, environment),
        fndesc=fndesc,
        type_annotation="",
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=reload_init,
        referenced_envs=environments,
    )


def _code_of(library: Any, fndesc: Any) -> MachineCode:
    module = library._final_module
    items = [*module.functions, *module.global_variables]
    entries = {fndesc.llvm_func_name, fndesc.llvm_cpython_wrapper_name, fndesc.llvm_cfunc_wrapper_name}
    defined = tuple(entries & {item.name for item in items if not item.is_declaration})
    required = tuple(item.name for item in items if item.is_declaration and not item.name.startswith("llvm."))
    return MachineCode(library.name, library._get_compiled_object(), defined, required)


def _load(code: MachineCode, codegen: Any) -> Any:
    library = codegen.create_library(code.name)
    library.enable_object_caching()
    library._set_compiled_object(code.code)
    library._finalize_final_module()
    codegen._engine._defined_symbols.update(code.defined)
    return library


def _define(names: tuple[str, ...], target_context: Any) -> bool:
    """Return whether the process defines these symbols.

    A missing one makes LLVM abort.

    Numba's runtime and context are initialized only as far as needed.
    """
    for prepare in (rtsys.initialize, lambda context: context.refresh()):
        if _is_defined(names):
            return True
        prepare(target_context)
    return _is_defined(names)


def _is_defined(names: tuple[str, ...]) -> bool:
    return all(map(llvmlite.binding.address_of_symbol, names))


VERSIONS = 8  # folders that stay: checkouts used in turns do not remove each other's
_MAX_AGE = 3600.0  # seconds after which a temporary file belongs to no running process
_FORMAT = b"raybox compiled code 1\n"


def cache_folder() -> Path | None:
    """Return raybox's folder in `NUMBA_CACHE_DIR` or the user's cache folder.

    It may not exist.
    """
    base = config.CACHE_DIR or _user_cache()
    return Path(base).absolute() / "raybox" if base else None


def _user_cache() -> str | Path | None:
    with suppress(RuntimeError):  # no home
        if sys.platform == "win32":
            return os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
        if sys.platform == "darwin":
            return Path.home() / "Library" / "Caches"
        folder = os.environ.get("XDG_CACHE_HOME", "")
        return folder if os.path.isabs(folder) else Path.home() / ".cache"
    return None


def is_private(folder: Path) -> bool:
    """Return whether a folder exists and only this user can write to it.

    A link to it must be the user's own.
    """
    try:
        facts, link = folder.stat(), folder.lstat()
    except OSError:
        return False
    if not stat.S_ISDIR(facts.st_mode):
        return False
    return os.name == "nt" or (facts.st_uid == link.st_uid == os.getuid() and not facts.st_mode & 0o022)


def load(path: Path, key: bytes) -> Any:
    """Return the object stored under a key.

    None if missing, damaged or foreign.
    """
    if not (is_private(path.parent.parent) and is_private(path.parent)):
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    payload = content[len(_header(key, b"")) :]
    if content != _header(key, payload) + payload:
        return None
    _mark_used(path.parent)
    try:
        return pickle.loads(payload)
    except Exception:  # unpickling can raise anything, for instance where a module is missing
        return None


def save(path: Path, key: bytes, payload: bytes) -> None:
    """Write a pickled object atomically, after removing old files.

    Ignore errors of the system.
    """
    new = path.with_name(f"{path.name}.{uuid4().hex[:8]}.tmp")
    with suppress(OSError):
        for folder in (path.parent.parent, path.parent):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not is_private(folder):
                return
        prune(path.parent)
        try:
            new.write_bytes(_header(key, payload) + payload)
            os.replace(new, path)
        finally:
            new.unlink(missing_ok=True)


def _header(key: bytes, payload: bytes) -> bytes:
    """Return the first bytes of a file. key: 32 bytes."""
    return _FORMAT + key + hashlib.blake2b(payload, key=key, digest_size=32).digest()


@cache
def _mark_used(folder: Path) -> None:
    with suppress(OSError):
        os.utime(folder)


@cache
def prune(folder: Path) -> None:
    """Remove old temporary files and the least recently used sibling folders."""
    for path in folder.glob("*.tmp"):
        if _age(path) > _MAX_AGE:
            path.unlink(missing_ok=True)
    others = [path for path in folder.parent.iterdir() if re.fullmatch("[0-9a-f]{32}", path.name)]
    for path in sorted(set(others) - {folder}, key=_age)[VERSIONS - 1 :]:
        shutil.rmtree(path, ignore_errors=True)


def _age(path: Path) -> float:
    """Return the seconds since a file or folder was last used."""
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
