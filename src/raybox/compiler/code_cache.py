"""Compiled code stored on disk, right for any number of processes and after any edit.

Numba's own cache notices edits in the file of the entry point alone, counts its files in an index that
processes overwrite each other's, and executes damaged machine code. Here a file is named for what identifies
its code, says what that is, and carries a checksum.
"""

import hashlib
import pickle
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numba.core.caching import _Cache
from numba.core.serialize import dumps
from numba.core.typing import Signature

from raybox.compiler.code_files import cache_folder, load, save
from raybox.compiler.code_origin import describe, find_origin, source_stamp
from raybox.compiler.stored_code import rebuild, reduce


@cache
def version_stamp() -> str:
    """Return a hash of the sources of raybox and of the versions of what compiles and runs its code."""
    versions = (
        numba.__version__,
        llvmlite.__version__,
        np.__version__,
        sys.version,
        getattr(sys, "abiflags", ""),
        sys.flags.optimize,
    )
    return hashlib.blake2b(repr((source_stamp(), versions)).encode(), digest_size=16).hexdigest()


class _Place(NamedTuple):
    """Where compiled code is stored, and the key that its file must bear."""

    path: Path
    key: bytes


class CodeCache(_Cache):
    """The stored code of one entry point, as Numba's dispatchers use it."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        source_stamp()  # now: sources may change before the first call
        self.enable()

    @property
    def cache_path(self) -> str | None:
        """The folder of the files; None if there is none."""
        folder = self._folder()
        return str(folder) if folder else None

    def enable(self) -> None:
        """Load and store code from now on."""
        self._enabled = True

    def disable(self) -> None:
        """Compile in each process from now on."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all files of this entry point."""
        folder = self._folder()
        for path in folder.glob(f"{self._name}.{'?' * 16}.nbc") if folder else ():
            path.unlink(missing_ok=True)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored code for argument types, ready to be called; None if it must be compiled."""
        place = self._place(sig, target_context.codegen())
        stored = place and load(place.path, place.key)
        try:
            return stored and rebuild(target_context, stored)
        except Exception:  # whatever Numba and LLVM raise: compiling anew is always right
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code, if it can be stored at all."""
        place = self._place(sig, data.codegen)
        if not place or data.lifted or data.library.has_dynamic_globals:
            return
        try:
            payload = dumps(reduce(data))
        except (pickle.PicklingError, TypeError, AttributeError):  # classes that have no name in a module
            return
        save(place.path, place.key, payload)

    def _folder(self) -> Path | None:
        root = cache_folder()
        return root / version_stamp() if root and self._enabled and source_stamp() else None

    def _place(self, sig: Any, codegen: Any) -> _Place | None:
        """Return where the code for argument types and this processor is; None if it is not stored."""
        folder = self._folder()
        kinds = sig.args if isinstance(sig, Signature) else sig
        origin = find_origin(self._function, kinds) if folder else None
        if not (folder and origin):
            return None
        code = describe(self._function), repr(sig), repr(codegen.magic_tuple())
        text = "\n".join([version_stamp(), *code, origin.text])
        name = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()  # the newest of users' files stays
        key = hashlib.blake2b(f"{text}\n{origin.contents}".encode(), digest_size=32).digest()
        return _Place(folder / f"{self._name}.{name}.nbc", key)
